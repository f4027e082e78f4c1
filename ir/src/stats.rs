//! Statistics of graphs, and export to Graphviz.

use crate::graph::{Graph, WalkStep};
use crate::id::NodeId;
use crate::symbol::Symbol;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::fmt::Write;

/// Sizes and operator counts of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Number of nodes, without `prim::Param` and `prim::Return`.
    pub nodes: usize,
    /// Number of values.
    pub values: usize,
    /// Number of blocks, including the root.
    pub blocks: usize,
    /// Deepest nesting of blocks: 0 if there are no nested blocks.
    pub depth: usize,
    /// Number of nodes per operator name, in order of first appearance.
    pub operators: IndexMap<Symbol, usize, FxBuildHasher>,
    /// Heap size in bytes, see [`Graph::heap_bytes`].
    pub heap_bytes: usize,
}

impl Graph {
    /// Counts nodes by operator, values, blocks, depth and heap bytes. O(nodes).
    pub fn statistics(&self) -> Statistics {
        let mut operators: IndexMap<Symbol, usize, FxBuildHasher> = IndexMap::default();
        let (mut depth, mut deepest) = (0usize, 0usize);
        for step in self.walk(self.root()) {
            match step {
                WalkStep::Enter(_) => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                WalkStep::Leave(_) => depth -= 1,
                WalkStep::Node(n) => *operators.entry(self.op_name(n)).or_default() += 1,
                WalkStep::Done(_) => {}
            }
        }
        Statistics {
            nodes: self.node_count(),
            values: self.value_count(),
            blocks: self.nested_block_count(),
            depth: deepest - 1,
            operators,
            heap_bytes: self.heap_bytes(),
        }
    }

    /// Returns the graph in the DOT language: a box per node, an edge per operand, a cluster per block.
    pub fn to_dot(&self) -> String {
        let mut out = String::from("digraph {\n  node [shape=box, fontname=monospace];\n");
        let ids: IndexMap<NodeId, usize, FxBuildHasher> = self
            .walk(self.root())
            .flat_map(|step| match step {
                WalkStep::Enter(b) => [Some(self.param(b)), Some(self.ret(b))],
                WalkStep::Node(n) => [Some(n), None],
                WalkStep::Leave(_) | WalkStep::Done(_) => [None, None],
            })
            .flatten()
            .enumerate()
            .map(|(i, n)| (n, i))
            .collect();
        for step in self.walk(self.root()) {
            match step {
                WalkStep::Enter(b) => {
                    let (param, ret) = (ids[&self.param(b)], ids[&self.ret(b)]);
                    let _ = writeln!(out, "  subgraph cluster_{param} {{");
                    let _ = writeln!(out, "  n{param} [label=\"inputs\", style=dashed];");
                    let _ = writeln!(out, "  n{ret} [label=\"outputs\", style=dashed];");
                }
                WalkStep::Leave(b) => {
                    out.push_str("  }\n");
                    self.dot_edges(self.ret(b), &ids, &mut out);
                }
                WalkStep::Node(n) => {
                    let _ = writeln!(out, "  n{} [label=\"{}\"];", ids[&n], self.op_name(n));
                    self.dot_edges(n, &ids, &mut out);
                }
                WalkStep::Done(_) => {}
            }
        }
        out.push_str("}\n");
        out
    }

    fn dot_edges(&self, node: NodeId, ids: &IndexMap<NodeId, usize, FxBuildHasher>, out: &mut String) {
        for v in self.operands(node) {
            let _ =
                writeln!(out, "  n{} -> n{} [label=\"%{}\"];", ids[&self.def(v)], ids[&node], self.name(v));
        }
    }
}
