//! Counts and pictures of graphs.

use crate::graph::{Graph, WalkStep};
use crate::id::NodeId;
use crate::symbol::Symbol;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::fmt::Write;

/// What a graph consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Nodes, brackets of blocks not counted.
    pub nodes: usize,
    /// Values.
    pub values: usize,
    /// Blocks, the root included.
    pub blocks: usize,
    /// Deepest nesting: 0 without nested blocks.
    pub depth: usize,
    /// Nodes per operator name, in order of first appearance.
    pub operators: IndexMap<Symbol, usize, FxBuildHasher>,
    /// Bytes of heap, see [`Graph::heap_bytes`].
    pub heap_bytes: usize,
}

impl Graph {
    /// Counts nodes by operator, depth and size.
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

    /// The graph in Graphviz's language: nodes by operator, edges by value, blocks as clusters.
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
