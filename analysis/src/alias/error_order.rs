//! Positions of observable events in program order: which events an error must follow, and which it must precede.
//!
//! An error ends a run, and the caller can observe the effects before it. So a node that may end the run by an error
//! keeps its order relative to *events*: nodes with side effects (prints, calls of the embedding program, waits, raised
//! exceptions), draws of random numbers, and writes of memory that is reachable from outside. Its order relative to
//! other nodes is free, also if these may raise operator errors themselves; a pass that groups or batches nodes without
//! side effects may change which of several such errors is raised.
//!
//! Events and nodes are compared by the numbers of [`Dominance`], as in [`WriteOrder`](super::WriteOrder), so a query
//! covers nested blocks and costs O(log nodes).

use super::AliasDb;
use super::locations::Flags;
use super::write_order::MoveBounds;
use crate::dominance::Dominance;
use flambeau_ir::{Effects, Graph, NodeId, WalkStep};

/// Effects of nodes that may end the run or never return, so that later nodes do not run.
pub(super) const MAY_NOT_COMPLETE: Effects = Effects::RAISES.union(Effects::DIVERGES);

/// The positions of events and of nodes that may raise or not terminate, in a graph at the time of construction. See the
/// [module](self).
#[derive(Clone, Debug, Default)]
pub struct ErrorOrder {
    /// Numbers of events, ascending.
    events: Vec<u32>,
    /// Numbers of nodes that may raise or not terminate, ascending; empty if there are no events.
    may_not_complete: Vec<u32>,
}

impl ErrorOrder {
    /// Lists the events of a graph, and the nodes that may raise or not terminate. O(nodes).
    #[must_use]
    pub fn new(graph: &Graph, db: &AliasDb, dominance: &Dominance) -> ErrorOrder {
        let mut order = ErrorOrder::default();
        for step in graph.walk(graph.root()) {
            let WalkStep::Node(node) = step else { continue };
            let (number, effects) = (dominance.order(node), graph.effects(node));
            if effects.intersects(MAY_NOT_COMPLETE) {
                order.may_not_complete.push(number);
            }
            if is_event(db, node, effects) {
                order.events.push(number);
            }
        }
        if order.events.is_empty() {
            order.may_not_complete = Vec::new();
        }
        order
    }

    /// Whether the graph has no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the events nearest to a node, if the node or one of its nested nodes may raise or not terminate. The node's own
    /// events are ignored.
    #[must_use]
    pub fn nearest_events(&self, dominance: &Dominance, node: NodeId) -> MoveBounds {
        let (mut span, own) = (MoveBounds::default(), dominance.span(node));
        let first = self.may_not_complete.partition_point(|&at| at < own.start);
        if self.may_not_complete.get(first).is_some_and(|&at| at < own.end) {
            span.narrow(&self.events, own);
        }
        span
    }
}

/// Whether the caller can observe after an error that the node has run.
pub(super) fn is_event(db: &AliasDb, node: NodeId, effects: Effects) -> bool {
    let is_outside = |set| {
        let flags = db.set_flags(set);
        flags.has(Flags::WILDCARD) || flags.is_constant()
    };
    effects.has_side_effects() || effects.contains(Effects::RANDOM) || db.own_writes(node).any(is_outside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{def, graph};
    use flambeau_ir::Prim;

    #[test]
    fn events_limit_moves_of_nodes_that_may_raise() {
        let g = graph(
            "graph(%x : Tensor, %p : bool, %i : int):
  %a : Tensor = aten::relu(%x)
  %l : Tensor = aten::add_(%a, %x, %i)
  %b : Tensor = aten::mm(%x, %x)
   = prim::If(%p)
    block0():
       = prim::Print(%i)
      -> ()
    block1():
      -> ()
  %t : (int, int) = prim::TupleConstruct(%i, %i)
  %c : Tensor = aten::mm(%x, %x)
  %w : Tensor = aten::add_(%x, %b, %i)
  %d : Tensor = aten::mm(%b, %b)
  return (%a, %c, %d, %t)",
        );
        let (db, dominance) = (AliasDb::new(&g), Dominance::new(&g));
        let order = ErrorOrder::new(&g, &db, &dominance);
        let print = g.nodes_deep().find(|&n| g.is_prim(n, Prim::Print)).unwrap();
        let (print, write) = (Some(dominance.order(print)), Some(dominance.order(def(&g, "w"))));
        let around = |name: &str| order.nearest_events(&dominance, def(&g, name));
        assert_eq!(
            around("b"),
            MoveBounds { after: None, before: print },
            "a write of `a` is not observable"
        );
        assert_eq!(around("c"), MoveBounds { after: print, before: write });
        assert_eq!(around("d"), MoveBounds { after: write, before: None });
        assert!(around("t").is_unbounded(), "a tuple does not raise");
        let quiet = graph("graph(%x : Tensor):\n  %a : Tensor = aten::relu(%x)\n  return (%a)");
        let (db, dominance) = (AliasDb::new(&quiet), Dominance::new(&quiet));
        assert!(ErrorOrder::new(&quiet, &db, &dominance).is_empty());
    }
}
