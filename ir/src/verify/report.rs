//! Violations and their report: the graph's text, with each message below the line of its node.

use crate::graph::Graph;
use crate::id::{Entity, NodeId};
use crate::text::PrintOptions;
use std::fmt;

/// A violation.
#[derive(Clone, Debug)]
pub struct VerifyError {
    /// Stable code, `V001`…
    pub code: &'static str,
    /// The node that violates the rule.
    pub node: NodeId,
    /// The entity concerned: the node itself, or one of its values or blocks.
    pub entity: Entity,
    /// Nodes that explain the violation.
    pub related: Vec<NodeId>,
    /// The message.
    pub message: String,
}

impl VerifyError {
    pub(super) fn new(code: &'static str, node: NodeId, message: impl Into<String>) -> Self {
        VerifyError { code, node, entity: Entity::Node(node), related: Vec::new(), message: message.into() }
    }

    pub(super) fn with_entity(mut self, entity: Entity) -> Self {
        self.entity = entity;
        self
    }

    pub(super) fn related(mut self, node: NodeId) -> Self {
        self.related.push(node);
        self
    }
}

/// All violations found, with the graph's text.
#[derive(Clone, Debug)]
pub struct VerifyErrors {
    errors: Vec<VerifyError>,
    rendered: String,
}

/// The report of a graph with more nodes than this contains only the messages.
const MAX_SHOWN: usize = 5_000;

impl VerifyErrors {
    pub(super) fn new(graph: &Graph, errors: Vec<VerifyError>) -> Self {
        let rendered = render(graph, &errors);
        VerifyErrors { errors, rendered }
    }

    /// Returns the violations, in order of phases and then of the program.
    pub fn errors(&self) -> &[VerifyError] {
        &self.errors
    }

    /// Returns the graph's text with each message below the line of its node.
    pub fn rendered(&self) -> &str {
        &self.rendered
    }
}

fn render(graph: &Graph, errors: &[VerifyError]) -> String {
    let broken = errors.iter().any(|e| e.code == "V001");
    if broken || graph.node_count() > MAX_SHOWN {
        return errors.iter().map(|e| format!("{}: {}\n", e.code, e.message)).collect();
    }
    let (text, lines) = graph.to_text_with_lines(PrintOptions::default());
    let mut notes: Vec<(usize, String)> = Vec::new();
    for e in errors {
        let end = lines.iter().find(|l| l.node == e.node).map_or(text.len().saturating_sub(1), |l| l.end);
        let start = text[..end].rfind('\n').map_or(0, |i| i + 1);
        let indent = text[start..end].bytes().take_while(|b| *b == b' ').count();
        let width = (end - start - indent).clamp(1, 60);
        notes.push((end, format!("\n{}{} {}: {}", " ".repeat(indent), "^".repeat(width), e.code, e.message)));
    }
    notes.sort_by_key(|n| n.0);
    let mut out = String::new();
    let mut at = 0;
    for (end, note) in notes {
        out.push_str(&text[at..end]);
        out.push_str(&note);
        at = end;
    }
    out.push_str(&text[at..]);
    out
}

impl fmt::Display for VerifyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.errors.len();
        writeln!(f, "the graph has {n} error{}", if n == 1 { "" } else { "s" })?;
        f.write_str(&self.rendered)
    }
}

impl std::error::Error for VerifyErrors {}
