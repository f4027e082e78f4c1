//! Syntax trees in a flat, append-only arena with 4-byte ids.
//!
//! A tree has a kind, a source range, a run of children and at most one small leaf. The kinds and shapes follow
//! PyTorch's trees (`torch/csrc/jit/frontend/tree_views.h`); [`crate::view`] names the children. The trees of a source
//! are in one `id-arena` and are dropped with it, without recursion over the depth.
//!
//! Shapes (`?` = may be [`TreeKind::Nothing`], `*` = a [`TreeKind::List`]):
//!
//! | kind | children | leaf |
//! |---|---|---|
//! | `Module` | statements... | |
//! | `Def` | decl, body*, decorators* | name |
//! | `Decl` | params*, return type? | |
//! | `Param` | type?, default?, (keyword-only: leaf of `Ident`) | see [`TreeKind::Param`] |
//! | `ClassDef` | bases*, body*, decorators* | name |
//! | `If` | condition, then*, else* | |
//! | `While` | condition, body* | |
//! | `For` | targets*, iterables*, body* | |
//! | `Assign` | targets*, value?, type? | |
//! | `AugAssign` | target, value | operator |
//! | `Return` `Raise` | value? | |
//! | `Assert` | condition, message? | |
//! | `ExprStmt` | value | |
//! | `Delete` `Global` | targets... | |
//! | `With` | items*, body* | |
//! | `WithItem` | value, target? | |
//! | `Import` | names... | |
//! | `BinOp` `UnaryOp` | operands | operator |
//! | `Apply` | callee, inputs*, attributes* | |
//! | `Attribute` | value | name |
//! | `Select` | value | name |
//! | `Subscript` | value, subscripts* | |
//! | `SliceExpr` | start?, stop?, step? | |
//! | `TernaryIf` | condition, then, else | |
//! | `ListLiteral` `TupleLiteral` | elements... | |
//! | `DictLiteral` | keys*, values* | |
//! | `ListComp` | element, target, iterable, filters... | |
//! | `DictComp` | key, value, target, iterable, filters... | |
//! | `Starred` | value | |
//! | `FormatString` | parts... (strings and expressions) | |

use std::fmt::Write as _;
use std::sync::OnceLock;

use flambeau_ir::Symbol;
use hashbrown::HashMap;
use id_arena::{Arena, ArenaBehavior};
use rustc_hash::FxBuildHasher;

use crate::span::Span;

/// Id of one tree, valid in the [`Ast`] that created it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TreeId(u32);

/// `id-arena` behavior with 4-byte ids. An [`Ast`] never mixes arenas, so ids need no arena tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeIds;

impl ArenaBehavior for TreeIds {
    type Id = TreeId;

    fn new_id(_arena: u32, index: usize) -> TreeId {
        TreeId(u32::try_from(index).expect("invariant: a source of at most 4 GiB has fewer trees than bytes"))
    }

    fn index(id: TreeId) -> usize {
        id.0 as usize
    }

    fn arena_id(_: TreeId) -> u32 {
        0
    }

    fn new_arena_id() -> u32 {
        0
    }
}

/// Id of an interned name or string of one [`Ast`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NameId(u32);

/// Kinds of trees. The table at the head of this module lists their shapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[expect(missing_docs, reason = "named after the constructs; shapes are in the table above")]
pub enum TreeKind {
    Module,
    Def,
    Decl,
    /// Leaf: the name. A keyword-only parameter has a third child of kind `Nothing`.
    Param,
    ClassDef,
    If,
    While,
    For,
    Assign,
    AugAssign,
    Return,
    Raise,
    Assert,
    Pass,
    Break,
    Continue,
    ExprStmt,
    Delete,
    Global,
    With,
    WithItem,
    Import,
    BinOp,
    UnaryOp,
    Apply,
    Attribute,
    Select,
    Subscript,
    SliceExpr,
    TernaryIf,
    ListLiteral,
    TupleLiteral,
    DictLiteral,
    ListComp,
    DictComp,
    Starred,
    Var,
    /// A number; the leaf holds its value.
    Const,
    StringLiteral,
    FormatString,
    True,
    False,
    None,
    /// The expression `...`.
    Dots,
    /// An optional child that is absent.
    Nothing,
    /// A list of trees as one child.
    List,
}

/// Operators of [`TreeKind::BinOp`], [`TreeKind::UnaryOp`] and [`TreeKind::AugAssign`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[expect(missing_docs, reason = "each is the operator of its name")]
pub enum SyntaxOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    MatMul,
    Pow,
    LShift,
    RShift,
    BitAnd,
    BitOr,
    BitXor,
    And,
    Or,
    Eq,
    NotEq,
    Lt,
    Le,
    Gt,
    Ge,
    Is,
    IsNot,
    In,
    Not,
    Neg,
    Pos,
    Invert,
}

impl SyntaxOp {
    /// Returns the operator as written in source.
    pub fn text(self) -> &'static str {
        use SyntaxOp::*;
        match self {
            Add | Pos => "+",
            Sub | Neg => "-",
            Mul => "*",
            Div => "/",
            FloorDiv => "//",
            Mod => "%",
            MatMul => "@",
            Pow => "**",
            LShift => "<<",
            RShift => ">>",
            BitAnd => "&",
            BitOr => "|",
            BitXor => "^",
            And => "and",
            Or => "or",
            Eq => "==",
            NotEq => "!=",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
            Is => "is",
            IsNot => "is not",
            In => "in",
            Not => "not",
            Invert => "~",
        }
    }
}

/// Data of a tree besides its children.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Leaf {
    /// Nothing.
    None,
    /// A name, or the value of a string literal.
    Name(NameId),
    /// An operator.
    Op(SyntaxOp),
    /// An integer literal.
    Int(i64),
    /// A float literal.
    Float(f64),
    /// An imaginary literal: this factor times the imaginary unit.
    Imag(f64),
}

/// A [`Leaf`] as stored in a tree. Number literals are stored in a side table, which halves the size of a tree.
#[derive(Clone, Copy, Debug)]
enum Stored {
    None,
    Name(NameId),
    Op(SyntaxOp),
    Int(u32),
    Float(u32),
    Imag(u32),
}

/// One syntax tree.
#[derive(Clone, Copy, Debug)]
struct Tree {
    kind: TreeKind,
    leaf: Stored,
    span: Span,
    first: u32,
    count: u32,
}

const _: () = assert!(size_of::<Tree>() <= 28);

/// The trees and interned names of one source.
#[derive(Clone, Debug)]
pub struct Ast {
    trees: Arena<Tree, TreeIds>,
    children: Vec<TreeId>,
    /// The bits of the number literals.
    numbers: Vec<u64>,
    names: Vec<(Box<str>, OnceLock<Symbol>)>,
    by_name: HashMap<Box<str>, NameId, FxBuildHasher>,
}

impl Default for Ast {
    fn default() -> Self {
        Ast {
            trees: Arena::new(),
            children: Vec::new(),
            numbers: Vec::new(),
            names: Vec::new(),
            by_name: HashMap::default(),
        }
    }
}

impl Ast {
    /// Returns an empty `Ast` with capacity for `trees` trees.
    pub(crate) fn with_capacity(trees: usize) -> Self {
        Ast { trees: Arena::with_capacity(trees), children: Vec::with_capacity(trees), ..Ast::default() }
    }

    /// Appends a tree and returns its id.
    pub fn add(&mut self, kind: TreeKind, span: Span, leaf: Leaf, children: &[TreeId]) -> TreeId {
        let mut number = |bits| {
            self.numbers.push(bits);
            self.numbers.len() as u32 - 1
        };
        let leaf = match leaf {
            Leaf::None => Stored::None,
            Leaf::Name(name) => Stored::Name(name),
            Leaf::Op(op) => Stored::Op(op),
            Leaf::Int(v) => Stored::Int(number(v as u64)),
            Leaf::Float(v) => Stored::Float(number(v.to_bits())),
            Leaf::Imag(v) => Stored::Imag(number(v.to_bits())),
        };
        let first = self.children.len() as u32;
        self.children.extend_from_slice(children);
        self.trees.alloc(Tree { kind, span, leaf, first, count: children.len() as u32 })
    }

    /// Returns the kind of `id`.
    pub fn kind(&self, id: TreeId) -> TreeKind {
        self.trees[id].kind
    }

    /// Returns the leaf of `id`.
    pub fn leaf(&self, id: TreeId) -> Leaf {
        let float = |at: u32| f64::from_bits(self.numbers[at as usize]);
        match self.trees[id].leaf {
            Stored::None => Leaf::None,
            Stored::Name(name) => Leaf::Name(name),
            Stored::Op(op) => Leaf::Op(op),
            Stored::Int(at) => Leaf::Int(self.numbers[at as usize] as i64),
            Stored::Float(at) => Leaf::Float(float(at)),
            Stored::Imag(at) => Leaf::Imag(float(at)),
        }
    }

    /// Returns the source range of `id`.
    pub fn span(&self, id: TreeId) -> Span {
        self.trees[id].span
    }

    /// Returns the children of `id`, in order.
    pub fn children(&self, id: TreeId) -> &[TreeId] {
        let tree = &self.trees[id];
        &self.children[tree.first as usize..(tree.first + tree.count) as usize]
    }

    /// Returns the approximate number of trees in the subtree of `id`, for reserving memory: the number of trees added
    /// from its first tree to `id`. A tree is added after its descendants, except that all absent children are one
    /// shared tree of kind [`TreeKind::Nothing`], which is skipped. O(trees on the path to the first one and their siblings).
    pub fn size(&self, id: TreeId) -> usize {
        let present = |&&child: &&TreeId| self.kind(child) != TreeKind::Nothing;
        let mut first = id;
        while let Some(&child) = self.children(first).iter().filter(present).min() {
            first = child;
        }
        (id.0 - first.0) as usize + 1
    }

    /// Returns child `i` of `id`.
    ///
    /// # Panics
    ///
    /// Panics if `id` has at most `i` children.
    pub fn child(&self, id: TreeId, i: usize) -> TreeId {
        self.children(id)[i]
    }

    /// Returns child `i` of `id`, or `None` if the child is absent or of kind [`TreeKind::Nothing`].
    pub fn optional_child(&self, id: TreeId, i: usize) -> Option<TreeId> {
        self.children(id).get(i).copied().filter(|&c| self.kind(c) != TreeKind::Nothing)
    }

    /// Returns the name in the leaf of `id`, or the empty string if the leaf is not a name.
    pub fn name(&self, id: TreeId) -> &str {
        match self.trees[id].leaf {
            Stored::Name(name) => self.text(name),
            _ => "",
        }
    }

    /// Returns the operator in the leaf of `id`.
    pub fn op(&self, id: TreeId) -> Option<SyntaxOp> {
        match self.trees[id].leaf {
            Stored::Op(op) => Some(op),
            _ => None,
        }
    }

    /// Returns the text of a name.
    pub fn text(&self, name: NameId) -> &str {
        &self.names[name.0 as usize].0
    }

    /// Returns the name in the leaf of `id` as a [`Symbol`], or [`Symbol::EMPTY`] if the leaf is not a name.
    pub(crate) fn symbol(&self, id: TreeId) -> Symbol {
        let Stored::Name(name) = self.trees[id].leaf else { return Symbol::EMPTY };
        let (text, symbol) = &self.names[name.0 as usize];
        *symbol.get_or_init(|| Symbol::new(text))
    }

    /// Interns `text` and returns its id.
    pub fn intern(&mut self, text: &str) -> NameId {
        if let Some(&name) = self.by_name.get(text) {
            return name;
        }
        let name = NameId(self.names.len() as u32);
        self.names.push((text.into(), OnceLock::new()));
        self.by_name.insert(text.into(), name);
        name
    }

    /// Returns the number of trees.
    pub fn len(&self) -> usize {
        self.trees.len()
    }

    /// Returns true if there are no trees.
    pub fn is_empty(&self) -> bool {
        self.trees.len() == 0
    }

    /// Formats the tree as an s-expression for tests and debugging: `(Assign (List (Var x)) (Const 1) -)`.
    pub fn sexpr(&self, id: TreeId) -> String {
        enum Step {
            Open(TreeId),
            Close,
        }
        let mut out = String::new();
        let mut stack = vec![Step::Open(id)];
        while let Some(step) = stack.pop() {
            let Step::Open(id) = step else {
                out.push(')');
                continue;
            };
            if !out.is_empty() && !out.ends_with('(') {
                out.push(' ');
            }
            let kind = self.kind(id);
            if kind == TreeKind::Nothing {
                out.push('-');
                continue;
            }
            // Writing to a String cannot fail.
            let _ = write!(out, "({kind:?}");
            let _ = match self.leaf(id) {
                Leaf::None => Ok(()),
                Leaf::Name(n) if kind == TreeKind::StringLiteral => write!(out, " {:?}", self.text(n)),
                Leaf::Name(n) => write!(out, " {}", self.text(n)),
                Leaf::Op(op) => write!(out, " {}", op.text()),
                Leaf::Int(v) => write!(out, " {v}"),
                Leaf::Float(v) => write!(out, " {v:?}"),
                Leaf::Imag(v) => write!(out, " {v:?}j"),
            };
            stack.push(Step::Close);
            stack.extend(self.children(id).iter().rev().map(|&c| Step::Open(c)));
        }
        out
    }
}
