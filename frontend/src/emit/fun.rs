//! State of one function during compilation: its graph, insertion point and variables.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use flambeau_ir::attr::{Attr, AttrsId, names};
use flambeau_ir::diag::{Diagnostic, Fault};
use flambeau_ir::loc::{LocId, Source, SourceId, SourceRange};
use flambeau_ir::value::IValue;
use flambeau_ir::{At, BlockId, Editor, Graph, NodeId, Op, Prim, Symbol, Type, ValueId};

use super::env::Env;
use super::session::CompileSession;
use crate::parse::Parsed;
use crate::span::Span;
use crate::trampoline::{Task, Trampoline};
use crate::tree::{Ast, TreeId, TreeKind};

/// Result of a compilation step. The error is boxed because diagnostics are rare and large.
pub(crate) type Res<T> = Result<T, Box<Diagnostic>>;

/// A source and its syntax trees.
#[derive(Debug)]
pub struct SourceFile {
    /// The text.
    pub source: Arc<Source>,
    /// The syntax trees and problems of the source.
    pub parsed: Parsed,
}

impl SourceFile {
    /// Parses a source.
    pub fn new(source: Arc<Source>, limits: &crate::FrontendLimits) -> Arc<Self> {
        let parsed = crate::parse(&source.text, limits);
        Arc::new(SourceFile { source, parsed })
    }

    /// Returns the problems of the source as diagnostics.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let problem = |p: &crate::Problem| {
            let (fault, code) = match p.kind {
                crate::ProblemKind::Syntax => (Fault::Input, "F0001"),
                // An unsupported construct of Python is an error of the source, like a syntax error.
                crate::ProblemKind::Unsupported => (Fault::Input, "F0002"),
                crate::ProblemKind::Limit => (Fault::Limit, "F0003"),
            };
            Diagnostic::new(fault, code, p.message.clone()).at(self.range(p.span))
        };
        self.parsed.problems.iter().map(problem).collect()
    }

    /// Returns the source range of `span`, for diagnostics.
    pub fn range(&self, span: Span) -> SourceRange {
        SourceRange { source: Arc::clone(&self.source), range: span.start..span.end }
    }
}

/// Determines whether `break` and `continue` are valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoopStatus {
    Outside,
    InLoop,
    Unrolled,
}

/// The return types that a `return` statement is checked against.
#[derive(Clone, Copy, Default)]
pub(crate) struct Returns {
    pub(crate) declared: Option<Type>,
    pub(crate) merged: Option<Type>,
}

/// State of one function during compilation.
pub(crate) struct Fun {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) name: Symbol,
    pub(crate) graph: RefCell<Graph>,
    source: SourceId,
    block: Cell<BlockId>,
    loc: Cell<LocId>,
    /// The innermost expression that is being compiled to a first-class value, or the statement outside of all. Errors in
    /// functions that it calls show it, as in PyTorch.
    pub(crate) shown: Cell<Span>,
    pub(crate) env: RefCell<Env>,
    pub(crate) returns: Cell<Returns>,
    pub(crate) loop_status: Cell<LoopStatus>,
    /// Blocks that exit before their end.
    pub(crate) exits: RefCell<HashSet<BlockId, FxBuildHasher>>,
    temporaries: Cell<u32>,
    /// Problems of the statements compiled so far.
    pub(crate) problems: RefCell<Vec<Diagnostic>>,
    /// Variables without a valid value because the statement that assigns them did not compile.
    pub(crate) poisoned: RefCell<HashSet<Symbol, FxBuildHasher>>,
    /// Parameters that are tensors because they have no annotation. Affects messages only.
    pub(crate) unannotated: RefCell<Vec<Symbol>>,
    /// Attributes of `prim::Store` and `prim::Load`, by variable.
    variables: RefCell<HashMap<Symbol, AttrsId, FxBuildHasher>>,
    /// Number literals, deduplicated, at the start of the graph.
    numbers: RefCell<HashMap<[u64; 3], ValueId, FxBuildHasher>>,
}

/// Context of all compilation steps of one function.
#[derive(Clone)]
pub(crate) struct Cx<'a> {
    pub(crate) session: &'a CompileSession<'a>,
    pub(crate) trampoline: &'a Trampoline<'a>,
    pub(crate) fun: Rc<Fun>,
}

impl Fun {
    /// Creates an empty function. Reserves 2/3 of a node and of an operand for each of `trees` syntax trees, which most
    /// functions do not exceed.
    pub(crate) fn new(
        session: &CompileSession<'_>,
        file: Arc<SourceFile>,
        name: Symbol,
        trees: usize,
    ) -> Self {
        let mut graph = Graph::new(Arc::clone(session.registry()));
        graph.reserve(trees * 2 / 3, trees * 2 / 3);
        graph.keep_journal(false);
        let source = graph.locs_mut().add_source(&file.source);
        let root = graph.root();
        Fun {
            file,
            name,
            graph: RefCell::new(graph),
            source,
            block: Cell::new(root),
            loc: Cell::new(LocId::UNKNOWN),
            shown: Cell::default(),
            env: RefCell::default(),
            returns: Cell::default(),
            loop_status: Cell::new(LoopStatus::Outside),
            exits: RefCell::default(),
            temporaries: Cell::new(0),
            problems: RefCell::default(),
            poisoned: RefCell::default(),
            unannotated: RefCell::default(),
            variables: RefCell::default(),
            numbers: RefCell::default(),
        }
    }
}

impl<'a> Cx<'a> {
    /// Runs `task` one level deeper without growing the native stack.
    pub(crate) async fn deeper<T: 'a>(&self, task: Task<'a, T>) -> T {
        self.trampoline.call(task).await
    }

    pub(crate) fn ast(&self) -> &Ast {
        &self.fun.file.parsed.ast
    }

    pub(crate) fn kind(&self, tree: TreeId) -> TreeKind {
        self.ast().kind(tree)
    }

    pub(crate) fn span(&self, tree: TreeId) -> Span {
        self.ast().span(tree)
    }

    /// Returns the children of a list tree as an owned vector that can be held across a suspension.
    pub(crate) fn list(&self, tree: TreeId) -> Vec<TreeId> {
        self.ast().children(tree).to_vec()
    }

    /// Returns the name in the leaf of a tree.
    pub(crate) fn symbol(&self, tree: TreeId) -> Symbol {
        self.ast().symbol(tree)
    }

    // --- problems --------------------------------------------------------------------------------------------------

    pub(crate) fn fail<T>(&self, span: Span, message: impl Into<String>) -> Res<T> {
        Err(self.error(span, message))
    }

    pub(crate) fn error(&self, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
        let range = self.fun.file.range(span);
        Box::new(Diagnostic::new(Fault::Input, "F0100", message).at(range))
    }

    /// Fails because of a Python construct that TorchScript does not support.
    pub(crate) fn not_torchscript<T>(&self, span: Span, what: &str) -> Res<T> {
        let range = self.fun.file.range(span);
        Err(Box::new(Diagnostic::new(Fault::Input, "F0101", format!("{what} not supported")).at(range)))
    }

    pub(crate) fn unsupported<T>(&self, span: Span, what: &str) -> Res<T> {
        let range = self.fun.file.range(span);
        Err(Box::new(Diagnostic::new(Fault::Unsupported, "F0101", format!("{what} not supported")).at(range)))
    }

    // --- building --------------------------------------------------------------------------------------------------

    /// Sets the source range of the nodes created from here on.
    pub(crate) fn at(&self, span: Span) {
        let loc = self.fun.graph.borrow_mut().locs_mut().at(self.fun.source, span.start..span.end);
        self.fun.loc.set(loc);
    }

    /// Returns the block that nodes are appended to.
    pub(crate) fn block(&self) -> BlockId {
        self.fun.block.get()
    }

    /// Makes `block` the block that nodes are appended to; returns the former one.
    pub(crate) fn enter(&self, block: BlockId) -> BlockId {
        self.fun.block.replace(block)
    }

    pub(crate) fn edit<T>(&self, change: impl FnOnce(&mut Editor<'_>) -> T) -> T {
        let mut graph = self.fun.graph.borrow_mut();
        let mut editor = graph.edit();
        editor.at(At::end(self.fun.block.get())).loc(self.fun.loc.get());
        change(&mut editor)
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&Graph) -> T) -> T {
        look(&self.fun.graph.borrow())
    }

    pub(crate) fn node(&self, op: impl Into<Op>, operands: &[ValueId], results: &[Type]) -> NodeId {
        self.edit(|e| e.node(op, operands, results))
    }

    pub(crate) fn value(&self, op: impl Into<Op>, operands: &[ValueId], result: Type) -> ValueId {
        self.edit(|e| e.value(op, operands, result))
    }

    /// Appends a node with attributes and one result.
    pub(crate) fn value_with(
        &self,
        op: impl Into<Op>,
        operands: &[ValueId],
        attrs: Vec<(Symbol, Attr)>,
        result: Type,
    ) -> ValueId {
        self.edit(|e| {
            let attrs = e.attrs(attrs);
            let node = e.insert(op, operands, attrs, &[result]);
            e.graph().result(node, 0)
        })
    }

    pub(crate) fn node_with(
        &self,
        op: impl Into<Op>,
        operands: &[ValueId],
        attrs: Vec<(Symbol, Attr)>,
        results: &[Type],
    ) -> NodeId {
        self.edit(|e| {
            let attrs = e.attrs(attrs);
            e.insert(op, operands, attrs, results)
        })
    }

    pub(crate) fn constant(&self, value: impl Into<IValue>) -> ValueId {
        let value = value.into();
        self.edit(|e| e.constant(value))
    }

    /// Returns the constant of a number literal. Each number has one constant, at the start of the graph, as in
    /// PyTorch's compiler.
    pub(crate) fn number(&self, value: IValue) -> ValueId {
        let key = match &value {
            IValue::Int(v) => [0, v.cast_unsigned(), 0],
            IValue::Float(v) => [1, v.to_bits(), 0],
            IValue::Complex(v) => [2, v.re.to_bits(), v.im.to_bits()],
            _ => return self.constant(value),
        };
        *self.fun.numbers.borrow_mut().entry(key).or_insert_with(|| {
            self.edit(|e| {
                let root = e.graph().root();
                e.at(At::start(root)).constant(value)
            })
        })
    }

    pub(crate) fn none(&self) -> ValueId {
        self.edit(|e| e.constant_of(IValue::None, Type::NONE))
    }

    pub(crate) fn string(&self, text: &str) -> ValueId {
        self.edit(|e| e.constant(IValue::str(text)))
    }

    pub(crate) fn ty(&self, value: ValueId) -> Type {
        self.read(|g| g.ty(value))
    }

    pub(crate) fn set_type(&self, value: ValueId, ty: Type) {
        self.edit(|e| e.set_type(value, ty));
    }

    pub(crate) fn set_name(&self, value: ValueId, name: Symbol) {
        self.edit(|e| e.set_name(value, name));
    }

    /// Returns the value of a constant.
    pub(crate) fn known(&self, value: ValueId) -> Option<IValue> {
        self.read(|g| g.constant(value))
    }

    pub(crate) fn known_int(&self, value: ValueId) -> Option<i64> {
        self.known(value).and_then(|v| v.as_int())
    }

    fn variable_attrs(&self, e: &mut Editor<'_>, name: Symbol) -> AttrsId {
        let mut known = self.fun.variables.borrow_mut();
        *known.entry(name).or_insert_with(|| e.attrs([(names::name(), Attr::str(name.as_str()))]))
    }

    pub(crate) fn store(&self, name: Symbol, value: ValueId) {
        self.edit(|e| {
            let attrs = self.variable_attrs(e, name);
            e.insert(Prim::Store, &[value], attrs, &[]);
        });
    }

    /// Appends a read of a variable. The read advances the counter for unique debug names, although `prim::Load` nodes
    /// are removed later.
    pub(crate) fn load(&self, name: Symbol, ty: Type) -> ValueId {
        self.edit(|e| {
            let attrs = self.variable_attrs(e, name);
            let node = e.insert(Prim::Load, &[], attrs, &[ty]);
            if is_meaningful(name.as_str()) {
                e.take_name(name);
            }
            e.graph().result(node, 0)
        })
    }

    /// Advances the debug name counter as [`Cx::load`] does, without a read.
    pub(crate) fn count_read(&self, name: Symbol) {
        if is_meaningful(name.as_str()) {
            self.edit(|e| e.take_name(name));
        }
    }

    /// Returns true if the value has a user-given name: its own, or that of the variable it is read from.
    pub(crate) fn is_named(&self, value: ValueId) -> bool {
        self.read(|g| {
            let def = g.def(value);
            let read = || g.attr(def, names::name()).and_then(Attr::as_str).is_some_and(is_meaningful);
            g.has_debug_name(value) || g.is_prim(def, Prim::Load) && read()
        })
    }

    pub(crate) fn uninitialized(&self, ty: Type) -> ValueId {
        self.value(Prim::Uninitialized, &[], ty)
    }

    pub(crate) fn tuple(&self, values: &[ValueId]) -> ValueId {
        let types: Vec<Type> = values.iter().map(|&v| self.ty(v)).collect();
        self.value(Prim::TupleConstruct, values, Type::tuple(&types))
    }

    /// Appends a `prim::TupleUnpack` and returns the elements.
    pub(crate) fn unpack_tuple(&self, value: ValueId) -> Vec<ValueId> {
        let ty = self.ty(value);
        let elems: Vec<Type> = ty.as_tuple().map(|t| t.elems.to_vec()).unwrap_or_default();
        let node = self.node(Prim::TupleUnpack, &[value], &elems);
        self.read(|g| g.results(node).collect())
    }

    /// Returns a new variable name that is not valid in a program.
    pub(crate) fn temporary(&self, prefix: &str) -> Symbol {
        let n = self.fun.temporaries.get();
        self.fun.temporaries.set(n + 1);
        Symbol::new(&format!("{prefix}{n}"))
    }
}

/// Returns true if the name is user-given. Generated names such as `_12` are not.
pub(crate) fn is_meaningful(name: &str) -> bool {
    match name.strip_prefix('_') {
        None => !name.is_empty() && !name.starts_with('$'),
        Some(rest) => rest.bytes().any(|b| !b.is_ascii_digit()),
    }
}
