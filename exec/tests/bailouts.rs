//! Bail-outs on the machine: counted and forced failures, and the lifetime of captured values.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

mod toy;

use flambeau_exec::{Code, CompiledProgram, Host, Vm};
use flambeau_ir::{CompilationUnit, IValue};
use flambeau_tensor::Tensor;
use std::sync::Arc;

/// Bail-outs in a loop, with captures that die there; every check may be forced to fail.
#[test]
fn forced_bailouts_are_counted_and_free_their_captures() {
    let text = "graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %dead : Tensor = aten::relu(%x)
  %t : Float(2) = prim::BailOut_0[index=7](%x, %x, %n, %dead)
  %y : Tensor = prim::Loop(%n, %true, %t)
    block0(%i : int, %c : Tensor):
      %g : Float(2) = prim::BailOut_1[index=8](%c, %c, %i)
      %d : Tensor = aten::neg(%g)
      -> (%true, %d)
  return (%y, %n)
with prim::BailOut_0 = graph(%x : Tensor, %n : int, %dead : Tensor):
  %one : int = prim::Constant[value=1]()
  return (%dead, %one)
with prim::BailOut_1 = graph(%c : Tensor, %i : int):
  return (%c, %i)
";
    let registry = toy::registry();
    let graph = toy::graph(&registry, text);
    let code = Arc::new(Code::compile(&graph, &CompilationUnit::new()).unwrap());
    let mut vm = Vm::new(CompiledProgram::new(Arc::new(CompilationUnit::new())));
    let mut call = |n: i64| {
        let x = IValue::Tensor(Tensor::from_vec(vec![-1.0f32; 2], &[2]).unwrap());
        let mut host = Host::quiet();
        host.set_fuel(5);
        let results = vm.run(&code, [x, IValue::Int(n)], &mut host).unwrap();
        (results[0].as_tensor().unwrap().to_vec::<f32>().unwrap()[0], results[1].as_int().unwrap())
    };
    let failures = || code.bailouts().map(|b| (b.index, b.failures)).collect::<Vec<_>>();
    assert_eq!(call(3), (1.0, 3));
    assert_eq!(failures(), [(Some(7), 0), (Some(8), 0)]);
    code.force_bailout(1, 2);
    assert_eq!(call(3), (1.0, 1));
    code.force_bailout(1, 0);
    code.force_bailout(0, 1);
    assert_eq!(call(3), (0.0, 1));
    code.force_bailout(0, 0);
    assert_eq!(call(3), (1.0, 3));
    assert_eq!(failures(), [(Some(7), 1), (Some(8), 1)]);
}
