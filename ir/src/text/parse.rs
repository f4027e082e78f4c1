//! Parser for graphs.
//!
//! Accepts the output of the printer and everything that PyTorch's parser accepts. Types may be omitted (`Tensor`),
//! nodes without results may be written with or without `=`, scopes and comments are allowed, and subgraph listings
//! follow the graph in preorder. The header `block0(…):` delimits blocks, so indentation is free. Nesting depth costs
//! heap memory, not stack.

use super::attrs;
use super::lex::{Cursor, Read};
use super::resolve::{OpName, TextResolver};
use crate::attr::{Attr, AttrsId, names};
use crate::diag::{Diagnostic, Fault};
use crate::edit::{At, Editor};
use crate::graph::{Graph, SizeRange};
use crate::id::{BlockId, NodeId, ValueId};
use crate::loc::{Source, SourceId};
use crate::op::{Op, Prim, Registry, scalar_args};
use crate::symbol::Symbol;
use crate::types::{Type, parse_ir_type};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::sync::Arc;

/// Limits of the parser.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Maximum length of the text, in bytes.
    pub text: usize,
    /// Maximum nesting depth of blocks and of subgraphs.
    pub depth: usize,
    /// Maximum size of a tensor constant, in bytes.
    pub tensor_bytes: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        ReadLimits { text: 1 << 30, depth: 1 << 20, tensor_bytes: 1 << 24 }
    }
}

impl ReadLimits {
    /// Returns limits that only the data structures impose.
    pub fn trusted() -> Self {
        ReadLimits { text: usize::MAX, depth: usize::MAX, tensor_bytes: usize::MAX }
    }
}

/// Parses a graph with the default limits.
///
/// # Errors
/// Returns the first error with its location in `source`.
pub fn parse_graph(source: &Arc<Source>, registry: &Arc<Registry>) -> Result<Graph, Box<Diagnostic>> {
    parse_graph_with(source, registry, ReadLimits::default())
}

/// Parses a graph with the given limits.
///
/// # Errors
/// Returns the first error with its location in `source`.
pub fn parse_graph_with(
    source: &Arc<Source>,
    registry: &Arc<Registry>,
    limits: ReadLimits,
) -> Result<Graph, Box<Diagnostic>> {
    let mut cursor = Cursor::new(source);
    if source.text.len() > limits.text.min(u32::MAX as usize) {
        return Err(cursor.fault(Fault::Limit, "T002", "the text is longer than the limit allows", 0, 1));
    }
    let mut resolver = TextResolver::new(registry);
    let main = Reader::new(registry, source, limits).graph(&mut cursor, &mut resolver)?;
    read_listings(&mut cursor, &mut resolver, registry, source, limits, main)
}

/// A graph with nodes whose subgraphs are not parsed yet.
struct Open {
    graph: Graph,
    /// Nodes that refer to a subgraph, in order of appearance. The first `filled` nodes have their subgraphs.
    waiting: Vec<(NodeId, Prim, u32)>,
    filled: usize,
}

/// Parses a number of 64 bits with an optional sign.
fn integer(c: &mut Cursor<'_>) -> Read<i64> {
    c.skip();
    let text = c.take_while(|b| b == b'-' || b.is_ascii_digit());
    text.parse().map_err(|_| c.expected("a number"))
}

/// Parses the `with … = graph(…)` listings (in preorder) and attaches each graph to the node that refers to it.
fn read_listings(
    cursor: &mut Cursor<'_>,
    resolver: &mut TextResolver<'_>,
    registry: &Arc<Registry>,
    source: &Arc<Source>,
    limits: ReadLimits,
    main: Open,
) -> Read<Graph> {
    let mut stack = vec![main];
    loop {
        // A graph whose nodes have all their subgraphs becomes an attribute of the enclosing graph.
        while stack.len() > 1 && stack.last().is_some_and(|o| o.filled == o.waiting.len()) {
            let done = stack.pop().expect("invariant: the stack is not empty").graph;
            close_into(stack.last_mut().expect("invariant: the main graph stays"), done);
        }
        let start = {
            cursor.skip();
            cursor.at
        };
        if !cursor.eat_word("with") {
            if cursor.peek() != 0 {
                return Err(cursor.expected("the end of the text"));
            }
            break;
        }
        let name = cursor.op_name()?;
        cursor.expect(b'=')?;
        let top = stack.last_mut().expect("invariant: the main graph stays");
        let wanted =
            top.waiting.get(top.filled).filter(|(_, prim, n)| name == format!("{}_{n}", prim.name()));
        if wanted.is_none() {
            return Err(cursor.error(
                "T010",
                format!("no node refers to the subgraph `{name}`"),
                start,
                cursor.at,
            ));
        }
        if stack.len() >= limits.depth {
            return Err(cursor.fault(
                Fault::Limit,
                "T002",
                "subgraphs are nested too deeply",
                start,
                cursor.at,
            ));
        }
        stack.push(Reader::new(registry, source, limits).graph(cursor, resolver)?);
    }
    // A node without its listing becomes an opaque operator, as in PyTorch's parser.
    while stack.len() > 1 {
        let done = stack.pop().expect("invariant: the stack is not empty");
        close_into(stack.last_mut().expect("invariant: the main graph stays"), make_opaque(done));
    }
    let main = stack.pop().expect("invariant: the main graph stays");
    Ok(make_opaque(main))
}

fn close_into(outer: &mut Open, inner: Graph) {
    let (node, _, _) = outer.waiting[outer.filled];
    outer.filled += 1;
    outer.graph.edit().set_attr(node, names::subgraph(), Attr::Graph(Arc::new(inner)));
}

fn make_opaque(mut open: Open) -> Graph {
    for &(node, prim, number) in &open.waiting[open.filled..] {
        let name = Symbol::new(&format!("{}_{number}", prim.name()));
        open.graph.edit().set_op(node, Op::unknown(name));
    }
    open.graph
}

struct Reader<'t> {
    graph: Graph,
    source: SourceId,
    limits: ReadLimits,
    text_len: usize,
    numbered: Vec<Option<ValueId>>,
    named: HashMap<&'t str, ValueId, FxBuildHasher>,
    /// Values whose names have only digits but are not kept, as in PyTorch: numbers above the length of the text or
    /// with leading zeros. They get numbers that no other value has, after the text was read.
    renumbered: Vec<ValueId>,
    waiting: Vec<(NodeId, Prim, u32)>,
}

/// Estimates the numbers of nodes and operands of a printed graph: one node per line, and one `%` per value or operand.
/// The estimate is limited in proportion to the length of the text, so hostile text cannot cause large allocations.
fn estimate(text: &str) -> (usize, usize) {
    let own = &text.as_bytes()[..text.find("\nwith ").unwrap_or(text.len())];
    let count = |byte: u8| own.iter().map(|&b| usize::from(b == byte)).sum::<usize>();
    let most = own.len() / 16;
    let nodes = count(b'\n').min(most);
    (nodes, count(b'%').min(most).saturating_sub(nodes))
}

/// A value's name with its type, as in `%a : Tensor`.
struct TypedName<'t> {
    name: &'t str,
    at: usize,
    ty: Type,
}

impl<'t> Reader<'t> {
    fn new(registry: &Arc<Registry>, source: &Arc<Source>, limits: ReadLimits) -> Self {
        let mut graph = Graph::new(Arc::clone(registry));
        let text_len = source.text.len();
        let source = graph.locs_mut().add_source(source);
        Reader {
            graph,
            source,
            limits,
            text_len,
            numbered: Vec::new(),
            named: HashMap::default(),
            renumbered: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn graph(mut self, c: &mut Cursor<'t>, resolver: &mut TextResolver<'_>) -> Read<Open> {
        if !c.eat_word("graph") {
            return Err(c.expected("`graph(`"));
        }
        let (nodes, operands) = estimate(&c.text[c.at..]);
        self.graph.reserve(nodes, operands);
        let root = self.graph.root();
        self.params(c, root)?;
        self.size_ranges(c)?;
        c.expect(b':')?;
        // One entry per open block, with the last node parsed in it, which owns the following `blockN`.
        let mut open: Vec<(BlockId, Option<NodeId>)> = vec![(root, None)];
        loop {
            let &(block, last) = open.last().expect("invariant: a block is open");
            match c.peek() {
                b'-' if c.text[c.at..].starts_with("->") => {
                    if open.len() == 1 {
                        return Err(c.expected("`return` (no block is open)"));
                    }
                    c.at += 2;
                    self.outputs(c, block)?;
                    open.pop();
                }
                b'r' if c.eat_word("return") => {
                    if open.len() > 1 {
                        c.at -= "return".len();
                        return Err(c.expected("`->` (a block is still open)"));
                    }
                    self.outputs(c, block)?;
                    break;
                }
                b'b' if is_block_header(c) => {
                    let Some(owner) = last else { return Err(c.expected("a node before its blocks")) };
                    if open.len() > self.limits.depth {
                        return Err(c.fault(
                            Fault::Limit,
                            "T002",
                            "blocks are nested too deeply",
                            c.at,
                            c.at + 5,
                        ));
                    }
                    c.word();
                    let inner = self.graph.edit().add_block(owner);
                    self.params(c, inner)?;
                    c.expect(b':')?;
                    open.push((inner, None));
                }
                _ => {
                    let node = self.node(c, block, resolver)?;
                    open.last_mut().expect("invariant: a block is open").1 = Some(node);
                }
            }
        }
        for value in self.renumbered {
            self.graph.number_freshly(value);
        }
        Ok(Open { graph: self.graph, waiting: self.waiting, filled: 0 })
    }

    /// Parses `(%a : T, %b)` as inputs of `block`.
    fn params(&mut self, c: &mut Cursor<'t>, block: BlockId) -> Read<()> {
        c.expect(b'(')?;
        if !c.eat(b')') {
            loop {
                let r = self.typed_name(c)?;
                let value = self.graph.edit().add_block_input(block, r.ty);
                self.define(c, &r, value)?;
                if !c.eat(b',') {
                    c.expect(b')')?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Parses ` where SS(-1) in [3, 64], SS(-2) in [0, inf]`, if it follows.
    fn size_ranges(&mut self, c: &mut Cursor<'t>) -> Read<()> {
        if !c.eat_word("where") {
            return Ok(());
        }
        loop {
            if !c.eat_word("SS") {
                return Err(c.expected("`SS(`"));
            }
            c.expect(b'(')?;
            let symbol = integer(c)?;
            c.expect(b')')?;
            if !c.eat_word("in") {
                return Err(c.expected("`in`"));
            }
            c.expect(b'[')?;
            let min = integer(c)?;
            c.expect(b',')?;
            let max = if c.eat_word("inf") { i64::MAX } else { integer(c)? };
            c.expect(b']')?;
            self.graph.edit().set_size_range(SizeRange { symbol, min, max });
            if !c.eat(b',') {
                return Ok(());
            }
        }
    }

    /// Parses `(%a, %b)` as outputs of `block`.
    fn outputs(&mut self, c: &mut Cursor<'t>, block: BlockId) -> Read<()> {
        let values = self.operands(c)?;
        let mut edit = self.graph.edit();
        for v in values {
            edit.add_block_output(block, v);
        }
        Ok(())
    }

    fn typed_name(&mut self, c: &mut Cursor<'t>) -> Read<TypedName<'t>> {
        c.skip();
        let at = c.at;
        let name = c.value_name()?;
        let ty = if c.eat(b':') { read_type(c)? } else { Type::TENSOR };
        Ok(TypedName { name, at, ty })
    }

    fn node(&mut self, c: &mut Cursor<'t>, block: BlockId, resolver: &mut TextResolver<'_>) -> Read<NodeId> {
        let start = c.at;
        let mut results: SmallVec<[TypedName<'t>; 4]> = SmallVec::new();
        if c.peek() == b'%' {
            loop {
                let r = self.typed_name(c)?;
                results.push(r);
                if !c.eat(b',') {
                    break;
                }
            }
            c.expect(b'=')?;
        } else {
            c.eat(b'=');
        }
        let op_at = {
            c.skip();
            c.at
        };
        let host = c.eat(b'^');
        let name = c.op_name()?;
        let mut words = "";
        let named = if host {
            words = host_words(c)?;
            OpName::Prim(Prim::PythonOp)
        } else {
            resolver.name(name)
        };
        let first_type = results.first().map(|r| r.ty);
        let mut op_end = c.at;
        let mut entries = Vec::new();
        if c.peek() == b'[' {
            entries = attrs::read(c, first_type, &self.limits)?;
            op_end = c.at;
        }
        if host {
            let words = words.split(',').map(str::trim).filter(|word| !word.is_empty());
            entries.splice(0..0, [(names::name(), Attr::str(name))].into_iter().chain(scalar_args(words)));
        }
        c.skip();
        let operands = self.operands(c)?;
        self.scope(c);
        let graph = &self.graph;
        let op = match named {
            OpName::Prim(prim) | OpName::Listed(prim, _) => Op::from(prim),
            OpName::Rows(group) => resolver.pick(group, operands.iter().map(|&v| graph.ty(v)), first_type),
        };
        let types: SmallVec<[Type; 4]> = results.iter().map(|r| r.ty).collect();
        let loc = self.graph.locs_mut().at(self.source, op_at as u32..op_end as u32);
        let mut edit: Editor<'_> = self.graph.edit();
        edit.at(At::end(block)).loc(loc);
        let attrs = if entries.is_empty() { AttrsId::EMPTY } else { edit.attrs(entries) };
        let node = edit.insert(op, &operands, attrs, &types);
        for (i, r) in results.iter().enumerate() {
            let value = self.graph.result(node, i);
            self.define(c, r, value)?;
        }
        if let OpName::Listed(prim, number) = named {
            self.waiting.push((node, prim, number));
        }
        debug_assert!(start <= c.at);
        Ok(node)
    }

    /// Skips `, scope: a/b` after a node.
    fn scope(&mut self, c: &mut Cursor<'t>) {
        let before = c.at;
        if c.eat(b',') && c.word() == "scope" && c.eat(b':') {
            c.rest_of_line();
        } else {
            c.at = before;
        }
    }

    fn operands(&mut self, c: &mut Cursor<'t>) -> Read<SmallVec<[ValueId; 8]>> {
        let mut values = SmallVec::new();
        c.expect(b'(')?;
        if c.eat(b')') {
            return Ok(values);
        }
        loop {
            c.skip();
            let at = c.at;
            let name = c.value_name()?;
            let Some(value) = self.find(name) else {
                return Err(c.error("T005", format!("`%{name}` is not defined"), at, c.at));
            };
            values.push(value);
            if !c.eat(b',') {
                c.expect(b')')?;
                return Ok(values);
            }
        }
    }

    fn find(&self, name: &str) -> Option<ValueId> {
        match self.index(name) {
            Some(n) => self.numbered.get(n).copied().flatten(),
            None => self.named.get(name).copied(),
        }
    }

    /// Returns the index of a numbered value in `numbered`; `None` for values that `named` holds. Numbers up to the
    /// length of the text are indices, larger ones are stored like names, so a hostile number cannot cause a large
    /// allocation.
    fn index(&self, name: &str) -> Option<usize> {
        number(name).map(|n| n as usize).filter(|&n| n <= self.text_len)
    }

    fn define(&mut self, c: &Cursor<'t>, r: &TypedName<'t>, value: ValueId) -> Read<()> {
        let taken = match self.index(r.name) {
            Some(n) => {
                if n >= self.numbered.len() {
                    self.numbered.resize((n + 1).max(self.numbered.len() * 2), None);
                }
                self.graph.number_value(value, n as u32);
                self.numbered[n].replace(value).is_some()
            }
            None => {
                if is_digits(r.name) {
                    self.renumbered.push(value);
                } else {
                    self.graph.name_value(value, r.name);
                }
                self.named.insert(r.name, value).is_some()
            }
        };
        if taken {
            let end = r.at + r.name.len() + 1;
            return Err(c.error("T006", format!("`%{}` is defined twice", r.name), r.at, end));
        }
        Ok(())
    }
}

/// Returns whether a value's name has only digits and thus is a number, not a debug name.
fn is_digits(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the number of a numbered value; `None` for names, numbers with leading zeros, and numbers above 999,999,999.
fn number(name: &str) -> Option<u32> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() > 9 || (bytes[0] == b'0' && bytes.len() > 1) {
        return None;
    }
    bytes.iter().try_fold(0u32, |n, b| b.is_ascii_digit().then(|| n * 10 + u32::from(b - b'0')))
}

/// Returns whether `blockN(` is next.
fn is_block_header(c: &mut Cursor<'_>) -> bool {
    let back = c.at;
    let digits = c.word().strip_prefix("block").unwrap_or_default();
    let found = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && c.peek() == b'(';
    c.at = back;
    found
}

/// Returns the text inside of `(scalar arguments)` after a host call's name.
fn host_words<'t>(c: &mut Cursor<'t>) -> Read<&'t str> {
    c.expect(b'(')?;
    let start = c.at;
    let mut depth = 1usize;
    while depth > 0 {
        match c.here() {
            0 => return Err(c.expected("`)`")),
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        c.at += 1;
    }
    Ok(&c.text[start..c.at - 1])
}

/// Parses a type at the cursor.
pub(super) fn read_type(c: &mut Cursor<'_>) -> Read<Type> {
    c.skip();
    let rest = &c.text.as_bytes()[c.at..];
    let plain = |n: usize| !rest.get(n).is_some_and(|&b| super::lex::is_word(b) || b"([?{:".contains(&b));
    if rest.starts_with(b"Tensor") && plain(6) {
        c.at += 6;
        return Ok(Type::TENSOR);
    }
    if rest.starts_with(b"int") && plain(3) {
        c.at += 3;
        return Ok(Type::INT);
    }
    match parse_ir_type(c.text, c.at) {
        Ok((ty, end)) => {
            c.at = end;
            Ok(ty)
        }
        Err(e) => Err(c.error("T004", e.to_string(), e.offset, e.offset + 1)),
    }
}
