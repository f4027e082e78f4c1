//! Loop unrolling: counted loops whose body has at most `MAX_BODY` nodes are unrolled completely if the number of iterations
//! is known and small, else by a constant factor with a remainder loop.
//!
//! A loop is counted if its condition is true initially and after every iteration. Inner loops are unrolled first, so a
//! loop around an unrolled one is usually too large itself. The original iteration number is computed from that of the
//! unrolled loop, only if it is used.
//!
//! With the option `profiled`, a loop whose trip count is not known but had the same average in all profiled runs (attribute
//! `trip_count`) gets two versions: under the condition that the trip count is that number, the unrolled body, else the
//! loop.

use super::dce::Dce;
use crate::facets::OpRole;
use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use crate::roles;
use crate::schedule::Schedule;
use flambeau_ir::attr::names;
use flambeau_ir::{
    At, AttrsId, BlockId, Editor, Graph, IValue, LoopView, NodeId, OpId, Prim, Registry, Type, ValueId,
    ValueSubstitution, WalkStep,
};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unroll {
    /// Only unroll loops whose number of iterations is known.
    pub constant_only: bool,
    /// Unroll loops with a profiled number of iterations under the condition that it occurs.
    pub profiled: bool,
}

/// Maximum number of nodes of an unrolled body.
const MAX_BODY: usize = 32;
/// A loop with fewer iterations is unrolled completely.
const MAX_FULL_UNROLL: u64 = 64;
/// Maximum number of nodes of all iterations of a loop that is unrolled under a condition.
const MAX_VERSION: u64 = 512;
/// Unroll factor for other loops.
const FACTOR: i64 = 8;

impl Configure for Unroll {
    const OPTIONS: &'static [&'static str] = &["constant", "profiled"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        Ok(Unroll { constant_only: options.flag("constant"), profiled: options.flag("profiled") })
    }
}

impl Pass for Unroll {
    const NAME: &'static str = "loop_unrolling";
    const ALIASES: &'static [&'static str] = &["unroll"];
    const DOC: &'static str = "Unrolls counted loops fully or by a constant factor.";

    fn schedule(&self) -> Schedule {
        Schedule::alone().then_if_changed(Dce::default())
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        // An inner loop is done before the loops around it.
        let loops: Vec<LoopView> = graph
            .walk(graph.root())
            .filter_map(|step| match step {
                WalkStep::Done(n) => graph.as_loop(n),
                _ => None,
            })
            .collect();
        if loops.is_empty() {
            return Ok(());
        }
        let registry = cx.registry();
        let ops = Ops::find(&registry)?;
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for view in loops {
            let g = editor.graph();
            if !view.counts(g) || body_size(g, view.body(g)) > MAX_BODY {
                continue;
            }
            let trips = view.trip_count(g);
            if let Some(trips) = profiled_trips(g, view).filter(|_| self.profiled && trips.is_none()) {
                if !fuel.take("version", g, view.node()) {
                    break;
                }
                write_versions(&mut editor, view, trips, &ops);
                continue;
            }
            if self.constant_only && trips.is_none() {
                continue;
            }
            if !fuel.take("unroll", g, view.node()) {
                break;
            }
            match trips {
                Some(n) if n < MAX_FULL_UNROLL => write_out(&mut editor, view, n),
                _ => write_rounds(&mut editor, view, &ops),
            }
        }
        Ok(())
    }
}

/// Operators for arithmetic on iteration numbers.
struct Ops {
    sum: OpId,
    difference: OpId,
    product: OpId,
    quotient: OpId,
    equal: OpId,
}

impl Ops {
    fn find(registry: &Registry) -> Result<Self, PassError> {
        Ok(Ops {
            sum: roles::find(registry, OpRole::Sum)?,
            difference: roles::find(registry, OpRole::Difference)?,
            product: roles::find(registry, OpRole::Product)?,
            quotient: roles::find(registry, OpRole::Quotient)?,
            equal: roles::find(registry, OpRole::Equal)?,
        })
    }
}

/// Number of nodes in a block including nested ones, counted up to [`MAX_BODY`] + 1.
fn body_size(g: &Graph, block: BlockId) -> usize {
    g.nodes_deep_in(block).take(MAX_BODY + 1).count()
}

/// The parts of a loop, read before the loop changes.
struct Body {
    block: BlockId,
    nodes: Vec<NodeId>,
    number: ValueId,
    carried: Vec<ValueId>,
    outputs: Vec<ValueId>,
}

impl Body {
    fn read(g: &Graph, view: LoopView) -> Self {
        let block = view.body(g);
        let carried = 0..view.carried_count(g);
        Body {
            block,
            nodes: g.nodes(block).collect(),
            number: view.iteration(g),
            carried: carried.clone().map(|i| view.current(g, i)).collect(),
            outputs: carried.map(|i| view.next(g, i)).collect(),
        }
    }

    fn is_numbered(&self, g: &Graph) -> bool {
        g.use_count(self.number) > 0
    }

    /// Inserts a copy of the body at the cursor. Returns the values that the iteration carries to the next one.
    fn repeat(&self, editor: &mut Editor<'_>, number: Option<ValueId>, carried: &[ValueId]) -> Vec<ValueId> {
        let mut map = ValueSubstitution::new();
        if let Some(number) = number {
            map.set(self.number, number);
        }
        for (&inner, &outer) in self.carried.iter().zip(carried) {
            map.set(inner, outer);
        }
        editor.duplicate(self.nodes.iter().copied(), &mut map);
        self.outputs.iter().map(|&v| map.get(v).unwrap_or(v)).collect()
    }
}

/// Replaces a loop by `trips` copies of its body.
fn write_out(editor: &mut Editor<'_>, view: LoopView, trips: u64) {
    let node = view.node();
    let body = Body::read(editor.graph(), view);
    let numbered = body.is_numbered(editor.graph());
    let loc = editor.graph().loc(node);
    let mut carried: Vec<ValueId> = editor.graph().operands(node).skip(2).collect();
    for i in 0..trips {
        editor.at(At::before(node)).loc(loc);
        let number = numbered.then(|| editor.constant(IValue::Int(i as i64)));
        carried = body.repeat(editor, number, &carried);
    }
    editor.replace_node(node, &carried);
}

/// Returns the average number of iterations that all profiled runs had, if the unrolled body stays small.
fn profiled_trips(g: &Graph, view: LoopView) -> Option<u64> {
    let trips = u64::try_from(g.attr(view.node(), names::trip_count())?.as_int()?).ok()?;
    let size = trips.saturating_mul(body_size(g, view.body(g)) as u64);
    (0 < trips && trips < MAX_FULL_UNROLL && size <= MAX_VERSION).then_some(trips)
}

/// Replaces a loop by a branch: the unrolled body if it has `trips` iterations, else the loop.
fn write_versions(editor: &mut Editor<'_>, view: LoopView, trips: u64, ops: &Ops) {
    let node = view.node();
    let g = editor.graph();
    let (loc, limit) = (g.loc(node), view.max_trip_count(g));
    let types: Vec<Type> = g.results(node).map(|v| g.ty(v)).collect();
    editor.at(At::before(node)).loc(loc);
    let count = editor.constant(IValue::Int(trips as i64));
    let is_count = editor.value(ops.equal, &[limit, count], Type::BOOL);
    let branch = editor.node(Prim::If, &[is_count], &types);
    // The copies are not unrolled again.
    editor.set_attrs(node, AttrsId::EMPTY);
    for unrolled in [true, false] {
        let block = editor.add_block(branch);
        editor.at(At::end(block)).loc(loc);
        editor.duplicate([node], &mut ValueSubstitution::new());
        let copy = editor.graph().nodes(block).last().and_then(|copy| editor.graph().as_loop(copy));
        let copy = copy.expect("invariant: a copy of a loop is a loop");
        let results: Vec<ValueId> = editor.graph().results(copy.node()).collect();
        results.into_iter().for_each(|v| editor.add_block_output(block, v));
        if unrolled {
            write_out(editor, copy, trips);
        }
    }
    let results: Vec<ValueId> = editor.graph().results(branch).collect();
    editor.replace_node(node, &results);
}

/// Unrolls the loop by [`FACTOR`] and adds a remainder loop after it.
fn write_rounds(editor: &mut Editor<'_>, view: LoopView, ops: &Ops) {
    let node = view.node();
    let loc = editor.graph().loc(node);
    let trips = view.max_trip_count(editor.graph());
    editor.at(At::before(node)).loc(loc);
    let factor = editor.constant(IValue::Int(FACTOR));
    let rounds = editor.value(ops.quotient, &[trips, factor], Type::INT);
    let done = editor.value(ops.product, &[rounds, factor], Type::INT);
    let left = editor.value(ops.difference, &[trips, done], Type::INT);
    rest_loop(editor, view, left, done, ops);
    let body = Body::read(editor.graph(), view);
    let numbered = body.is_numbered(editor.graph());
    editor.set_operand(node, 0, rounds);
    editor.at(At::end(body.block)).loc(loc);
    let first = numbered.then(|| editor.value(ops.product, &[body.number, factor], Type::INT));
    let mut carried = body.carried.clone();
    for i in 0..FACTOR {
        editor.at(At::end(body.block)).loc(loc);
        let number = first.map(|first| {
            if i == 0 {
                return first;
            }
            let i = editor.constant(IValue::Int(i));
            editor.value(ops.sum, &[first, i], Type::INT)
        });
        carried = body.repeat(editor, number, &carried);
    }
    let ret = editor.graph().ret(body.block);
    for (i, &v) in carried.iter().enumerate() {
        editor.set_operand(ret, i + 1, v);
    }
    for &old in body.nodes.iter().rev() {
        editor.erase(old);
    }
}

/// Inserts a copy of the loop after it, for the `left` remaining iterations; `done` iterations precede them.
fn rest_loop(editor: &mut Editor<'_>, view: LoopView, left: ValueId, done: ValueId, ops: &Ops) {
    let node = view.node();
    let loc = editor.graph().loc(node);
    editor.at(At::after(node)).loc(loc);
    let mut map = ValueSubstitution::new();
    editor.duplicate([node], &mut map);
    let results: Vec<ValueId> = editor.graph().results(node).collect();
    let rest = editor.graph().next(node).expect("invariant: the copy stands behind the loop");
    let copy = editor.graph().as_loop(rest).expect("invariant: a copy of a loop is a loop");
    for (i, &v) in results.iter().enumerate() {
        let new = editor.graph().result(rest, i);
        editor.replace_all_uses(v, new);
        editor.set_operand(rest, i + 2, v);
    }
    editor.set_operand(rest, 0, left);
    let body = Body::read(editor.graph(), copy);
    if body.is_numbered(editor.graph()) {
        let number =
            editor.at(At::start(body.block)).loc(loc).value(ops.sum, &[body.number, done], Type::INT);
        let sum = editor.graph().def(number);
        editor.replace_all_uses(body.number, number);
        editor.set_operand(sum, 0, body.number);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn short_loops_are_written_out() {
        assert_passes(
            &toy(),
            "loop_unrolling",
            "graph(%x : int):
  %t : bool = prim::Constant[value=1]()
  %n : int = prim::Constant[value=2]()
  %y : int = prim::Loop(%n, %t, %x)
    block0(%i : int, %c : int):
      %d : int = toy::add(%c, %i)
      -> (%t, %d)
  return (%y)
",
            "graph(%x : int):
  %1 : int = prim::Constant[value=0]()
  %2 : int = toy::add(%x, %1)
  %3 : int = prim::Constant[value=1]()
  %4 : int = toy::add(%2, %3)
  return (%4)
",
        );
    }

    #[test]
    fn long_loops_are_unrolled_by_a_constant_factor() {
        let graph = crate::testing::run(
            &toy(),
            "loop_unrolling",
            "graph(%x : int, %n : int):
  %t : bool = prim::Constant[value=1]()
  %y : int = prim::Loop(%n, %t, %x)
    block0(%i : int, %c : int):
      %d : int = toy::mul(%c, %i)
      -> (%t, %d)
  return (%y)
",
        );
        let text = graph.to_string();
        assert_eq!(text.matches("prim::Loop").count(), 2, "{text}");
        assert_eq!(text.matches("toy::mul").count(), 8 + 1 + 1 + 1, "{text}");
    }

    #[test]
    fn profiled_loops_get_a_version() {
        assert_passes(
            &toy(),
            "loop_unrolling{constant,profiled}",
            "graph(%x : int, %n : int):
  %t : bool = prim::Constant[value=1]()
  %y : int = prim::Loop[trip_count=2](%n, %t, %x)
    block0(%i : int, %c : int):
      %d : int = toy::mul(%c, %x)
      -> (%t, %d)
  return (%y)
",
            "graph(%x : int, %n : int):
  %t : bool = prim::Constant[value=1]()
  %k : int = prim::Constant[value=2]()
  %is : bool = toy::eq(%n, %k)
  %y : int = prim::If(%is)
    block0():
      %a : int = toy::mul(%x, %x)
      %b : int = toy::mul(%a, %x)
      -> (%b)
    block1():
      %z : int = prim::Loop(%n, %t, %x)
        block0(%i : int, %c : int):
          %d : int = toy::mul(%c, %x)
          -> (%t, %d)
      -> (%z)
  return (%y)
",
        );
    }
}
