//! Named accessors for the parts of `prim::If` and `prim::Loop`, so that passes do not compute operand positions.
//!
//! A [`LoopView`] or [`IfView`] is a node id whose operator was checked. A view borrows nothing and is valid as long as
//! the node keeps its operator. Every accessor is O(1).

use super::Graph;
use crate::id::{BlockId, NodeId, ValueId};
use crate::op::Prim;

/// A `prim::Loop` node.
///
/// | part | outside | in the body |
/// |---|---|---|
/// | iteration number | operand 0 is their largest count | input 0 |
/// | condition | operand 1, before the first iteration | output 0, after each |
/// | carried value *i* | operand *i* + 2 (initial), result *i* (final) | input *i* + 1 (current), output *i* + 1 (next) |
///
/// ```
/// use flambeau_ir::{Registry, Source, text::parse_graph};
///
/// let text = "graph(%n : int, %x : int):
///   %t : bool = prim::Constant[value=1]()
///   %y : int = prim::Loop(%n, %t, %x)
///     block0(%i : int, %c : int):
///       -> (%t, %i)
///   return (%y)
/// ";
/// let graph = parse_graph(&Source::new("loop.ir", text), &Registry::empty()).unwrap();
/// let view = graph.nodes_deep().find_map(|n| graph.as_loop(n)).unwrap();
/// assert_eq!(view.carried_count(&graph), 1);
/// assert_eq!(graph.ty(view.iteration(&graph)), flambeau_ir::Type::INT);
/// assert!(view.counts(&graph), "the condition never ends it");
/// assert_eq!(view.trip_count(&graph), None, "`n` is not a constant");
/// assert!(view.may_skip(&graph), "`n` may be 0");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopView(NodeId);

/// A `prim::If` node. Its result *i* is output *i* of the block that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IfView(NodeId);

impl Graph {
    /// Returns a view of the node if it is a `prim::Loop`.
    pub fn as_loop(&self, node: NodeId) -> Option<LoopView> {
        self.is_prim(node, Prim::Loop).then_some(LoopView(node))
    }

    /// Returns a view of the node if it is a `prim::If`.
    pub fn as_if(&self, node: NodeId) -> Option<IfView> {
        self.is_prim(node, Prim::If).then_some(IfView(node))
    }
}

impl LoopView {
    /// Returns the node.
    pub fn node(self) -> NodeId {
        self.0
    }

    /// Returns the loop's body.
    pub fn body(self, g: &Graph) -> BlockId {
        g.block(self.0, 0)
    }

    /// Returns the operand with the maximum number of iterations.
    pub fn max_trip_count(self, g: &Graph) -> ValueId {
        g.operand(self.0, 0)
    }

    /// Returns the operand that decides whether the first iteration runs.
    pub fn initial_condition(self, g: &Graph) -> ValueId {
        g.operand(self.0, 1)
    }

    /// Returns the body's output that decides whether another iteration follows.
    pub fn next_condition(self, g: &Graph) -> ValueId {
        g.operand(g.ret(self.body(g)), 0)
    }

    /// Returns the body's input with the iteration number, from 0.
    pub fn iteration(self, g: &Graph) -> ValueId {
        g.result(g.param(self.body(g)), 0)
    }

    /// Returns the number of loop-carried values.
    pub fn carried_count(self, g: &Graph) -> usize {
        g.result_count(self.0)
    }

    /// Returns carried value `i` before the first iteration: an operand of the loop.
    pub fn initial(self, g: &Graph, i: usize) -> ValueId {
        g.operand(self.0, i + 2)
    }

    /// Returns carried value `i` at the start of an iteration: an input of the body.
    pub fn current(self, g: &Graph, i: usize) -> ValueId {
        g.result(g.param(self.body(g)), i + 1)
    }

    /// Returns carried value `i` at the end of an iteration: an output of the body.
    pub fn next(self, g: &Graph, i: usize) -> ValueId {
        g.operand(g.ret(self.body(g)), i + 1)
    }

    /// Returns carried value `i` after the last iteration: a result of the loop.
    pub fn result(self, g: &Graph, i: usize) -> ValueId {
        g.result(self.0, i)
    }

    /// Returns whether only the trip count ends the loop: both conditions are the constant `True`.
    pub fn counts(self, g: &Graph) -> bool {
        is_true(g, self.initial_condition(g)) && is_true(g, self.next_condition(g))
    }

    /// Returns the number of iterations if the loop [counts](Self::counts) to a constant. A negative count is 0.
    pub fn trip_count(self, g: &Graph) -> Option<u64> {
        let count = g.constant(self.max_trip_count(g))?.as_int()?;
        self.counts(g).then_some(count.max(0) as u64)
    }

    /// Returns whether constants state that the body never runs.
    pub fn never_runs(self, g: &Graph) -> bool {
        let count = g.constant(self.max_trip_count(g)).and_then(|c| c.as_int());
        let condition = g.constant(self.initial_condition(g)).and_then(|c| c.as_bool());
        count.is_some_and(|n| n <= 0) || condition == Some(false)
    }

    /// Returns whether the body may run zero times. Code hoisted out of such a loop may run where it did not run
    /// before.
    pub fn may_skip(self, g: &Graph) -> bool {
        let count = g.constant(self.max_trip_count(g)).and_then(|c| c.as_int());
        !(count.is_some_and(|n| n > 0) && is_true(g, self.initial_condition(g)))
    }
}

impl IfView {
    /// Returns the node.
    pub fn node(self) -> NodeId {
        self.0
    }

    /// Returns the condition.
    pub fn condition(self, g: &Graph) -> ValueId {
        g.operand(self.0, 0)
    }

    /// Returns the block that runs if the condition is true.
    pub fn then_block(self, g: &Graph) -> BlockId {
        g.block(self.0, 0)
    }

    /// Returns the block that runs if the condition is false.
    pub fn else_block(self, g: &Graph) -> BlockId {
        g.block(self.0, 1)
    }

    /// Returns the two values that result `i` selects from: output `i` of the true block and of the false block.
    pub fn outputs(self, g: &Graph, i: usize) -> (ValueId, ValueId) {
        (g.operand(g.ret(self.then_block(g)), i), g.operand(g.ret(self.else_block(g)), i))
    }

    /// Returns the block that always runs, if the condition is a constant.
    pub fn taken(self, g: &Graph) -> Option<BlockId> {
        let condition = g.constant(self.condition(g))?.as_bool()?;
        Some(if condition { self.then_block(g) } else { self.else_block(g) })
    }
}

fn is_true(g: &Graph, value: ValueId) -> bool {
    g.constant(value).and_then(|c| c.as_bool()) == Some(true)
}
