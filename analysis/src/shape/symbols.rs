//! Symbolic integers: unknown sizes (and integers computed from them) that can be compared.
//!
//! A symbol is a number of [`Dim::Sym`]; the table holds its range and, if it was computed, its expression. Computed
//! symbols are hash-consed, so two computations of `s0 * 2` yield one symbol, and two sizes derived alike are known to
//! be equal.
//!
//! A table can extend a shared one ([`Symbols::over`]): a search stores its additional symbols in the upper table, so
//! starting a search costs no time proportional to the graph.
//!
//! Symbols that occur in types keep their numbers; new ones are numbered downwards from there, as in PyTorch.

use flambeau_ir::types::Dim;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The integers from `min` to `max`, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The minimum.
    pub min: i64,
    /// The maximum.
    pub max: i64,
}

impl Range {
    /// Every integer.
    pub const ALL: Range = Range { min: i64::MIN, max: i64::MAX };
    /// The possible values of a size.
    pub const SIZE: Range = Range { min: 0, max: i64::MAX };

    /// A single integer.
    #[must_use]
    pub fn only(value: i64) -> Range {
        Range { min: value, max: value }
    }

    /// Whether the range contains `value`.
    #[must_use]
    pub fn contains(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }

    /// Returns the smallest range that contains both.
    #[must_use]
    pub fn join(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// The expression that a symbol was computed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// The sum.
    Add(Dim, Dim),
    /// The product.
    Mul(Dim, Dim),
    /// The quotient, rounded down.
    FloorDiv(Dim, Dim),
    /// The maximum.
    Max(Dim, Dim),
    /// The minimum.
    Min(Dim, Dim),
    /// The size that two sizes broadcast to.
    Broadcast(Dim, Dim),
}

/// The symbols of one graph.
#[derive(Clone, Debug)]
pub struct Symbols {
    /// The base table, which is read-only. It has no base itself.
    base: Option<Arc<Symbols>>,
    ranges: HashMap<i64, Range, FxBuildHasher>,
    exprs: HashMap<Expr, i64, FxBuildHasher>,
    origins: HashMap<i64, Expr, FxBuildHasher>,
    next: i64,
}

impl Default for Symbols {
    fn default() -> Self {
        Self::new()
    }
}

impl Symbols {
    /// Creates an empty table.
    #[must_use]
    pub fn new() -> Self {
        Symbols {
            base: None,
            ranges: HashMap::default(),
            exprs: HashMap::default(),
            origins: HashMap::default(),
            next: -1,
        }
    }

    /// Creates a table that extends `base`; additions go to the new table. O(1) if `base` has no base itself.
    #[must_use]
    pub fn over(base: &Arc<Symbols>) -> Self {
        if base.base.is_some() {
            return Symbols::clone(base);
        }
        Symbols { next: base.next, base: Some(Arc::clone(base)), ..Symbols::new() }
    }

    /// Looks up in this table, then in the base.
    fn find<T>(&self, look: impl Fn(&Symbols) -> Option<T>) -> Option<T> {
        look(self).or_else(|| look(self.base.as_ref()?))
    }

    /// Registers a symbol that occurs in a type, so that no new symbol gets its number.
    pub fn note(&mut self, symbol: i64) {
        self.next = self.next.min(symbol.saturating_sub(1));
        if self.find(|s| s.ranges.get(&symbol).copied()).is_none() {
            self.ranges.insert(symbol, Range::SIZE);
        }
    }

    /// Restricts a registered symbol to a range. A range without a size, which no call can satisfy, is ignored.
    pub fn restrict(&mut self, symbol: i64, range: Range) {
        if let Some(own) = self.ranges.get_mut(&symbol) {
            let both = Range { min: own.min.max(range.min), max: own.max.min(range.max) };
            if both.min <= both.max {
                *own = both;
            }
        }
    }

    /// Creates a symbol for a number in `range`; returns the number itself if the range has only one.
    pub fn fresh(&mut self, range: Range) -> Dim {
        if range.min == range.max {
            return Dim::Known(range.min);
        }
        let symbol = self.next;
        let Some(next) = self.next.checked_sub(1) else { return Dim::Unknown };
        self.next = next;
        self.ranges.insert(symbol, range);
        Dim::Sym(symbol)
    }

    /// Returns the expression that a symbol was computed by, if any.
    #[must_use]
    pub fn origin(&self, symbol: i64) -> Option<Expr> {
        self.find(|s| s.origins.get(&symbol).copied())
    }

    /// Returns the possible values of a number.
    #[must_use]
    pub fn range(&self, dim: Dim) -> Range {
        match dim {
            Dim::Known(n) => Range::only(n),
            Dim::Sym(s) => self.find(|table| table.ranges.get(&s).copied()).unwrap_or(Range::ALL),
            Dim::Unknown => Range::ALL,
        }
    }

    /// Returns the possible values of a size: [`Symbols::range`] without negative values.
    #[must_use]
    pub fn size_range(&self, dim: Dim) -> Range {
        let range = self.range(dim);
        Range { min: range.min.max(0), max: range.max.max(0) }
    }

    /// Whether both are certainly equal.
    #[must_use]
    pub fn same(&self, a: Dim, b: Dim) -> bool {
        a == b && a != Dim::Unknown
    }

    fn computed(&mut self, expr: Expr, range: Range) -> Dim {
        if range.min == range.max {
            return Dim::Known(range.min);
        }
        if let Some(symbol) = self.find(|s| s.exprs.get(&expr).copied()) {
            return Dim::Sym(symbol);
        }
        let dim = self.fresh(range);
        if let Dim::Sym(symbol) = dim {
            self.exprs.insert(expr, symbol);
            self.origins.insert(symbol, expr);
        }
        dim
    }

    /// Returns `a + b`.
    pub fn add(&mut self, a: Dim, b: Dim) -> Dim {
        let (x, y) = (self.range(a), self.range(b));
        match (a, b) {
            (Dim::Known(m), Dim::Known(n)) => m.checked_add(n).map_or(Dim::Unknown, Dim::Known),
            (Dim::Unknown, _) | (_, Dim::Unknown) => Dim::Unknown,
            (Dim::Known(0), other) | (other, Dim::Known(0)) => other,
            _ => {
                let ends = [x.min.checked_add(y.min), x.max.checked_add(y.max)];
                let range = spanned(&ends, x.min >= 0 && y.min >= 0);
                let (a, b) = ordered(a, b);
                self.computed(Expr::Add(a, b), range)
            }
        }
    }

    /// Returns `a - b`.
    pub fn sub(&mut self, a: Dim, b: Dim) -> Dim {
        if self.same(a, b) {
            return Dim::Known(0);
        }
        let minus = self.mul(b, Dim::Known(-1));
        self.add(a, minus)
    }

    /// Returns `a * b`.
    pub fn mul(&mut self, a: Dim, b: Dim) -> Dim {
        let (x, y) = (self.range(a), self.range(b));
        match (a, b) {
            (Dim::Known(m), Dim::Known(n)) => m.checked_mul(n).map_or(Dim::Unknown, Dim::Known),
            (Dim::Known(0), _) | (_, Dim::Known(0)) => Dim::Known(0),
            (Dim::Unknown, _) | (_, Dim::Unknown) => Dim::Unknown,
            (Dim::Known(1), other) | (other, Dim::Known(1)) => other,
            _ => {
                let ends = [
                    x.min.checked_mul(y.min),
                    x.min.checked_mul(y.max),
                    x.max.checked_mul(y.min),
                    x.max.checked_mul(y.max),
                ];
                let range = spanned(&ends, x.min >= 0 && y.min >= 0);
                let (a, b) = ordered(a, b);
                self.computed(Expr::Mul(a, b), range)
            }
        }
    }

    /// Returns `a // b`, rounded down; [`Dim::Unknown`] for division by zero.
    pub fn floor_div(&mut self, a: Dim, b: Dim) -> Dim {
        let x = self.range(a);
        match (a, b) {
            (_, Dim::Known(0)) | (Dim::Unknown, _) | (_, Dim::Unknown) => Dim::Unknown,
            (Dim::Known(m), Dim::Known(n)) => floor_div(m, n).map_or(Dim::Unknown, Dim::Known),
            (other, Dim::Known(1)) => other,
            (_, Dim::Known(n)) if n > 0 => {
                let range = Range { min: x.min.div_euclid(n), max: x.max.div_euclid(n) };
                self.computed(Expr::FloorDiv(a, b), range)
            }
            _ if a == b => Dim::Known(1),
            _ => {
                let range = if x.min >= 0 && self.range(b).min > 0 { Range::SIZE } else { Range::ALL };
                self.computed(Expr::FloorDiv(a, b), range)
            }
        }
    }

    /// Returns `a / b`, rounded up, for a positive `b`.
    pub fn ceil_div(&mut self, a: Dim, b: Dim) -> Dim {
        let minus_one = self.sub(b, Dim::Known(1));
        let sum = self.add(a, minus_one);
        self.floor_div(sum, b)
    }

    /// Returns the maximum.
    pub fn max(&mut self, a: Dim, b: Dim) -> Dim {
        let (x, y) = (self.range(a), self.range(b));
        if a == Dim::Unknown || b == Dim::Unknown {
            return Dim::Unknown;
        }
        if a == b || x.min >= y.max {
            return a;
        }
        if y.min >= x.max {
            return b;
        }
        let (a, b) = ordered(a, b);
        self.computed(Expr::Max(a, b), Range { min: x.min.max(y.min), max: x.max.max(y.max) })
    }

    /// Returns the minimum.
    pub fn min(&mut self, a: Dim, b: Dim) -> Dim {
        let (x, y) = (self.range(a), self.range(b));
        if a == Dim::Unknown || b == Dim::Unknown {
            return Dim::Unknown;
        }
        if a == b || x.max <= y.min {
            return a;
        }
        if y.max <= x.min {
            return b;
        }
        let (a, b) = ordered(a, b);
        self.computed(Expr::Min(a, b), Range { min: x.min.min(y.min), max: x.max.min(y.max) })
    }

    /// Returns the size that two sizes broadcast to; `None` if they are incompatible.
    pub fn broadcast(&mut self, a: Dim, b: Dim) -> Option<Dim> {
        let (x, y) = (self.size_range(a), self.size_range(b));
        Some(match (a, b) {
            (Dim::Known(1), other) | (other, Dim::Known(1)) => other,
            (Dim::Known(m), Dim::Known(n)) => return (m == n).then_some(a),
            (Dim::Known(n), _) | (_, Dim::Known(n)) => Dim::Known(n),
            (Dim::Unknown, Dim::Unknown) => Dim::Unknown,
            _ if a == b => a,
            // A size that is not 1 is the result, whatever the other one is.
            _ if x.min > 1 && a != Dim::Unknown => a,
            _ if y.min > 1 && b != Dim::Unknown => b,
            (Dim::Unknown, _) | (_, Dim::Unknown) => Dim::Unknown,
            _ => {
                let (a, b) = ordered(a, b);
                self.computed(Expr::Broadcast(a, b), x.join(y))
            }
        })
    }

    /// Returns the product of all. Factors are sorted first, so equal multisets of factors yield one symbol.
    pub fn product(&mut self, dims: &[Dim]) -> Dim {
        let mut known: i64 = 1;
        let mut symbols: Vec<i64> = Vec::new();
        for &dim in dims {
            match dim {
                Dim::Known(0) => return Dim::Known(0),
                Dim::Known(n) => match known.checked_mul(n) {
                    Some(product) => known = product,
                    None => return Dim::Unknown,
                },
                Dim::Sym(s) => symbols.push(s),
                Dim::Unknown => return Dim::Unknown,
            }
        }
        symbols.sort_unstable();
        let start = Dim::Known(1);
        let product = symbols.into_iter().fold(start, |product, s| self.mul(product, Dim::Sym(s)));
        self.mul(product, Dim::Known(known))
    }

    /// Returns `a / b` for products of sizes where `b` divides `a`: equal factors cancel first.
    pub fn quotient(&mut self, a: &[Dim], b: &[Dim]) -> Dim {
        let known = |dims: &[Dim]| dims.iter().filter_map(|d| d.known()).try_fold(1_i64, i64::checked_mul);
        let (Some(mut over), Some(mut under)) = (known(a), known(b)) else { return Dim::Unknown };
        if under != 0 && over % under == 0 {
            (over, under) = (over / under, 1);
        }
        let open = |dims: &[Dim]| dims.iter().copied().filter(|d| d.known().is_none()).collect::<Vec<_>>();
        let (mut above, mut below) = (open(a), Vec::new());
        for dim in open(b) {
            match above.iter().position(|&d| self.same(d, dim)) {
                Some(at) => drop(above.swap_remove(at)),
                None => below.push(dim),
            }
        }
        above.push(Dim::Known(over));
        below.push(Dim::Known(under));
        let (above, below) = (self.product(&above), self.product(&below));
        self.floor_div(above, below)
    }
}

/// The smallest range that contains the given ends, `None` being an overflow. Overflowing program integers wrap around,
/// so the result may be any integer. Overflowing sizes do not wrap, because creating such a tensor raises.
fn spanned(ends: &[Option<i64>], sizes: bool) -> Range {
    let known = ends.iter().copied().flatten();
    let (min, max) = known.fold((i64::MAX, i64::MIN), |(min, max), end| (min.min(end), max.max(end)));
    match ends.iter().all(Option::is_some) {
        true => Range { min, max },
        false if sizes => Range { min: min.max(0), max: i64::MAX },
        false => Range::ALL,
    }
}

fn ordered(a: Dim, b: Dim) -> (Dim, Dim) {
    let key = |d: Dim| match d {
        Dim::Sym(s) => (0, s),
        Dim::Known(n) => (1, n),
        Dim::Unknown => (2, 0),
    };
    if key(a) <= key(b) { (a, b) } else { (b, a) }
}

/// The quotient, rounded down; `None` for division by zero or overflow.
pub(super) fn floor_div(m: i64, n: i64) -> Option<i64> {
    let quotient = m.checked_div(n)?;
    Some(if m % n != 0 && (m < 0) != (n < 0) { quotient - 1 } else { quotient })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_expressions_are_one_symbol() {
        let mut s = Symbols::new();
        let (a, b) = (s.fresh(Range::SIZE), s.fresh(Range::SIZE));
        assert_ne!(a, b);
        assert_eq!(s.mul(a, b), s.mul(b, a));
        assert_eq!(s.product(&[a, Dim::Known(2), b]), s.product(&[b, a, Dim::Known(2)]));
        assert_eq!(s.quotient(&[a, b, Dim::Known(6)], &[b, Dim::Known(6)]), a);
        assert_eq!(s.sub(a, a), Dim::Known(0));
        assert_eq!(s.add(Dim::Known(2), Dim::Known(3)), Dim::Known(5));
        assert_eq!(s.floor_div(Dim::Known(-7), Dim::Known(2)), Dim::Known(-4));
        assert_eq!(s.ceil_div(Dim::Known(7), Dim::Known(2)), Dim::Known(4));
    }

    #[test]
    fn ranges_decide_comparisons() {
        let mut s = Symbols::new();
        let small = s.fresh(Range { min: 1, max: 4 });
        let big = s.fresh(Range { min: 4, max: 9 });
        assert_eq!(s.max(small, big), big);
        assert_eq!(s.min(small, big), small);
        let sum = s.add(small, big);
        assert_eq!(s.range(sum), Range { min: 5, max: 13 });
        s.note(-100);
        assert_eq!(s.fresh(Range::SIZE), Dim::Sym(-101));
        assert_eq!(s.fresh(Range::only(3)), Dim::Known(3));
    }
}
