//! The parts of `prim::If` and `prim::Loop` by name, so that no pass counts operand positions itself.
//!
//! A [`LoopView`] or [`IfView`] is a node id whose kind was checked; it borrows nothing and is valid as long as the node
//! keeps its operator. Every accessor is O(1) except those that return lists.

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
/// assert_eq!(view.trip_count(&graph), None, "`n` is no constant");
/// assert!(view.may_skip(&graph), "`n` may be 0");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopView(NodeId);

/// A `prim::If` node. Its result *i* is output *i* of the block that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IfView(NodeId);

impl Graph {
    /// The node as a loop, if it is a `prim::Loop`.
    pub fn as_loop(&self, node: NodeId) -> Option<LoopView> {
        self.is_prim(node, Prim::Loop).then_some(LoopView(node))
    }

    /// The node as a branch, if it is a `prim::If`.
    pub fn as_if(&self, node: NodeId) -> Option<IfView> {
        self.is_prim(node, Prim::If).then_some(IfView(node))
    }
}

impl LoopView {
    /// The node.
    pub fn node(self) -> NodeId {
        self.0
    }

    /// The body.
    pub fn body(self, g: &Graph) -> BlockId {
        g.block(self.0, 0)
    }

    /// The largest number of iterations.
    pub fn max_trip_count(self, g: &Graph) -> ValueId {
        g.operand(self.0, 0)
    }

    /// Whether the first iteration runs.
    pub fn initial_condition(self, g: &Graph) -> ValueId {
        g.operand(self.0, 1)
    }

    /// Whether another iteration follows, computed by the body.
    pub fn next_condition(self, g: &Graph) -> ValueId {
        g.operand(g.ret(self.body(g)), 0)
    }

    /// The iteration number, from 0, in the body.
    pub fn iteration(self, g: &Graph) -> ValueId {
        g.result(g.param(self.body(g)), 0)
    }

    /// How many values are carried from iteration to iteration.
    pub fn carried_count(self, g: &Graph) -> usize {
        g.result_count(self.0)
    }

    /// Carried value `i` before the first iteration.
    pub fn initial(self, g: &Graph, i: usize) -> ValueId {
        g.operand(self.0, i + 2)
    }

    /// Carried value `i` as the body finds it.
    pub fn current(self, g: &Graph, i: usize) -> ValueId {
        g.result(g.param(self.body(g)), i + 1)
    }

    /// Carried value `i` as the body leaves it.
    pub fn next(self, g: &Graph, i: usize) -> ValueId {
        g.operand(g.ret(self.body(g)), i + 1)
    }

    /// Carried value `i` after the last iteration.
    pub fn result(self, g: &Graph, i: usize) -> ValueId {
        g.result(self.0, i)
    }

    /// Whether only the trip count ends the loop: both conditions are the constant `True`.
    pub fn counts(self, g: &Graph) -> bool {
        is_true(g, self.initial_condition(g)) && is_true(g, self.next_condition(g))
    }

    /// How many iterations run, if the loop [counts](Self::counts) to a constant. A negative count is 0.
    pub fn trip_count(self, g: &Graph) -> Option<u64> {
        let count = g.constant(self.max_trip_count(g))?.as_int()?;
        self.counts(g).then_some(count.max(0) as u64)
    }

    /// Whether the body may run not even once. What is moved out of the body of such a loop runs where it did not.
    pub fn may_skip(self, g: &Graph) -> bool {
        let count = g.constant(self.max_trip_count(g)).and_then(|c| c.as_int());
        !(count.is_some_and(|n| n > 0) && is_true(g, self.initial_condition(g)))
    }
}

impl IfView {
    /// The node.
    pub fn node(self) -> NodeId {
        self.0
    }

    /// The condition.
    pub fn condition(self, g: &Graph) -> ValueId {
        g.operand(self.0, 0)
    }

    /// The block that runs if the condition holds.
    pub fn then_block(self, g: &Graph) -> BlockId {
        g.block(self.0, 0)
    }

    /// The block that runs if it does not.
    pub fn else_block(self, g: &Graph) -> BlockId {
        g.block(self.0, 1)
    }

    /// What result `i` is if the condition holds, and if it does not.
    pub fn outputs(self, g: &Graph, i: usize) -> (ValueId, ValueId) {
        (g.operand(g.ret(self.then_block(g)), i), g.operand(g.ret(self.else_block(g)), i))
    }

    /// The block that always runs, if the condition is a constant.
    pub fn taken(self, g: &Graph) -> Option<BlockId> {
        let condition = g.constant(self.condition(g))?.as_bool()?;
        Some(if condition { self.then_block(g) } else { self.else_block(g) })
    }
}

fn is_true(g: &Graph, value: ValueId) -> bool {
    g.constant(value).and_then(|c| c.as_bool()) == Some(true)
}
