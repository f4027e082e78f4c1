//! Measures nanoseconds and bytes per node of the IR's basic operations. Argument: number of nodes.

use flambeau_ir::text::{PrintOptions, parse_graph};
use flambeau_ir::{Graph, IValue, Registry, RegistryBuilder, Source, Type};
use std::sync::Arc;
use std::time::Instant;

fn registry() -> Arc<Registry> {
    let mut b = RegistryBuilder::new();
    b.declare(
        "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor\n\
         aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n\
         aten::tanh(Tensor self) -> Tensor\n",
    );
    b.build().expect("the schemas parse")
}

fn main() {
    let n: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1_000_000);
    let registry = registry();
    let ops =
        ["aten::mul.Tensor", "aten::add.Tensor", "aten::tanh"].map(|o| registry.lookup(o).expect("declared"));
    let mut g = Graph::new(Arc::clone(&registry));
    let (x, one) = {
        let mut e = g.edit();
        (e.add_input(Type::TENSOR), e.constant(IValue::Int(1)))
    };
    let time = Instant::now();
    let (mut a, mut b) = (x, x);
    let mut e = g.edit();
    for i in 0..n {
        let v = match i % 3 {
            0 => e.value(ops[0], &[a, b], Type::TENSOR),
            1 => e.value(ops[1], &[a, b, one], Type::TENSOR),
            _ => e.value(ops[2], &[a], Type::TENSOR),
        };
        (a, b) = (v, a);
    }
    e.add_output(a);
    let per = |t: Instant| t.elapsed().as_nanos() as f64 / n as f64;
    println!("build  {:8.1} ns/node", per(time));
    println!("bytes  {:8.1} per node", g.heap_bytes() as f64 / n as f64);
    let time = Instant::now();
    let text = g.to_text(PrintOptions::default());
    println!("print  {:8.1} ns/node", per(time));
    let source = Source::new("bench.ir", text.clone());
    let time = Instant::now();
    let read = parse_graph(&source, &registry).unwrap_or_else(|e| panic!("{}", e.render()));
    println!("parse  {:8.1} ns/node", per(time));
    println!("bytes  {:8.1} per node as read", read.heap_bytes() as f64 / n as f64);
    assert_eq!(read.to_text(PrintOptions::default()), text);
    let time = Instant::now();
    flambeau_ir::verify::verify(&read).expect("valid");
    println!("verify {:8.1} ns/node", per(time));
    let time = Instant::now();
    let copy = read.clone();
    println!("clone  {:8.1} ns/node", per(time));
    drop(copy);
}
