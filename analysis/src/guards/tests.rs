//! Tests of guard implication on small graphs.

use super::*;
use crate::cache::Analyses;
use crate::testing::{def, graph, value};
use flambeau_ir::{At, Type};
use petgraph::algo::is_cyclic_directed;

fn guards(g: &Graph) -> GuardGraph {
    Analyses::new().get::<GuardGraph>(g).clone()
}

#[test]
fn results_follow_from_operands() {
    let g = graph(
        "graph(%x : Float(2, 3), %y : Tensor):
  %p : Float(2, 3) = prim::Guard(%y)
  %a : Tensor = aten::mul(%x, %p)
  %g : Float(2, 3) = prim::Guard(%a)
  %b : Tensor = aten::relu(%g)
  %h : Float(2, 3) = prim::Guard(%b)
  return (%h)
",
    );
    let found = guards(&g);
    assert!(!found.is_implied(def(&g, "p")), "nothing is known of %y");
    assert_eq!(found.reason(def(&g, "h")), Some((Premise::Value(value(&g, "b")), Implication::Definition)));
    let premises = found.premises(def(&g, "h"));
    assert_eq!((&premises.values[..], &premises.guards[..]), (&[value(&g, "x")][..], &[def(&g, "p")][..]));
    assert!(!is_cyclic_directed(found.as_petgraph()), "this program has no loop");
}

#[test]
fn a_guard_follows_from_a_stronger_one_before_it() {
    let g = graph(
        "graph(%x : Tensor, %c : bool):
  %a : Tensor = aten::relu(%x)
  %g : Float(*, 3) = prim::Guard(%a)
  %h : Tensor(*, *) = prim::Guard(%a)
  %k : Float(2, 3) = prim::Guard(%g)
  %r : Tensor = prim::If(%c)
    block0():
      %m : Float(2, *) = prim::Guard(%a)
      -> (%m)
    block1():
      %n : Float(2, 3) = prim::Guard(%x)
      -> (%n)
  %q : Float(2, 3) = prim::Guard(%x)
  return (%h, %k, %r, %q)
",
    );
    let found = guards(&g);
    let reason = |name: &str| found.reason(def(&g, name));
    assert_eq!(reason("g"), None);
    assert_eq!(reason("h"), Some((Premise::Guard(def(&g, "g")), Implication::Dominance)));
    assert_eq!(reason("k"), None, "it states more than %g");
    assert_eq!(reason("m"), Some((Premise::Guard(def(&g, "k")), Implication::Dominance)));
    assert_eq!(reason("n"), None, "facts about results say nothing of operands");
    assert_eq!(reason("q"), None, "%n has not run on every path");
}

#[test]
fn guards_around_a_loop_follow_from_each_other() {
    let g = graph(
        "graph(%x : Float(2, 3), %n : int):
  %t : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %c : Tensor):
      %h : Float(2, 3) = prim::Guard(%c)
      %d : Tensor = aten::mul(%h, %h)
      %e : Float(2, 3) = prim::Guard(%d)
      -> (%t, %e)
  %k : Float(2, 3) = prim::Guard(%r)
  return (%k)
",
    );
    let found = guards(&g);
    assert!(["h", "e", "k"].iter().all(|name| found.is_implied(def(&g, name))));
    assert!(is_cyclic_directed(found.as_petgraph()), "%h follows from %e, and %e from %h");
    let premises = found.premises(def(&g, "k"));
    assert_eq!((&premises.values[..], premises.guards.len()), (&[value(&g, "x")][..], 0));
}

/// A write that may resize a tensor separates guards of it.
#[test]
fn resized_tensors_are_guarded_again() {
    let g = graph(
        "graph(%x : Tensor, %s : int[]):
  %a : Tensor = aten::relu(%x)
  %g : Float(2, 3) = prim::Guard(%a)
  %w : Tensor = aten::resize_(%a, %s)
  %h : Float(2, 3) = prim::Guard(%a)
  %k : Float = prim::Guard(%a)
  return (%g, %h, %k)
",
    );
    let found = guards(&g);
    assert!(!found.is_implied(def(&g, "h")));
    assert!(found.is_implied(def(&g, "k")), "a dtype never changes");
}

#[test]
fn updates_agree_with_new_graphs() {
    let mut g = graph(
        "graph(%x : Float(2, 3)):
  %a : Tensor = aten::relu(%x)
  %g : Float(2, 3) = prim::Guard(%a)
  %b : Tensor = aten::relu(%g)
  %h : Float(2, 3) = prim::Guard(%b)
  return (%h)
",
    );
    let mut analyses = Analyses::new();
    assert_eq!(analyses.get::<GuardGraph>(&g).guards().len(), 2);
    let (a, guard, h) = (value(&g, "a"), def(&g, "g"), def(&g, "h"));
    let relu = g.op(g.def(a));
    g.edit().at(At::before(h)).value(relu, &[a], Type::TENSOR);
    assert_eq!(analyses.check(&g), Ok(()));
    g.edit().replace_node(guard, &[a]);
    assert!(analyses.get::<GuardGraph>(&g).is_implied(h));
    assert_eq!(analyses.get::<GuardGraph>(&g).guards(), [h]);
    assert_eq!(analyses.check(&g), Ok(()));
    let stats = analyses.stats().find(|s| s.name == "guards").unwrap();
    assert_eq!((stats.built, stats.kept, stats.rebuilt), (1, 1, 1));
}

/// Chains of guards of one tensor, and of operators between guards, are linear in size and time.
#[test]
fn long_chains_stay_linear() {
    let mut text = "graph(%x : Tensor):\n  %a0 : Tensor = aten::relu(%x)\n".to_owned();
    let n = 4_000;
    for i in 0..n {
        let sizes = i % 50;
        text += &format!(
            "  %g{i} : Float({sizes}) = prim::Guard(%a{i})\n  %a{} : Tensor = aten::relu(%g{i})\n",
            i + 1
        );
        text += &format!("  %h{i} : Long({i}) = prim::Guard(%x)\n");
    }
    text += &format!("  return (%a{n})\n");
    let g = graph(&text);
    let found = guards(&g);
    let edges = found.as_petgraph().edge_count();
    assert!(edges <= 4 * n, "{edges} edges");
    let last = found.guards().iter().rev().find(|&&n| found.is_implied(n)).copied();
    assert!(last.is_none_or(|n| found.premises(n).values.len() <= MAX_PREMISES));
}
