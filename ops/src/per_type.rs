//! Operator rows for values other than tensors: lists, dictionaries, strings and others.
//!
//! Many of these operators have one overload per element or key type. A row is written once, with `{}` for the type's
//! name in its overload, and expands to one definition per type.

use crate::support::kernel;
use flambeau_analysis::ResultShapes;
use flambeau_exec::{
    DictList, FastPath, Gen, Intrinsic, Kernel, KernelCx, KernelError, KernelResult, OpDefExt, Sample,
};
use flambeau_ir::value::{Dict, IValue, List};
use flambeau_ir::{Doc, Effects, OpDef, Type};
use flambeau_tensor::{Complex, Fault, Tensor, check_budget};

/// An element or key type with its own overloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elem {
    Int,
    Float,
    Bool,
    Str,
    Complex,
    Tensor,
}

impl Elem {
    /// Element types that lists have overloads for.
    pub(crate) const LIST_ELEMENTS: &[Elem] = &[Elem::Int, Elem::Float, Elem::Bool, Elem::Str, Elem::Tensor];
    /// Key types of dictionaries.
    pub(crate) const KEYS: &[Elem] =
        &[Elem::Str, Elem::Int, Elem::Bool, Elem::Float, Elem::Complex, Elem::Tensor];

    /// The type's name in overload names.
    fn tag(self) -> &'static str {
        match self {
            Elem::Int => "int",
            Elem::Float => "float",
            Elem::Bool => "bool",
            Elem::Str => "str",
            Elem::Complex => "complex",
            Elem::Tensor => "Tensor",
        }
    }

    /// The type.
    pub(crate) fn ty(self) -> Type {
        match self {
            Elem::Int => Type::INT,
            Elem::Float => Type::FLOAT,
            Elem::Bool => Type::BOOL,
            Elem::Str => Type::STR,
            Elem::Complex => Type::COMPLEX,
            Elem::Tensor => Type::TENSOR,
        }
    }

    /// Draws a value. There are few different ones, so that searches succeed often.
    pub(crate) fn draw(self, g: &mut Gen<'_>) -> IValue {
        match self {
            Elem::Int => IValue::Int(g.int(-2, 3)),
            Elem::Float => IValue::Float(g.int(-4, 4) as f64 / 2.0),
            Elem::Bool => IValue::Bool(g.flag()),
            Elem::Str => IValue::str(["", "a", "b", "ab", "é"][g.below(5)]),
            Elem::Complex => IValue::complex(Complex::new(g.int(0, 1) as f64, g.int(-1, 1) as f64)),
            Elem::Tensor => IValue::Tensor(
                Tensor::from_slice(&[g.int(-1, 2) as f32], &[])
                    .expect("invariant: one element of no dimensions"),
            ),
        }
    }

    /// Draws a list of at least `min` elements.
    pub(crate) fn list(self, g: &mut Gen<'_>, min: usize) -> IValue {
        let n = min + g.below(4);
        IValue::list(self.ty(), (0..n).map(|_| self.draw(g)).collect())
    }

    /// Draws a dictionary from this type to integers with at least one entry.
    pub(crate) fn dict(self, g: &mut Gen<'_>) -> Dict {
        let dict = Dict::new(self.ty(), Type::INT);
        for i in 0..1 + g.below(3) as i64 {
            let key = self.draw(g);
            dict.insert(key, IValue::Int(i)).expect("invariant: keys of these types can be hashed");
        }
        dict
    }
}

/// Draws arguments for a type.
type SampleFn = fn(&mut Gen<'_>, Elem) -> Vec<IValue>;

/// An operator, or one per type.
pub(crate) struct OverloadRow {
    name: &'static str,
    overload: &'static str,
    doc: &'static str,
    over: &'static [Elem],
    effects: Effects,
    make: Option<SampleFn>,
    fast: Option<FastPath>,
    lists: Option<DictList>,
    shapes: Option<fn() -> ResultShapes>,
    how: SamplePlan,
}

enum SamplePlan {
    Run(Kernel),
    Intrinsic(Intrinsic),
}

/// Creates a row for an operator computed by `run`.
pub(crate) fn row(
    name: &'static str,
    overload: &'static str,
    doc: &'static str,
    run: impl Fn(&mut KernelCx<'_>) -> KernelResult + Send + Sync + 'static,
) -> OverloadRow {
    OverloadRow::new(name, overload, doc, SamplePlan::Run(kernel(run)))
}

/// Creates a row for an operator that is an intrinsic.
pub(crate) fn machine(
    name: &'static str,
    overload: &'static str,
    doc: &'static str,
    is: Intrinsic,
) -> OverloadRow {
    OverloadRow::new(name, overload, doc, SamplePlan::Intrinsic(is))
}

impl OverloadRow {
    fn new(name: &'static str, overload: &'static str, doc: &'static str, how: SamplePlan) -> OverloadRow {
        OverloadRow {
            name,
            overload,
            doc,
            over: &[Elem::Int],
            effects: Effects::PURE,
            make: None,
            fast: None,
            lists: None,
            shapes: None,
            how,
        }
    }

    /// Defines one overload per type, whose name replaces `{}`.
    pub(crate) fn over(mut self, over: &'static [Elem]) -> OverloadRow {
        self.over = over;
        self
    }

    /// Declares that the operator may raise an error.
    pub(crate) fn raises(self) -> OverloadRow {
        self.effects(Effects::RAISES)
    }

    /// Adds effects.
    pub(crate) fn effects(mut self, effects: Effects) -> OverloadRow {
        self.effects |= effects;
        self
    }

    /// Sets the generator of sample arguments; remaining arguments get their defaults.
    pub(crate) fn sample(mut self, make: SampleFn) -> OverloadRow {
        self.make = Some(make);
        self
    }

    /// Sets the common case that the machine handles without the kernel.
    pub(crate) fn fast(mut self, path: FastPath) -> OverloadRow {
        self.fast = Some(path);
        self
    }

    /// States that the operator lists what a dictionary contains.
    pub(crate) fn lists(mut self, contents: DictList) -> OverloadRow {
        self.lists = Some(contents);
        self
    }

    /// Sets the shape rule.
    pub(crate) fn shapes(mut self, rule: fn() -> ResultShapes) -> OverloadRow {
        self.shapes = Some(rule);
        self
    }

    /// Returns the definitions.
    pub(crate) fn defs(&self) -> Vec<OpDef> {
        self.over.iter().map(|&elem| self.def(elem)).collect()
    }

    fn def(&self, elem: Elem) -> OpDef {
        let sample = match self.make {
            Some(make) => Sample::args(move |g| make(g, elem)),
            None => Sample::by_schema(),
        };
        let def = OpDef::overload(self.name, &self.overload.replace("{}", elem.tag()))
            .with(Doc(self.doc))
            .with(self.effects)
            .with(sample.exact().not_differentiable());
        let def = match self.lists {
            Some(contents) => def.with(contents),
            None => def,
        };
        let def = match self.fast {
            Some(path) => def.with(path),
            None => def,
        };
        let def = match self.shapes {
            Some(rule) => def.with(rule()),
            None => def,
        };
        match &self.how {
            SamplePlan::Run(kernel) => def.with(kernel.clone()),
            SamplePlan::Intrinsic(intrinsic) => def.intrinsic(*intrinsic),
        }
    }
}

/// Returns the definitions of many rows.
pub(crate) fn all(rows: impl IntoIterator<Item = OverloadRow>) -> Vec<OpDef> {
    rows.into_iter().flat_map(|row| row.defs()).collect()
}

/// Checks `n` values to be created against the memory limit; small numbers are not checked.
pub(crate) fn check_values_fit(n: usize) -> KernelResult {
    check_fit(n, size_of::<IValue>())
}

/// Checks `n` bytes to be allocated against the memory limit; small numbers are not checked.
pub(crate) fn check_bytes_fit(n: usize) -> KernelResult {
    check_fit(n, 1)
}

fn check_fit(n: usize, size: usize) -> KernelResult {
    let bytes = n.saturating_mul(size);
    if bytes < 1 << 14 {
        return Ok(());
    }
    if bytes > isize::MAX as usize {
        return Err(KernelError::limit(format!("a value of {n} elements is larger than memory")));
    }
    Ok(check_budget(bytes)?)
}

/// Returns the error of an index out of range.
#[cold]
pub(crate) fn index_error(message: &str) -> KernelError {
    KernelError::new(Fault::Input, "IndexError", message)
}

/// Returns the positions that `start:end:step` selects from `len` elements, as in Python.
pub(crate) fn slice_positions(
    len: usize,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
) -> Result<impl ExactSizeIterator<Item = usize>, KernelError> {
    if step == 0 {
        return Err(KernelError::input("List slice should have non-zero step"));
    }
    let n = len as i64;
    // Clamping range of bounds: for negative steps one before the first element, and the last element.
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clamp = |i: i64| if i < 0 { i.saturating_add(n).max(low) } else { i.min(high) };
    let (first, past) = if step > 0 { (0, n) } else { (n - 1, -1) };
    let (from, to) = (start.map_or(first, clamp), end.map_or(past, clamp));
    let stride = step.saturating_abs();
    let span = if step > 0 { to - from } else { from - to };
    let count = if span > 0 { (span - 1) / stride + 1 } else { 0 };
    // Only valid positions are computed, so nothing overflows.
    Ok((0..count as usize).map(move |i| (from + i as i64 * step) as usize))
}

/// Returns a new list of the elements at the given positions.
pub(crate) fn picked(list: &List, at: impl ExactSizeIterator<Item = usize>) -> Result<List, KernelError> {
    check_values_fit(at.len())?;
    let items = list.read();
    let mut out = flambeau_ir::value::ListItems::with_capacity(list.elem_type(), at.len());
    for i in at {
        out.push(items.get(i).ok_or_else(|| index_error("list index out of range"))?);
    }
    Ok(List::from_items(list.elem_type(), out))
}
