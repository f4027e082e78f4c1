//! `str(ep.graph)`: one line per node.

use std::fmt::Write as _;

use super::value::{Form, Names, argument, arguments, names, tuple};
use crate::fx::{FxArg, FxGraph, FxOp};

/// Returns the text of a graph, without a line end at the end. Subgraphs are named, not printed.
pub(super) fn text(graph: &FxGraph<'_>) -> String {
    let users = graph.users();
    let names = names(graph);
    let mut out = String::from("graph():");
    for (node, users) in graph.nodes.iter().zip(users) {
        out.push_str("\n    ");
        if node.op == FxOp::Output {
            out.push_str("return ");
            node.args.iter().for_each(|value| result(&mut out, &names, value));
            continue;
        }
        let _ = write!(out, "%{} : [num_users={users}] = ", node.name);
        match node.op {
            FxOp::Placeholder => {
                let _ = write!(out, "placeholder[target={}]", node.target);
            }
            FxOp::GetAttr => {
                let _ = write!(out, "get_attr[target={}]", node.target);
            }
            FxOp::Call | FxOp::Output => {
                let target = node.target.strip_prefix('_').filter(|t| t.starts_with("operator."));
                let _ = write!(out, "call_function[target={}](args = ", target.unwrap_or(node.target));
                tuple(&mut out, &names, &node.args, Form::Graph);
                out.push_str(", kwargs = {");
                for (n, (name, value)) in node.kwargs.iter().enumerate() {
                    let _ = write!(out, "{}{name}: ", if n > 0 { ", " } else { "" });
                    argument(&mut out, &names, value, Form::Graph);
                }
                out.push_str("})");
            }
        }
    }
    out
}

/// Writes the value of the output node: `str` of a tuple, whose elements are written as `repr`.
pub(super) fn result(out: &mut String, names: &Names<'_>, value: &FxArg<'_>) {
    match value {
        FxArg::Tuple(items) => tuple(out, names, items, Form::Code),
        other => arguments(out, names, std::slice::from_ref(other), Form::Code),
    }
}
