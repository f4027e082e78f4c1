//! The graph for Graphviz: a node per FX node with its annotation, an edge per operand, a cluster per subgraph.

use std::fmt::Write as _;

use super::value::annotation;
use crate::expr::Exprs;
use crate::fx::{FxGraph, FxOp};

/// Returns the text of a graph with its subgraphs.
pub(super) fn text(graph: &FxGraph<'_>, exprs: &Exprs) -> String {
    let mut out = String::from("digraph program {\n  node [shape=box, fontname=monospace];\n");
    cluster(&mut out, graph, exprs, "n", 1);
    out.push_str("}\n");
    out
}

/// Writes the nodes of a graph. `prefix` makes the names of nodes unique among all graphs.
fn cluster(out: &mut String, graph: &FxGraph<'_>, exprs: &Exprs, prefix: &str, level: usize) {
    let space = "  ".repeat(level);
    for (n, (name, subgraph)) in graph.subgraphs.iter().enumerate() {
        let inner = format!("{prefix}_{n}");
        let _ = writeln!(out, "{space}subgraph cluster_{inner} {{\n{space}  label={};", quoted(name));
        cluster(out, subgraph, exprs, &inner, level + 1);
        let _ = writeln!(out, "{space}}}");
    }
    for (n, node) in graph.nodes.iter().enumerate() {
        let mut label = match node.op {
            FxOp::Output => "return".to_owned(),
            FxOp::Placeholder => node.name.clone(),
            FxOp::GetAttr | FxOp::Call => format!("{}\n{}", node.name, node.target),
        };
        if let Some(annotation) = annotation(node.val, exprs) {
            let _ = write!(label, "\n{annotation}");
        }
        let _ = writeln!(out, "{space}{prefix}x{n} [label={}];", quoted(&label));
        node.for_each_operand(&mut |used| {
            let _ = writeln!(out, "{space}{prefix}x{used} -> {prefix}x{n};");
        });
    }
}

/// Quotes a label.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
