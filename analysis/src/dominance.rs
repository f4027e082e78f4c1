//! Dominance in structured programs: who has certainly run when a node runs.
//!
//! Blocks nest, so dominance is a matter of intervals: numbering nodes in program order (a node before what is nested in
//! it) gives each node the interval of what it contains and each block the interval of its nodes. Every question is then
//! a few comparisons, however deep the nest.

use crate::analysis::{Analysis, AnalysisCx, Update};
use flambeau_ir::{BlockId, Change, Graph, NodeId, NodeMap, Step, ValueId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    first: u32,
    last: u32,
    /// The end of the block it stands in.
    block_last: u32,
}

/// Program order, nesting and dominance of one graph.
#[derive(Clone, Debug)]
pub struct Dominance {
    /// Blocks' brackets have entries as well: `prim::Param` that of the block's start, `prim::Return` its end.
    nodes: NodeMap<Interval>,
    count: u32,
}

impl Dominance {
    /// Numbers a graph. O(nodes).
    #[must_use]
    pub fn new(graph: &Graph) -> Self {
        let none = Interval { first: 0, last: 0, block_last: 0 };
        let mut nodes = NodeMap::for_nodes(graph, none);
        let mut next = 0;
        // Nodes of the blocks being walked, to be told where their block ends.
        let mut members: Vec<NodeId> = Vec::new();
        let mut starts: Vec<usize> = Vec::new();
        for step in graph.walk(graph.root()) {
            match step {
                Step::Enter(block) => {
                    starts.push(members.len());
                    let param = graph.param(block);
                    nodes[param] = Interval { first: next, last: next, block_last: 0 };
                    members.push(param);
                    next += 1;
                }
                Step::Node(node) => {
                    nodes[node] = Interval { first: next, last: next, block_last: 0 };
                    members.push(node);
                    next += 1;
                }
                Step::Leave(block) => {
                    let ret = graph.ret(block);
                    nodes[ret] = Interval { first: next, last: next, block_last: next };
                    let start = starts.pop().expect("invariant: a block that ends began");
                    for node in members.drain(start..) {
                        nodes[node].block_last = next;
                    }
                    next += 1;
                }
                Step::Done(node) => nodes[node].last = next - 1,
            }
        }
        Dominance { nodes, count: next }
    }

    /// The number of a node in program order, from 0; block brackets are numbered too.
    #[must_use]
    pub fn order(&self, node: NodeId) -> usize {
        self.nodes[node].first as usize
    }

    /// How many numbers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether nothing is numbered. Never so: a graph has at least its brackets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether `a` has certainly run to its end whenever `b` starts: it comes earlier, in the block of `b` or in one
    /// around it. A node does not dominate itself, nor what is nested in it.
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

    /// Whether `value` may be used by `user`.
    #[must_use]
    pub fn is_available(&self, graph: &Graph, value: ValueId, user: NodeId) -> bool {
        self.dominates(graph.def(value), user)
    }

    /// Whether `node` stands in `block` or in one nested in it.
    #[must_use]
    pub fn is_in(&self, graph: &Graph, node: NodeId, block: BlockId) -> bool {
        let (first, last) = (self.nodes[graph.param(block)].first, self.nodes[graph.ret(block)].first);
        (first..=last).contains(&self.nodes[node].first)
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
                return Err("nodes stand elsewhere".to_owned());
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
    fn intervals_answer() {
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
        assert!(dom.is_in(&g, n("c"), g.block(n("r"), 0)) && !dom.is_in(&g, n("d"), g.block(n("r"), 0)));
        for a in g.nodes_deep() {
            for v in g.operands(a) {
                assert!(dom.is_available(&g, v, a));
            }
        }
    }
}
