//! Names for the children of trees.
//!
//! A view is an [`Ast`] and a [`TreeId`], both copied freely. `View::of` answers `None` if the tree
//! is of another kind; the accessors then rely on the shapes that the parser guarantees.

use crate::span::Span;
use crate::tree::{Ast, Kind, Op, TreeId};

macro_rules! views {
    ($($(#[$doc:meta])* $view:ident { $($(#[$fdoc:meta])* $field:ident : $how:ident $at:expr),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $view<'a> {
            ast: &'a Ast,
            id: TreeId,
        }

        impl<'a> $view<'a> {
            /// Views `id`, if it is a tree of this kind.
            pub fn of(ast: &'a Ast, id: TreeId) -> Option<Self> {
                (ast.kind(id) == Kind::$view).then_some($view { ast, id })
            }

            /// The tree viewed.
            pub fn id(self) -> TreeId {
                self.id
            }

            /// Where it stands.
            pub fn span(self) -> Span {
                self.ast.span(self.id)
            }

            $(
                $(#[$fdoc])*
                pub fn $field(self) -> views!(@type $how) {
                    views!(@get $how self, $at)
                }
            )*
        }
    )*};
    (@type tree) => { TreeId };
    (@type maybe) => { Option<TreeId> };
    (@type list) => { &'a [TreeId] };
    (@type rest) => { &'a [TreeId] };
    (@type name) => { &'a str };
    (@type op) => { Option<Op> };
    (@get tree $s:ident, $at:expr) => { $s.ast.child($s.id, $at) };
    (@get maybe $s:ident, $at:expr) => { $s.ast.maybe($s.id, $at) };
    (@get list $s:ident, $at:expr) => { $s.ast.children($s.ast.child($s.id, $at)) };
    (@get rest $s:ident, $at:expr) => { &$s.ast.children($s.id)[$at..] };
    (@get name $s:ident, $at:expr) => { $s.ast.name($s.id) };
    (@get op $s:ident, $at:expr) => { $s.ast.op($s.id) };
}

views! {
    /// A whole source.
    Module {
        /// Its statements.
        body: rest 0,
    }
    /// A function.
    Def {
        /// Its name.
        name: name 0,
        /// Its signature, a [`Decl`].
        decl: tree 0,
        /// Its statements.
        body: list 1,
        /// Its decorators, outermost first.
        decorators: list 2,
    }
    /// A signature.
    Decl {
        /// [`Param`]s.
        params: list 0,
        /// The declared result.
        result: maybe 1,
    }
    /// A parameter.
    Param {
        /// Its name.
        name: name 0,
        /// Its annotation.
        annotation: maybe 0,
        /// Its default.
        default: maybe 1,
    }
    /// A class.
    ClassDef {
        /// Its name.
        name: name 0,
        /// Its base expressions.
        bases: list 0,
        /// Its statements.
        body: list 1,
        /// Its decorators.
        decorators: list 2,
    }
    /// `if`.
    If {
        /// The condition.
        cond: tree 0,
        /// The first branch.
        then_body: list 1,
        /// The second; an `elif` is an `If` alone in it.
        else_body: list 2,
    }
    /// `while`.
    While {
        /// The condition.
        cond: tree 0,
        /// The body.
        body: list 1,
    }
    /// `for`.
    For {
        /// What is bound.
        targets: list 0,
        /// What is walked.
        iterables: list 1,
        /// The body.
        body: list 2,
    }
    /// `a = b = value`, `a: T = value`, `a: T`.
    Assign {
        /// What is bound.
        targets: list 0,
        /// The value.
        value: maybe 1,
        /// The annotation.
        annotation: maybe 2,
    }
    /// `a += value`.
    AugAssign {
        /// The operator.
        op: op 0,
        /// What is changed.
        target: tree 0,
        /// By how much.
        value: tree 1,
    }
    /// `return`.
    Return {
        /// The value.
        value: maybe 0,
    }
    /// `raise`.
    Raise {
        /// The exception.
        value: maybe 0,
    }
    /// `assert`.
    Assert {
        /// The condition.
        cond: tree 0,
        /// The message.
        message: maybe 1,
    }
    /// An expression as a statement.
    ExprStmt {
        /// The expression.
        value: tree 0,
    }
    /// `del`.
    Delete {
        /// What is removed.
        targets: rest 0,
    }
    /// `with`.
    With {
        /// [`WithItem`]s.
        items: list 0,
        /// The body.
        body: list 1,
    }
    /// One context of a `with`.
    WithItem {
        /// The context.
        value: tree 0,
        /// What `__enter__`'s result is bound to.
        target: maybe 1,
    }
    /// Two operands.
    BinOp {
        /// The operator.
        op: op 0,
        /// The left operand.
        lhs: tree 0,
        /// The right operand.
        rhs: tree 1,
    }
    /// One operand.
    UnaryOp {
        /// The operator.
        op: op 0,
        /// The operand.
        operand: tree 0,
    }
    /// A call.
    Apply {
        /// What is called.
        callee: tree 0,
        /// Positional arguments, some may be [`Starred`].
        inputs: list 1,
        /// Keyword arguments, [`Attribute`]s.
        attributes: list 2,
    }
    /// `name=value` in a call.
    Attribute {
        /// The name.
        name: name 0,
        /// The value.
        value: tree 0,
    }
    /// `value.name`.
    Select {
        /// The object.
        value: tree 0,
        /// The member.
        name: name 0,
    }
    /// `value[subscripts]`.
    Subscript {
        /// The container.
        value: tree 0,
        /// What is between the brackets; some may be [`SliceExpr`]s.
        subscripts: list 1,
    }
    /// `start:stop:step`.
    SliceExpr {
        /// The first index.
        start: maybe 0,
        /// One past the last.
        stop: maybe 1,
        /// The stride.
        step: maybe 2,
    }
    /// `a if cond else b`.
    TernaryIf {
        /// The condition.
        cond: tree 0,
        /// The value if it holds.
        then_value: tree 1,
        /// The value if not.
        else_value: tree 2,
    }
    /// `[a, b]`.
    ListLiteral {
        /// The elements.
        elements: rest 0,
    }
    /// `(a, b)`.
    TupleLiteral {
        /// The elements.
        elements: rest 0,
    }
    /// `{k: v}`.
    DictLiteral {
        /// The keys.
        keys: list 0,
        /// The values.
        values: list 1,
    }
    /// `[element for target in iterable if filter]`.
    ListComp {
        /// What is collected.
        element: tree 0,
        /// What is bound.
        target: tree 1,
        /// What is walked.
        iterable: tree 2,
        /// Conditions.
        filters: rest 3,
    }
    /// `{key: value for target in iterable if filter}`.
    DictComp {
        /// The key.
        key: tree 0,
        /// The value.
        value: tree 1,
        /// What is bound.
        target: tree 2,
        /// What is walked.
        iterable: tree 3,
        /// Conditions.
        filters: rest 4,
    }
    /// `*value`.
    Starred {
        /// The value.
        value: tree 0,
    }
    /// A name.
    Var {
        /// The name.
        name: name 0,
    }
    /// A string.
    StringLiteral {
        /// Its value.
        value: name 0,
    }
    /// An f-string.
    FormatString {
        /// [`StringLiteral`]s and expressions, in order.
        parts: rest 0,
    }
}

impl Param<'_> {
    /// True for a parameter after `*`.
    pub fn keyword_only(self) -> bool {
        self.ast.children(self.id).len() > 2
    }
}
