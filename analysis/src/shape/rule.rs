//! The facets `Shape` and `Dtype`: what an operator's results are, given what is known of its operands.
//!
//! A rule is a function of a [`ShapeCx`]; the combinators in [`super::sizes`], [`super::views`] and [`super::dtypes`]
//! make those that operators share. `Shape` says everything but dtypes: that a result is a tensor of these sizes, an
//! integer, a list of as many elements. `Dtype` gives the dtype of every tensor in a result. A rule that cannot tell
//! answers `None`. A rule never guesses: what it states holds whenever the operator succeeds.

use super::{Arg, Fact, ShapeCx, Strides, TensorFact};
use flambeau_ir::{Facet, FunctionSchema};
use flambeau_tensor::{DType, Device};
use smallvec::{SmallVec, smallvec};

type ShapeRule = Box<dyn Fn(&mut ShapeCx<'_>) -> Option<Fact> + Send + Sync>;
/// Of the result at a position.
type DtypeRule = Box<dyn Fn(&ShapeCx<'_>, usize) -> Option<DType> + Send + Sync>;

/// What the results of an operator are, but for dtypes.
pub struct Shape {
    /// One per result; results beyond are not known.
    rules: SmallVec<[ShapeRule; 1]>,
    /// The operand whose sizes the (first) result has.
    keeps: Option<Arg>,
}

/// The dtypes of the results of an operator.
pub struct Dtype {
    rules: SmallVec<[DtypeRule; 1]>,
}

impl Facet for Shape {
    const NAME: &'static str = "shape";
}

impl Facet for Dtype {
    const NAME: &'static str = "dtype";
}

impl Shape {
    /// A rule for an operator with one result.
    ///
    /// ```
    /// use flambeau_analysis::shape::{Shape, TensorFact};
    /// let diagonal_of_matrix = Shape::from(|cx| {
    ///     let dims = cx.dims(0)?.clone();
    ///     let [rows, columns] = dims[..] else { return None };
    ///     Some(TensorFact::of_dims([cx.symbols.min(rows, columns)]))
    /// });
    /// # let _ = diagonal_of_matrix;
    /// ```
    pub fn from<R: Into<Fact>>(
        rule: impl Fn(&mut ShapeCx<'_>) -> Option<R> + Send + Sync + 'static,
    ) -> Shape {
        Shape {
            rules: smallvec![Box::new(move |cx: &mut ShapeCx<'_>| rule(cx).map(Into::into)) as _],
            keeps: None,
        }
    }

    /// One rule per result, each the first rule of what is given.
    pub fn results(rules: impl IntoIterator<Item = Shape>) -> Shape {
        let mut keeps = None;
        let mut all = SmallVec::new();
        for (i, shape) in rules.into_iter().enumerate() {
            if i == 0 {
                keeps = shape.keeps;
            }
            all.extend(shape.rules.into_iter().take(1));
        }
        Shape { rules: all, keeps }
    }

    /// States that the rule gives the sizes of operand `arg`. For an operator that writes that operand, this says that
    /// it changes elements only, never sizes or strides.
    #[must_use]
    pub fn keeping(mut self, arg: impl Into<Arg>) -> Shape {
        self.keeps = Some(arg.into());
        self
    }

    /// The same sizes in new memory, laid out row by row: for operators that copy what a view shows.
    #[must_use]
    pub fn copied(self) -> Shape {
        let afresh = |rule: ShapeRule| -> ShapeRule {
            Box::new(move |cx| {
                let fact = rule(cx)?;
                let Fact::Tensor(t) = fact else { return Some(fact) };
                Some(Fact::Tensor(TensorFact { strides: Strides::Contiguous, ..t }))
            })
        };
        Shape { rules: self.rules.into_iter().map(afresh).collect(), keeps: None }
    }

    /// The position of the operand whose sizes the first result certainly has.
    #[must_use]
    pub fn keeps(&self, schema: Option<&FunctionSchema>) -> Option<usize> {
        match self.keeps? {
            Arg::At(i) => Some(i),
            Arg::Named(name) => schema?.args.iter().position(|a| a.name.as_str() == name),
        }
    }

    /// What result `index` is; `None` if the rule cannot tell.
    pub fn result(&self, index: usize, cx: &mut ShapeCx<'_>) -> Option<Fact> {
        self.rules.get(index)?(cx)
    }
}

impl Dtype {
    /// A rule for an operator with one result (or whose results have one dtype).
    pub fn from(rule: impl Fn(&ShapeCx<'_>) -> Option<DType> + Send + Sync + 'static) -> Dtype {
        Dtype { rules: smallvec![Box::new(move |cx: &ShapeCx<'_>, _: usize| rule(cx)) as _] }
    }

    /// One rule for all results, which is told the position.
    pub fn by_position(rule: impl Fn(&ShapeCx<'_>, usize) -> Option<DType> + Send + Sync + 'static) -> Dtype {
        Dtype { rules: smallvec![Box::new(rule) as _] }
    }

    /// One rule per result, each the first rule of what is given.
    pub fn results(rules: impl IntoIterator<Item = Dtype>) -> Dtype {
        Dtype { rules: rules.into_iter().flat_map(|d| d.rules.into_iter().take(1)).collect() }
    }

    /// The dtype of the tensors of result `index`. The only rule of a single one is every result's.
    #[must_use]
    pub fn result(&self, index: usize, cx: &ShapeCx<'_>) -> Option<DType> {
        let rule = if self.rules.len() == 1 { 0 } else { index };
        self.rules.get(rule)?(cx, index)
    }
}

/// What the two facets together say of result `index`.
#[must_use]
pub fn infer(shape: Option<&Shape>, dtype: Option<&Dtype>, index: usize, cx: &mut ShapeCx<'_>) -> Fact {
    let mut fact = shape.and_then(|s| s.result(index, cx)).unwrap_or_default();
    // What takes the result keeps its strides, if it has the sizes.
    if let Fact::Tensor(t) = &mut fact
        && cx.output(index).is_some()
    {
        t.strides = Strides::Unknown;
    }
    match dtype.and_then(|d| d.result(index, cx)) {
        Some(dtype) => with_dtype(fact, dtype),
        None => fact,
    }
}

/// As [`infer`], with what follows from the operands alone: the device, and that no gradient is required.
#[must_use]
pub fn conclude(shape: Option<&Shape>, dtype: Option<&Dtype>, index: usize, cx: &mut ShapeCx<'_>) -> Fact {
    let mut fact = infer(shape, dtype, index, cx);
    if let Fact::Tensor(t) = &mut fact {
        complete(t, cx);
    }
    fact
}

/// Device and gradient of a result, from the operands.
fn complete(result: &mut TensorFact, cx: &ShapeCx<'_>) {
    let mut tensors: SmallVec<[&TensorFact; 8]> = SmallVec::new();
    let mut all_known = true;
    for i in 0..cx.len() {
        match cx.fact(i) {
            Fact::Tensor(t) => tensors.push(t),
            Fact::List(elems) => {
                for elem in elems {
                    match elem {
                        Fact::Tensor(t) => tensors.push(t),
                        Fact::Unknown => all_known &= cx.ty(i).is_none_or(|t| !t.contains_tensor()),
                        _ => {}
                    }
                }
            }
            Fact::ListOf(elem) => match &**elem {
                Fact::Tensor(t) => tensors.push(t),
                _ => all_known &= cx.ty(i).is_none_or(|t| !t.contains_tensor()),
            },
            Fact::Unknown | Fact::Tuple(_) => all_known &= cx.ty(i).is_none_or(|t| !t.contains_tensor()),
            Fact::None | Fact::Bool(_) | Fact::Int(_) => {}
        }
    }
    if result.device.is_none() {
        let of_operands =
            all_known && !tensors.is_empty() && tensors.iter().all(|t| t.device.is_some_and(Device::is_cpu));
        result.device = match cx.position("device") {
            Some(_) => match cx.device_arg("device") {
                Some(Some(device)) => Some(device),
                Some(None) if tensors.is_empty() || of_operands => Some(Device::CPU),
                _ => None,
            },
            None => of_operands.then_some(Device::CPU),
        };
    }
    if result.requires_grad.is_none() {
        let never = result.dtype.is_some_and(|d| d.is_integral(true));
        let none_does =
            all_known && !tensors.is_empty() && tensors.iter().all(|t| t.requires_grad == Some(false));
        result.requires_grad = (never || none_does).then_some(false);
    }
}

/// The dtype set in every tensor of a fact that does not say one itself.
fn with_dtype(fact: Fact, dtype: DType) -> Fact {
    match fact {
        Fact::Tensor(mut t) => {
            t.dtype = t.dtype.or(Some(dtype));
            Fact::Tensor(t)
        }
        Fact::List(elems) => Fact::List(elems.into_iter().map(|e| with_dtype(e, dtype)).collect()),
        Fact::Tuple(elems) => Fact::Tuple(elems.into_iter().map(|e| with_dtype(e, dtype)).collect()),
        Fact::ListOf(elem) => Fact::ListOf(Box::new(with_dtype(*elem, dtype))),
        Fact::Unknown => Fact::Tensor(TensorFact { dtype: Some(dtype), ..Default::default() }),
        other => other,
    }
}
