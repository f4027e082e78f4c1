//! What the rules of an operator claim of one call, told all or only a part of what is known of the operands.
//!
//! Forgetting makes sizes and numbers symbols, and drops dtypes, ranks, flags and constants at random. What a rule then
//! claims must still hold: a symbol computed from others has to be the actual size.

use crate::sample::Gen;
use flambeau_analysis::shape::{
    Dtype, Fact, Operand, Range, Shape, ShapeCx, Symbols, TensorFact, Valuation, conclude,
};
use flambeau_ir::types::Dim;
use flambeau_ir::value::IValue;
use flambeau_ir::{OpId, Registry, Type};
use std::borrow::Cow;

/// What is claimed of the results of one call.
pub struct Forecast {
    facts: Vec<Fact>,
    symbols: Symbols,
    /// What the symbols of operands stand for.
    valuation: Valuation,
    /// What the rules were told, for reports.
    told: String,
}

/// Facts of actual values, weakened at random.
pub struct Forgetting<'a, 'b> {
    g: &'a mut Gen<'b>,
    /// The symbols that stand for what was forgotten.
    pub symbols: Symbols,
    /// What they stand for.
    pub valuation: Valuation,
}

impl<'a, 'b> Forgetting<'a, 'b> {
    /// Nothing is forgotten yet.
    pub fn new(g: &'a mut Gen<'b>) -> Self {
        Forgetting { g, symbols: Symbols::new(), valuation: Valuation::new() }
    }

    /// A number as itself, as a symbol, or not at all.
    fn number(&mut self, n: i64, all: Range) -> Dim {
        match self.g.below(8) {
            0 | 1 => return Dim::Known(n),
            2 => return Dim::Unknown,
            // Sizes that are the same may be known to be.
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

    /// A fact of an actual value with some of it forgotten.
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
        // The rank alone, the dtype alone, or some of each.
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

    fn operand(&mut self, value: &IValue, declared: Type) -> Operand<'static> {
        let mut operand = Operand::of(value);
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

impl Forecast {
    /// What the rules of an operator claim of a call, told only a part of what is known of the arguments.
    #[must_use]
    pub fn of_part(registry: &Registry, id: OpId, args: &[IValue], g: &mut Gen<'_>) -> Forecast {
        let mut told = Forgetting::new(g);
        let schema = registry.schema(id);
        let operands =
            args.iter().zip(&schema.args).map(|(value, arg)| told.operand(value, arg.ty)).collect();
        Forecast::told(registry, id, operands, told.symbols, told.valuation)
    }

    /// What they claim if they are told everything.
    #[must_use]
    pub fn of_all(registry: &Registry, id: OpId, args: &[IValue]) -> Forecast {
        let operands = args.iter().map(Operand::of).collect();
        Forecast::told(registry, id, operands, Symbols::new(), Valuation::new())
    }

    fn told(
        registry: &Registry,
        id: OpId,
        operands: Vec<Operand<'static>>,
        mut symbols: Symbols,
        valuation: Valuation,
    ) -> Forecast {
        let schema = registry.schema(id);
        let (shape, dtype) = (registry.facet::<Shape>(id), registry.facet::<Dtype>(id));
        let told: Vec<_> = operands.iter().map(|o| (&o.fact, o.constant.is_some())).collect();
        let told = format!("{told:?} (where {valuation:?})");
        let mut cx = ShapeCx::new(Some(schema), operands, &mut symbols);
        let facts = (0..schema.returns.len()).map(|i| conclude(shape, dtype, i, &mut cx)).collect();
        drop(cx);
        Forecast { facts, symbols, valuation, told }
    }

    /// The first result that is not as claimed, in words.
    #[must_use]
    pub fn wrong(&self, results: &[IValue]) -> Option<String> {
        let mut run = self.valuation.clone();
        for (i, (fact, value)) in self.facts.iter().zip(results).enumerate() {
            // One tensor given for two outputs is what the last of them makes of it.
            if results.iter().filter(|other| same_memory(value, other)).count() > 1 {
                continue;
            }
            if let Err(why) = run.check(fact, value, &self.symbols) {
                return Some(format!("result {i}: {why}; {fact:?} was concluded from {}", self.told));
            }
        }
        run.consistent(&self.symbols).err().map(|why| format!("{why}; {:?} from {}", self.facts, self.told))
    }
}

fn same_memory(a: &IValue, b: &IValue) -> bool {
    a.as_tensor().zip(b.as_tensor()).is_some_and(|(a, b)| a.storage().ptr_eq(b.storage()))
}
