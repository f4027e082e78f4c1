//! Symbolic sizes of tensors: those that the caller lets vary, and those that the contents of tensors determine.
//!
//! A tensor of the example has sizes, and a symbolic size in addition where it may vary. The shape rules of operators
//! compute the symbolic sizes of results, on the symbols of `flambeau_analysis`. A size that no rule expresses is
//! taken as constant; if sizes vary, the program is recorded on a second example with other sizes, and such a
//! size is then an error ([`super`]).
//!
//! As in PyTorch, the analysis assumes that symbolic sizes are at least 2, whatever their bounds are: a size of 1 would be
//! broadcast.

use super::{DynamicSize, Res, refused};
use flambeau_analysis::Dtype;
use flambeau_analysis::shape::{
    Dim, Expr, Fact, OperandFact, Range, ResultShapes, ShapeCx, Strides, Symbols, TensorFact, infer,
};
use flambeau_export::ExportError;
use flambeau_export::expr::{ExprId, Exprs, Func};
use flambeau_export::model::{Map, RangeConstraint, SymInt, TensorMeta};
use flambeau_ir::{FunctionSchema, IValue, OpId, Registry, Symbol};
use flambeau_tensor::{DType, Tensor};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::borrow::Cow;
use std::cell::RefCell;

/// Maximum height of the expression of a size.
const MAX_HEIGHT: usize = 48;

/// The symbolic sizes of a program.
#[derive(Default)]
pub(super) struct Sizes {
    symbols: Symbols,
    /// The symbols that are not computed from others.
    infos: HashMap<i64, SymbolInfo, FxBuildHasher>,
    /// Sizes and strides of the tensors of which some are symbolic, by identity.
    tensors: HashMap<usize, SymbolicLayout, FxBuildHasher>,
    /// Symbols of the caller's names for sizes.
    named: HashMap<String, i64, FxBuildHasher>,
    /// What is known about computed symbols. Expressions share parts, so each is computed once.
    cache: RefCell<Cache>,
    /// Whether the ranges of symbols are given and must not be restricted.
    pub(super) is_fixed: bool,
}

#[derive(Default)]
struct Cache {
    hints: HashMap<i64, Option<i64>, FxBuildHasher>,
    backed: HashMap<i64, bool, FxBuildHasher>,
    exprs: HashMap<i64, Option<ExprId>, FxBuildHasher>,
    /// Cleared when a symbol is restricted.
    ranges: HashMap<i64, Range, FxBuildHasher>,
}

/// A symbol of the exported program.
struct SymbolInfo {
    name: Symbol,
    expr: ExprId,
    /// The value in the example.
    hint: i64,
    /// The values that the caller and branches admit.
    range: Range,
    /// The bounds that the caller states.
    stated: (Option<i64>, Option<i64>),
    /// Whether the sizes of arguments determine it.
    is_backed: bool,
}

#[derive(Clone)]
struct SymbolicLayout {
    sizes: Vec<Dim>,
    strides: Vec<Dim>,
}

/// A comparison of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A call of an operator, with its results.
pub(super) struct SymbolicCall<'c> {
    pub(super) op: OpId,
    pub(super) operands: &'c [IValue],
    /// The symbolic integers among the operands.
    pub(super) numbers: Vec<Option<Dim>>,
    /// The symbolic integers in lists among the operands.
    pub(super) lists: Vec<Option<Vec<Option<Dim>>>>,
    pub(super) results: &'c [IValue],
}

/// The result of evaluating a condition on sizes during tracing.
pub(super) enum GuardResult {
    /// It holds, or does not, for all values of the symbols.
    Static(bool),
    /// It depends on the values, and one symbol has been restricted to those with the example's answer. The name is that of a
    /// size that the caller states a wider range for.
    Specialized(bool, Option<String>),
    /// It depends on the values of the symbols.
    SizeDependent,
}

impl Sizes {
    /// Returns the symbol for a size that the caller lets vary: one symbol per name.
    pub(super) fn create_dynamic_dim(&mut self, own: &DynamicSize, hint: i64, exprs: &mut Exprs) -> Res<Dim> {
        let (name, stated) = (&own.name, (own.min, own.max));
        let range = Range { min: own.min.unwrap_or(0), max: own.max.unwrap_or(i64::MAX) };
        if !range.contains(hint) {
            return Err(refused(format!(
                "the size `{name}` is {hint} in the example, which is not in its range"
            )));
        }
        if let Some(&symbol) = self.named.get(name) {
            let base = &self.infos[&symbol];
            if base.hint != hint || base.range != range || base.stated != stated {
                return Err(refused(format!(
                    "the sizes `{name}` have different values or ranges, {} and {hint}",
                    base.hint
                )));
            }
            return Ok(Dim::Sym(symbol));
        }
        let number = self.named.len();
        let dim = self.create_symbol(
            &format!("s{number}"),
            "positive=True, integer=True",
            range,
            hint,
            true,
            exprs,
        )?;
        if let Dim::Sym(symbol) = dim {
            self.named.insert(name.clone(), symbol);
            if let Some(info) = self.infos.get_mut(&symbol) {
                info.stated = stated;
            }
        }
        Ok(dim)
    }

    /// Returns a symbol for an integer that no size of an argument determines.
    pub(super) fn unbacked(&mut self, name: &str, range: Range, hint: i64, exprs: &mut Exprs) -> Res<Dim> {
        self.create_symbol(name, "integer=True", range, hint, false, exprs)
    }

    /// Forgets symbols that no size of an argument determines, from one number to another.
    pub(super) fn forget_unbacked(&mut self, from: usize, to: usize) {
        let number =
            |name: Symbol| name.as_str().strip_prefix('u').and_then(|number| number.parse::<usize>().ok());
        let is_kept =
            |info: &SymbolInfo| number(info.name).is_none_or(|number| !(from..to).contains(&number));
        self.infos.retain(|_, info| is_kept(info));
    }

    fn create_symbol(
        &mut self,
        name: &str,
        assumptions: &str,
        range: Range,
        hint: i64,
        is_backed: bool,
        exprs: &mut Exprs,
    ) -> Res<Dim> {
        // The analysis takes a size as at least 2.
        let analyzed = Range { min: if is_backed { range.min.max(2) } else { range.min }, max: range.max };
        let Dim::Sym(symbol) = self.symbols.fresh(analyzed) else { return Ok(Dim::Known(hint)) };
        let text = format!("Symbol('{name}', {assumptions})");
        let expr = exprs.parse(&text).map_err(ExportError::from)?;
        let (name, stated) = (Symbol::new(name), (None, None));
        self.infos.insert(symbol, SymbolInfo { name, expr, hint, range, stated, is_backed });
        Ok(Dim::Sym(symbol))
    }

    /// Adds a symbol of a program that exists, with its expression and its value in the example.
    pub(super) fn given(
        &mut self,
        name: Symbol,
        expr: ExprId,
        range: Range,
        hint: i64,
        is_backed: bool,
    ) -> Dim {
        let min = if is_backed { range.min.max(2) } else { range.min };
        let Dim::Sym(symbol) = self.symbols.fresh(Range { min: min.min(range.max), max: range.max }) else {
            return Dim::Known(hint);
        };
        let stated = (None, None);
        self.infos.insert(symbol, SymbolInfo { name, expr, hint, range, stated, is_backed });
        Dim::Sym(symbol)
    }

    /// Computes a function of sizes that expressions have; `None` if the analysis does not have it.
    pub(super) fn call(&mut self, func: Func, args: &[Dim]) -> Option<Dim> {
        let (&first, rest) = args.split_first()?;
        let symbols = &mut self.symbols;
        let made = match func {
            Func::Add => rest.iter().fold(first, |a, &b| symbols.add(a, b)),
            Func::Mul => rest.iter().fold(first, |a, &b| symbols.mul(a, b)),
            Func::Max => rest.iter().fold(first, |a, &b| symbols.max(a, b)),
            Func::Min => rest.iter().fold(first, |a, &b| symbols.min(a, b)),
            Func::FloorDiv => symbols.floor_div(first, *rest.first()?),
            _ => return None,
        };
        (made != Dim::Unknown).then_some(made)
    }

    /// States the expression of a computed size, as the program writes it.
    pub(super) fn state_expr(&mut self, dim: Dim, expr: ExprId) {
        if let Dim::Sym(symbol) = dim {
            self.cache.get_mut().exprs.entry(symbol).or_insert(Some(expr));
        }
    }

    /// Returns the symbolic sizes of a tensor, if it has any.
    pub(super) fn of(&self, tensor: &Tensor) -> Option<&[Dim]> {
        self.layout(tensor).map(|shaped| &*shaped.sizes)
    }

    /// Returns sizes and strides that are symbolic, unless a write to the tensor has changed its shape.
    fn layout(&self, tensor: &Tensor) -> Option<&SymbolicLayout> {
        let shaped = self.tensors.get(&tensor.id())?;
        let mut pairs = shaped.sizes.iter().zip(tensor.sizes());
        let is_current =
            shaped.sizes.len() == tensor.rank() && pairs.all(|(&dim, &n)| self.hint(dim, 0) == Some(n));
        is_current.then_some(shaped)
    }

    /// Returns the sizes of tensors of equal sizes in the example: symbolic where both have the same symbol.
    pub(super) fn common(&self, a: &Tensor, b: &Tensor) -> Vec<Dim> {
        let dims = |tensor: &Tensor| match self.of(tensor) {
            Some(dims) => dims.to_vec(),
            None => tensor.sizes().iter().map(|&n| Dim::Known(n)).collect(),
        };
        let both = dims(a).into_iter().zip(dims(b)).zip(a.sizes());
        both.map(|((x, y), &n)| if x == y { x } else { Dim::Known(n) }).collect()
    }

    /// Sets the symbolic sizes of a tensor; its strides follow from those of `from` and from the order of dimensions.
    pub(super) fn set(&mut self, tensor: &Tensor, sizes: Vec<Dim>, from: &[&Tensor]) {
        if !sizes.iter().any(|dim| matches!(dim, Dim::Sym(_))) {
            self.tensors.remove(&tensor.id());
            return;
        }
        let strides = self.strides(tensor, &sizes, from);
        self.tensors.insert(tensor.id(), SymbolicLayout { sizes, strides });
    }

    /// Returns symbolic strides: products of sizes if the tensor is dense in some order of its dimensions, and else
    /// those of an operand with the same memory and the same stride in the example.
    fn strides(&mut self, tensor: &Tensor, sizes: &[Dim], from: &[&Tensor]) -> Vec<Dim> {
        let actual = tensor.strides();
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&i| (actual[i], std::cmp::Reverse(i)));
        let mut strides: Vec<Dim> = actual.iter().map(|&n| Dim::Known(n)).collect();
        let (mut step, mut dense) = (1_i64, true);
        let mut product = Dim::Known(1);
        for &i in &order {
            dense &= actual[i] == step;
            strides[i] = product;
            step = step.saturating_mul(tensor.sizes()[i]);
            product = self.symbols.mul(product, sizes[i]);
        }
        if dense {
            return strides;
        }
        let sources: Vec<&SymbolicLayout> = from
            .iter()
            .filter(|source| source.shares_storage(tensor))
            .filter_map(|source| self.tensors.get(&source.id()))
            .collect();
        let of_source = |n: i64| {
            let mut all = sources.iter().flat_map(|source| &source.strides);
            all.find(|&&dim| self.hint(dim, 0) == Some(n)).copied()
        };
        actual
            .iter()
            .map(|&n| if n < 2 { Dim::Known(n) } else { of_source(n).unwrap_or(Dim::Known(n)) })
            .collect()
    }

    /// Returns the value of a size in the example.
    fn hint(&self, dim: Dim, height: usize) -> Option<i64> {
        let symbol = match dim {
            Dim::Known(n) => return Some(n),
            Dim::Unknown => return None,
            Dim::Sym(symbol) => symbol,
        };
        if let Some(base) = self.infos.get(&symbol) {
            return Some(base.hint);
        }
        if let Some(known) = self.cache.borrow().hints.get(&symbol) {
            return *known;
        }
        let hint = if height > MAX_HEIGHT { None } else { self.computed_hint(symbol, height) };
        self.cache.borrow_mut().hints.insert(symbol, hint);
        hint
    }

    fn computed_hint(&self, symbol: i64, height: usize) -> Option<i64> {
        let value = |dim: Dim| self.hint(dim, height + 1);
        Some(match self.symbols.origin(symbol)? {
            Expr::Add(a, b) => value(a)?.checked_add(value(b)?)?,
            Expr::Mul(a, b) => value(a)?.checked_mul(value(b)?)?,
            Expr::FloorDiv(a, b) => {
                let (a, b) = (value(a)?, value(b)?);
                a.checked_div(b)? - i64::from(a % b != 0 && (a < 0) != (b < 0))
            }
            Expr::Max(a, b) => value(a)?.max(value(b)?),
            Expr::Min(a, b) => value(a)?.min(value(b)?),
            Expr::Broadcast(..) => return None,
        })
    }

    /// Returns the possible values of a size, with the ranges that branches have restricted.
    fn range(&self, dim: Dim, height: usize) -> Range {
        let Dim::Sym(symbol) = dim else { return self.symbols.range(dim) };
        if let Some(base) = self.infos.get(&symbol) {
            let known = self.symbols.range(dim);
            return Range { min: known.min.max(base.range.min), max: known.max.min(base.range.max) };
        }
        if let Some(known) = self.cache.borrow().ranges.get(&symbol) {
            return *known;
        }
        let range = self.computed_range(dim, symbol, height);
        self.cache.borrow_mut().ranges.insert(symbol, range);
        range
    }

    fn computed_range(&self, dim: Dim, symbol: i64, height: usize) -> Range {
        let known = self.symbols.range(dim);
        let (Some(Expr::Add(a, b) | Expr::Mul(a, b)), true) =
            (self.symbols.origin(symbol), height < MAX_HEIGHT)
        else {
            return known;
        };
        let is_sum = matches!(self.symbols.origin(symbol), Some(Expr::Add(..)));
        let (a, b) = (self.range(a, height + 1), self.range(b, height + 1));
        let ends = [(a.min, b.min), (a.min, b.max), (a.max, b.min), (a.max, b.max)];
        let ends = ends.map(|(x, y)| if is_sum { x.saturating_add(y) } else { x.saturating_mul(y) });
        let min = ends.iter().copied().min().unwrap_or(i64::MIN);
        let max = ends.iter().copied().max().unwrap_or(i64::MAX);
        Range { min: min.max(known.min), max: max.min(known.max) }
    }

    /// Whether the sizes of arguments determine a size.
    pub(super) fn is_backed(&self, dim: Dim, height: usize) -> bool {
        let Dim::Sym(symbol) = dim else { return dim != Dim::Unknown };
        if let Some(base) = self.infos.get(&symbol) {
            return base.is_backed;
        }
        if let Some(known) = self.cache.borrow().backed.get(&symbol) {
            return *known;
        }
        let both = |a: Dim, b: Dim| self.is_backed(a, height + 1) && self.is_backed(b, height + 1);
        let backed = match self.symbols.origin(symbol) {
            Some(
                Expr::Add(a, b)
                | Expr::Mul(a, b)
                | Expr::FloorDiv(a, b)
                | Expr::Max(a, b)
                | Expr::Min(a, b)
                | Expr::Broadcast(a, b),
            ) if height < MAX_HEIGHT => both(a, b),
            _ => false,
        };
        self.cache.borrow_mut().backed.insert(symbol, backed);
        backed
    }

    /// Returns the product of sizes.
    pub(super) fn product(&mut self, dims: &[Dim]) -> Dim {
        self.symbols.product(dims)
    }

    /// Computes a Python function of integers on symbolic ones; `None` if the result has no expression.
    pub(super) fn apply(&mut self, target: &str, args: &[Dim]) -> Option<Dim> {
        let made = match (target, args) {
            ("_operator.add", [a, b]) => self.symbols.add(*a, *b),
            ("_operator.sub", [a, b]) => self.symbols.sub(*a, *b),
            ("_operator.mul", [a, b]) => self.symbols.mul(*a, *b),
            ("_operator.neg", [a]) => self.symbols.mul(*a, Dim::Known(-1)),
            ("_operator.floordiv", [a, b]) => self.symbols.floor_div(*a, *b),
            ("torch.sym_max", [a, b]) => self.symbols.max(*a, *b),
            ("torch.sym_min", [a, b]) => self.symbols.min(*a, *b),
            _ => return None,
        };
        (made != Dim::Unknown).then_some(made)
    }

    /// Answers a comparison of backed sizes, and restricts a symbol if the answer depends on its value.
    pub(super) fn compare(&mut self, compare: Compare, a: Dim, b: Dim) -> Option<GuardResult> {
        if !self.is_backed(a, 0) || !self.is_backed(b, 0) {
            return None;
        }
        let (x, y) = (self.hint(a, 0)?, self.hint(b, 0)?);
        let holds = match compare {
            Compare::Eq => x == y,
            Compare::Ne => x != y,
            Compare::Lt => x < y,
            Compare::Le => x <= y,
            Compare::Gt => x > y,
            Compare::Ge => x >= y,
        };
        let difference = self.symbols.sub(a, b);
        let range = self.range(difference, 0);
        let (min, max) = (range.min, range.max);
        let certain = match compare {
            Compare::Eq | Compare::Ne => !range.contains(0) || (min == 0 && max == 0),
            Compare::Lt | Compare::Ge => max < 0 || min >= 0,
            Compare::Le | Compare::Gt => max <= 0 || min > 0,
        };
        if certain {
            return Some(GuardResult::Static(holds));
        }
        // `s < n` and the like restrict a symbol; inequality excludes one value, which no range does.
        let (symbol, bound, compare) = match (a, b) {
            (Dim::Sym(symbol), Dim::Known(n)) => (symbol, n, compare),
            (Dim::Known(n), Dim::Sym(symbol)) => (symbol, n, compare.flipped()),
            _ => return Some(GuardResult::SizeDependent),
        };
        let Some(base) = self.infos.get_mut(&symbol).filter(|_| !self.is_fixed) else {
            return Some(GuardResult::SizeDependent);
        };
        self.cache.get_mut().ranges.clear();
        let below = |range: &mut Range, max: i64| range.max = range.max.min(max);
        let above = |range: &mut Range, min: i64| range.min = range.min.max(min);
        match (compare, holds) {
            (Compare::Lt, true) | (Compare::Ge, false) => below(&mut base.range, bound.saturating_sub(1)),
            (Compare::Le, true) | (Compare::Gt, false) => below(&mut base.range, bound),
            (Compare::Gt, true) | (Compare::Le, false) => above(&mut base.range, bound.saturating_add(1)),
            (Compare::Ge, true) | (Compare::Lt, false) => above(&mut base.range, bound),
            (Compare::Eq | Compare::Ne, _) => return Some(GuardResult::SizeDependent),
        }
        let (min, max) = base.stated;
        let is_narrower =
            min.is_some_and(|min| base.range.min > min) || max.is_some_and(|max| base.range.max < max);
        let name = self.name_of(Dim::Sym(symbol)).filter(|_| is_narrower).map(str::to_owned);
        Some(GuardResult::Specialized(holds, name))
    }

    /// Returns the caller's name for a size.
    pub(super) fn name_of(&self, dim: Dim) -> Option<&str> {
        let Dim::Sym(symbol) = dim else { return None };
        self.named.iter().find(|(_, own)| **own == symbol).map(|(name, _)| name.as_str())
    }

    /// Returns the possible values of the size of the caller's name.
    pub(super) fn named_range(&self, name: &str) -> Option<Range> {
        Some(self.infos.get(self.named.get(name)?)?.range)
    }

    /// Returns the value in the example of the size of the caller's name.
    pub(super) fn hint_of(&self, name: &str) -> Option<i64> {
        Some(self.infos.get(self.named.get(name)?)?.hint)
    }

    /// Returns the text of an expression with the caller's names for sizes.
    pub(super) fn named_text(&self, text: &str) -> String {
        let name = |word: &str| {
            let of = self
                .named
                .iter()
                .find(|(_, own)| self.infos.get(*own).is_some_and(|info| info.name.as_str() == word));
            of.map(|(name, _)| name.as_str())
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            out.push_str(name(word).unwrap_or(word));
            rest = after;
        }
        out
    }

    /// Returns the expression of a size.
    pub(super) fn expr(&self, dim: Dim, exprs: &mut Exprs) -> Option<ExprId> {
        self.expr_within(dim, exprs, 0)
    }

    fn expr_within(&self, dim: Dim, exprs: &mut Exprs, height: usize) -> Option<ExprId> {
        let symbol = match dim {
            Dim::Known(n) => return Some(exprs.int(n)),
            Dim::Unknown => return None,
            Dim::Sym(symbol) => symbol,
        };
        if let Some(base) = self.infos.get(&symbol) {
            return Some(base.expr);
        }
        if let Some(known) = self.cache.borrow().exprs.get(&symbol) {
            return *known;
        }
        let made = if height > MAX_HEIGHT { None } else { self.computed_expr(symbol, exprs, height) };
        self.cache.borrow_mut().exprs.insert(symbol, made);
        made
    }

    fn computed_expr(&self, symbol: i64, exprs: &mut Exprs, height: usize) -> Option<ExprId> {
        let (func, a, b) = match self.symbols.origin(symbol)? {
            Expr::Add(a, b) => (Func::Add, a, b),
            Expr::Mul(a, b) => (Func::Mul, a, b),
            Expr::FloorDiv(a, b) => (Func::FloorDiv, a, b),
            Expr::Max(a, b) => (Func::Max, a, b),
            Expr::Min(a, b) => (Func::Min, a, b),
            Expr::Broadcast(..) => return None,
        };
        let a = self.expr_within(a, exprs, height + 1)?;
        let b = self.expr_within(b, exprs, height + 1)?;
        exprs.call(func, [a, b]).ok()
    }

    /// Returns the metadata of a tensor with its symbolic sizes.
    pub(super) fn meta(&self, tensor: &Tensor, exprs: &mut Exprs) -> Option<TensorMeta> {
        let mut meta = TensorMeta::of(tensor)?;
        let Some(shaped) = self.layout(tensor) else { return Some(meta) };
        let mut symbolic = |dims: &[Dim], into: &mut [SymInt]| {
            for (dim, out) in dims.iter().zip(into) {
                if let (Dim::Sym(_), SymInt::Int(hint)) = (dim, &*out)
                    && let Some(expr) = self.expr(*dim, exprs)
                {
                    *out = SymInt::Expr { expr, hint: self.is_backed(*dim, 0).then_some(*hint) };
                }
            }
        };
        symbolic(&shaped.sizes, &mut meta.sizes);
        symbolic(&shaped.strides, &mut meta.strides);
        Some(meta)
    }

    /// Returns the fact about an operand.
    fn fact(&self, value: &IValue, dim: Option<Dim>, items: Option<&[Option<Dim>]>) -> Fact {
        match (value, dim) {
            (_, Some(dim)) => Fact::Int(dim),
            (IValue::Tensor(tensor), _) => match self.layout(tensor) {
                None => Fact::of(value),
                Some(shaped) => {
                    let mut fact = TensorFact::of(tensor);
                    fact.dims = Some(shaped.sizes.iter().copied().collect());
                    fact.strides =
                        if tensor.is_contiguous() { Strides::Contiguous } else { Strides::Unknown };
                    Fact::Tensor(fact)
                }
            },
            (IValue::List(list), _) => {
                let items = items.unwrap_or(&[]);
                let each = list.to_vec();
                let each = each.iter().enumerate();
                Fact::list(each.map(|(i, v)| self.fact(v, items.get(i).copied().flatten(), None)).collect())
            }
            _ => Fact::of(value),
        }
    }

    /// Whether an operand has a symbolic size or element.
    fn is_symbolic(&self, value: &IValue) -> bool {
        let mut found = false;
        value.visit_tensors(|tensor| found |= self.layout(tensor).is_some());
        found
    }

    /// Sets the symbolic sizes of the results of a call by the shape rule of its operator.
    pub(super) fn infer(
        &mut self,
        registry: &Registry,
        call: &SymbolicCall<'_>,
        exprs: &mut Exprs,
        unbacked: &mut usize,
    ) -> Res<()> {
        let &SymbolicCall { op, operands, ref numbers, ref lists, results } = call;
        let by_contents = sized_by_contents(registry.schema(op), operands);
        let is_constant = numbers.iter().all(Option::is_none) && lists.iter().all(Option::is_none);
        if !by_contents && is_constant && !operands.iter().any(|value| self.is_symbolic(value)) {
            return Ok(());
        }
        let schema = registry.schema(op);
        let facts: Vec<OperandFact<'static>> = operands
            .iter()
            .enumerate()
            .map(|(i, value)| {
                let dim = numbers.get(i).copied().flatten();
                let items = lists.get(i).and_then(Option::as_deref);
                let fact = Cow::Owned(self.fact(value, dim, items));
                let constant = (dim.is_none() && items.is_none()).then(|| value.clone());
                OperandFact { fact, ty: value.type_of(), constant }
            })
            .collect();
        let mut sources = Vec::new();
        operands.iter().for_each(|value| value.visit_tensors(|tensor| sources.push(tensor.clone())));
        let sources: Vec<&Tensor> = sources.iter().collect();
        for (index, result) in results.iter().enumerate() {
            let fact = {
                let mut cx = ShapeCx::new(Some(schema), facts.iter().cloned(), &mut self.symbols);
                infer(registry.facet::<ResultShapes>(op), registry.facet::<Dtype>(op), index, &mut cx)
            };
            match (result, fact) {
                (IValue::Tensor(tensor), fact) if by_contents => {
                    let fact = fact.as_tensor().cloned().unwrap_or_default();
                    self.conclude_contents(tensor, &fact, exprs, unbacked)?;
                }
                (IValue::Tensor(tensor), fact) => {
                    let fact = fact.as_tensor().cloned().unwrap_or_default();
                    self.conclude(tensor, &fact, &sources, exprs, unbacked)?;
                }
                (IValue::List(list), Fact::List(facts)) => {
                    for (tensor, fact) in list.to_tensors().unwrap_or_default().iter().zip(&facts) {
                        if let Fact::Tensor(fact) = fact {
                            self.conclude(tensor, fact, &sources, exprs, unbacked)?;
                        }
                    }
                }
                (IValue::List(list), Fact::ListOf(fact)) => {
                    for tensor in list.to_tensors().unwrap_or_default() {
                        if let Fact::Tensor(fact) = &*fact {
                            self.conclude(&tensor, fact, &sources, exprs, unbacked)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sets the sizes of a result that the contents of the operands determine: each size that the rule does not state
    /// is a symbol of its own.
    fn conclude_contents(
        &mut self,
        tensor: &Tensor,
        fact: &TensorFact,
        exprs: &mut Exprs,
        unbacked: &mut usize,
    ) -> Res<()> {
        let mut sizes = Vec::with_capacity(tensor.rank());
        for (i, &size) in tensor.sizes().iter().enumerate() {
            let stated = fact.dims.as_ref().filter(|dims| dims.len() == tensor.rank()).map(|dims| dims[i]);
            sizes.push(match stated.filter(|&dim| self.hint(dim, 0) == Some(size)) {
                Some(dim) => dim,
                None => {
                    *unbacked += 1;
                    self.unbacked(&format!("u{}", *unbacked - 1), Range::SIZE, size, exprs)?
                }
            });
        }
        self.set(tensor, sizes, &[]);
        Ok(())
    }

    /// Sets the sizes of a result that agree with the example. If an operand has a data-dependent size, each size that the rule
    /// does not state is a symbol of its own: as a constant it would hold for the example only.
    fn conclude(
        &mut self,
        tensor: &Tensor,
        fact: &TensorFact,
        sources: &[&Tensor],
        exprs: &mut Exprs,
        unbacked: &mut usize,
    ) -> Res<()> {
        if sources.iter().any(|source| source.id() == tensor.id()) {
            // A result that is an operand keeps its sizes.
            return Ok(());
        }
        let is_data_dependent = sources.iter().any(|source| {
            self.layout(source).is_some_and(|own| own.sizes.iter().any(|&dim| !self.is_backed(dim, 0)))
        });
        let dims = fact.dims.as_ref().filter(|dims| dims.len() == tensor.rank());
        if dims.is_none() && !is_data_dependent {
            return Ok(());
        }
        let mut sizes = Vec::with_capacity(tensor.rank());
        for (i, &size) in tensor.sizes().iter().enumerate() {
            let stated = dims.map(|dims| dims[i]).filter(|&dim| self.hint(dim, 0) == Some(size));
            sizes.push(match stated {
                Some(dim) => dim,
                None if is_data_dependent => {
                    *unbacked += 1;
                    self.unbacked(&format!("u{}", *unbacked - 1), Range::SIZE, size, exprs)?
                }
                None => Dim::Known(size),
            });
        }
        self.set(tensor, sizes, sources);
        Ok(())
    }

    /// Returns the ranges of the symbols, in the order of their names.
    pub(super) fn ranges(&self) -> Map<RangeConstraint> {
        let mut all: Vec<&SymbolInfo> = self.infos.values().collect();
        all.sort_by_key(|base| base.name.as_str());
        let bound = |n: i64, none: i64| (n != none).then_some(n);
        let each = all.into_iter().map(|base| {
            let (min, max) = (bound(base.range.min, i64::MIN), bound(base.range.max, i64::MAX));
            (base.name.to_string(), RangeConstraint { min, max })
        });
        each.collect()
    }
}

/// Whether the contents of the operands determine sizes of the results.
pub(super) fn sized_by_contents(schema: &FunctionSchema, operands: &[IValue]) -> bool {
    match schema.name.as_str() {
        "aten::nonzero"
        | "aten::nonzero_numpy"
        | "aten::argwhere"
        | "aten::masked_select"
        | "aten::bincount"
        | "aten::_unique"
        | "aten::_unique2"
        | "aten::unique_dim"
        | "aten::unique_consecutive"
        | "aten::unique_dim_consecutive"
        | "torchvision::nms" => true,
        "aten::where" => schema.args.len() == 1,
        // `repeat_interleave(x, repeats)` without the size of the output.
        "aten::repeat_interleave" => {
            let by_tensor =
                |arg: &flambeau_ir::schema::Argument| arg.name.as_str() == "repeats" && arg.ty.is_tensor();
            schema.args.iter().any(by_tensor) && operands.last().is_none_or(IValue::is_none)
        }
        // A mask selects as many elements as it has true values.
        "aten::index" | "aten::_unsafe_index" => {
            let mut is_mask = false;
            let list = operands.get(1).cloned().unwrap_or_default();
            list.visit_tensors(|index| is_mask |= matches!(index.dtype(), DType::Bool | DType::U8));
            is_mask
        }
        _ => false,
    }
}

impl Compare {
    /// Returns the comparison of a Python function.
    pub(super) fn of(target: &str) -> Option<Compare> {
        Some(match target {
            "_operator.eq" => Compare::Eq,
            "_operator.ne" => Compare::Ne,
            "_operator.lt" => Compare::Lt,
            "_operator.le" => Compare::Le,
            "_operator.gt" => Compare::Gt,
            "_operator.ge" => Compare::Ge,
            _ => return None,
        })
    }

    /// Returns the operator in Python.
    pub(super) fn text(self) -> &'static str {
        match self {
            Compare::Eq => "==",
            Compare::Ne => "!=",
            Compare::Lt => "<",
            Compare::Le => "<=",
            Compare::Gt => ">",
            Compare::Ge => ">=",
        }
    }

    /// Returns the comparison that holds if this one does not.
    pub(super) fn negated(self) -> Compare {
        match self {
            Compare::Eq => Compare::Ne,
            Compare::Ne => Compare::Eq,
            Compare::Lt => Compare::Ge,
            Compare::Le => Compare::Gt,
            Compare::Gt => Compare::Le,
            Compare::Ge => Compare::Lt,
        }
    }

    /// Returns the comparison with the operands exchanged.
    fn flipped(self) -> Compare {
        match self {
            Compare::Lt => Compare::Gt,
            Compare::Le => Compare::Ge,
            Compare::Gt => Compare::Lt,
            Compare::Ge => Compare::Le,
            same => same,
        }
    }
}
