//! A graph as Python source, the first part of `str(ep)`.
//!
//! Each line is one node. A value is deleted (`;  a = b = None`) on the line of its last user, in the order in which the user's
//! arguments name the values.

use std::fmt::Write as _;

use super::Style;
use super::graph::result;
use super::value::{Form, annotation, argument, arguments};
use crate::expr::Exprs;
use crate::fx::{FxGraph, FxNode, FxOp, NodeIndex, Target};

/// The trace after which no comment is written: that of a node without a trace.
const NO_TRACE: &str = "";

/// Writes a graph as a class, and its subgraphs as classes within it. Lines are indented by `level` steps.
pub(super) fn class(
    out: &mut String,
    graph: &FxGraph<'_>,
    name: &str,
    level: usize,
    exprs: &Exprs,
    style: Style,
) {
    indent(out, level);
    let _ = writeln!(out, "class {name}(torch.nn.Module):");
    indent(out, level + 1);
    head(out, graph, exprs);
    body(out, graph, level + 2, exprs, style);
    // The line after `return` has the indentation of the body, or that of the whole module.
    indent(out, if style == Style::Torch215 { 1 } else { level + 2 });
    out.push('\n');
    for (name, subgraph) in &graph.subgraphs {
        class(out, subgraph, name, level + 1, exprs, style);
    }
}

fn indent(out: &mut String, level: usize) {
    out.extend(std::iter::repeat_n("    ", level));
}

/// Writes the head of the function, with the inputs and their annotations.
fn head(out: &mut String, graph: &FxGraph<'_>, exprs: &Exprs) {
    out.push_str("def forward(self");
    for node in graph.nodes.iter().filter(|n| n.op == FxOp::Placeholder) {
        let _ = write!(out, ", {}", node.target);
        if let Some(annotation) = annotation(node.val, exprs) {
            let _ = write!(out, ": \"{annotation}\"");
        }
    }
    out.push_str("):\n");
}

fn body(out: &mut String, graph: &FxGraph<'_>, level: usize, exprs: &Exprs, style: Style) {
    let deleted = last_uses(graph);
    let users = graph.users();
    let mut trace = None;
    let mut first = true;
    for (index, node) in graph.nodes.iter().enumerate() {
        if node.op == FxOp::Placeholder {
            if node.target != node.name {
                indent(out, level);
                let _ = writeln!(out, "{} = {}", node.name, node.target);
                first = false;
            }
            continue;
        }
        if node.op != FxOp::Output {
            comment(out, node, &mut trace, first, level, style);
        }
        first = false;
        indent(out, level);
        statement(out, graph, node, exprs);
        if node.op != FxOp::Output {
            let mut names: Vec<&str> = deleted[index].iter().map(|&n| &*graph.nodes[n as usize].name).collect();
            names.extend((users[index] == 0).then_some(&*node.name));
            if !names.is_empty() {
                let _ = write!(out, ";  {} = None", names.join(" = "));
            }
        }
        out.push('\n');
    }
}

/// Returns, for each node, the values whose last user it is.
fn last_uses(graph: &FxGraph<'_>) -> Vec<Vec<NodeIndex>> {
    let mut seen = vec![false; graph.nodes.len()];
    let mut out = vec![Vec::new(); graph.nodes.len()];
    for (user, node) in graph.nodes.iter().enumerate().rev() {
        node.for_each_operand(&mut |used| {
            if !std::mem::replace(&mut seen[used as usize], true) {
                out[user].push(used);
            }
        });
    }
    out
}

/// Writes the comment about the source of a node if it is another than before.
fn comment<'m>(
    out: &mut String,
    node: &FxNode<'m>,
    before: &mut Option<&'m str>,
    first: bool,
    level: usize,
    style: Style,
) {
    let trace = node.metadata.and_then(|m| m.get("stack_trace")).map_or(NO_TRACE, String::as_str);
    if *before == Some(trace) {
        return;
    }
    *before = Some(trace);
    if !first {
        indent(out, if style == Style::Torch215 { 1 } else { level });
        out.push('\n');
    }
    indent(out, level);
    match trace {
        NO_TRACE => out.push_str("# No stacktrace found for following nodes\n"),
        trace => {
            let _ = writeln!(out, " # {}", summary(trace).unwrap_or_default());
        }
    }
}

/// Returns the innermost frame of a stack trace: `File: FILE:LINE in FUNCTION, code: TEXT`.
fn summary(trace: &str) -> Option<String> {
    let lines: Vec<&str> = trace.trim().split('\n').collect();
    for pair in lines.windows(2).rev() {
        let [place, code] = pair else { continue };
        let Some(rest) = place.trim().strip_prefix("File \"") else { continue };
        let Some((file, rest)) = rest.rsplit_once("\", line ") else { continue };
        let Some((line, function)) = rest.split_once(", in ") else { continue };
        if line.bytes().all(|b| b.is_ascii_digit()) && !function.is_empty() {
            return Some(format!("File: {file}:{line} in {function}, code: {}", code.trim()));
        }
    }
    None
}

fn statement(out: &mut String, graph: &FxGraph<'_>, node: &FxNode<'_>, exprs: &Exprs) {
    if node.op == FxOp::Output {
        out.push_str("return ");
        node.args.iter().for_each(|value| result(out, graph, value));
        return;
    }
    out.push_str(&node.name);
    if node.op == FxOp::GetAttr {
        let _ = write!(out, " = self.{}", node.target);
        return;
    }
    if let Some(annotation) = annotation(node.val, exprs) {
        let _ = write!(out, ": \"{annotation}\"");
    }
    out.push_str(" = ");
    if infix(out, graph, node) {
        return;
    }
    let _ = write!(out, "{}(", function_name(node.target));
    arguments(out, graph, &node.args, Form::Code);
    for (n, (name, value)) in node.kwargs.iter().enumerate() {
        let comma = if n > 0 || !node.args.is_empty() { ", " } else { "" };
        let _ = write!(out, "{comma}{name} = ");
        argument(out, graph, value, Form::Code);
    }
    out.push(')');
}

/// Returns the name of a function in generated code: modules other than `torch` are imported under a name of their own.
fn function_name(target: &str) -> String {
    match Target::parse(target) {
        Target::Function(path) if !path.starts_with("torch.") => path.replace('.', "_"),
        _ => target.to_owned(),
    }
}

/// Writes a call of a function that Python has an operator for. Returns false if there is none.
fn infix(out: &mut String, graph: &FxGraph<'_>, node: &FxNode<'_>) -> bool {
    let Some(name) = node.target.strip_prefix("_operator.") else { return false };
    let (before, between, after) = match (name, &node.args[..]) {
        ("pos", [_]) => ("+", "", ""),
        ("neg", [_]) => ("-", "", ""),
        ("invert", [_]) => ("~", "", ""),
        ("getitem", [_, _]) => ("", "[", "]"),
        (_, [_, _]) => match binary(name) {
            Some(sign) => ("", sign, ""),
            None => return false,
        },
        _ => return false,
    };
    out.push_str(before);
    for (n, arg) in node.args.iter().enumerate() {
        out.push_str(if n > 0 { between } else { "" });
        argument(out, graph, arg, Form::Code);
    }
    out.push_str(after);
    true
}

/// Returns the operator of a function with two arguments, with its spaces.
fn binary(name: &str) -> Option<&'static str> {
    Some(match name {
        "add" => " + ",
        "sub" => " - ",
        "mul" => " * ",
        "matmul" => " @ ",
        "truediv" | "div" => " / ",
        "floordiv" => " // ",
        "mod" => " % ",
        "pow" => " ** ",
        "lshift" => " << ",
        "rshift" => " >> ",
        "and_" => " & ",
        "or_" => " | ",
        "xor" => " ^ ",
        "eq" => " == ",
        "ne" => " != ",
        "lt" => " < ",
        "le" => " <= ",
        "gt" => " > ",
        "ge" => " >= ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn the_innermost_frame_is_shown() {
        let trace = "  File \"/a/b.py\", line 3, in outer\n    y = f(x)\n  File \"/a/c.py\", line 7, in forward\n    return x + 1\n";
        assert_eq!(summary(trace).as_deref(), Some("File: /a/c.py:7 in forward, code: return x + 1"));
        assert_eq!(summary("nothing\nhere"), None);
    }
}
