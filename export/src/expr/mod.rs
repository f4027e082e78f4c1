//! Symbolic expressions of sizes and scalars.
//!
//! A file states every symbolic value as the text of a constructor expression: `Add(Symbol('s77', positive=True,
//! integer=True), Integer(-1))`. PyTorch evaluates this text as Python code; here [`Exprs::parse`] reads it into an arena.
//! Rows of the arena are hash-consed, so equal expressions have equal ids and comparing two sizes is one comparison.
//! The arguments keep the order of the text, which is SymPy's canonical order, so an expression also prints as the
//! text it was read from ([`Exprs::srepr`]).
//!
//! Invariants: an argument has a smaller id than the call that uses it; the height of an expression is at most
//! [`MAX_HEIGHT`] and its size as a tree at most [`MAX_SIZE`], so printing and evaluation may recurse and take bounded time.

mod bind;
mod eval;
mod func;
mod guard;
mod parse;
mod print;
#[cfg(test)]
mod tests;

pub use bind::{Bindings, Solved};
pub use eval::Number;
pub use func::Func;
pub use guard::{Guard, GuardTerm, PathStep};
pub use print::python_float;

use flambeau_ir::Symbol;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// Maximum height of an expression. A symbol or number has height 1.
pub const MAX_HEIGHT: u32 = 64;

/// Maximum number of rows of an expression as a tree, that is, with shared parts counted once per use.
pub const MAX_SIZE: u32 = 1 << 14;

/// An expression of an [`Exprs`] arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);

/// A row of the arena.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A symbol.
    Symbol(Symbol),
    /// An integer.
    Int(i64),
    /// A fraction in lowest terms: numerator and denominator, which is greater than 1.
    Ratio(i64, i64),
    /// A float, by its bits.
    Float(u64),
    /// A truth value.
    Bool(bool),
    /// Positive or negative infinity, as an integer (`int_oo`) or as a real number.
    Infinity {
        /// Whether it is negative.
        negative: bool,
        /// Whether it is the bound of integers.
        integer: bool,
    },
    /// A function of other expressions.
    Call(Func, Box<[ExprId]>),
}

/// An error of reading or evaluating an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExprError {
    /// The text is not an expression.
    #[error("expected {expected} at byte {at} of the expression `{text}`")]
    Syntax {
        /// The beginning of the text.
        text: String,
        /// The byte at which reading stopped.
        at: usize,
        /// The forms that are allowed there.
        expected: &'static str,
    },
    /// The text names a function that expressions do not have.
    #[error("expressions have no function `{0}`")]
    UnknownFunction(String),
    /// A function has the wrong number of arguments.
    #[error("`{func}` cannot have {given} arguments")]
    Arity {
        /// The function.
        func: &'static str,
        /// The number of arguments.
        given: usize,
    },
    /// The expression is nested too deeply or too large.
    #[error("the expression exceeds the limit of {0}")]
    Limit(&'static str),
    /// A symbol has no value.
    #[error("the symbol `{0}` has no value")]
    Unbound(Symbol),
    /// A result does not fit into 64 bits.
    #[error("the value of `{0}` does not fit into 64 bits")]
    Overflow(String),
    /// A division by zero.
    #[error("division by zero in `{0}`")]
    DivisionByZero(String),
    /// A function is applied to values that it is not defined for.
    #[error("`{0}` is not defined for its arguments")]
    Undefined(String),
}

/// The beginning of a text, for messages.
fn excerpt(text: &str) -> String {
    const LENGTH: usize = 60;
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Height and size of a row.
#[derive(Clone, Copy, Debug)]
struct Extent {
    height: u32,
    size: u32,
}

/// The assumptions about a symbol, in the order of the text: `positive=True, integer=True`.
type Assumptions = Box<[(Symbol, bool)]>;

/// The expressions of a program.
#[derive(Clone, Debug, Default)]
pub struct Exprs {
    rows: IndexSet<Expr, FxBuildHasher>,
    extents: Vec<Extent>,
    /// The symbols with their assumptions, in order of first occurrence.
    symbols: indexmap::IndexMap<Symbol, Assumptions, FxBuildHasher>,
}

impl Exprs {
    /// Creates an empty arena.
    #[must_use]
    pub fn new() -> Exprs {
        Exprs::default()
    }

    /// Returns a row.
    #[must_use]
    pub fn get(&self, id: ExprId) -> &Expr {
        &self.rows[id.0 as usize]
    }

    /// Returns the integer if the expression is one.
    #[must_use]
    pub fn as_int(&self, id: ExprId) -> Option<i64> {
        if let Expr::Int(n) = self.get(id) { Some(*n) } else { None }
    }

    /// Returns the symbol if the expression is one.
    #[must_use]
    pub fn as_symbol(&self, id: ExprId) -> Option<Symbol> {
        if let Expr::Symbol(s) = self.get(id) { Some(*s) } else { None }
    }

    /// Returns all symbols, in order of first occurrence.
    pub fn symbols(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.symbols.keys().copied()
    }

    /// Returns the symbols of an expression, each once, in order of occurrence.
    #[must_use]
    pub fn symbols_of(&self, id: ExprId) -> Vec<Symbol> {
        let mut found = Vec::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            match self.get(id) {
                Expr::Symbol(s) if !found.contains(s) => found.push(*s),
                Expr::Call(_, args) => open.extend(args.iter().rev()),
                _ => {}
            }
        }
        found
    }

    /// Adds a row, or finds the equal one.
    ///
    /// # Errors
    /// `Limit` if the expression would be too high or too large, `Arity` for a wrong number of arguments.
    ///
    /// # Panics
    /// If an argument is not of this arena.
    pub fn add(&mut self, row: Expr) -> Result<ExprId, ExprError> {
        let mut extent = Extent { height: 1, size: 1 };
        if let Expr::Call(func, args) = &row {
            if !func.accepts(args.len()) {
                return Err(ExprError::Arity { func: func.name(), given: args.len() });
            }
            for arg in args {
                let inner = self.extents[arg.0 as usize];
                extent.height = extent.height.max(inner.height + 1);
                extent.size = extent.size.saturating_add(inner.size);
            }
        }
        if extent.height > MAX_HEIGHT {
            return Err(ExprError::Limit("64 levels"));
        }
        if extent.size > MAX_SIZE || self.rows.len() >= u32::MAX as usize {
            return Err(ExprError::Limit("16,384 parts"));
        }
        if let Expr::Symbol(symbol) = row {
            self.symbols.entry(symbol).or_default();
        }
        let (index, is_new) = self.rows.insert_full(row);
        if is_new {
            self.extents.push(extent);
        }
        Ok(ExprId(index as u32))
    }

    /// Adds an integer.
    ///
    /// # Panics
    /// Never: an integer exceeds no limit of an expression.
    pub fn int(&mut self, value: i64) -> ExprId {
        self.add(Expr::Int(value)).expect("invariant: an atom exceeds no limit")
    }

    /// Adds a symbol without assumptions.
    ///
    /// # Panics
    /// Never: a symbol exceeds no limit of an expression.
    pub fn symbol(&mut self, name: Symbol) -> ExprId {
        self.add(Expr::Symbol(name)).expect("invariant: an atom exceeds no limit")
    }

    /// Adds a call.
    ///
    /// # Errors
    /// As [`Exprs::add`].
    pub fn call(&mut self, func: Func, args: impl Into<Box<[ExprId]>>) -> Result<ExprId, ExprError> {
        self.add(Expr::Call(func, args.into()))
    }

    /// Reads the text of a constructor expression.
    ///
    /// # Errors
    /// `Syntax`, `UnknownFunction`, `Arity`, `Limit`, and `Overflow` for an integer that does not fit into 64 bits.
    pub fn parse(&mut self, text: &str) -> Result<ExprId, ExprError> {
        parse::parse(self, text)
    }

    /// Returns whether it is known that the symbol is an integer.
    #[must_use]
    pub fn is_integer(&self, symbol: Symbol) -> bool {
        self.symbols.get(&symbol).is_some_and(|all| all.iter().any(|(n, v)| *n == "integer" && *v))
    }
}
