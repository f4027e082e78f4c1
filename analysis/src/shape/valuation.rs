//! Dynamic soundness checks of inferred facts: whether the values of a run satisfy their facts.
//!
//! A [`Valuation`] maps symbols to the integers they represent in one run. A symbol in a fact is bound (a size of an
//! operand), computed from other symbols ([`Symbols::origin`]), or free: the first observation binds it, and later ones
//! must agree. Bindings can be undone in reverse order ([`Valuation::undo`]), because a symbol of a loop's body
//! represents another number in every iteration.
//!
//! This defines soundness of rules, `observed ∈ γ(inferred)` for each component of a fact. All test oracles for facts
//! use it.

use super::symbols::Expr;
use super::{Dim, Fact, Range, Strides, Symbols, TensorFact};
use flambeau_ir::value::IValue;
use flambeau_tensor::Tensor;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The values of symbols in one run. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Valuation {
    bound: HashMap<i64, i64, FxBuildHasher>,
    /// Symbols in the order of binding.
    trail: Vec<i64>,
}

/// A position in the order of bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingPosition(usize);

impl Valuation {
    /// Creates a valuation without bindings.
    #[must_use]
    pub fn new() -> Self {
        Valuation::default()
    }

    /// Binds a symbol that is not bound yet.
    pub fn bind(&mut self, symbol: i64, value: i64) {
        if let hashbrown::hash_map::Entry::Vacant(free) = self.bound.entry(symbol) {
            free.insert(value);
            self.trail.push(symbol);
        }
    }

    /// Returns the symbol bound first among those with this value.
    #[must_use]
    pub fn symbol_of(&self, value: i64) -> Option<i64> {
        self.trail.iter().copied().find(|s| self.bound.get(s) == Some(&value))
    }

    /// Returns the current position in the order of bindings, for [`Valuation::undo`].
    #[must_use]
    pub fn mark(&self) -> BindingPosition {
        BindingPosition(self.trail.len())
    }

    /// Removes the bindings made since `mark`.
    pub fn undo(&mut self, mark: BindingPosition) {
        for symbol in self.trail.drain(mark.0.min(self.trail.len())..) {
            self.bound.remove(&symbol);
        }
    }

    /// Returns the value of a number, if the bindings determine it.
    #[must_use]
    pub fn value(&self, dim: Dim, symbols: &Symbols) -> Option<i64> {
        let mut known: HashMap<i64, Option<i64>, FxBuildHasher> = HashMap::default();
        let mut open = vec![dim];
        while let Some(&next) = open.last() {
            let before = open.len();
            if let Dim::Sym(s) = next
                && !known.contains_key(&s)
                && !self.bound.contains_key(&s)
                && let Some((a, b)) = symbols.origin(s).map(parts)
            {
                let missing = |d: &Dim| matches!(d, Dim::Sym(s) if !known.contains_key(s) && !self.bound.contains_key(s) && symbols.origin(*s).is_some());
                open.extend([a, b].into_iter().filter(missing));
                if open.len() == before {
                    let of = |d| self.leaf(d, &known);
                    let value = symbols.origin(s).and_then(|e| computed(e, of(a)?, of(b)?));
                    known.insert(s, value);
                }
            }
            if open.len() == before {
                open.pop();
            }
        }
        self.leaf(dim, &known)
    }

    fn leaf(&self, dim: Dim, known: &HashMap<i64, Option<i64>, FxBuildHasher>) -> Option<i64> {
        let Dim::Sym(s) = dim else { return dim.known() };
        self.bound.get(&s).copied().or_else(|| known.get(&s).copied().flatten())
    }

    /// Checks that a value satisfies a fact, and binds the free symbols that the value determines.
    ///
    /// # Errors
    /// Returns a description of the component that violates the fact.
    pub fn check(&mut self, fact: &Fact, value: &IValue, symbols: &Symbols) -> Result<(), String> {
        let other = || Err(format!("is {}, inferred {fact:?}", value.tag()));
        match (fact, value) {
            (Fact::Unknown, _) | (Fact::None, IValue::None) => Ok(()),
            (Fact::Bool(a), IValue::Bool(b)) if a == b => Ok(()),
            (Fact::Bool(a), IValue::Bool(b)) => Err(format!("is {b}, inferred {a}")),
            (Fact::Int(d), IValue::Int(n)) => self.number(*d, *n, symbols).map_err(|e| format!("is {e}")),
            (Fact::Tensor(fact), IValue::Tensor(t)) => self.tensor(fact, t, symbols),
            (Fact::Tensor(fact), IValue::None) if fact.admits_undefined() => Ok(()),
            (Fact::Tuple(facts), IValue::Tuple(t)) => self.all(facts, t.items(), symbols),
            (Fact::List(facts), IValue::List(list)) => self.all(facts, &list.to_vec(), symbols),
            (Fact::ListOf(fact), IValue::List(list)) => {
                let each = |(i, v): (usize, &IValue)| {
                    self.check(fact, v, symbols).map_err(|e| format!("element {i}: {e}"))
                };
                list.to_vec().iter().enumerate().try_for_each(each)
            }
            _ => other(),
        }
    }

    fn all(&mut self, facts: &[Fact], values: &[IValue], symbols: &Symbols) -> Result<(), String> {
        if facts.len() != values.len() {
            return Err(format!("has {} elements, inferred {}", values.len(), facts.len()));
        }
        let mut each = facts.iter().zip(values).enumerate();
        each.try_for_each(|(i, (f, v))| self.check(f, v, symbols).map_err(|e| format!("element {i}: {e}")))
    }

    fn tensor(&mut self, fact: &TensorFact, t: &Tensor, symbols: &Symbols) -> Result<(), String> {
        if let Some(dtype) = fact.dtype.filter(|&d| d != t.dtype()) {
            return Err(format!("dtype is {}, inferred {}", t.dtype().ir_name(), dtype.ir_name()));
        }
        if let Some(device) = fact.device.filter(|d| d.kind != t.device().kind) {
            return Err(format!("device is {}, inferred {device}", t.device()));
        }
        if let Some(dims) = &fact.dims {
            if dims.len() != t.rank() {
                return Err(format!("rank is {}, inferred {}", t.rank(), dims.len()));
            }
            for (i, (&d, &n)) in dims.iter().zip(t.sizes()).enumerate() {
                self.number(d, n, symbols).map_err(|e| format!("size {i} is {e}"))?;
            }
        }
        if fact.strides == Strides::Contiguous && !t.is_contiguous() {
            return Err(format!("strides are {:?} of {:?}, inferred contiguous", t.strides(), t.sizes()));
        }
        match fact.requires_grad {
            Some(inferred) if inferred != t.requires_grad() => {
                Err(format!("requires_grad is {}, inferred {inferred}", t.requires_grad()))
            }
            _ if fact.undefined => Err("is a tensor, inferred undefined".to_owned()),
            _ => Ok(()),
        }
    }

    fn number(&mut self, inferred: Dim, found: i64, symbols: &Symbols) -> Result<(), String> {
        let Range { min, max } = symbols.range(inferred);
        if !(min..=max).contains(&found) {
            return Err(match inferred {
                Dim::Known(n) => format!("{found}, inferred {n}"),
                _ => format!("{found}, inferred {min} to {max}"),
            });
        }
        if let Dim::Sym(s) = inferred {
            match self.value(inferred, symbols) {
                Some(value) if value != found => {
                    return Err(format!("{found}, inferred {value} (symbol {s})"));
                }
                Some(_) => {}
                None => self.bind(s, found),
            }
        }
        Ok(())
    }

    /// Checks that every bound symbol that was computed from others has the value of its expression under the current
    /// bindings.
    ///
    /// # Errors
    /// Returns a description of the first symbol that violates this.
    pub fn consistent(&self, symbols: &Symbols) -> Result<(), String> {
        for &s in &self.trail {
            let Some(origin) = symbols.origin(s) else { continue };
            let (a, b) = parts(origin);
            let (Some(a), Some(b)) = (self.value(a, symbols), self.value(b, symbols)) else { continue };
            if let (Some(found), Some(value)) = (self.bound.get(&s), computed(origin, a, b))
                && *found != value
            {
                return Err(format!("symbol {s} = {origin:?} is {found}, inferred {value}"));
            }
        }
        Ok(())
    }
}

fn parts(origin: Expr) -> (Dim, Dim) {
    match origin {
        Expr::Add(a, b)
        | Expr::Mul(a, b)
        | Expr::FloorDiv(a, b)
        | Expr::Max(a, b)
        | Expr::Min(a, b)
        | Expr::Broadcast(a, b) => (a, b),
    }
}

/// The value of an expression; `None` for overflow and division by zero.
fn computed(origin: Expr, a: i64, b: i64) -> Option<i64> {
    match origin {
        Expr::Add(..) => a.checked_add(b),
        Expr::Mul(..) => a.checked_mul(b),
        Expr::FloorDiv(..) => super::symbols::floor_div(a, b),
        Expr::Max(..) => Some(a.max(b)),
        Expr::Min(..) => Some(a.min(b)),
        Expr::Broadcast(..) => Some(if a == 1 { b } else { a }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(sizes: &[i64]) -> IValue {
        IValue::Tensor(Tensor::zeros(sizes, flambeau_tensor::DType::F32).unwrap())
    }

    #[test]
    fn one_symbol_is_one_number() {
        let mut s = Symbols::new();
        let n = s.fresh(Range::SIZE);
        let double = s.mul(n, Dim::Known(2));
        let fact = |dims: &[Dim]| Fact::Tensor(TensorFact::of_dims(dims.iter().copied()));
        let mut run = Valuation::new();
        assert_eq!(run.check(&fact(&[n, n]), &tensor(&[3, 3]), &s), Ok(()));
        assert_eq!(run.check(&fact(&[double]), &tensor(&[6]), &s), Ok(()));
        assert!(run.check(&fact(&[n]), &tensor(&[2]), &s).is_err());
        assert!(run.check(&fact(&[double]), &tensor(&[5]), &s).is_err());
        assert!(run.check(&fact(&[n, n]), &tensor(&[3]), &s).is_err(), "a rank too many");
    }

    #[test]
    fn a_tensor_without_facts_may_be_undefined() {
        let s = Symbols::new();
        let check = |fact: TensorFact| Valuation::new().check(&Fact::Tensor(fact), &IValue::None, &s);
        assert_eq!(check(TensorFact::default()), Ok(()));
        assert_eq!(check(TensorFact { undefined: true, ..TensorFact::default() }), Ok(()));
        assert!(check(TensorFact::of_dims([])).is_err(), "a rank");
        let dtype = Some(flambeau_tensor::DType::F32);
        assert!(check(TensorFact::default().with_dtype(dtype)).is_err(), "a dtype");
        assert!(check(TensorFact { requires_grad: Some(false), ..TensorFact::default() }).is_err());
    }

    #[test]
    fn derived_symbols_are_checked_when_their_operands_are_bound() {
        let mut s = Symbols::new();
        let n = s.fresh(Range::SIZE);
        let double = s.mul(n, Dim::Known(2));
        let mut run = Valuation::new();
        let start = run.mark();
        run.check(&Fact::Int(double), &IValue::Int(6), &s).unwrap();
        run.check(&Fact::Int(n), &IValue::Int(4), &s).unwrap();
        assert!(run.consistent(&s).is_err());
        run.undo(start);
        run.check(&Fact::Int(n), &IValue::Int(4), &s).unwrap();
        assert_eq!(run.check(&Fact::Int(double), &IValue::Int(8), &s), Ok(()));
        assert_eq!(run.consistent(&s), Ok(()));
    }

    #[test]
    fn long_chains_need_no_stack() {
        let mut s = Symbols::new();
        let first = s.fresh(Range::SIZE);
        let mut last = first;
        for i in 0..100_000 {
            let by = s.fresh(Range { min: 0, max: 10 + i });
            last = s.add(last, by);
        }
        let mut run = Valuation::new();
        assert_eq!(run.value(last, &s), None);
        run.check(&Fact::Int(last), &IValue::Int(7), &s).unwrap();
        assert_eq!(run.value(last, &s), Some(7));
    }
}
