//! Typed views of syntax trees, with a named accessor for each child.
//!
//! A view is an [`Ast`] reference and a [`TreeId`]; it is `Copy`. `View::of` returns `None` if the tree is of another
//! kind. The accessors rely on the shapes that the parser guarantees.

use crate::span::Span;
use crate::tree::{Ast, SyntaxOp, TreeId, TreeKind};

/// Defines views and their accessors. `tree`, `optional`, `list` are the child at a position: required, optional, or the children
/// of a list; `rest` is all children from a position on; `name` and `op` are stored in the tree itself. The entry
/// `While { cond: tree 0, body: list 1 }` expands to
///
/// ```text
/// #[derive(Clone, Copy, Debug)]
/// pub struct While<'a> {
///     ast: &'a Ast,
///     id: TreeId,
/// }
///
/// impl<'a> While<'a> {
///     pub fn of(ast: &'a Ast, id: TreeId) -> Option<Self> {
///         (ast.kind(id) == TreeKind::While).then_some(While { ast, id })
///     }
///     pub fn id(self) -> TreeId { self.id }
///     pub fn span(self) -> Span { self.ast.span(self.id) }
///     pub fn cond(self) -> TreeId { self.ast.child(self.id, 0) }
///     pub fn body(self) -> &'a [TreeId] { self.ast.children(self.ast.child(self.id, 1)) }
/// }
/// ```
macro_rules! views {
    ($($(#[$doc:meta])* $view:ident { $($(#[$fdoc:meta])* $field:ident : $how:ident $at:expr),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $view<'a> {
            ast: &'a Ast,
            id: TreeId,
        }

        impl<'a> $view<'a> {
            /// Returns a view of `id`, or `None` if `id` is of another kind.
            pub fn of(ast: &'a Ast, id: TreeId) -> Option<Self> {
                (ast.kind(id) == TreeKind::$view).then_some($view { ast, id })
            }

            /// Returns the id of the viewed tree.
            pub fn id(self) -> TreeId {
                self.id
            }

            /// Returns the source range of the tree.
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
    (@type optional) => { Option<TreeId> };
    (@type list) => { &'a [TreeId] };
    (@type rest) => { &'a [TreeId] };
    (@type name) => { &'a str };
    (@type op) => { Option<SyntaxOp> };
    (@get tree $s:ident, $at:expr) => { $s.ast.child($s.id, $at) };
    (@get optional $s:ident, $at:expr) => { $s.ast.optional_child($s.id, $at) };
    (@get list $s:ident, $at:expr) => { $s.ast.children($s.ast.child($s.id, $at)) };
    (@get rest $s:ident, $at:expr) => { &$s.ast.children($s.id)[$at..] };
    (@get name $s:ident, $at:expr) => { $s.ast.name($s.id) };
    (@get op $s:ident, $at:expr) => { $s.ast.op($s.id) };
}

views! {
    /// A whole source.
    Module {
        /// The statements.
        body: rest 0,
    }
    /// A function.
    Def {
        /// The name of the function.
        name: name 0,
        /// The signature, a [`Decl`].
        decl: tree 0,
        /// The statements of the body.
        body: list 1,
        /// The decorators, outermost first.
        decorators: list 2,
    }
    /// A signature.
    Decl {
        /// [`Param`]s.
        params: list 0,
        /// The declared result type.
        result: optional 1,
    }
    /// A parameter.
    Param {
        /// The name of the parameter.
        name: name 0,
        /// The type annotation.
        annotation: optional 0,
        /// The default value.
        default: optional 1,
    }
    /// A class.
    ClassDef {
        /// The name of the class.
        name: name 0,
        /// The base class expressions.
        bases: list 0,
        /// The statements of the body.
        body: list 1,
        /// The decorators, outermost first.
        decorators: list 2,
    }
    /// `if`.
    If {
        /// The condition.
        cond: tree 0,
        /// The statements of the `if` branch.
        then_body: list 1,
        /// The statements of the `else` branch; an `elif` is a single `If` here.
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
        /// The loop targets.
        targets: list 0,
        /// The expressions iterated over.
        iterables: list 1,
        /// The body.
        body: list 2,
    }
    /// `a = b = value`, `a: T = value`, `a: T`.
    Assign {
        /// The targets, left to right.
        targets: list 0,
        /// The value.
        value: optional 1,
        /// The annotation.
        annotation: optional 2,
    }
    /// `a += value`.
    AugAssign {
        /// The operator.
        op: op 0,
        /// The target that is updated.
        target: tree 0,
        /// The right operand.
        value: tree 1,
    }
    /// `return`.
    Return {
        /// The value.
        value: optional 0,
    }
    /// `raise`.
    Raise {
        /// The exception.
        value: optional 0,
    }
    /// `assert`.
    Assert {
        /// The condition.
        cond: tree 0,
        /// The message.
        message: optional 1,
    }
    /// An expression as a statement.
    ExprStmt {
        /// The expression.
        value: tree 0,
    }
    /// `del`.
    Delete {
        /// The targets to delete.
        targets: rest 0,
    }
    /// `with`.
    With {
        /// [`WithItem`]s.
        items: list 0,
        /// The body.
        body: list 1,
    }
    /// One context manager of a `with`.
    WithItem {
        /// The context manager.
        value: tree 0,
        /// The target of the result of `__enter__`.
        target: optional 1,
    }
    /// A binary operation.
    BinOp {
        /// The operator.
        op: op 0,
        /// The left operand.
        lhs: tree 0,
        /// The right operand.
        rhs: tree 1,
    }
    /// A unary operation.
    UnaryOp {
        /// The operator.
        op: op 0,
        /// The operand.
        operand: tree 0,
    }
    /// A call.
    Apply {
        /// The callee.
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
        /// The subscripts; some may be [`SliceExpr`]s.
        subscripts: list 1,
    }
    /// `start:stop:step`.
    SliceExpr {
        /// The first index.
        start: optional 0,
        /// One past the last.
        stop: optional 1,
        /// The step.
        step: optional 2,
    }
    /// `a if cond else b`.
    TernaryIf {
        /// The condition.
        cond: tree 0,
        /// The value if the condition is true.
        then_value: tree 1,
        /// The value if the condition is false.
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
        /// The element expression.
        element: tree 0,
        /// The loop target.
        target: tree 1,
        /// The expression iterated over.
        iterable: tree 2,
        /// The filter conditions.
        filters: rest 3,
    }
    /// `{key: value for target in iterable if filter}`.
    DictComp {
        /// The key.
        key: tree 0,
        /// The value.
        value: tree 1,
        /// The loop target.
        target: tree 2,
        /// The expression iterated over.
        iterable: tree 3,
        /// The filter conditions.
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
    /// A string literal.
    StringLiteral {
        /// The decoded text.
        value: name 0,
    }
    /// An f-string.
    FormatString {
        /// [`StringLiteral`]s and expressions, in order.
        parts: rest 0,
    }
}

impl Param<'_> {
    /// Returns true if the parameter follows `*`.
    pub fn keyword_only(self) -> bool {
        self.ast.children(self.id).len() > 2
    }
}
