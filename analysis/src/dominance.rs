//! Dominance in structured programs: the nodes that have certainly run when a node runs.
//!
//! Blocks nest, so intervals represent dominance. Nodes are numbered in program order (a node before its nested nodes).
//! The interval of a node covers the node and its nested nodes, that of a block its nodes. Every query is a few
//! comparisons, independent of the nesting depth.

use crate::analysis::{Analysis, AnalysisCx, Update};
use flambeau_ir::{Change, Graph, NodeId, NodeMap, WalkStep};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    first: u32,
    last: u32,
    /// The number of the end of the enclosing block.
    block_last: u32,
}

/// Program order, nesting and dominance of one graph.
#[derive(Clone, Debug)]
pub struct Dominance {
    /// `prim::Param` and `prim::Return` have entries as well: the start and the end of the block.
    nodes: NodeMap<Interval>,
}

impl Dominance {
    /// Numbers the nodes of a graph. O(nodes).
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "a walk leaves only blocks that it entered")]
    pub fn new(graph: &Graph) -> Self {
        let none = Interval { first: 0, last: 0, block_last: 0 };
        let mut nodes = NodeMap::for_nodes(graph, none);
        let mut next = 0;
        // Nodes of the open blocks, whose `block_last` is set when the block ends.
        let mut members: Vec<NodeId> = Vec::new();
        let mut starts: Vec<usize> = Vec::new();
        for step in graph.walk(graph.root()) {
            match step {
                WalkStep::Enter(block) => {
                    starts.push(members.len());
                    let param = graph.param(block);
                    nodes[param] = Interval { first: next, last: next, block_last: 0 };
                    members.push(param);
                    next += 1;
                }
                WalkStep::Node(node) => {
                    nodes[node] = Interval { first: next, last: next, block_last: 0 };
                    members.push(node);
                    next += 1;
                }
                WalkStep::Leave(block) => {
                    let ret = graph.ret(block);
                    nodes[ret] = Interval { first: next, last: next, block_last: next };
                    let start = starts.pop().expect("invariant: a block that ends began");
                    for node in members.drain(start..) {
                        nodes[node].block_last = next;
                    }
                    next += 1;
                }
                WalkStep::Done(node) => nodes[node].last = next - 1,
            }
        }
        Dominance { nodes }
    }

    /// Returns the number of a node in program order, from 0; `prim::Param` and `prim::Return` are numbered too.
    #[must_use]
    pub fn order(&self, node: NodeId) -> u32 {
        self.nodes[node].first
    }

    /// Returns the numbers of a node and its nested nodes.
    #[must_use]
    pub fn span(&self, node: NodeId) -> Range<u32> {
        let interval = self.nodes[node];
        interval.first..interval.last + 1
    }

    /// Whether `a` has certainly run to completion whenever `b` starts: `a` is earlier, in the block of `b` or an
    /// enclosing one. A node dominates neither itself nor its nested nodes.
    #[must_use]
    pub fn dominates(&self, a: NodeId, b: NodeId) -> bool {
        let (a, b) = (self.nodes[a], self.nodes[b]);
        a.last < b.first && b.first <= a.block_last
    }

    /// Whether `inner` is nested in a block of `outer`, at any depth.
    #[must_use]
    pub fn contains(&self, outer: NodeId, inner: NodeId) -> bool {
        let (outer, inner) = (self.nodes[outer], self.nodes[inner]);
        outer.first < inner.first && inner.first <= outer.last
    }

    /// Whether a node inserted directly before `at` has certainly run whenever `node` starts: `node` is `at` or nested
    /// in it, or follows `at` in the same block or in a block nested there.
    #[must_use]
    pub fn starts_by(&self, at: NodeId, node: NodeId) -> bool {
        let (at, node) = (self.nodes[at], self.nodes[node]);
        at.first <= node.first && node.first <= at.block_last
    }
}

impl Analysis for Dominance {
    const NAME: &'static str = "dominance";

    fn build(cx: &AnalysisCx<'_>) -> Self {
        Dominance::new(cx.graph())
    }

    fn update(&mut self, _: &AnalysisCx<'_>, changes: &[Change]) -> Update {
        let placed =
            |c: &Change| matches!(c, Change::Inserted(_) | Change::Moved(_) | Change::BlocksChanged(_));
        if changes.iter().any(placed) { Update::Rebuild } else { Update::Kept }
    }

    fn agrees(&self, cx: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
        let mut nodes = cx.graph().nodes_deep();
        let Some(mut last) = nodes.next() else { return Ok(()) };
        for node in nodes {
            if self.dominates(last, node) != fresh.dominates(last, node)
                || self.contains(last, node) != fresh.contains(last, node)
            {
                return Err("the order or nesting of nodes differs from that of a fresh analysis".to_owned());
            }
            last = node;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{def, graph};

    #[test]
    fn intervals_decide_dominance() {
        let g = graph(
            "graph(%x : Tensor, %p : bool):
  %a : Tensor = aten::relu(%x)
  %r : Tensor = prim::If(%p)
    block0():
      %b : Tensor = aten::relu(%a)
      %c : Tensor = aten::relu(%b)
      -> (%c)
    block1():
      %d : Tensor = aten::relu(%a)
      -> (%d)
  %e : Tensor = aten::relu(%r)
  return (%e)",
        );
        let dom = Dominance::new(&g);
        let n = |name: &str| def(&g, name);
        let yes = [("a", "b"), ("a", "r"), ("a", "d"), ("b", "c"), ("r", "e"), ("x", "a"), ("a", "e")];
        let no = [("b", "d"), ("r", "b"), ("b", "r"), ("c", "e"), ("e", "a"), ("a", "a"), ("d", "e")];
        for (a, b) in yes {
            assert!(dom.dominates(n(a), n(b)), "{a} {b}");
        }
        for (a, b) in no {
            assert!(!dom.dominates(n(a), n(b)), "{a} {b}");
        }
        assert!(
            dom.contains(n("r"), n("d")) && !dom.contains(n("r"), n("e")) && !dom.contains(n("a"), n("b"))
        );
        assert!(
            dom.starts_by(n("r"), n("d")) && dom.starts_by(n("b"), n("c")) && dom.starts_by(n("a"), n("a"))
        );
        assert!(
            !dom.starts_by(n("c"), n("b"))
                && !dom.starts_by(n("b"), n("d"))
                && !dom.starts_by(n("c"), n("e"))
        );
        assert_eq!(dom.span(n("a")).len(), 1);
        assert_eq!(dom.span(n("r")).len(), 1 + 4 + 3, "three nodes, and two brackets of each block");
        for a in g.nodes_deep() {
            for v in g.operands(a) {
                assert!(dom.dominates(g.def(v), a));
            }
        }
    }
}
