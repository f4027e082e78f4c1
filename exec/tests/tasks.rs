//! Concurrent tasks: every number of threads and every forced interleaving gives the results of the reference, which runs
//! a task at its fork.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

mod toy;

use flambeau_exec::{Code, CompiledProgram, ExecError, Fault, Host, Vm, reference};
use flambeau_ir::value::{List, ListItems};
use flambeau_ir::{CompilationUnit, Graph, IValue, Type};
use flambeau_tensor::threads;
use std::sync::Arc;

/// The observable end of a run.
type End = Result<String, (String, Vec<String>)>;

fn end(result: Result<Vec<IValue>, ExecError>) -> End {
    match result {
        Ok(values) => Ok(format!("{values:?}")),
        Err(error) => {
            let trace = error.trace.iter().map(|t| format!("{}: {}", t.function, t.op)).collect();
            Err((error.to_string(), trace))
        }
    }
}

/// Runs a program by the reference and by the machine in all ways; returns the result.
fn all_ways(text: &str, args: &dyn Fn() -> Vec<IValue>) -> End {
    let graph = toy::graph(&toy::registry(), text);
    let unit = Arc::new(CompilationUnit::new());
    let code = Arc::new(Code::compile(&graph, &*unit).unwrap());
    let want = end(reference::run(&graph, args(), &*unit, &mut Host::quiet()));
    let mut vm = Vm::new(CompiledProgram::new(unit));
    for count in [1, 2, 4] {
        for _ in 0..4 {
            let got = threads::with(count, || vm.run(&code, args(), &mut Host::quiet()));
            assert_eq!(want, end(got), "{count} threads\n{code}");
        }
    }
    for seed in 0..40 {
        vm.force_interleaving(Some(seed));
        let got = vm.run(&code, args(), &mut Host::quiet());
        assert_eq!(want, end(got), "seed {seed}\n{code}");
    }
    want
}

fn listing(text: &str) -> String {
    let graph: Arc<Graph> = toy::graph(&toy::registry(), text);
    Code::compile(&graph, &CompilationUnit::new()).unwrap().to_string()
}

/// A frame that starts two tasks on a list and appends to the list before it waits.
const FRAME: &str = "graph(%l : int[], %one : int):
  %f : Future(int) = prim::fork_0(%l)
  %g : Future(int) = prim::fork_1(%l)
  %l2 : int[] = aten::append(%l, %one)
  %v : int = aten::wait(%f)
  %w : int = aten::wait(%g)
  %r : int = aten::add(%v, %w)
  return (%r, %l)
";

/// The task: sums the list.
const TASK: &str = "graph(%l : int[]):
  %n : int = aten::len(%l)
  %zero : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %s : int = prim::Loop(%n, %true, %zero)
    block0(%i : int, %a : int):
      %x : int = aten::__getitem__(%l, %i)
      %b : int = aten::add(%a, %x)
      -> (%true, %b)
  return (%s)
";

/// The frame with its two tasks.
fn reader() -> String {
    format!("{FRAME}with prim::fork_0 = {TASK}with prim::fork_1 = {TASK}")
}

fn list(items: &[i64]) -> IValue {
    IValue::List(List::from_items(Type::INT, ListItems::Ints(items.to_vec())))
}

#[test]
fn frames_join_their_tasks_before_they_write_shared_memory() {
    let code = listing(&reader());
    assert_eq!(code.matches("Call concurrent").count(), 2, "{code}");
    assert_eq!(code.matches("Sync").count(), 1, "{code}");
    let got = all_ways(&reader(), &|| vec![list(&[1, 2, 3]), IValue::Int(9)]);
    assert!(got.unwrap().contains("12"));
}

#[test]
fn tasks_that_write_shared_memory_run_at_their_forks() {
    let text = reader().replace(
        "  %n : int = aten::len(%l)\n",
        "  %n : int = aten::len(%l)\n  %l2 : int[] = aten::append(%l, %n)\n",
    );
    assert!(!listing(&text).contains("concurrent"));
    all_ways(&text, &|| vec![list(&[1, 2, 3]), IValue::Int(9)]).unwrap();
}

/// A chain: each task waits for the previous one and may fail.
const CHAIN: &str = "graph(%n : int, %first : int, %d : int):
  %true : bool = prim::Constant[value=1]()
  %f : Future(int) = prim::fork_0(%first, %d)
  %all0 : Future(int)[] = prim::ListConstruct(%f)
  %last : Future(int) = prim::Loop(%n, %true, %f)
    block0(%i : int, %g : Future(int)):
      %h : Future(int) = prim::fork_1(%g, %d)
      %all : Future(int)[] = aten::append(%all0, %h)
      -> (%true, %h)
  %v : int = aten::wait(%last)
  %len : int = aten::len(%all0)
  return (%v, %len)
with prim::fork_0 = graph(%x : int, %d : int):
  %true : bool = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %s : int = prim::Loop(%three, %true, %x)
    block0(%i : int, %a : int):
      %b : int = aten::floordiv(%a, %d)
      -> (%true, %b)
  return (%s)
with prim::fork_1 = graph(%g : Future(int), %d : int):
  %v : int = aten::wait(%g)
  %one : int = prim::Constant[value=1]()
  %w : int = aten::add(%v, %one)
  return (%w)
";

#[test]
fn chains_of_tasks_wait_without_blocking_threads() {
    assert_eq!(listing(CHAIN).matches("Call concurrent").count(), 2, "{}", listing(CHAIN));
    let got = all_ways(CHAIN, &|| vec![IValue::Int(10), IValue::Int(5), IValue::Int(1)]);
    assert!(got.unwrap().contains("15"));
    let error = all_ways(CHAIN, &|| vec![IValue::Int(10), IValue::Int(5), IValue::Int(0)]).unwrap_err();
    assert!(error.0.contains("FutureError"), "{error:?}");
    let graph = toy::graph(&toy::registry(), CHAIN);
    let unit = Arc::new(CompilationUnit::new());
    let code = Arc::new(Code::compile(&graph, &*unit).unwrap());
    let mut vm = Vm::new(CompiledProgram::new(unit));
    for n in [10_000, 100_000] {
        let args = vec![IValue::Int(n), IValue::Int(5), IValue::Int(1)];
        let got = threads::with(2, || vm.run(&code, args, &mut Host::quiet())).unwrap();
        assert_eq!(got[0].as_int(), Some(n + 5));
    }
}

#[test]
fn limits_of_tasks_end_the_run_as_if_the_task_had_run_at_its_fork() {
    let graph = toy::graph(&toy::registry(), &reader());
    let unit = Arc::new(CompilationUnit::new());
    let code = Arc::new(Code::compile(&graph, &*unit).unwrap());
    let mut vm = Vm::new(CompiledProgram::new(unit));
    let mut run = |fuel: u64, depth: usize, count: usize| {
        let mut host = Host::quiet();
        host.set_fuel(fuel).set_max_depth(depth);
        let args = vec![list(&[1; 50]), IValue::Int(1)];
        let result = threads::with(count, || vm.run(&code, args, &mut host));
        if let Err(error) = &result {
            assert_eq!(error.fault, Fault::Limit);
            let op = error.trace.first().unwrap().op;
            // Each task starts with the fuel that its frame has left. If the tasks used more in sum, the error is raised at their
            // join, which comes directly before the frame's append.
            assert!(op.as_str() == "prim::fork" || fuel < 1000 && op.as_str() == "aten::append", "{op}");
        }
        (result.map_err(|e| e.to_string()).map(|v| format!("{v:?}")), host.fuel())
    };
    for fuel in [0, 10, 40, 49, 50, 51, 52, 60, 97, 98, 99, 100, 101, 102, 103, 104, 1000] {
        let serial = run(fuel, 100, 1);
        for count in [2, 4] {
            let (got, left) = run(fuel, 100, count);
            assert_eq!(serial.0, got, "fuel {fuel}");
            assert!(serial.0.is_err() || serial.1 == left, "fuel {fuel}");
        }
    }
    for depth in 1..4 {
        assert_eq!(run(1000, depth, 1), run(1000, depth, 2), "depth {depth}");
    }
}

#[test]
fn a_task_without_a_wait_is_joined_when_its_frame_returns() {
    let text = reader()
        .replace("  %w : int = aten::wait(%g)\n  %r : int = aten::add(%v, %w)\n", "")
        .replace("%r, %l", "%v, %g");
    let graph = toy::graph(&toy::registry(), &text);
    let unit = Arc::new(CompilationUnit::new());
    let code = Arc::new(Code::compile(&graph, &*unit).unwrap());
    let mut vm = Vm::new(CompiledProgram::new(unit));
    for seed in [None, Some(1), Some(2)] {
        vm.force_interleaving(seed);
        let args = vec![list(&[1, 2]), IValue::Int(9)];
        let got = threads::with(2, || vm.run(&code, args, &mut Host::quiet())).unwrap();
        assert_eq!(got[1].as_future().unwrap().result().unwrap().unwrap().as_int(), Some(3));
    }
}

/// A task that runs another one as a frame of its own, because it waits at once, and that may fail afterwards.
const NESTED: &str = "graph(%n : int, %at : int):
  %f : Future(int) = prim::fork_0(%n, %at)
  %h : Future(int) = prim::fork_1(%n)
  %v : int = aten::wait(%f)
  %w : int = aten::wait(%h)
  return (%v, %w)
with prim::fork_0 = graph(%n : int, %at : int):
  %l : int[] = prim::ListConstruct(%n)
  %g : Future(int) = prim::fork_0(%l)
  %s : int = aten::wait(%g)
  %x : int = aten::__getitem__(%l, %at)
  return (%x)
with prim::fork_0 = graph(%l : int[]):
  %true : bool = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %zero : int = prim::Constant[value=0]()
  %s : int = prim::Loop(%three, %true, %zero)
    block0(%i : int, %a : int):
      %b : int = aten::add(%a, %i)
      -> (%true, %b)
  return (%s)
with prim::fork_1 = graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %s : int = prim::Loop(%three, %true, %n)
    block0(%i : int, %a : int):
      %b : int = aten::add(%a, %n)
      -> (%true, %b)
  return (%s)
";

#[test]
fn suspended_callees_leave_their_callers_in_the_task() {
    let run = |at: i64| all_ways(NESTED, &|| vec![IValue::Int(5), IValue::Int(at)]);
    assert_eq!(listing(NESTED).matches("Call concurrent").count(), 2, "{}", listing(NESTED));
    assert!(run(0).unwrap().contains("20"));
    let (message, trace) = run(7).unwrap_err();
    assert!(message.contains("out of range"), "{message}");
    assert!(trace.iter().any(|call| call.ends_with("aten::wait")), "{trace:?}");
}
