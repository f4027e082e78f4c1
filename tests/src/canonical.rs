//! Canonical text of graphs, equal for graphs that differ only in names, locations and the positions of constants.
//!
//! Constants are printed where they are used, and values are numbered in order of definition. Operators, nesting,
//! types, attributes and the order of nodes are preserved.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use flambeau_ir::types::TypeKind;
use flambeau_ir::{Attr, Graph, NodeId, Prim, ValueId, WalkStep};

/// Returns the canonical text of a graph and its subgraphs.
pub fn canonical(graph: &Graph) -> String {
    let mut out = String::new();
    let mut open: Vec<Arc<Graph>> = Vec::new();
    Writer { graph, out: &mut out, subgraphs: &mut open, numbers: BTreeMap::new() }.write();
    while let Some(inner) = open.pop() {
        out.push_str("subgraph\n");
        Writer { graph: &inner, out: &mut out, subgraphs: &mut open, numbers: BTreeMap::new() }.write();
    }
    out
}

struct Writer<'g, 'o> {
    graph: &'g Graph,
    out: &'o mut String,
    subgraphs: &'o mut Vec<Arc<Graph>>,
    numbers: BTreeMap<ValueId, usize>,
}

impl Writer<'_, '_> {
    fn write(mut self) {
        let g = self.graph;
        let mut depth = 0;
        for step in g.walk(g.root()) {
            match step {
                WalkStep::Enter(block) => {
                    depth += 1;
                    let inputs = self.defined(g.block_inputs(block));
                    self.line(depth, &format!("block({inputs})"));
                }
                WalkStep::Node(node)
                    if matches!(g.prim(node), Some(Prim::Constant | Prim::Uninitialized)) => {}
                WalkStep::Node(node) => {
                    let operands = self.used(g.operands(node));
                    let results = self.defined(g.results(node));
                    let attrs = self.attributes(node);
                    self.line(depth, &format!("{results} = {}[{attrs}]({operands})", g.op_name(node)));
                }
                WalkStep::Leave(block) => {
                    let outputs = self.used(g.block_outputs(block));
                    self.line(depth, &format!("-> ({outputs})"));
                    depth -= 1;
                }
                WalkStep::Done(_) => {}
            }
        }
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{:depth$}{text}", "");
    }

    fn defined(&mut self, values: impl Iterator<Item = ValueId>) -> String {
        let mut texts = Vec::new();
        for value in values {
            let number = self.numbers.len();
            self.numbers.insert(value, number);
            texts.push(format!("%{number} : {}", self.graph.ty(value)));
        }
        texts.join(", ")
    }

    fn used(&self, values: impl Iterator<Item = ValueId>) -> String {
        let g = self.graph;
        let text = |value| match (g.ty(value).kind(), g.constant(value), self.numbers.get(&value)) {
            _ if g.is_prim(g.def(value), Prim::Uninitialized) => format!("uninitialized({})", g.ty(value)),
            // Recorded texts contain functions without their modules and truncated tensors.
            (TypeKind::Function(_), Some(_), _) => {
                let name = g.attr(g.def(value), flambeau_ir::attr::names::name());
                format!("function {}", name.and_then(|a| a.as_str()).unwrap_or_default())
            }
            (_, Some(flambeau_ir::IValue::Tensor(_)), _) => "<Tensor>".to_owned(),
            (_, Some(constant), _) => format!("{constant:?}"),
            (_, None, Some(number)) => format!("%{number}"),
            (_, None, None) => "?".to_owned(),
        };
        values.map(text).collect::<Vec<_>>().join(", ")
    }

    fn attributes(&mut self, node: NodeId) -> String {
        let mut texts = Vec::new();
        for (name, attr) in self.graph.attrs(node).entries() {
            match attr {
                // A process-wide counter of PyTorch.
                _ if *name == "warn_id" => {}
                Attr::Graph(inner) => self.subgraphs.push(inner.clone()),
                Attr::Value(value) => texts.push(format!("{name}={value:?}")),
                other => texts.push(format!("{name}={other:?}")),
            }
        }
        texts.join(", ")
    }
}
