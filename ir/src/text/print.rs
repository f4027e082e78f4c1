//! Printer for graphs, in TorchScript's format.
//!
//! The format is line oriented: a header with the inputs, one line per node with two spaces per level, blocks after
//! their node, and subgraphs after the graph as `with prim::X_N = graph(…)` in preorder. With [`PrintOptions::exact`]
//! the text parses back to the same program: all tensors are printed bit for bit, types are complete, and a constant
//! that names a function has the function's qualified name, of which TorchScript prints only the last part.

use super::values::write_attr_value;
use crate::attr::{Attr, AttrSet, names};
use crate::graph::{Graph, WalkStep};
use crate::id::{BlockId, NodeId, ValueId};
use crate::loc::LocId;
use crate::op::{OpKind, Prim};
use crate::symbol::Symbol;
use crate::types::{Type, TypeKind, Verbosity};
use crate::value::IValue;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::fmt;
use std::sync::Arc;

/// The options of printing.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintOptions {
    /// Whether to append `# file:line:column` to nodes with a known location.
    pub locations: bool,
    /// Whether to print tensors, types and names of functions without abbreviation.
    pub exact: bool,
    /// The properties of types to print, unless the text is exact.
    pub types: Verbosity,
    /// Whether to omit the indentation, which makes the text of deeply nested blocks as long as the square of their depth.
    pub flat: bool,
}

/// A line of printed text, for tools that refer to nodes.
#[derive(Clone, Copy, Debug)]
pub struct PrintedLine {
    /// The node on the line.
    pub node: NodeId,
    /// Byte offset of the start of the line.
    pub start: usize,
    /// Byte offset of the end of the line, before the line break.
    pub end: usize,
}

impl Graph {
    /// Returns the graph's text.
    pub fn to_text(&self, options: PrintOptions) -> String {
        let mut p = Printer::new(options);
        p.listing(self);
        p.out
    }

    /// Returns the graph's text with the line of each node. Nodes of subgraphs are not included.
    pub fn to_text_with_lines(&self, options: PrintOptions) -> (String, Vec<PrintedLine>) {
        let mut p = Printer::new(options);
        p.lines = Some(Vec::new());
        p.listing(self);
        (p.out, p.lines.unwrap_or_default())
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(PrintOptions::default()))
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} nodes)", self.node_count())
    }
}

struct Printer {
    options: PrintOptions,
    out: String,
    types: HashMap<Type, Box<str>, FxBuildHasher>,
    lines: Option<Vec<PrintedLine>>,
}

/// A subgraph to be listed, with the operator and number of its name.
struct PendingSubgraph {
    kind: Prim,
    number: usize,
    graph: Arc<Graph>,
}

impl Printer {
    fn new(mut options: PrintOptions) -> Self {
        if options.exact {
            options.types = Verbosity::Symbolic;
        }
        Printer { options, out: String::new(), types: HashMap::default(), lines: None }
    }

    /// Prints the graph and then, in preorder, the subgraphs of its nodes.
    fn listing(&mut self, graph: &Graph) {
        let mut pending = self.graph(graph);
        pending.reverse();
        let lines = self.lines.take();
        while let Some(next) = pending.pop() {
            self.out.push_str("with ");
            self.out.push_str(next.kind.name());
            self.out.push('_');
            push_int(&mut self.out, next.number as u64);
            self.out.push_str(" = ");
            let mut inner = self.graph(&next.graph);
            inner.reverse();
            pending.append(&mut inner);
        }
        self.lines = lines;
    }

    fn graph(&mut self, g: &Graph) -> Vec<PendingSubgraph> {
        let mut listings = Vec::new();
        self.out.push_str("graph(");
        for (i, v) in g.inputs().enumerate() {
            if i > 0 {
                self.out.push_str(",\n      ");
            }
            self.typed(g, v);
        }
        self.out.push(')');
        self.size_ranges(g);
        self.out.push_str(":\n");
        let root = g.root();
        let mut level = 0usize;
        for step in g.walk(root) {
            match step {
                WalkStep::Enter(block) => {
                    if block != root {
                        self.block_header(g, block, level);
                    }
                    level += 1;
                }
                WalkStep::Leave(block) => {
                    if block != root {
                        self.indent(2 * level);
                        self.out.push_str("-> (");
                        self.values(g, g.block_outputs(block));
                        self.out.push_str(")\n");
                    }
                    level -= 1;
                }
                WalkStep::Node(node) => {
                    let start = self.out.len();
                    self.node(g, node, 2 * level, &mut listings);
                    let end = self.out.len() - 1;
                    if let Some(lines) = &mut self.lines {
                        lines.push(PrintedLine { node, start, end });
                    }
                    level += usize::from(g.block_count(node) > 0);
                }
                WalkStep::Done(_) => level -= 1,
            }
        }
        self.out.push_str("  return (");
        self.values(g, g.outputs());
        self.out.push_str(")\n");
        listings
    }

    /// Prints ` where SS(-1) in [3, 64], SS(-2) in [0, inf]` if the graph states ranges.
    fn size_ranges(&mut self, g: &Graph) {
        for (i, range) in g.size_ranges().enumerate() {
            self.out.push_str(if i == 0 { " where " } else { ", " });
            self.out.push_str(&format!("SS({}) in [{}, ", range.symbol, range.min));
            match range.max {
                i64::MAX => self.out.push_str("inf]"),
                max => self.out.push_str(&format!("{max}]")),
            }
        }
    }

    fn block_header(&mut self, g: &Graph, block: BlockId, level: usize) {
        let owner = g.owner(block).expect("invariant: only the root block has no owner");
        let number =
            g.blocks(owner).position(|b| b == block).expect("invariant: a block is among its owner's");
        self.indent(2 * level);
        self.out.push_str("block");
        push_int(&mut self.out, number as u64);
        self.out.push('(');
        for (i, v) in g.block_inputs(block).enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.typed(g, v);
        }
        self.out.push_str("):\n");
    }

    fn node(&mut self, g: &Graph, node: NodeId, indent: usize, listings: &mut Vec<PendingSubgraph>) {
        self.indent(indent);
        for (i, v) in g.results(node).enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.typed(g, v);
        }
        self.out.push_str(" = ");
        let op = g.op(node);
        let attrs = g.attrs(node);
        let subgraph = match op.prim() {
            Some(prim) if prim.has_subgraph() => {
                attrs.get(names::subgraph()).and_then(Attr::as_graph).map(|graph| (prim, graph))
            }
            _ => None,
        };
        match op.kind() {
            OpKind::Prim(Prim::PythonOp | Prim::IgnoredPythonOp) => self.python_op(attrs),
            OpKind::Prim(prim) => self.out.push_str(prim.name()),
            OpKind::Row(id) => self.out.push_str(g.registry().name(id.into()).as_str()),
            OpKind::Unknown(name) => self.out.push_str(name.as_str()),
        }
        if let Some((kind, graph)) = subgraph {
            self.out.push('_');
            push_int(&mut self.out, listings.len() as u64);
            listings.push(PendingSubgraph { kind, number: listings.len(), graph: Arc::clone(graph) });
        }
        if !matches!(op.prim(), Some(Prim::PythonOp | Prim::IgnoredPythonOp)) {
            let function = if self.options.exact { function_named_by(g, node) } else { None };
            let declared = g.results(node).next().map(|v| g.ty(v));
            self.attributes(attrs, subgraph.is_some(), declared, function);
        }
        self.out.push('(');
        self.values(g, g.operands(node));
        self.out.push(')');
        if self.options.locations {
            self.location(g, g.loc(node));
        }
        self.out.push('\n');
    }

    fn python_op(&mut self, attrs: &AttrSet) {
        self.out.push('^');
        let name = attrs.get(names::name()).and_then(Attr::as_str).unwrap_or("host");
        self.out.push_str(name);
        self.out.push('(');
        if let Some(Attr::Value(IValue::List(words))) = attrs.get(names::scalar_args()) {
            for (i, word) in words.to_vec().iter().enumerate() {
                self.out.push_str(if i > 0 { ", " } else { "" });
                self.out.push_str(word.as_str().and_then(|w| w.to_str()).unwrap_or(""));
            }
        }
        self.out.push(')');
    }

    /// Prints an attribute list. `declared` is the type of the attribute `value`. `function` replaces the attribute
    /// `name` if it is set.
    fn attributes(
        &mut self,
        attrs: &AttrSet,
        has_listing: bool,
        declared: Option<Type>,
        function: Option<Symbol>,
    ) {
        let mut open = false;
        for (name, attr) in attrs.entries() {
            if has_listing && matches!(attr, Attr::Graph(_)) {
                continue;
            }
            self.out.push_str(if open { ", " } else { "[" });
            open = true;
            self.out.push_str(name.as_str());
            self.out.push('=');
            match attr {
                Attr::Value(value) => match function.filter(|_| *name == names::name()) {
                    Some(function) => self.attr_value(&IValue::from(function.as_str()), None),
                    None => self.attr_value(value, declared.filter(|_| *name == names::value())),
                },
                Attr::Type(ty) => self.ty(*ty),
                Attr::Types(types) => {
                    self.out.push('[');
                    for (i, ty) in types.iter().enumerate() {
                        if i > 0 {
                            self.out.push_str(", ");
                        }
                        self.ty(*ty);
                    }
                    self.out.push(']');
                }
                Attr::Graph(_) => self.out.push_str("<Graph>"),
                Attr::Graphs(_) => self.out.push_str("[<Graphs>]"),
            }
        }
        if open {
            self.out.push(']');
        }
    }

    fn attr_value(&mut self, value: &IValue, declared: Option<Type>) {
        match value {
            IValue::Int(v) => push_signed(&mut self.out, *v),
            IValue::Bool(v) => self.out.push(if *v { '1' } else { '0' }),
            other => write_attr_value(&mut self.out, other, declared, self.options.exact),
        }
    }

    fn typed(&mut self, g: &Graph, v: ValueId) {
        self.value(g, v);
        if self.options.types > Verbosity::None {
            self.out.push_str(" : ");
            self.ty(g.ty(v));
        }
    }

    fn values(&mut self, g: &Graph, values: impl Iterator<Item = ValueId>) {
        for (i, v) in values.enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.value(g, v);
        }
    }

    fn value(&mut self, g: &Graph, v: ValueId) {
        self.out.push('%');
        let name = g.name(v);
        match name.symbol() {
            Some(symbol) => self.out.push_str(symbol.as_str()),
            None => push_int(&mut self.out, u64::from(name.number().unwrap_or(0))),
        }
    }

    fn ty(&mut self, ty: Type) {
        if ty == Type::TENSOR {
            self.out.push_str("Tensor");
        } else {
            let verbosity = self.options.types;
            let text = self
                .types
                .entry(ty)
                .or_insert_with(|| ty.with_verbosity(verbosity).to_string().into_boxed_str());
            self.out.push_str(text);
        }
    }

    fn location(&mut self, g: &Graph, loc: LocId) {
        if let Some(scope) = g.locs().scope(loc) {
            self.out.push_str(", scope: ");
            self.out.push_str(scope.as_str());
        }
        if let Some(at) = g.locs().range(loc) {
            // Of code in an archive the file from which it was printed, as in PyTorch.
            let at = at.original().unwrap_or(at);
            let (line, column) = at.source.line_column(at.range.start as usize);
            self.out.push_str(&format!(" # {}:{line}:{}", at.source.name, column - 1));
        }
    }

    fn indent(&mut self, n: usize) {
        let n = if self.options.flat { 0 } else { n };
        const SPACES: &str = "                                                                ";
        let mut n = n;
        while n > 0 {
            let k = n.min(SPACES.len());
            self.out.push_str(&SPACES[..k]);
            n -= k;
        }
    }
}

/// Returns the qualified name of the function that a constant names, which only the constant's type contains.
fn function_named_by(g: &Graph, node: NodeId) -> Option<Symbol> {
    let result = g.results(node).next().filter(|_| g.is_prim(node, Prim::Constant))?;
    match g.ty(result).kind() {
        TypeKind::Function(name) if !name.is_empty() => Some(*name),
        _ => None,
    }
}

fn push_signed(out: &mut String, v: i64) {
    if v < 0 {
        out.push('-');
    }
    push_int(out, v.unsigned_abs());
}

fn push_int(out: &mut String, mut v: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (v % 10) as u8;
        v /= 10;
        if v == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|&d| char::from(d)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_graph;
    use crate::{RegistryBuilder, Source};

    #[test]
    fn exact_text_keeps_the_qualified_names_of_functions() {
        let registry = RegistryBuilder::new().build().unwrap();
        let mut graph = Graph::new(Arc::clone(&registry));
        let name = Symbol::new("__torch__.layers.helper");
        let mut e = graph.edit();
        let attrs = e.attrs([(names::name(), Attr::str("helper"))]);
        e.insert(Prim::Constant, &[], attrs, &[Type::function(name)]);
        assert!(graph.to_string().contains("prim::Constant[name=\"helper\"]()"), "as TorchScript prints it");
        let exact = PrintOptions { exact: true, ..PrintOptions::default() };
        let text = graph.to_text(exact);
        assert!(text.contains("prim::Constant[name=\"__torch__.layers.helper\"]()"), "{text}");
        assert_eq!(parse_graph(&Source::new("test.ir", &*text), &registry).unwrap().to_text(exact), text);
    }
}
