//! The memory graph as text and as a Graphviz graph. Both depend only on the program, never on addresses.

use super::dag::{ElementId, ElementSubject, MemoryDag, NONE, is_wildcard};
use super::{AliasDb, Flags};
use flambeau_ir::{Graph, NodeId, ValueId, WalkStep};
use std::fmt::Write;

impl AliasDb {
    /// Prints one line per mutable value in program order with its points-to set and that of its contents, then one per node that writes.
    ///
    /// ```text
    /// %a : Tensor -> *Tensor
    /// %r : Tensor -> %x, %y; written
    /// %l : Tensor[] -> new, holds %x
    /// writes:
    ///   aten::add_(%r, %one): %r
    /// ```
    /// `*T` is the wildcard of type `T`, `*input T` the one of values that existed before the run; `new` is newly allocated
    /// memory; `contents of %x` are the elements of a container, and `all in %x` is a value with all that it contains. Flags of the memory follow: `written` (by
    /// any node, or by the caller between runs), `wildcard` (may also be reached from outside), `returned`.
    #[must_use]
    pub fn dump(&self, graph: &Graph) -> String {
        let mut text = String::new();
        let mut writers = Vec::new();
        for step in graph.walk(graph.root()) {
            let node = match step {
                WalkStep::Enter(block) => graph.param(block),
                WalkStep::Node(node) => node,
                WalkStep::Leave(_) | WalkStep::Done(_) => continue,
            };
            for v in graph.results(node) {
                if graph.ty(v).is_mutable() {
                    self.dump_value(graph, v, &mut text);
                }
            }
            if self.writes_itself(node) {
                writers.push(node);
            }
        }
        if !writers.is_empty() {
            text.push_str("writes:\n");
        }
        for node in writers {
            self.dump_writer(graph, node, &mut text);
        }
        text
    }

    fn dump_value(&self, g: &Graph, v: ValueId, text: &mut String) {
        let _ = write!(text, "%{} : {} -> ", g.name(v), g.ty(v));
        let Some(e) = self.element(v) else {
            text.push_str("new\n");
            return;
        };
        if self.dag.elements[e].of == ElementSubject::Value(v) {
            self.dump_element(g, e, text);
        } else {
            text.push_str(&self.element_name(g, e));
        }
        let flags = self.set_flags(self.set_of(e, false));
        let wildcard = flags.has(Flags::WILDCARD) && !is_wildcard(&self.dag, e);
        for (set, word) in [
            (flags.has(Flags::WRITTEN), "written"),
            (wildcard, "wildcard"),
            (flags.has(Flags::OUTPUT) && !flags.has(Flags::WILDCARD), "returned"),
        ] {
            if set {
                let _ = write!(text, "; {word}");
            }
        }
        text.push('\n');
    }

    /// Appends the points-to set of an element and that of its contents.
    fn dump_element(&self, g: &Graph, e: ElementId, text: &mut String) {
        let element = &self.dag.elements[e];
        let mut parts: Vec<String> = Vec::new();
        if element.location != NONE {
            parts.push("new".to_owned());
        }
        parts.extend(self.target_names(g, e));
        if parts.is_empty() {
            parts.push("new".to_owned());
        }
        text.push_str(&parts.join(", "));
        if element.contents != NONE {
            let inside = ElementId(element.contents);
            let mut held: Vec<String> = Vec::new();
            if self.dag.elements[inside].location != NONE {
                held.push("new".to_owned());
            }
            held.extend(self.target_names(g, inside));
            if !held.is_empty() {
                let _ = write!(text, ", holds {}", held.join(", "));
            }
        }
    }

    /// The names of the targets of an element, oldest edge first, without duplicates.
    fn target_names(&self, g: &Graph, e: ElementId) -> Vec<String> {
        let mut targets: Vec<ElementId> = self.dag.points_to(e).collect();
        targets.reverse();
        let mut names: Vec<String> = Vec::new();
        for target in targets {
            let name = self.element_name(g, target);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    pub(super) fn element_name(&self, g: &Graph, mut e: ElementId) -> String {
        let mut prefix = String::new();
        // Contents of contents: the loop is bounded by the nesting of the type.
        loop {
            match self.dag.elements[e].of {
                ElementSubject::Value(v) if g.has_value(v) => return format!("{prefix}%{}", g.name(v)),
                ElementSubject::Value(_) => return format!("{prefix}an erased value"),
                ElementSubject::Wildcard => {
                    let input = if self.dag.is_input_wildcard(e) { "input " } else { "" };
                    return format!("{prefix}*{input}{}", self.dag.ty(e));
                }
                ElementSubject::Helper => return format!("{prefix}new {}", self.dag.ty(e)),
                ElementSubject::Contents(of) => {
                    prefix.push_str("contents of ");
                    e = of;
                }
            }
        }
    }

    fn dump_writer(&self, g: &Graph, node: NodeId, text: &mut String) {
        let operands: Vec<String> = g.operands(node).map(|v| format!("%{}", g.name(v))).collect();
        let mut written: Vec<String> = self
            .writes
            .of(node)
            .map(|w| {
                let name = self.element_name(g, w.element);
                if w.deep { format!("all in {name}") } else { name }
            })
            .collect();
        written.reverse();
        let _ = writeln!(text, "  {}({}): {}", g.op_name(node), operands.join(", "), written.join(", "));
    }

    /// Prints the memory graph for Graphviz. Solid arrows are points-to edges, dashed ones lead to contents. Wildcards
    /// are grey, boxes own memory, written memory is red.
    #[must_use]
    pub fn to_dot(&self, graph: &Graph) -> String {
        let mut text = String::from("digraph memory {\n  rankdir=LR;\n  node [fontname=\"monospace\"];\n");
        let used = used(&self.dag);
        for (e, element) in self.dag.elements.iter() {
            if !used[e.0 as usize] {
                continue;
            }
            let name = self.element_name(graph, e);
            let label = format!("{name} : {}", element.ty).replace('\\', "\\\\").replace('"', "\\\"");
            let shape = if element.location == NONE { "ellipse" } else { "box" };
            let fill = if is_wildcard(&self.dag, e) { ", style=filled, fillcolor=lightgrey" } else { "" };
            let written =
                element.location != NONE && self.dag.locations.flags(element.location).has(Flags::WRITTEN);
            let color = if written { ", color=red" } else { "" };
            let _ = writeln!(text, "  e{} [label=\"{label}\", shape={shape}{fill}{color}];", e.0);
        }
        for (e, element) in self.dag.elements.iter() {
            if !used[e.0 as usize] {
                continue;
            }
            let mut targets: Vec<ElementId> = self.dag.points_to(e).collect();
            targets.sort_unstable();
            targets.dedup();
            for target in targets {
                let _ = writeln!(text, "  e{} -> e{};", e.0, target.0);
            }
            if element.contents != NONE {
                let _ = writeln!(text, "  e{} -> e{} [style=dashed];", e.0, element.contents);
            }
        }
        text.push_str("}\n");
        text
    }
}

/// The elements to draw: all but unreachable wildcards.
fn used(dag: &MemoryDag) -> Vec<bool> {
    let mut used = vec![false; dag.elements.len()];
    let mut todo: Vec<ElementId> = dag
        .elements
        .iter()
        .filter(|(_, element)| element.of != ElementSubject::Wildcard)
        .map(|(e, _)| e)
        .collect();
    while let Some(e) = todo.pop() {
        if std::mem::replace(&mut used[e.0 as usize], true) {
            continue;
        }
        todo.extend(dag.points_to(e));
        if dag.elements[e].contents != NONE {
            todo.push(ElementId(dag.elements[e].contents));
        }
    }
    used
}
