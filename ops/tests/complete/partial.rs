//! What rules predict where little is known. Of the operands of a call sizes and numbers are made symbols, and dtypes,
//! ranks, flags and constants are forgotten at random; what a rule then says must still hold of the results: a symbol
//! computed from others is worked out from the actual values, and has to be the actual size.

use super::matrix::admits;
use flambeau_analysis::shape::{Expr, Fact, Operand, Range, ShapeCx, Symbols, infer};
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::Gen;
use flambeau_ir::types::Dim;
use flambeau_ir::value::IValue;
use flambeau_ir::{OpId, Registry, Type};
use std::collections::BTreeMap;

/// What is predicted of the results of one call.
pub(crate) struct Forecast {
    facts: Vec<Fact>,
    symbols: Symbols,
    /// What the symbols of operands stand for.
    actual: BTreeMap<i64, i64>,
    /// What the rules were told.
    operands: String,
}

/// Forgets, and remembers what the symbols put in place stand for.
struct Forgetting<'a, 'b> {
    g: &'a mut Gen<'b>,
    symbols: Symbols,
    actual: BTreeMap<i64, i64>,
}

impl Forgetting<'_, '_> {
    /// A number as itself, as a symbol, or not at all.
    fn number(&mut self, n: i64, all: Range) -> Dim {
        match self.g.below(8) {
            0 | 1 => return Dim::Known(n),
            2 => return Dim::Unknown,
            // Sizes that are the same may be known to be.
            3 | 4 => {
                let same = self.actual.iter().find(|&(_, &actual)| actual == n).map(|(&s, _)| s);
                if let Some(symbol) = same.filter(|&s| self.symbols.range(Dim::Sym(s)) == all) {
                    return Dim::Sym(symbol);
                }
            }
            _ => {}
        }
        let near = Range { min: n.saturating_sub(1).max(all.min), max: n.saturating_add(2) };
        let symbol = self.symbols.fresh(if self.g.one_in(4) { near } else { all });
        if let Dim::Sym(s) = symbol {
            self.actual.insert(s, n);
        }
        symbol
    }

    fn fact(&mut self, fact: Fact) -> Fact {
        match fact {
            Fact::Int(Dim::Known(n)) => Fact::Int(self.number(n, Range::ALL)),
            Fact::Bool(_) if self.g.flag() => Fact::Unknown,
            Fact::Tensor(mut t) => {
                let sizes = t.dims.take().filter(|_| !self.g.one_in(6));
                t.dims = sizes.map(|dims| {
                    dims.into_iter().filter_map(Dim::known).map(|n| self.number(n, Range::SIZE)).collect()
                });
                t.dtype = t.dtype.filter(|_| !self.g.one_in(4));
                Fact::Tensor(t)
            }
            Fact::List(elems) if self.g.one_in(8) => {
                let first = elems.first().cloned().filter(|f| elems.iter().all(|e| e == f));
                Fact::ListOf(Box::new(first.unwrap_or_default()))
            }
            Fact::List(elems) => Fact::List(elems.into_iter().map(|e| self.fact(e)).collect()),
            other => other,
        }
    }

    fn operand(&mut self, value: &IValue, declared: Type) -> Operand<'static> {
        let mut operand = Operand::of(value);
        match self.g.below(6) {
            0 | 1 => {}
            2 => {
                operand.fact = std::borrow::Cow::Owned(match value {
                    IValue::Tensor(_) => Fact::any_tensor(),
                    _ => Fact::Unknown,
                });
                (operand.ty, operand.constant) = (declared, None);
            }
            _ => {
                let fact = operand.fact.into_owned();
                operand.fact = std::borrow::Cow::Owned(self.fact(fact));
                let is_text = value.is_str() || value.is_float();
                operand.constant = operand.constant.filter(|_| is_text && self.g.flag());
            }
        }
        operand
    }
}

fn same_memory(a: &IValue, b: &IValue) -> bool {
    a.as_tensor().zip(b.as_tensor()).is_some_and(|(a, b)| a.storage().ptr_eq(b.storage()))
}

impl Forecast {
    /// What the rules of an operator say of a call, of which they are told only a part.
    pub(crate) fn of(registry: &Registry, id: OpId, args: &[IValue], g: &mut Gen<'_>) -> Forecast {
        let schema = registry.schema(id);
        let mut told = Forgetting { g, symbols: Symbols::default(), actual: BTreeMap::new() };
        let operands: Vec<Operand<'static>> =
            args.iter().zip(&schema.args).map(|(value, arg)| told.operand(value, arg.ty)).collect();
        Forecast::told(registry, id, operands, told.symbols, told.actual)
    }

    /// What they say of it if they are told everything.
    pub(crate) fn of_all(registry: &Registry, id: OpId, args: &[IValue]) -> Forecast {
        let operands = args.iter().map(Operand::of).collect();
        Forecast::told(registry, id, operands, Symbols::default(), BTreeMap::new())
    }

    fn told(
        registry: &Registry,
        id: OpId,
        operands: Vec<Operand<'static>>,
        mut symbols: Symbols,
        actual: BTreeMap<i64, i64>,
    ) -> Forecast {
        let schema = registry.schema(id);
        let (shape, dtype) = (registry.facet::<Shape>(id), registry.facet::<Dtype>(id));
        let said: Vec<_> = operands.iter().map(|o| (&o.fact, o.constant.is_some())).collect();
        let said = format!("{said:?} (as {actual:?})");
        let mut cx = ShapeCx::new(Some(schema), operands, &mut symbols);
        let facts = (0..schema.returns.len()).map(|i| infer(shape, dtype, i, &mut cx)).collect();
        drop(cx);
        Forecast { facts, symbols, actual, operands: said }
    }

    /// The first result that is not as predicted.
    pub(crate) fn wrong(&self, results: &[IValue]) -> Option<String> {
        // One tensor given for two outputs is what the last of them makes of it.
        let twice = |value: &IValue| results.iter().filter(|other| same_memory(value, other)).count() > 1;
        let differs =
            |(fact, value): &(&Fact, &IValue)| !admits(&self.worked_out(fact), value) && !twice(value);
        let (fact, value) = self.facts.iter().zip(results).find(differs)?;
        Some(format!(
            "a result is {value:?}, predicted {fact:?} ({:?}) of {}",
            self.worked_out(fact),
            self.operands
        ))
    }

    /// A fact with every symbol that follows from operands replaced by what it is.
    fn worked_out(&self, fact: &Fact) -> Fact {
        match fact {
            Fact::Int(d) => Fact::Int(self.number(*d)),
            Fact::Tensor(t) => {
                let mut t = t.clone();
                t.dims = t.dims.map(|dims| dims.into_iter().map(|d| self.number(d)).collect());
                Fact::Tensor(t)
            }
            Fact::List(elems) => Fact::List(elems.iter().map(|e| self.worked_out(e)).collect()),
            Fact::Tuple(elems) => Fact::Tuple(elems.iter().map(|e| self.worked_out(e)).collect()),
            Fact::ListOf(elem) => Fact::ListOf(Box::new(self.worked_out(elem))),
            other => other.clone(),
        }
    }

    fn number(&self, dim: Dim) -> Dim {
        self.value(dim).map_or(Dim::Unknown, Dim::Known)
    }

    fn value(&self, dim: Dim) -> Option<i64> {
        let Dim::Sym(symbol) = dim else { return dim.known() };
        if let Some(&actual) = self.actual.get(&symbol) {
            return Some(actual);
        }
        match self.symbols.origin(symbol)? {
            Expr::Add(a, b) => self.value(a)?.checked_add(self.value(b)?),
            Expr::Mul(a, b) => self.value(a)?.checked_mul(self.value(b)?),
            Expr::FloorDiv(a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                Some(a.checked_div(b)? - i64::from(a % b != 0 && (a < 0) != (b < 0)))
            }
            Expr::Max(a, b) => Some(self.value(a)?.max(self.value(b)?)),
            Expr::Min(a, b) => Some(self.value(a)?.min(self.value(b)?)),
            Expr::Broadcast(a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                Some(if a == 1 { b } else { a })
            }
        }
    }
}
