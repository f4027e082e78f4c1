//! A small registry and graph parsers for this crate's tests.

use crate::shape::{Dtype, ResultShapes};
use flambeau_ir::loc::Source;
use flambeau_ir::text::parse_graph;
use flambeau_ir::{AliasRule, Effects, Graph, NodeId, OpDef, Registry, RegistryBuilder, ValueId, verify};
use std::sync::Arc;

pub(crate) fn registry() -> Arc<Registry> {
    let pointwise = |schema: &str, n: usize| {
        OpDef::new(schema).with(ResultShapes::broadcast(0..n)).with(Dtype::promote(0..n))
    };
    let mut builder = RegistryBuilder::new();
    builder.add([
        pointwise("aten::relu(Tensor self) -> Tensor", 1),
        pointwise("aten::tanh(Tensor self) -> Tensor", 1),
        pointwise("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", 2),
        pointwise("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", 2),
        OpDef::new("aten::mm(Tensor self, Tensor mat2) -> Tensor")
            .with(ResultShapes::matmul(0, 1))
            .with(Dtype::same_as(0)),
        OpDef::new("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)")
            .with(ResultShapes::same_as(0))
            .with(Dtype::same_as(0)),
        OpDef::new("aten::set_.source_Tensor(Tensor(a! -> *) self, Tensor(b -> *) source) -> Tensor(a!)"),
        OpDef::new("aten::resize_(Tensor(a!) self, int[] size) -> Tensor(a!)").with(ResultShapes::of_size(1)),
        OpDef::new("aten::t(Tensor(a) self) -> Tensor(a)")
            .with(ResultShapes::transpose_last())
            .with(Dtype::same_as(0)),
        OpDef::new("aten::view(Tensor(a) self, int[] size) -> Tensor(a)")
            .with(ResultShapes::reshape(1))
            .with(Dtype::same_as(0)),
        OpDef::new("aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
            .with(ResultShapes::chunk(1, 2))
            .with(Dtype::same_as(0)),
        OpDef::new("aten::split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]"),
        OpDef::new("aten::cat(Tensor[] tensors, int dim=0) -> Tensor")
            .with(ResultShapes::cat(0, 1))
            .with(Dtype::promote([0])),
        OpDef::new("aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]"),
        OpDef::new("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)"),
        OpDef::new("aten::__getitem__.t(t[](a) list, int idx) -> t(*)"),
        OpDef::new("aten::len.t(t[] a) -> int"),
        OpDef::new("aten::size(Tensor self) -> int[]").with(ResultShapes::sizes_of(0)),
        OpDef::new("aten::size.int(Tensor self, int dim) -> int").with(ResultShapes::size_of(0, 1)),
        OpDef::new("aten::mul.int(int a, int b) -> int")
            .with(ResultShapes::int(|cx| Some(cx.symbols.mul(cx.int(0)?, cx.int(1)?)))),
        OpDef::new("aten::copy.t(t[](a) self) -> t[]"),
        OpDef::new("aten::wait(Future(t) self) -> t").with(AliasRule::Waits),
        OpDef::new("aten::rand(int[] size) -> Tensor").with(Effects::RANDOM).with(ResultShapes::of_size(0)),
        OpDef::new("aten::norm(Tensor input, Tensor? running_mean, bool training) -> Tensor")
            .with(AliasRule::WritesWhen { flag: "training", args: &["running_mean"] }),
        OpDef::new("aten::mystery(Tensor a) -> Tensor").with(Effects::CONSERVATIVE),
    ]);
    builder.build().expect("test schemas are well formed")
}

pub(crate) fn graph(text: &str) -> Graph {
    let source = Source::new("test", text);
    let g = parse_graph(&source, &registry()).unwrap_or_else(|e| panic!("{e:?}"));
    if let Err(e) = verify::verify(&g) {
        panic!("{e:?}");
    }
    g
}

pub(crate) fn value(g: &Graph, name: &str) -> ValueId {
    g.values_in_order().find(|&v| g.name(v).to_string() == name).unwrap_or_else(|| panic!("no value %{name}"))
}

pub(crate) fn def(g: &Graph, name: &str) -> NodeId {
    g.def(value(g, name))
}

/// A small random number generator for property tests.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
