//! Tests of the passes of this folder on small graphs.

use crate::testing::{assert_passes, read, run, toy};
use flambeau_ir::attr::names;
use flambeau_ir::{Graph, Prim};

const SUM: &str = "graph(%x : Float(2, 3), %y : Float(2, 3), %w : Tensor):
  %a : Tensor = toy::mul(%x, %y)
  %p : Tensor = prim::profile[profiled_type=Float(2, 3)](%a)
  %b : Tensor = toy::relu(%p)
  %q : Tensor = prim::profile[profiled_type=Float(2, 3)](%b)
  %v : Tensor = prim::profile[profiled_type=Float(2, 3)](%w)
  %c : Tensor = toy::mul(%q, %v)
  %r : Tensor = prim::profile[profiled_type=Float(2, 3)](%c)
  %d : Tensor = toy::relu(%r)
  return (%d)
";

#[test]
fn profiles_stand_before_uses() {
    assert_passes(
        &toy(),
        "insert_profile_nodes",
        "graph(%x : Tensor, %n : int):
  %a : Tensor = toy::mul(%x, %x)
  %b : Tensor = toy::mul(%a, %n)
  return (%b)
",
        "graph(%x : Tensor, %n : int):
  %p : Tensor = prim::profile[index=0](%x)
  %a : Tensor = toy::mul(%p, %p)
  %q : Tensor = prim::profile[index=1](%a)
  %b : Tensor = toy::mul(%q, %n)
  return (%b)
",
    );
}

#[test]
fn profiles_vanish_again() {
    let text = "graph(%x : Tensor):
  %a : Tensor = toy::mul(%x, %x)
  return (%a)
";
    assert_passes(&toy(), "insert_profile_nodes,remove_profile_nodes", text, text);
}

#[test]
fn a_guard_states_what_rules_can_derive() {
    assert_passes(
        &toy(),
        "insert_guards",
        "graph(%x : Tensor, %y : Tensor):
  %p : Tensor = prim::profile[index=4, profiled_type=Float(2, SS(-3), strides=[3, 1], requires_grad=0, device=cpu)](%x)
  %q : Tensor = prim::profile[index=5](%y)
  %a : Tensor = toy::mul(%p, %q)
  return (%a)
",
        "graph(%x : Tensor, %y : Tensor):
  %p : Float(2, *, device=cpu) = prim::Guard[index=4](%x)
  %q : Tensor = prim::profile[index=5](%y)
  %a : Tensor = toy::mul(%p, %q)
  return (%a)
",
    );
}

#[test]
fn guards_move_to_definitions() {
    assert_passes(
        &toy(),
        "move_guards_to_definitions",
        "graph(%x : Tensor, %c : bool):
  %a : Tensor = toy::relu(%x)
  %b : Tensor = toy::relu(%x)
  %r : Tensor = prim::If(%c)
    block0():
      %g : Float(2) = prim::Guard(%a)
      %h : Float(2) = prim::Guard(%x)
      %d : Tensor = toy::mul(%g, %h)
      -> (%d)
    block1():
      -> (%b)
  return (%r)
",
        "graph(%x : Tensor, %c : bool):
  %h : Float(2) = prim::Guard(%x)
  %a : Tensor = toy::relu(%x)
  %g : Float(2) = prim::Guard(%a)
  %b : Tensor = toy::relu(%x)
  %r : Tensor = prim::If(%c)
    block0():
      %d : Tensor = toy::mul(%g, %h)
      -> (%d)
    block1():
      -> (%b)
  return (%r)
",
    );
}

#[test]
fn guards_of_one_value_are_merged() {
    assert_passes(
        &toy(),
        "coalesce_guards",
        "graph(%x : Tensor):
  %g : Float(*, *) = prim::Guard(%x)
  %h : Tensor(2, 3) = prim::Guard(%x)
  %a : Tensor = toy::mul(%g, %h)
  %b : Tensor = toy::mul(%a, %x)
  %k : Long(2) = prim::Guard(%x)
  %c : Tensor = toy::mul(%b, %k)
  return (%c)
",
        "graph(%x : Tensor):
  %g : Float(2, 3) = prim::Guard(%x)
  %a : Tensor = toy::mul(%g, %g)
  %b : Tensor = toy::mul(%a, %g)
  %c : Tensor = toy::mul(%b, %g)
  return (%c)
",
    );
}

#[test]
fn what_follows_is_not_guarded() {
    let graph = run(&toy(), "insert_guards,move_guards_to_definitions,coalesce_guards,eliminate_guards", SUM);
    let guards: Vec<String> =
        graph.to_string().lines().filter(|l| l.contains("Guard")).map(str::to_owned).collect();
    assert_eq!(guards, ["  %v : Float(2, 3) = prim::Guard(%w)"], "{graph}");
}

#[test]
fn a_guard_without_uses_is_removed() {
    assert_passes(
        &toy(),
        "eliminate_guards",
        "graph(%x : Tensor):
  %g : Float(2, 3) = prim::Guard(%x)
  return (%x)
",
        "graph(%x : Tensor):
  return (%x)
",
    );
}

/// The only bail-out of a graph after a pipeline: its operands, and its subgraph as text.
fn continuation(text: &str) -> (Vec<String>, String) {
    let graph = run(&toy(), "insert_bailouts", text);
    let node = graph.nodes_deep().find(|&n| graph.is_prim(n, Prim::BailOut));
    let node = node.unwrap_or_else(|| panic!("no bail-out: {graph}"));
    let operands = graph.operands(node).map(|v| graph.name(v).to_string()).collect();
    let mut body: Graph = (**graph.attr(node, names::subgraph()).unwrap().as_graph().unwrap()).clone();
    body.edit().renumber(true);
    (operands, body.to_string())
}

#[track_caller]
fn assert_continues(text: &str, captures: &[&str], rest: &str) {
    let (operands, body) = continuation(text);
    assert_eq!(operands, captures);
    let mut wanted = read(&toy(), rest);
    wanted.edit().renumber(true);
    assert_eq!(body, wanted.to_string());
}

#[test]
fn a_bailout_captures_what_is_live() {
    assert_continues(
        "graph(%x : Tensor, %y : Tensor, %n : int):
  %two : int = prim::Constant[value=2]()
  %m : int = toy::mul(%n, %two)
  %a : Tensor = toy::mul(%x, %y)
  %g : Float(2) = prim::Guard(%a)
  %k : int = toy::mul(%m, %two)
  %b : Tensor = toy::mul(%g, %k)
  return (%b, %x)
",
        &["a", "a", "m", "x"],
        "graph(%a : Tensor, %m : int, %x : Tensor):
  %two : int = prim::Constant[value=2]()
  %k : int = toy::mul(%m, %two)
  %b : Tensor = toy::mul(%a, %k)
  return (%b, %x)
",
    );
}

#[test]
fn a_branch_is_left_at_its_end() {
    assert_continues(
        "graph(%x : Tensor, %y : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      %g : Float(2) = prim::Guard(%x)
      %a : Tensor = toy::relu(%g)
      -> (%a)
    block1():
      -> (%y)
  %b : Tensor = toy::mul(%r, %y)
  return (%b)
",
        &["x", "x", "y"],
        "graph(%x : Tensor, %y : Tensor):
  %a : Tensor = toy::relu(%x)
  %b : Tensor = toy::mul(%a, %y)
  return (%b)
",
    );
}

#[test]
fn a_loop_goes_on_with_the_remaining_iterations() {
    assert_continues(
        "graph(%x : Tensor, %y : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %z : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %c : Tensor):
      %a : Tensor = toy::mul(%c, %y)
      %g : Float(2) = prim::Guard(%a)
      %d : Tensor = toy::mul(%g, %i)
      -> (%t, %d)
  %b : Tensor = toy::mul(%z, %n)
  return (%b)
",
        &["a", "a", "i", "n", "y"],
        "graph(%a : Tensor, %i : int, %n : int, %y : Tensor):
  %t : bool = prim::Constant[value=1]()
  %d : Tensor = toy::mul(%a, %i)
  %one : int = prim::Constant[value=1]()
  %done : int = toy::add(%i, %one)
  %left : int = toy::sub(%n, %done)
  %z : Tensor = prim::Loop(%left, %t, %d)
    block0(%j : int, %c : Tensor):
      %k : int = toy::add(%j, %done)
      %e : Tensor = toy::mul(%c, %y)
      %f : Tensor = toy::mul(%e, %k)
      -> (%t, %f)
  %b : Tensor = toy::mul(%z, %n)
  return (%b)
",
    );
}

#[test]
fn continuations_are_bounded() {
    let mut text = "graph(%x : Tensor):\n".to_owned();
    let count = 400;
    for i in 0..count {
        let from = if i == 0 { "x".to_owned() } else { format!("a{}", i - 1) };
        text += &format!("  %g{i} : Float(2) = prim::Guard(%{from})\n  %a{i} : Tensor = toy::t(%g{i})\n");
    }
    text += &format!("  return (%a{})\n", count - 1);
    let graph = run(&toy(), "insert_bailouts", &text);
    let is = |prim| graph.nodes_deep().filter(|&n| graph.is_prim(n, prim)).count();
    assert_eq!(is(Prim::Guard), 0);
    assert!((8..=32).contains(&is(Prim::BailOut)), "{}", is(Prim::BailOut));
}

/// A guard that an earlier one of the same tensor implies is replaced by it, even if that one is removed too.
#[test]
fn dominated_guards_are_replaced() {
    assert_passes(
        &toy(),
        "eliminate_guards",
        "graph(%x : Float(2, 3), %y : Tensor, %c : bool):
  %a : Tensor = toy::relu(%x)
  %g : Float(2, 3) = prim::Guard(%a)
  %h : Float(*, *) = prim::Guard(%g)
  %k : Float(2, 3) = prim::Guard(%y)
  %r : Tensor = prim::If(%c)
    block0():
      %m : Float(2, *) = prim::Guard(%y)
      -> (%m)
    block1():
      -> (%h)
  return (%r, %k)
",
        "graph(%x : Float(2, 3), %y : Tensor, %c : bool):
  %a : Tensor = toy::relu(%x)
  %k : Float(2, 3) = prim::Guard(%y)
  %r : Tensor = prim::If(%c)
    block0():
      -> (%k)
    block1():
      -> (%a)
  return (%r, %k)
",
    );
}

/// A bail-out that follows is removed; one without uses stays, since an earlier pass may have relied on its type.
#[test]
fn bailouts_that_follow_are_removed() {
    let text = "graph(%x : Float(2, 3), %y : Tensor):
  %a : Tensor = toy::relu(%x)
  %g : Float(2, 3) = prim::Guard(%a)
  %h : Float(2, 3) = prim::Guard(%y)
  %b : Tensor = toy::mul(%g, %h)
  return (%b)
";
    let mut graph = run(&toy(), "insert_bailouts", text);
    let bailouts = |graph: &Graph| graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::BailOut)).count();
    assert_eq!(bailouts(&graph), 2);
    let (x, kept) = (graph.inputs().next().unwrap(), graph.nodes_deep().last().unwrap());
    (0..2).for_each(|i| graph.edit().set_operand(kept, i, x));
    let library = crate::pipeline::PassLibrary::standard();
    let pipeline = crate::pipeline::Pipeline::parse("eliminate_guards", &library).unwrap();
    crate::manager::Manager::new().run(&mut graph, &pipeline).unwrap();
    assert_eq!(bailouts(&graph), 1, "{graph}");
}

/// The rewrite trace and the log name the premises of a removed guard.
#[test]
fn eliminations_are_explained() {
    use crate::control::Control;
    use crate::log::{Log, LogLevel, LogSink};
    use std::sync::{Arc, Mutex};

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);
    impl LogSink for Lines {
        fn write(&self, _: &str, _: LogLevel, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }
    let mut graph = read(
        &toy(),
        "graph(%x : Float(2, 3), %y : Tensor):
  %p : Float(2, 3) = prim::Guard(%y)
  %a : Tensor = toy::mul(%x, %p)
  %g : Float(2, 3) = prim::Guard(%a)
  %h : Float(*, 3) = prim::Guard(%y)
  return (%g, %h)
",
    );
    let lines = Arc::new(Lines::default());
    let library = crate::pipeline::PassLibrary::standard();
    let pipeline = crate::pipeline::Pipeline::parse("eliminate_guards", &library).unwrap();
    let mut control = Control::new().with_trace();
    crate::manager::Manager::new()
        .log(Log::parse(">eliminate_guards", Arc::clone(&lines) as _))
        .run_with(&mut graph, &pipeline, &mut flambeau_analysis::Analyses::new(), &mut control)
        .unwrap();
    let lines = lines.0.lock().unwrap();
    let of_a = "follows by shape rules from %x, guard of %y: Float(2, 3)";
    assert!(lines.contains(&format!("guard of %a: Float(2, 3) {of_a}")), "{lines:?}");
    let of_y = "guard of %y: Float(*, 3) follows from guard of %y: Float(2, 3)";
    assert!(lines.iter().any(|line| line == of_y), "{lines:?}");
    let trace =
        control.trace().unwrap().events().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(trace.contains(of_a), "{trace}");
}

/// A value that the continuation may write or return is not replaced by another tensor, although nothing in the graph writes it.
#[test]
fn captured_tensors_stay_apart() {
    let text = |rest: &str| {
        format!(
            "graph(%x : Float(2), %y : Tensor, %c : bool):
  %1 : int = prim::Constant[value=1]()
  %z : Float(2) = toy::mul(%x, %1)
  %g : Float(2) = prim::Guard(%y)
  %r : Tensor = prim::If(%c)
    block0():
      %w : Tensor = toy::relu_(%z)
      -> (%w)
    block1():
      -> (%g)
{rest}  %a : Tensor = toy::mul(%z, %r)
  return (%a)
"
        )
    };
    let mut graph = run(&toy(), "insert_bailouts", &text(""));
    let is = |graph: &Graph, n, prim| graph.is_prim(n, prim);
    let branch = graph.nodes_deep().find(|&n| is(&graph, n, Prim::If)).unwrap();
    let guarded = graph.operand(graph.ret(graph.block(branch, 1)), 0);
    graph.edit().replace_node(branch, &[guarded]);
    let library = crate::pipeline::PassLibrary::standard();
    for pass in ["peephole", "saturate"] {
        let pipeline = crate::pipeline::Pipeline::parse(pass, &library).unwrap();
        let mut graph = graph.clone();
        crate::manager::Manager::new().run(&mut graph, &pipeline).unwrap();
        let bailout = graph.nodes_deep().find(|&n| is(&graph, n, Prim::BailOut)).unwrap();
        let (x, captures) = (graph.inputs().next().unwrap(), graph.operands(bailout).collect::<Vec<_>>());
        assert!(!captures.contains(&x), "{pass} passes the caller's tensor to code that writes it: {graph}");
    }
}
