//! Replay of IR text: parse, count nodes, print, parse again.

use std::collections::BTreeMap;
use std::sync::Arc;

use flambeau_ir::text::{PrintOptions, parse_graph};
use flambeau_ir::{Attr, Fault, Graph, NodeId, Prim, Registry, Source};
use serde_json::Value;

use super::super::case::{Case, Verdict};

/// Parses the text of a case.
///
/// # Errors
/// Returns the verdict if the text does not parse.
pub(super) fn read(text: &str, registry: &Arc<Registry>) -> Result<Graph, Verdict> {
    parse_graph(&Source::new("case", text), registry).map_err(|error| {
        let what = error.message.clone();
        match error.fault {
            Fault::Unsupported => Verdict::unsupported(what),
            _ => Verdict::failed(format!("reading the text: {what}\n{error}")),
        }
    })
}

/// Checks the recorded properties of a graph: the number of nodes per kind, and that printing and parsing reproduces
/// the text. With `compare_text`, the text must equal PyTorch's.
///
/// # Errors
/// Returns the verdict if a property differs.
pub(super) fn check(case: &Case, graph: &Graph, compare_text: bool) -> Result<(), Verdict> {
    if let Some(counts) = case.get("counts") {
        let counts = recorded_counts(counts);
        // PyTorch's parser does not support every kind of subgraph. It then treats the number of a subgraph as part of
        // a name and does not count the subgraph's nodes.
        let alone = counts_without_subgraphs(graph);
        let unnumbered = without_numbers(&counts);
        let counted = same_counts(&counts_of(graph), &counts)
            .or_else(|why| same_counts(&alone, &unnumbered).or(Err(why)));
        counted.map_err(Verdict::failed)?;
    }
    let exact = PrintOptions { exact: true, ..PrintOptions::default() };
    let printed = graph.to_text(exact);
    let again = read(&printed, graph.registry())?.to_text(exact);
    if again != printed {
        let what = format!(
            "the text changes when it is parsed and printed again: {}",
            first_difference(&again, &printed)
        );
        return Err(Verdict::failed(what));
    }
    if compare_text && let Some(want) = case.get("printed").and_then(Value::as_str) {
        let (got, want) = (numbered(&graph.to_text(PrintOptions::default())), numbered(want));
        if got != want {
            return Err(Verdict::failed(format!("printed text differs: {}", first_difference(&got, &want))));
        }
    }
    Ok(())
}

/// Counts nodes by kind, including nested blocks and subgraphs.
pub(super) fn counts_of(graph: &Graph) -> BTreeMap<&'static str, usize> {
    counts_in(graph, |_| true)
}

/// Counts nodes by kind without the contents of fusion groups, since PyTorch creates no fusion groups for the CPU.
pub(super) fn counts_of_sweeps(graph: &Graph) -> BTreeMap<&'static str, usize> {
    counts_in(graph, |node| !graph.is_prim(node, Prim::FusionGroup))
}

/// Counts nodes by kind, including nested blocks and the subgraphs of nodes accepted by `look`.
fn counts_in(graph: &Graph, look: impl Fn(NodeId) -> bool) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    let mut subgraphs: Vec<Arc<Graph>> = Vec::new();
    let mut see = |graph: &Graph, look: &dyn Fn(NodeId) -> bool, subgraphs: &mut Vec<Arc<Graph>>| {
        for node in graph.nodes_deep() {
            *counts.entry(graph.op_name(node).as_str()).or_insert(0) += 1;
            if !look(node) {
                continue;
            }
            for (_, attr) in graph.attrs(node).entries() {
                match attr {
                    Attr::Graph(inner) => subgraphs.push(inner.clone()),
                    Attr::Graphs(inner) => subgraphs.extend(inner.iter().cloned()),
                    _ => {}
                }
            }
        }
    };
    see(graph, &look, &mut subgraphs);
    while let Some(inner) = subgraphs.pop() {
        see(&inner, &|_| true, &mut subgraphs);
    }
    counts
}

/// Counts nodes by kind, including nested blocks but not subgraphs.
fn counts_without_subgraphs(graph: &Graph) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for node in graph.nodes_deep() {
        *counts.entry(graph.op_name(node).as_str()).or_insert(0) += 1;
    }
    counts
}

fn recorded_counts(counts: &Value) -> BTreeMap<&str, usize> {
    let entries = counts.as_object().into_iter().flatten();
    entries.map(|(kind, n)| (kind.as_str(), n.as_u64().unwrap_or(0) as usize)).collect()
}

/// Adds the counts of numbered kinds: `prim::awaitable_0` and `prim::awaitable_1` count as two `prim::awaitable`.
fn without_numbers<'a>(counts: &BTreeMap<&'a str, usize>) -> BTreeMap<&'a str, usize> {
    let mut out = BTreeMap::new();
    for (kind, n) in counts {
        let plain = kind.trim_end_matches(|c: char| c.is_ascii_digit());
        let plain =
            plain.strip_suffix('_').filter(|p| p.starts_with("prim::") && plain != *kind).unwrap_or(kind);
        *out.entry(plain).or_insert(0) += n;
    }
    out
}

fn same_counts(got: &BTreeMap<&'static str, usize>, want: &BTreeMap<&str, usize>) -> Result<(), String> {
    for kind in got.keys().copied().chain(want.keys().copied()) {
        let (g, w) = (got.get(kind).copied().unwrap_or(0), want.get(kind).copied().unwrap_or(0));
        if g != w {
            return Err(format!("{g} nodes of {kind} where {w} were recorded"));
        }
    }
    Ok(())
}

/// Returns the text with values numbered in order of appearance. PyTorch's parser drops the names of results; ours
/// keeps them.
fn numbered(text: &str) -> String {
    let mut places = BTreeMap::new();
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split('%');
    out.push_str(parts.next().unwrap_or(""));
    for part in parts {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let next = places.len();
        let place = *places.entry(name).or_insert(next);
        out.push_str(&format!("%{place}{rest}"));
    }
    out
}

/// Describes the first line that differs.
pub(super) fn first_difference(got: &str, want: &str) -> String {
    let mut lines = got.lines().zip(want.lines());
    match lines.find(|(a, b)| a != b) {
        Some((g, w)) => format!("`{}` instead of `{}`", g.trim(), w.trim()),
        None => format!("{} lines instead of {}", got.lines().count(), want.lines().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_matter() {
        assert_eq!(numbered("%a = f(%b)\n%c = g(%a)"), numbered("%1 = f(%2.x)\n%0 = g(%1)"));
        assert_ne!(numbered("%a = f(%b)\n%c = g(%a)"), numbered("%a = f(%b)\n%c = g(%b)"));
    }

    #[test]
    fn counts_include_nested_blocks() {
        let text = "graph(%c : bool, %a : Tensor):\n  %b : Tensor = prim::If(%c)\n    block0():\n      %d : Tensor = x::y(%a)\n      -> (%d)\n    block1():\n      -> (%a)\n  return (%b)\n";
        let graph = read(text, &Registry::empty()).unwrap();
        assert_eq!(counts_of(&graph), BTreeMap::from([("prim::If", 1), ("x::y", 1)]));
        let wrong = serde_json::json!({"prim::If": 1, "x::y": 2});
        assert!(
            same_counts(&counts_of(&graph), &recorded_counts(&wrong))
                .unwrap_err()
                .contains("1 nodes of x::y where 2")
        );
    }
}
