//! Predictions of an operator's rules for one call, made from all or only a part of the known operand facts.
//!
//! Weakening replaces sizes and numbers by symbols and drops dtypes, ranks, flags and constants at random. The
//! predictions must still hold; a symbol computed from others must evaluate to the actual size.

use crate::sample::Gen;
use flambeau_analysis::shape::{
    Dtype, Fact, OperandFact, Range, ResultShapes, ShapeCx, Symbols, TensorFact, Valuation, conclude,
};
use flambeau_ir::types::Dim;
use flambeau_ir::value::IValue;
use flambeau_ir::{OpId, Registry, Type};
use std::borrow::Cow;

/// Facts that the rules predict for the results of one call.
pub struct Prediction {
    facts: Vec<Fact>,
    symbols: Symbols,
    /// Values of the operands' symbols.
    valuation: Valuation,
    /// The operand facts passed to the rules, for reports.
    premises: String,
}

/// Weakens facts of actual values at random.
pub struct FactWeakener<'a, 'b> {
    g: &'a mut Gen<'b>,
    /// Symbols that replace known sizes and numbers.
    pub symbols: Symbols,
    /// Values of these symbols.
    pub valuation: Valuation,
}

impl<'a, 'b> FactWeakener<'a, 'b> {
    /// Creates a state without symbols.
    pub fn new(g: &'a mut Gen<'b>) -> Self {
        FactWeakener { g, symbols: Symbols::new(), valuation: Valuation::new() }
    }

    /// Returns a number as a known value, as a symbol, or as unknown.
    fn number(&mut self, n: i64, all: Range) -> Dim {
        match self.g.below(8) {
            0 | 1 => return Dim::Known(n),
            2 => return Dim::Unknown,
            // Equal sizes may share a symbol.
            3 | 4 => {
                let same = self.valuation.symbol_of(n).map(Dim::Sym);
                if let Some(symbol) = same.filter(|&s| self.symbols.range(s) == all) {
                    return symbol;
                }
            }
            _ => {}
        }
        let near = Range { min: n.saturating_sub(1).max(all.min), max: n.saturating_add(2) };
        let symbol = self.symbols.fresh(if self.g.one_in(4) { near } else { all });
        if let Dim::Sym(s) = symbol {
            self.valuation.bind(s, n);
        }
        symbol
    }

    /// Weakens a fact of an actual value.
    pub fn weaken(&mut self, fact: Fact) -> Fact {
        match fact {
            Fact::Int(Dim::Known(n)) => Fact::Int(self.number(n, Range::ALL)),
            Fact::Bool(_) if self.g.flag() => Fact::Unknown,
            Fact::Tensor(t) => Fact::Tensor(self.tensor(t)),
            Fact::List(elems) if self.g.one_in(8) => {
                let first = elems.first().cloned().filter(|f| elems.iter().all(|e| e == f));
                Fact::ListOf(Box::new(first.unwrap_or_default()))
            }
            Fact::List(elems) => Fact::List(elems.into_iter().map(|e| self.weaken(e)).collect()),
            Fact::Tuple(elems) => Fact::Tuple(elems.into_iter().map(|e| self.weaken(e)).collect()),
            other => other,
        }
    }

    fn tensor(&mut self, mut t: TensorFact) -> TensorFact {
        // Drop all sizes (keeping the rank), or the rank, the dtype and others independently.
        let all_sizes = self.g.one_in(5);
        let sizes = t.dims.take().filter(|_| !self.g.one_in(6));
        t.dims = sizes.map(|dims| {
            let known = dims.into_iter().filter_map(Dim::known);
            known.map(|n| if all_sizes { Dim::Unknown } else { self.number(n, Range::SIZE) }).collect()
        });
        t.dtype = t.dtype.filter(|_| !self.g.one_in(4));
        if self.g.one_in(4) {
            t.strides = Default::default();
        }
        t
    }

    fn operand(&mut self, value: &IValue, declared: Type) -> OperandFact<'static> {
        let mut operand = OperandFact::of(value);
        match self.g.below(6) {
            0 | 1 => {}
            2 => {
                operand.fact = Cow::Owned(match value {
                    IValue::Tensor(_) => Fact::any_tensor(),
                    _ => Fact::Unknown,
                });
                (operand.ty, operand.constant) = (declared, None);
            }
            _ => {
                let fact = operand.fact.into_owned();
                operand.fact = Cow::Owned(self.weaken(fact));
                let is_text = value.is_str() || value.is_float();
                operand.constant = operand.constant.filter(|_| is_text && self.g.flag());
            }
        }
        operand
    }
}

impl Prediction {
    /// Predicts the results of a call from weakened facts of the arguments.
    #[must_use]
    pub fn of_part(registry: &Registry, id: OpId, args: &[IValue], g: &mut Gen<'_>) -> Prediction {
        let mut weakened = FactWeakener::new(g);
        let schema = registry.schema(id);
        let operands =
            args.iter().zip(&schema.args).map(|(value, arg)| weakened.operand(value, arg.ty)).collect();
        Prediction::from_operands(registry, id, operands, weakened.symbols, weakened.valuation)
    }

    /// Predicts the results of a call from exact facts of the arguments.
    #[must_use]
    pub fn of_all(registry: &Registry, id: OpId, args: &[IValue]) -> Prediction {
        let operands = args.iter().map(OperandFact::of).collect();
        Prediction::from_operands(registry, id, operands, Symbols::new(), Valuation::new())
    }

    fn from_operands(
        registry: &Registry,
        id: OpId,
        operands: Vec<OperandFact<'static>>,
        mut symbols: Symbols,
        valuation: Valuation,
    ) -> Prediction {
        let schema = registry.schema(id);
        let (shape, dtype) = (registry.facet::<ResultShapes>(id), registry.facet::<Dtype>(id));
        let premises: Vec<_> = operands.iter().map(|o| (&o.fact, o.constant.is_some())).collect();
        let premises = format!("{premises:?} (where {valuation:?})");
        let mut cx = ShapeCx::new(Some(schema), operands, &mut symbols);
        let facts = (0..schema.returns.len()).map(|i| conclude(shape, dtype, i, &mut cx)).collect();
        drop(cx);
        Prediction { facts, symbols, valuation, premises }
    }

    /// Describes the first result that contradicts its prediction; `None` if there is none.
    #[must_use]
    pub fn wrong(&self, results: &[IValue]) -> Option<String> {
        let mut run = self.valuation.clone();
        for (i, (fact, value)) in self.facts.iter().zip(results).enumerate() {
            // If one tensor is passed for two outputs, it has the facts of the output written last.
            if results.iter().filter(|other| same_memory(value, other)).count() > 1 {
                continue;
            }
            if let Err(why) = run.check(fact, value, &self.symbols) {
                return Some(format!("result {i}: {why}; {fact:?} was concluded from {}", self.premises));
            }
        }
        run.consistent(&self.symbols)
            .err()
            .map(|why| format!("{why}; {:?} from {}", self.facts, self.premises))
    }
}

fn same_memory(a: &IValue, b: &IValue) -> bool {
    a.as_tensor().zip(b.as_tensor()).is_some_and(|(a, b)| a.storage().ptr_eq(b.storage()))
}
