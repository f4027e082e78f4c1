//! A graph as Python source, the first part of `str(ep)`.
//!
//! Each line is one node. Names are those of the nodes, unless Python does not allow them: an input called `input` gets the
//! name `input_1` in the first line. A value is deleted (`;  a = b = None`) on the line of its last user, in the order in which the user's
//! arguments name the values.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::Style;
use super::graph::result;
use super::value::{Form, Names, annotation, argument, arguments};
use crate::expr::Exprs;
use crate::fx::{FxGraph, FxNode, FxOp, Namespace, NodeIndex, Target};
use crate::model::Map;

/// The trace after which no comment is written: that of a node without a trace.
const NO_TRACE: &str = "";

/// The comment of nodes without a stack trace.
const NO_TRACE_COMMENT: &str = "# No stacktrace found for following nodes";

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
    let (names, functions) = code_names(graph);
    let users = graph.users();
    let mut trace = None;
    let mut first = true;
    for (index, node) in graph.nodes.iter().enumerate() {
        if node.op == FxOp::Placeholder {
            if node.target != names[index] {
                indent(out, level);
                let _ = writeln!(out, "{} = {}", names[index], node.target);
                first = false;
            }
            continue;
        }
        if node.op != FxOp::Output {
            comment(out, node, &mut trace, first, level, style);
        }
        first = false;
        indent(out, level);
        let line = Line { node, name: &names[index], names: &names, functions: &functions };
        line.statement(out, exprs);
        if node.op != FxOp::Output {
            let mut unused: Vec<&str> = deleted[index].iter().map(|&n| &*names[n as usize]).collect();
            unused.extend((users[index] == 0).then_some(&*names[index]));
            if !unused.is_empty() {
                let _ = write!(out, ";  {} = None", unused.join(" = "));
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

/// Writes the comment about the source of a node if it is another than before: another stack trace, and from 2.15 on another
/// comment.
fn comment<'m>(
    out: &mut String,
    node: &FxNode<'m>,
    before: &mut Option<Cow<'m, str>>,
    first: bool,
    level: usize,
    style: Style,
) {
    let trace = node.metadata.and_then(|m| m.get("stack_trace")).map_or(NO_TRACE, |trace| &**trace);
    let is_newest = style == Style::Torch215;
    let text = match (trace, summary(trace)) {
        (NO_TRACE, _) => Cow::Borrowed(NO_TRACE_COMMENT),
        (_, Some(summary)) if is_newest => Cow::Owned(format!("# {summary}")),
        (_, None) if is_newest => Cow::Borrowed(NO_TRACE_COMMENT),
        (_, summary) => Cow::Owned(format!(" # {}", summary.unwrap_or_default())),
    };
    let source = if is_newest { text.clone() } else { Cow::Borrowed(trace) };
    if before.as_ref() == Some(&source) {
        return;
    }
    *before = Some(source);
    if !first {
        indent(out, if is_newest { 1 } else { level });
        out.push('\n');
    }
    indent(out, level);
    let _ = writeln!(out, "{text}");
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

/// Returns the names of nodes in generated code, and of the functions that the code imports. Both are given in the order of
/// the code.
fn code_names<'n>(graph: &'n FxGraph<'_>) -> (Vec<Cow<'n, str>>, Map<String>) {
    let mut namespace = Namespace::default();
    let mut functions: Map<String> = Map::default();
    let mut names = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        if node.op == FxOp::Call
            && let Some(path) = imported(node.target)
            && sign(node).is_none()
            && !functions.contains_key(path)
        {
            functions.insert(path.to_owned(), namespace.create(path));
        }
        names.push(match node.op {
            FxOp::Output => Cow::Borrowed(&*node.name),
            _ => Cow::Owned(namespace.create(&node.name)),
        });
    }
    (names, functions)
}

/// Returns the path of a function that generated code imports: one that is not in `torch`.
fn imported(target: &str) -> Option<&str> {
    match Target::parse(target) {
        Target::Function(path) if !path.starts_with("torch.") => Some(path),
        _ => None,
    }
}

/// A node with the names that its line needs.
struct Line<'n, 'm> {
    node: &'n FxNode<'m>,
    name: &'n str,
    names: &'n Names<'n>,
    functions: &'n Map<String>,
}

impl Line<'_, '_> {
    /// Writes the statement of a node that is no placeholder, without a line end.
    fn statement(&self, out: &mut String, exprs: &Exprs) {
        let node = self.node;
        if node.op == FxOp::Output {
            out.push_str("return ");
            node.args.iter().for_each(|value| result(out, self.names, value));
            return;
        }
        out.push_str(self.name);
        if node.op == FxOp::GetAttr {
            let _ = write!(out, " = self.{}", node.target);
            return;
        }
        if let Some(annotation) = annotation(node.val, exprs) {
            let _ = write!(out, ": \"{annotation}\"");
        }
        out.push_str(" = ");
        if let Some((before, between, after)) = sign(node) {
            out.push_str(before);
            for (n, arg) in node.args.iter().enumerate() {
                out.push_str(if n > 0 { between } else { "" });
                argument(out, self.names, arg, Form::Code);
            }
            out.push_str(after);
            return;
        }
        let function = imported(node.target).and_then(|path| self.functions.get(path));
        let _ = write!(out, "{}(", function.map_or(node.target, String::as_str));
        arguments(out, self.names, &node.args, Form::Code);
        for (n, (name, value)) in node.kwargs.iter().enumerate() {
            let comma = if n > 0 || !node.args.is_empty() { ", " } else { "" };
            let _ = write!(out, "{comma}{name} = ");
            argument(out, self.names, value, Form::Code);
        }
        out.push(')');
    }
}

/// Returns the text before, between and after the arguments of a function that Python has an operator for.
fn sign(node: &FxNode<'_>) -> Option<(&'static str, &'static str, &'static str)> {
    match (node.target.strip_prefix("_operator.")?, &node.args[..]) {
        ("pos", [_]) => Some(("+", "", "")),
        ("neg", [_]) => Some(("-", "", "")),
        ("invert", [_]) => Some(("~", "", "")),
        ("getitem", [_, _]) => Some(("", "[", "]")),
        (name, [_, _]) => binary(name).map(|sign| ("", sign, "")),
        _ => None,
    }
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
