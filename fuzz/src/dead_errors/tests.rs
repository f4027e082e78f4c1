//! Programs that fail, and the ways in which they may end after passes.

use super::allowed_observations;
use crate::case::Case;
use crate::observe::Observation;
use crate::selftest::session;
use flambeau_ir::attr::names;
use flambeau_ir::module::Function;
use flambeau_ir::text::parse_graph;
use flambeau_ir::{CompilationUnit, IValue, NodeId, Prim, Source, Symbol};
use flambeau_tensor::Tensor;
use std::sync::Arc;

/// Returns the distinct ways in which a failing program on a vector of two elements may end: messages of errors, `ok`
/// without an error.
fn ends(text: &str) -> Vec<String> {
    let session = session();
    let graph = parse_graph(&Source::new("case.ir", text), session.registry()).unwrap();
    let input = IValue::Tensor(Tensor::from_slice(&[1_f32, 2.0], &[2]).unwrap());
    let seen = allowed_observations(&Case::new(graph, vec![input])).observations;
    let end = |seen: Observation| seen.end.err().map_or_else(|| "ok".to_owned(), |e| e.message);
    let mut ends: Vec<String> = Vec::new();
    for end in seen.into_iter().map(end) {
        if !ends.contains(&end) {
            ends.push(end);
        }
    }
    ends
}

#[test]
fn an_unneeded_result_may_lose_its_error() {
    let dead = "graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
  %z : Tensor, %w : Tensor = prim::TupleUnpack(%t)
  %v : Tensor = aten::neg(%w)
  return (%z)
";
    assert_eq!(ends(dead), ["ok"]);
    assert_eq!(ends(&dead.replace("return (%z)", "return (%v)")), [""; 0]);
}

#[test]
fn sizes_that_the_operator_determines_do_not_need_it() {
    let text = "graph(%x : Tensor):
  %mean : int = prim::Constant[value=1]()
  %y : Tensor = aten::mm(%x, %x)
  %loss : Tensor = aten::mse_loss(%x, %y, %mean)
  %sizes : int[] = aten::size(%loss)
  return (%sizes)
";
    assert_eq!(ends(text), ["ok"]);
    let depends = text.replace("aten::mse_loss(%x, %y, %mean)", "aten::masked_select(%x, %y)");
    assert_eq!(ends(&depends), [""; 0], "the number of selected elements");
}

#[test]
fn an_unread_write_may_lose_its_error() {
    let text = "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::neg(%x)
  %v : Tensor = aten::detach(%y)
  %w : Tensor = aten::index_fill_(%v, %1, %x, %x)
  return (%x)
";
    assert_eq!(ends(text), ["ok"]);
    assert_eq!(ends(&text.replace("return (%x)", "return (%y)")), [""; 0], "the memory is a result's");
    assert_eq!(ends(&text.replace("detach(%y)", "detach(%x)")), [""; 0], "the memory is the caller's");
}

#[test]
fn keys_do_not_need_the_values() {
    let text = "graph(%x : Tensor):
  %a : str = prim::Constant[value=\"a\"]()
  %b : str = prim::Constant[value=\"b\"]()
  %y : Tensor = aten::mm(%x, %x)
  %d : Dict(str, Tensor) = prim::DictConstruct(%a, %y)
  %keys : str[] = aten::keys(%d)
  %z : Tensor = aten::pop(%d, %a)
  %has : bool = aten::__contains__(%d, %a)
  %r : Tensor = prim::If(%has)
    block0():
      -> (%z)
    block1():
      -> (%x)
  %other : Tensor = aten::get(%d, %b, %y)
  %count : int = aten::len(%keys)
  return (%r, %count)
";
    assert_eq!(ends(text), ["ok"]);
    assert_eq!(
        ends(&text.replace("aten::pop(%d, %a)", "aten::__getitem__(%d, %a)")),
        [""; 0],
        "the key is there"
    );
    assert_eq!(ends(&text.replace("(%r, %count)", "(%r, %other)")), [""; 0], "the default is returned");
}

/// The unneeded errors of the program are more than all choices of them that are tried.
#[test]
fn the_errors_of_a_task_may_remain_without_those_of_the_program() {
    let dead: String = (0..6).map(|i| format!("  %d{i} : Tensor = aten::mm(%x, %x)\n")).collect();
    let text = format!(
        "graph(%x : Tensor):
{dead}  %f : Future[Tensor] = prim::fork_0(%x)
  %g : Future[Tensor] = prim::fork_1(%x)
  %one : int = prim::Constant[value=1]()
  return (%one)
with prim::fork_0 = graph(%y : Tensor):
  %one : int = prim::Constant[value=1]()
  %z : Tensor = aten::mm(%y, %y)
  %w : Tensor = aten::add_(%y, %one, %one)
  return (%w)
with prim::fork_1 = graph(%y : Tensor):
  %one : int = prim::Constant[value=1]()
  %z : Tensor = aten::mm(%y, %y)
  %w : Tensor = aten::add_(%y, %one, %one)
  return (%w)
"
    );
    // The first element of the argument, which each task increments unless it fails before.
    let firsts = |text: &str| {
        let session = session();
        let mut graph = parse_graph(&Source::new("case.ir", text), session.registry()).unwrap();
        let forks: Vec<NodeId> = graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::Fork)).collect();
        // Tasks of one function have the same graph.
        let body = graph.attr(forks[0], names::subgraph()).unwrap().clone();
        graph.edit().set_attr(forks[1], names::subgraph(), body);
        let input = IValue::Tensor(Tensor::from_slice(&[1_f32, 2.0], &[2]).unwrap());
        let seen = allowed_observations(&Case::new(graph, vec![input])).observations;
        let ok = seen.into_iter().filter(|seen| seen.end.is_ok());
        ok.map(|seen| seen.inputs[0].as_tensor().unwrap().to_vec::<f32>().unwrap()[0]).collect::<Vec<f32>>()
    };
    let seen = firsts(&text);
    assert!([1.0, 2.0, 3.0].iter().all(|first| seen.contains(first)), "{seen:?}");
    let needed = firsts(&text.replace("(%one)\nwith prim::fork_0", "(%d5)\nwith prim::fork_0"));
    assert!(needed.is_empty(), "{needed:?}");
}

/// No operand requires a gradient, whatever sizes the operator refuses.
#[test]
fn a_query_for_gradients_needs_no_value() {
    let text = "graph(%x : Tensor):
  %text : str = prim::Constant[value=\"raised\"]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::linalg_inv(%x)
  %b : bool = prim::requires_grad(%y)
   = prim::If(%b)
    block0():
       = prim::RaiseException(%text, %none)
      -> ()
    block1():
      -> ()
  return (%x)
";
    assert_eq!(ends(text), ["ok"]);
}

/// A pass removes the errors of the copy of a body that it unrolled; those of later iterations remain.
#[test]
fn the_first_iterations_may_lose_their_errors() {
    let dead: String = (0..6).map(|i| format!("      %d{i} : Tensor = aten::mm(%x, %x)\n")).collect();
    let text = format!(
        "graph(%x : Tensor):
  %f : Future[Tensor] = prim::fork_0(%x)
  %n : int = prim::Constant[value=3]()
  %true : bool = prim::Constant[value=1]()
   = prim::Loop(%n, %true)
    block0(%i : int):
       = prim::Print(%i)
{dead}      -> (%true)
  return (%x)
with prim::fork_0 = graph(%y : Tensor):
  %z : Tensor = aten::mm(%y, %y)
  return (%z)
"
    );
    let session = session();
    let graph = parse_graph(&Source::new("case.ir", &*text), session.registry()).unwrap();
    let input = IValue::Tensor(Tensor::from_slice(&[1_f32, 2.0], &[2]).unwrap());
    let seen = allowed_observations(&Case::new(graph, vec![input])).observations;
    let fails_after = |printed: &str| seen.iter().any(|seen| seen.end.is_err() && seen.printed == printed);
    assert!(fails_after("0\n") && fails_after("0\n1\n"));
    assert!(seen.iter().any(|seen| seen.end.is_ok() && seen.printed == "0\n1\n2\n"));
}

#[test]
fn a_branch_that_never_runs_has_no_effect() {
    let text = "graph(%x : Tensor):
  %f : bool = prim::Constant[value=0]()
  %y : Tensor = aten::mm(%x, %x)
  %c : bool = aten::is_nonzero(%y)
   = prim::If(%c)
    block0():
       = prim::If(%f)
        block0():
          %w : Tensor = aten::remainder_(%x, %x)
          -> ()
        block1():
          -> ()
      -> ()
    block1():
      -> ()
  return (%x)
";
    assert_eq!(ends(text), ["ok"]);
    assert_eq!(ends(&text.replace("[value=0]", "[value=1]")), [""; 0], "the branch runs");
}

/// A list is also counted without its elements if they were appended.
#[test]
fn appended_elements_need_not_be_computed() {
    let text = "graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  %l : Tensor[] = prim::ListConstruct(%x)
  %m : Tensor[] = aten::append(%l, %y)
  %n : int = aten::len(%l)
  return (%n)
";
    assert_eq!(ends(text), ["ok"]);
    assert_eq!(ends(&text.replace("return (%n)", "return (%l)")), [""; 0], "the element is a result's");
}

#[test]
fn queries_that_facts_answer_need_no_value() {
    let text = "graph(%x : Tensor):
  %k : str = prim::Constant[value=\"k\"]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::mm(%x, %x)
  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %y)
  %g : Tensor = aten::__getitem__(%d, %k)
  %q : bool = aten::__is__(%g, %none)
  return (%q)
";
    assert_eq!(ends(text), ["ok"]);
    for query in [
        "int = aten::dim(%g)",
        "int = aten::len(%d)",
        "bool = aten::is_floating_point(%g)",
        "bool = aten::is_contiguous(%g)",
        "bool = prim::is_cpu(%g)",
    ] {
        assert_eq!(ends(&text.replace("bool = aten::__is__(%g, %none)", query)), ["ok"], "{query}");
    }
    for query in ["int = aten::storage_offset(%g)", "bool = aten::is_nonzero(%g)"] {
        assert_eq!(ends(&text.replace("bool = aten::__is__(%g, %none)", query)), [""; 0], "{query}");
    }
}

#[test]
fn sizes_after_a_missing_write_are_known_if_it_keeps_them() {
    let text = "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::unsqueeze(%x, %1)
  %b : Tensor = aten::unsqueeze(%a, %1)
  %y : Tensor = aten::neg(%b)
  %w : Tensor = aten::mul_(%y, %x)
  %q : int = aten::dim(%y)
  return (%q)
";
    assert_eq!(ends(text), ["ok"]);
    assert_eq!(ends(&text.replace("aten::mul_(%y, %x)", "aten::t_(%y)")), [""; 0]);
}

/// The device of an element of a dictionary is known without the element, also behind a branch.
#[test]
fn elements_of_dictionaries_keep_their_facts() {
    let text = "graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  %k : str = prim::Constant[value=\"k\"]()
  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %y)
  %e : Tensor = aten::__getitem__(%d, %k)
  %c : bool = prim::Constant[value=0]()
  %z : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%e)
  %r : bool = prim::is_cpu(%z)
  return (%r)
";
    assert_eq!(ends(text), ["ok"]);
}

#[test]
fn later_errors_stay_in_order() {
    let text = "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %yes : bool = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=3]()
  %a : Tensor = prim::Loop(%3, %yes, %x)
    block0(%i : int, %c : Tensor):
      %y : Tensor = aten::mm(%x, %x)
      -> (%yes, %y)
  %b : Tensor = aten::select(%x, %3, %1)
  return (%b)
";
    let ends = ends(text);
    // The node with all its errors, or those of the first iterations.
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert!(ends[0].contains("Dimension out of range") && ends[1].contains("must be a matrix"), "{ends:?}");
}

#[test]
fn a_loop_with_unneeded_results_needs_no_condition() {
    let text = "graph(%x : Tensor):
  %yes : bool = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=3]()
  %y : Tensor = aten::mm(%x, %x)
  %c : bool = aten::is_nonzero(%y)
  %z : Tensor = prim::Loop(%3, %yes, %x)
    block0(%i : int, %w : Tensor):
      -> (%c, %w)
  return (%x)
";
    assert_eq!(ends(text), ["ok"]);
    assert_eq!(
        ends(&text.replace("return (%x)", "return (%z)")),
        ["ok"],
        "every iteration returns its value"
    );
    let other = text.replace("      -> (%c, %w)", "      %v : Tensor = aten::neg(%w)\n      -> (%c, %v)");
    assert_eq!(ends(&other.replace("return (%x)", "return (%z)")), [""; 0]);
    let prints = text.replace("      -> (%c", "       = prim::Print(%i)\n      -> (%c");
    assert_eq!(ends(&prints), [""; 0]);
}

#[test]
fn a_choice_between_equal_values_needs_no_condition() {
    let text = "graph(%x : Tensor):
  %3 : int = prim::Constant[value=3]()
  %4 : int = prim::Constant[value=4]()
  %y : Tensor = aten::mm(%x, %x)
  %c : bool = aten::is_nonzero(%y)
  %z : Tensor, %n : int = prim::If(%c)
    block0():
      %five.1 : int = prim::Constant[value=5]()
      -> (%x, %five.1)
    block1():
      %five : int = prim::Constant[value=5]()
      -> (%x, %five)
  return (%z, %n)
";
    assert_eq!(ends(text), ["ok"]);
    assert_eq!(ends(&text.replace("(%x, %five)", "(%x, %4)")), [""; 0]);
}

#[test]
fn a_gradient_of_an_unneeded_value_is_unneeded() {
    let text = "graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  %n : Tensor = prim::GradOf[name=\"aten::mul\"](%y)
    block0():
      %p : Tensor = aten::mul(%y, %x)
      -> (%p)
  return (%x)
";
    assert_eq!(ends(text), ["ok"]);
    assert_eq!(ends(&text.replace("return (%x)", "return (%n)")), [""; 0]);
}

#[test]
fn unneeded_errors_vanish_beside_a_needed_one_however_many() {
    let dead: String = (0..8).map(|i| format!("  %y{i} : Tensor = aten::mm(%x, %x)\n")).collect();
    let text = format!(
        "graph(%x : Tensor):
  %f : Future(Tensor) = prim::fork_0(%x)
  %g : Future(Tensor) = prim::fork_1(%x)
{dead}  return (%f)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  return (%y)
with prim::fork_1 = graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  return (%y)
"
    );
    let ends = ends(&text);
    assert_eq!(ends.last().map(String::as_str), Some("ok"), "{ends:?}");
}

#[test]
fn errors_of_dead_tasks_may_vanish_and_raised_ones_remain() {
    let text = "graph(%x : Tensor):
  %f : Future(Tensor) = prim::fork_0(%x)
  %r : Tensor = aten::wait(%f)
  return (%x)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  return (%y)
";
    assert_eq!(ends(text), ["ok"]);
    let kept = text.replace("  %r : Tensor = aten::wait(%f)\n", "  %r : Tensor = aten::mm(%x, %x)\n");
    assert_eq!(
        ends(&kept),
        ["self must be a matrix", "ok"],
        "the task fails or not, then the program or not"
    );
    let raising = "graph(%x : Tensor):
  %text : str = prim::Constant[value=\"raised 1\"]()
  %none : NoneType = prim::Constant()
   = prim::RaiseException(%text, %none)
  return (%x)
";
    assert_eq!(ends(raising), [""; 0], "no error may be removed");
}

/// The task fails, and so does the call in the loop, of which nothing is needed.
#[test]
fn errors_of_unneeded_calls_in_loops_may_vanish_beside_those_of_tasks() {
    let text = "graph(%x : Tensor):
  %n : int = prim::Constant[value=3]()
  %yes : bool = prim::Constant[value=1]()
  %f : Future(Tensor) = prim::fork_0(%x)
  %a : Tensor, %b : Tensor = prim::Loop(%n, %yes, %x, %x)
    block0(%i : int, %c : Tensor, %d : Tensor):
      %one : int = prim::Constant[value=1]()
      %u : Tensor = aten::unsqueeze(%c, %one)
      %p : Tensor = aten::mm(%u, %u)
      %q : Tensor = aten::mm(%u, %p)
      %s : Tensor = aten::mm(%p, %u)
      -> (%yes, %c, %x)
  %r : Tensor = aten::wait(%f)
  return (%r)
with prim::fork_0 = graph(%a : Tensor):
  %n : int = prim::Constant[value=1]()
  %yes : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %yes, %a)
    block0(%i : int, %c : Tensor):
      %one : int = prim::Constant[value=1]()
      %p : Tensor = aten::mm(%a, %a)
      %q : Tensor = aten::mm(%a, %a)
      %s : Tensor = aten::add(%p, %q, %one)
      -> (%yes, %s)
  return (%r)
";
    assert!(ends(text).contains(&"self must be a matrix".to_owned()), "{:?}", ends(text));
}

/// A branch that writes only its own values needs no condition, whatever else it reads.
#[test]
fn a_branch_that_writes_only_its_own_values_needs_no_condition() {
    let text = "graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  %c : bool = aten::is_nonzero(%y)
  %r : Tensor = prim::If(%c)
    block0():
      %p : Tensor = aten::mul(%x, %y)
      %q : Tensor = aten::relu_(%p)
      -> (%x)
    block1():
      -> (%x)
  return (%r)
";
    assert_eq!(ends(text), ["ok"]);
    assert_eq!(ends(&text.replace("relu_(%p)", "relu_(%x)")), [""; 0], "the memory is the caller's");
}

/// A function of the program that writes nothing leaves the memory of its operands as it is, also in a branch whose condition is
/// unneeded.
#[test]
fn a_call_in_an_unneeded_branch_writes_what_its_body_writes() {
    let text = "graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  %c : bool = aten::is_nonzero(%y)
  %r : Tensor = prim::If(%c)
    block0():
      %l : Tensor[] = prim::ListConstruct(%y)
       = aten::clear(%l)
      -> (%y)
    block1():
      %f : Function = prim::Constant[name=\"__torch__.f\"]()
      %z : Tensor = prim::CallFunction(%f, %y, %x)
      -> (%z)
  return (%x)
";
    let session = session();
    let read = |text: &str| Arc::new(parse_graph(&Source::new("case.ir", text), session.registry()).unwrap());
    let ends = |body: &str| {
        let mut unit = CompilationUnit::new();
        let text_of_body =
            format!("graph(%y : Tensor, %x : Tensor):\n  %z : Tensor = {body}\n  return (%z)\n");
        unit.define_function(Function::of_graph(Symbol::new("__torch__.f"), read(&text_of_body)));
        let input = IValue::Tensor(Tensor::from_slice(&[1_f32, 2.0], &[2]).unwrap());
        let case = Case { graph: read(text), unit: Arc::new(unit), inputs: vec![input] };
        allowed_observations(&case).observations.iter().filter(|seen| seen.end.is_ok()).count()
    };
    assert!(ends("aten::neg(%x)") > 0);
    assert_eq!(ends("aten::relu_(%x)"), 0, "the memory is the caller's");
}

#[test]
fn a_condition_of_a_loop_without_effects_is_not_needed() {
    let looped = |step: &str| {
        format!(
            "graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %n : int = prim::Constant[value=3]()
  %true : bool = prim::Constant[value=1]()
  %d : float = prim::Constant[value=1.0]()
  %b : Tensor = aten::gt(%x, %zero)
  %c : bool = aten::allclose(%b, %x, %d, %d, %true)
   = prim::Loop(%n, %true)
    block0(%i : int):
      {step}
      -> (%c)
  return (%x)
"
        )
    };
    assert_eq!(ends(&looped("%s : Tensor = aten::neg(%x)")), ["ok"]);
    let inner = "%s : Tensor, %t : Tensor = prim::Loop(%zero, %true, %x, %x)
        block0(%j : int, %u : Tensor, %v : Tensor):
          %w : Tensor = aten::add_(%x, %x, %n)
          -> (%c, %x, %x)";
    assert_eq!(ends(&looped(inner)), ["ok"]);
}
