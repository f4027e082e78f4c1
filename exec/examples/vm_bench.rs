//! Figures of the machine: nanoseconds for an iteration, an element, a call.
//!
//! `cargo run --release -p flambeau-exec --example vm_bench` (`-- sum` for one of them; `-- --code` lists the code).

#[path = "../tests/toy/mod.rs"]
mod toy;

use flambeau_exec::{Code, Host, Program, Vm};
use flambeau_ir::{CompilationUnit, IValue, Registry};
use flambeau_tensor::Tensor;
use std::sync::Arc;
use std::time::Instant;

const SUM: &str = "graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %seven : int = prim::Constant[value=7]()
  %s : int = prim::Loop(%n, %true, %zero)
    block0(%i : int, %a : int):
      %x : int = aten::mul(%i, %three)
      %y : int = aten::remainder(%x, %seven)
      %b : int = aten::add(%a, %y)
      -> (%true, %b)
  return (%s)
";

const COLLATZ: &str = "graph(%limit : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %true : bool = prim::Constant[value=1]()
  %total : int = prim::Loop(%limit, %true, %zero)
    block0(%i : int, %t : int):
      %n0 : int = aten::add(%i, %one)
      %go : bool = aten::ne(%n0, %one)
      %n2 : int, %t2 : int = prim::Loop(%max, %go, %n0, %t)
        block0(%j : int, %n : int, %steps : int):
          %r : int = aten::remainder(%n, %two)
          %even : bool = aten::eq(%r, %zero)
          %m : int = prim::If(%even)
            block0():
              %h : int = aten::floordiv(%n, %two)
              -> (%h)
            block1():
              %a : int = aten::mul(%n, %three)
              %b : int = aten::add(%a, %one)
              -> (%b)
          %next : int = aten::add(%steps, %one)
          %more : bool = aten::ne(%m, %one)
          -> (%more, %m, %next)
      -> (%true, %t2)
  return (%total)
";

const LISTS: &str = "graph(%n : int):
  %zero : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %l : int[] = prim::ListConstruct()
   = prim::Loop(%n, %true)
    block0(%i : int):
      %p : int[] = aten::append(%l, %i)
      -> (%true)
  %m : int = aten::len(%l)
  %s : int = prim::Loop(%m, %true, %zero)
    block0(%k : int, %a : int):
      %v : int = aten::__getitem__(%l, %k)
      %b : int = aten::add(%a, %v)
      -> (%true, %b)
  return (%s)
";

const RELU: &str = "graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
";

const NOTHING: &str = "graph(%x : Tensor):
  return (%x)
";

const LSTM: &str = "graph(%x : Tensor, %h : Tensor, %c : Tensor, %wi : Tensor, %wh : Tensor, %b : Tensor):
  %one : int = prim::Constant[value=1]()
  %four : int = prim::Constant[value=4]()
  %p : Tensor = aten::mm(%x, %wi)
  %q : Tensor = aten::mm(%h, %wh)
  %r : Tensor = aten::add(%p, %q, %one)
  %g : Tensor = aten::add(%r, %b, %one)
  %l : Tensor[] = aten::chunk(%g, %four, %one)
  %i0 : Tensor, %f0 : Tensor, %g0 : Tensor, %o0 : Tensor = prim::ListUnpack(%l)
  %i : Tensor = aten::sigmoid(%i0)
  %f : Tensor = aten::sigmoid(%f0)
  %gt : Tensor = aten::tanh(%g0)
  %o : Tensor = aten::sigmoid(%o0)
  %fc : Tensor = aten::mul(%f, %c)
  %ig : Tensor = aten::mul(%i, %gt)
  %c2 : Tensor = aten::add(%fc, %ig, %one)
  %tc : Tensor = aten::tanh(%c2)
  %h2 : Tensor = aten::mul(%o, %tc)
  return (%h2, %c2)
";

const LSTM_FUSED: &str =
    "graph(%x : Tensor, %h : Tensor, %c : Tensor, %wi : Tensor, %wh : Tensor, %b : Tensor):
  %p : Tensor = aten::mm(%x, %wi)
  %q : Tensor = aten::mm(%h, %wh)
  %h2 : Tensor, %c2 : Tensor = prim::FusionGroup_0(%p, %q, %b, %c)
  return (%h2, %c2)
with prim::FusionGroup_0 = graph(%p : Tensor, %q : Tensor, %b : Tensor, %c : Tensor):
  %one : int = prim::Constant[value=1]()
  %p0 : Tensor, %p1 : Tensor, %p2 : Tensor, %p3 : Tensor = prim::ConstantChunk[chunks=4, dim=1](%p)
  %q0 : Tensor, %q1 : Tensor, %q2 : Tensor, %q3 : Tensor = prim::ConstantChunk[chunks=4, dim=1](%q)
  %b0 : Tensor, %b1 : Tensor, %b2 : Tensor, %b3 : Tensor = prim::ConstantChunk[chunks=4, dim=0](%b)
  %r0 : Tensor = aten::add(%p0, %q0, %one)
  %i0 : Tensor = aten::add(%r0, %b0, %one)
  %r1 : Tensor = aten::add(%p1, %q1, %one)
  %f0 : Tensor = aten::add(%r1, %b1, %one)
  %r2 : Tensor = aten::add(%p2, %q2, %one)
  %g0 : Tensor = aten::add(%r2, %b2, %one)
  %r3 : Tensor = aten::add(%p3, %q3, %one)
  %o0 : Tensor = aten::add(%r3, %b3, %one)
  %i : Tensor = aten::sigmoid(%i0)
  %f : Tensor = aten::sigmoid(%f0)
  %gt : Tensor = aten::tanh(%g0)
  %o : Tensor = aten::sigmoid(%o0)
  %fc : Tensor = aten::mul(%f, %c)
  %ig : Tensor = aten::mul(%i, %gt)
  %c2 : Tensor = aten::add(%fc, %ig, %one)
  %tc : Tensor = aten::tanh(%c2)
  %h2 : Tensor = aten::mul(%o, %tc)
  return (%h2, %c2)
";

const CHAIN: &str = "graph(%x : Tensor, %y : Tensor):
  %z : Tensor = prim::FusionGroup_0(%x, %y)
  return (%z)
with prim::FusionGroup_0 = graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %half : float = prim::Constant[value=0.5]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::add(%a, %x, %one)
  %c : Tensor = aten::sigmoid(%b)
  %d : Tensor = aten::mul(%c, %half)
  %e : Tensor = aten::tanh(%d)
  %f : Tensor = aten::relu(%e)
  return (%f)
";

struct Bench {
    registry: Arc<Registry>,
    vm: Vm,
}

impl Bench {
    /// Nanoseconds of one run: the best of many short rounds, so that a busy machine does not count.
    fn time(&mut self, name: &str, text: &str, args: &[IValue], times: usize) -> f64 {
        if std::env::args().nth(1).is_some_and(|only| !only.starts_with('-') && only != name) {
            return f64::NAN;
        }
        let graph = toy::graph(&self.registry, text);
        let code = Arc::new(Code::compile(&graph, &CompilationUnit::new()).expect("the benchmark compiles"));
        let mut host = Host::new();
        let mut best = f64::INFINITY;
        let begin = Instant::now();
        while begin.elapsed().as_millis() < 700 {
            let start = Instant::now();
            for _ in 0..times {
                let rets = self.vm.run(&code, args.iter().cloned(), &mut host);
                std::hint::black_box(rets.expect("the benchmark runs"));
            }
            best = best.min(start.elapsed().as_nanos() as f64 / times as f64);
        }
        if std::env::args().any(|a| a == "--code") {
            println!("{code}");
        }
        best
    }
}

fn tensor(sizes: &[i64]) -> IValue {
    let n: i64 = sizes.iter().product();
    let values = (0..n).map(|i| (i % 17) as f32 * 0.1 - 0.8).collect();
    IValue::Tensor(Tensor::from_vec(values, sizes).expect("a small tensor"))
}

fn main() {
    let program = Program::new(Arc::new(CompilationUnit::new()));
    let mut bench = Bench { registry: toy::registry(), vm: Vm::new(program) };
    let n = 20_000;
    let per = |label: &str, ns: f64, unit: &str, limit: f64| {
        println!("{label:<44}{ns:>10.2} {unit:<12} (limit {limit})")
    };
    per("s = s + (i*3) % 7", bench.time("sum", SUM, &[IValue::Int(n)], 1) / n as f64, "ns/iteration", 8.0);
    per("collatz(3000)", bench.time("collatz", COLLATZ, &[IValue::Int(3000)], 1) / 1e6, "ms", 5.0);
    per(
        "list append, then sum",
        bench.time("list", LISTS, &[IValue::Int(n)], 1) / n as f64,
        "ns/element",
        20.0,
    );
    per("empty call", bench.time("call", NOTHING, &[tensor(&[16])], 1_000), "ns", 150.0);
    per("relu of 16 floats", bench.time("relu", RELU, &[tensor(&[16])], 1_000), "ns", 150.0);
    let (b, h) = (1, 8);
    let cell = [
        tensor(&[b, h]),
        tensor(&[b, h]),
        tensor(&[b, h]),
        tensor(&[h, 4 * h]),
        tensor(&[h, 4 * h]),
        tensor(&[4 * h]),
    ];
    per("LSTM cell B=1 H=8, unfused", bench.time("lstm", LSTM, &cell, 200) / 1e3, "us", 3.0);
    per("LSTM cell B=1 H=8, fused", bench.time("lstm-fused", LSTM_FUSED, &cell, 200) / 1e3, "us", 3.0);
    for (n, limit, times) in [(16, 1e9, 1000), (1_000_000, 0.9, 1), (16_000_000, 1.8, 1)] {
        let ns = bench.time("chain", CHAIN, &[tensor(&[n]), tensor(&[n])], times) / n as f64;
        per(&format!("6-operation chain fused, {n} elements"), ns, "ns/element", limit);
    }
}
