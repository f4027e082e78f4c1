//! A registry with a few operators, and helpers for the tests of this crate.

use crate::autodiff::Gradients;
use crate::control::Control;
use crate::facets::{AlwaysView, ChunkOp, ContainerOp, OpRole, Rules};
use crate::manager::{Checks, Manager};
use crate::pipeline::{PassLibrary, Pipeline};
use flambeau_analysis::{Analyses, Dtype, ResultShapes};
use flambeau_exec::{Kernel, Pointwise, TileOp};
use flambeau_ir::text::parse_graph;
use flambeau_ir::{Effects, Graph, IValue, OpDef, Registry, RegistryBuilder, Source};
use flambeau_tensor::{DType, Scalar, Tensor};
use std::sync::Arc;

const RULES: &str = "ruleset toy
use toy
rule mul-one [exact]: mul(%x, 1) => %x where same_type(%x, root)
rule relu-relu [exact]: relu(relu(%x)) => relu(%x)
rule t-t [exact]: t(t(%x)) => %x
law mul-comm [exact]: mul.Tensor(%x, %y) <=> mul.Tensor(%y, %x) where same_type(%x, %y)
rule factor [rounding]: add(mul.Tensor(%a, %b), mul.Tensor(%a, %c)) => mul.Tensor(%a, add(%b, %c))
";

fn ints(f: fn(i64, i64) -> IValue) -> Kernel {
    Kernel::new(move |cx| {
        let value = f(cx.int(0)?, cx.int(1)?);
        cx.ret(value);
        Ok(())
    })
}

fn zeros() -> Kernel {
    Kernel::new(|cx| {
        let sizes = cx.ints(0)?;
        let n = sizes.iter().product::<i64>() as usize;
        cx.ret(Tensor::from_scalars(&vec![Scalar::Float(0.0); n], &sizes, DType::F32)?);
        Ok(())
    })
}

const GRADS: &str = "toy::mul
  self = grad * other
  other = grad * self
toy::relu
  self = grad * (result > 0)
";

/// A registry with operators of all kinds of aliasing and effects.
pub(crate) fn toy() -> Arc<Registry> {
    let mut b = RegistryBuilder::new();
    b.add([
        OpDef::new("toy::relu(Tensor self) -> Tensor")
            .with(Rules::text(RULES))
            .with(Dtype::same_as("self"))
            .with(ResultShapes::same_as("self"))
            .with(OpRole::Activation)
            .with(Gradients::file("toy.grads", GRADS))
            .with(Pointwise::unary(TileOp::Relu)),
        OpDef::new("toy::relu_(Tensor(a!) self) -> Tensor(a!)"),
        OpDef::new("toy::mul.Tensor(Tensor self, Tensor other) -> Tensor")
            .with(Dtype::promote([0, 1]))
            .with(ResultShapes::broadcast([0, 1]))
            .with(Pointwise::binary(TileOp::Mul)),
        OpDef::new("toy::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
            .with(Dtype::same_as(0))
            .with(ResultShapes::same_as(0)),
        OpDef::new("toy::mul.Scalar(Tensor self, Scalar other) -> Tensor")
            .with(Dtype::promote([0, 1]))
            .with(ResultShapes::like(0)),
        OpDef::new("toy::mul.int(int a, int b) -> int")
            .with(OpRole::Product)
            .with(ints(|a, b| IValue::Int(a * b))),
        OpDef::new("toy::sub.int(int a, int b) -> int").with(OpRole::Difference),
        OpDef::new("toy::quotient.int(int a, int b) -> int").with(OpRole::Quotient),
        OpDef::new("toy::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
            .with(Dtype::promote([0, 1]))
            .with(ResultShapes::broadcast([0, 1]))
            .with(Pointwise::scaled(TileOp::Add)),
        OpDef::new("toy::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]").with(ChunkOp),
        OpDef::new("toy::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"),
        OpDef::new("toy::add.int(int a, int b) -> int")
            .with(OpRole::Sum)
            .with(ints(|a, b| IValue::Int(a + b))),
        OpDef::new("toy::add_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"),
        OpDef::new("toy::t(Tensor(a) self) -> Tensor(a)")
            .with(AlwaysView)
            .with(Dtype::same_as(0))
            .with(ResultShapes::transpose_last()),
        OpDef::new("toy::rand(int[] size) -> Tensor").with(Effects::RANDOM).with(zeros()),
        OpDef::new("toy::zeros(int[] size) -> Tensor").with(zeros()),
        OpDef::new("toy::zeros_like(Tensor self) -> Tensor"),
        OpDef::new("toy::eq.int(int a, int b) -> bool").with(OpRole::Equal),
        OpDef::new("toy::mm(Tensor a, Tensor b) -> Tensor").with(OpRole::MatrixProduct),
        OpDef::new("toy::plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
            .with(OpRole::ScaledSum),
        OpDef::new("toy::plus.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"),
        OpDef::new("toy::lt.int(int a, int b) -> bool").with(ints(|a, b| IValue::Bool(a < b))),
        OpDef::new("toy::append(Tensor[](a!) self, Tensor(b -> *) el) -> Tensor[](a!)")
            .with(ContainerOp::Append),
        OpDef::new("toy::count(int[] list) -> int").with(ContainerOp::Count),
        OpDef::new("toy::count_tensors(Tensor[] list) -> int").with(ContainerOp::Count),
        OpDef::new("toy::item(int[] list, int index) -> int").with(ContainerOp::Item),
        OpDef::new("toy::concat(int[] a, int[] b) -> int[]").with(ContainerOp::Concat),
        OpDef::new("toy::warn(str message) -> ()").with(Effects::IO),
    ]);
    b.build().expect("the toy registry is valid")
}

/// Parses a graph.
pub(crate) fn read(registry: &Arc<Registry>, text: &str) -> Graph {
    parse_graph(&Source::new("test.ir", text), registry).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a pipeline with the strictest checks.
pub(crate) fn run(registry: &Arc<Registry>, pipeline: &str, before: &str) -> Graph {
    run_with(registry, pipeline, before, Control::new())
}

/// Like [`run`], with a control.
pub(crate) fn run_with(
    registry: &Arc<Registry>,
    pipeline: &str,
    before: &str,
    mut control: Control,
) -> Graph {
    let mut graph = read(registry, before);
    let pipeline = Pipeline::parse(pipeline, &PassLibrary::standard()).unwrap_or_else(|e| panic!("{e}"));
    Manager::new()
        .checks(Checks::EveryEdit)
        .run_with(&mut graph, &pipeline, &mut Analyses::new(), &mut control)
        .unwrap_or_else(|e| panic!("{e}\n{}", e.reproducer.as_deref().unwrap_or_default()));
    graph
}

/// Asserts the result of a pipeline; `after` is compared up to names of values.
#[track_caller]
pub(crate) fn assert_passes(registry: &Arc<Registry>, pipeline: &str, before: &str, after: &str) {
    let mut got = run(registry, pipeline, before);
    let mut want = read(registry, after);
    got.edit().renumber(true);
    want.edit().renumber(true);
    assert_eq!(got.to_string(), want.to_string());
}

/// Prints the time of passes per node on long graphs: `cargo test --release -p flambeau-rewrite times -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
fn times() {
    let registry = toy();
    let op = |name: &str| registry.lookup(name).expect("a toy");
    for n in [100_000usize, 1_000_000] {
        for pass in ["dce", "cse", "constant_pooling", "constant_propagation", "peephole"] {
            let mut graph = Graph::new(Arc::clone(&registry));
            let mut e = graph.edit();
            let (x, y) = (e.add_input(flambeau_ir::Type::TENSOR), e.add_input(flambeau_ir::Type::TENSOR));
            let one = e.constant(IValue::Int(1));
            let mut last = [x, y];
            for i in 0..n {
                let v = match i % 4 {
                    0 => e.value(op("toy::add.Tensor"), &[last[0], last[1], one], flambeau_ir::Type::TENSOR),
                    1 => e.value(op("toy::mul.Tensor"), &[last[0], x], flambeau_ir::Type::TENSOR),
                    2 => e.value(op("toy::relu"), &[last[0]], flambeau_ir::Type::TENSOR),
                    // Dead, and equal to the node before.
                    _ => e.value(op("toy::relu"), &[last[1]], flambeau_ir::Type::TENSOR),
                };
                if i % 4 != 3 {
                    last = [v, last[0]];
                }
            }
            e.add_output(last[0]);
            let pipeline = Pipeline::parse(pass, &PassLibrary::standard()).expect("a pass");
            let report = Manager::new().run(&mut graph, &pipeline).expect("runs");
            let ns = report.time().as_nanos() as f64 / n as f64;
            println!("{pass:<24} {n:>8} nodes {ns:>8.1} ns per node, {} remaining", graph.node_count());
        }
    }
}
