//! Values of symbols in a call, found from the sizes of its inputs.
//!
//! The metadata of an input states each size as an expression. A symbol alone gets the size as its value. `2*s` or
//! `s + 1` is solved for its symbol if that has no value yet, since a program may state derived sizes only. A size whose
//! symbols all have values is compared with the value of its expression.

use super::eval::{Number, quotient};
use super::func::Func;
use super::{Expr, ExprError, ExprId, Exprs};
use flambeau_ir::Symbol;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

/// The values of symbols.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    values: IndexMap<Symbol, Number, FxBuildHasher>,
}

/// The relation of a value to an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Solved {
    /// A symbol was unknown, and got the value with which the expression has the value.
    Bound(Symbol),
    /// All symbols have values, and the expression has this value.
    Agrees,
    /// All symbols have values, and the expression has another value.
    Differs(Number),
    /// No integer value of the symbol gives the expression the value.
    NoSolution(Symbol),
    /// Several symbols are unknown, or the expression is not linear in the unknown one.
    Undetermined,
}

/// `slope * x + offset` of an unknown `x`.
#[derive(Clone, Copy)]
struct Linear {
    slope: i64,
    offset: i64,
}

impl Bindings {
    /// Creates an empty assignment.
    #[must_use]
    pub fn new() -> Bindings {
        Bindings::default()
    }

    /// Returns the value of a symbol.
    #[must_use]
    pub fn get(&self, symbol: Symbol) -> Option<Number> {
        self.values.get(&symbol).copied()
    }

    /// Sets the value of a symbol.
    pub fn set(&mut self, symbol: Symbol, value: Number) {
        self.values.insert(symbol, value);
    }

    /// Evaluates an expression with these values.
    ///
    /// # Errors
    /// As [`Exprs::eval`].
    pub fn eval(&self, exprs: &Exprs, id: ExprId) -> Result<Number, ExprError> {
        exprs.eval(id, &|symbol| self.get(symbol))
    }

    /// Relates an expression to its observed value, and binds the symbol that is unknown, if it is one.
    ///
    /// # Errors
    /// The errors of evaluating the expression.
    pub fn relate(&mut self, exprs: &Exprs, id: ExprId, value: i64) -> Result<Solved, ExprError> {
        let unknown: Vec<Symbol> =
            exprs.symbols_of(id).into_iter().filter(|s| !self.values.contains_key(s)).collect();
        let &[symbol] = unknown.as_slice() else {
            if !unknown.is_empty() {
                return Ok(Solved::Undetermined);
            }
            let own = self.eval(exprs, id)?;
            return Ok(if own == Number::Int(value) { Solved::Agrees } else { Solved::Differs(own) });
        };
        let Some(Linear { slope, offset }) = self.linear(exprs, id)? else { return Ok(Solved::Undetermined) };
        let solution = value.checked_sub(offset).and_then(|rest| quotient(rest, slope));
        match solution {
            Some(Number::Int(x)) => {
                self.set(symbol, Number::Int(x));
                Ok(Solved::Bound(symbol))
            }
            _ => Ok(Solved::NoSolution(symbol)),
        }
    }

    /// Returns an expression as a linear function of its one unknown symbol; `None` if it is not one, or if its
    /// coefficients do not fit into 64 bits.
    fn linear(&self, exprs: &Exprs, id: ExprId) -> Result<Option<Linear>, ExprError> {
        // The recursion is bounded by `MAX_HEIGHT`.
        match exprs.get(id) {
            Expr::Symbol(symbol) if self.get(*symbol).is_none() => Ok(Some(Linear { slope: 1, offset: 0 })),
            Expr::Call(Func::Add, args) => {
                self.combine(exprs, args, Linear { slope: 0, offset: 0 }, |a, b| {
                    let (slope, offset) = (a.slope.checked_add(b.slope)?, a.offset.checked_add(b.offset)?);
                    Some(Linear { slope, offset })
                })
            }
            Expr::Call(Func::Mul, args) => {
                self.combine(exprs, args, Linear { slope: 0, offset: 1 }, |a, b| {
                    let (line, factor) = if b.slope == 0 { (a, b.offset) } else { (b, a.offset) };
                    let both = a.slope != 0 && b.slope != 0;
                    let (slope, offset) = (line.slope.checked_mul(factor)?, line.offset.checked_mul(factor)?);
                    (!both).then_some(Linear { slope, offset })
                })
            }
            _ if exprs.symbols_of(id).iter().all(|s| self.values.contains_key(s)) => {
                let value = self.eval(exprs, id)?;
                Ok(value.as_int().map(|offset| Linear { slope: 0, offset }))
            }
            _ => Ok(None),
        }
    }

    fn combine(
        &self,
        exprs: &Exprs,
        args: &[ExprId],
        start: Linear,
        combine: impl Fn(Linear, Linear) -> Option<Linear>,
    ) -> Result<Option<Linear>, ExprError> {
        let mut all = start;
        for &arg in args {
            match self.linear(exprs, arg)?.and_then(|next| combine(all, next)) {
                Some(combined) => all = combined,
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }
}
