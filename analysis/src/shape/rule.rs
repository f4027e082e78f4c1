//! The facets `ResultShapes` and `Dtype`: facts about an operator's results, computed from facts about its operands.
//!
//! A rule is a function of a [`ShapeCx`]; [`super::sizes`], [`super::views`] and [`super::dtypes`] provide combinators
//! for common rules. `ResultShapes` computes everything but dtypes: that a result is a tensor with these sizes, an integer, a
//! list of this length. `Dtype` computes the dtype of every tensor in a result. A rule returns `None` if the result is
//! unknown. Invariant: whatever a rule returns holds whenever the operator succeeds.

use super::{ArgRef, Fact, ShapeCx, Strides, TensorFact};
use flambeau_ir::{Facet, FunctionSchema};
use flambeau_tensor::{DType, Device};
use smallvec::{SmallVec, smallvec};

type ShapeRule = Box<dyn Fn(&mut ShapeCx<'_>) -> Option<Fact> + Send + Sync>;
/// Computes the dtype of the result at a position.
type DtypeRule = Box<dyn Fn(&ShapeCx<'_>, usize) -> Option<DType> + Send + Sync>;

/// The facts about the results of an operator, except dtypes.
pub struct ResultShapes {
    /// One rule per result; further results are unknown.
    rules: SmallVec<[ShapeRule; 1]>,
    /// The operand whose sizes the first result has.
    keeps: Option<ArgRef>,
}

/// The dtypes of the results of an operator.
pub struct Dtype {
    rules: SmallVec<[DtypeRule; 1]>,
}

impl Facet for ResultShapes {
    const NAME: &'static str = "shape";
}

impl Facet for Dtype {
    const NAME: &'static str = "dtype";
}

impl ResultShapes {
    /// Creates the rule for an operator with one result.
    ///
    /// ```
    /// use flambeau_analysis::shape::{ResultShapes, TensorFact};
    /// let diagonal_of_matrix = ResultShapes::from(|cx| {
    ///     let dims = cx.dims(0)?.clone();
    ///     let [rows, columns] = dims[..] else { return None };
    ///     Some(TensorFact::of_dims([cx.symbols.min(rows, columns)]))
    /// });
    /// # let _ = diagonal_of_matrix;
    /// ```
    pub fn from<R: Into<Fact>>(
        rule: impl Fn(&mut ShapeCx<'_>) -> Option<R> + Send + Sync + 'static,
    ) -> ResultShapes {
        ResultShapes {
            rules: smallvec![Box::new(move |cx: &mut ShapeCx<'_>| rule(cx).map(Into::into)) as _],
            keeps: None,
        }
    }

    /// Creates rules for several results from the first rule of each item.
    pub fn results(rules: impl IntoIterator<Item = ResultShapes>) -> ResultShapes {
        let mut keeps = None;
        let mut all = SmallVec::new();
        for (i, shape) in rules.into_iter().enumerate() {
            if i == 0 {
                keeps = shape.keeps;
            }
            all.extend(shape.rules.into_iter().take(1));
        }
        ResultShapes { rules: all, keeps }
    }

    /// States that the result has the sizes of operand `arg`. If the operator writes that operand, the write changes
    /// only elements, never sizes or strides.
    #[must_use]
    pub fn keeping(mut self, arg: impl Into<ArgRef>) -> ResultShapes {
        self.keeps = Some(arg.into());
        self
    }

    /// The same sizes in new contiguous memory: for operators that copy the elements of a view.
    #[must_use]
    pub fn copied(self) -> ResultShapes {
        let afresh = |rule: ShapeRule| -> ShapeRule {
            Box::new(move |cx| {
                let fact = rule(cx)?;
                let Fact::Tensor(t) = fact else { return Some(fact) };
                Some(Fact::Tensor(TensorFact { strides: Strides::Contiguous, ..t }))
            })
        };
        ResultShapes { rules: self.rules.into_iter().map(afresh).collect(), keeps: None }
    }

    /// Returns the position of the operand whose sizes the first result certainly has.
    #[must_use]
    pub fn keeps(&self, schema: Option<&FunctionSchema>) -> Option<usize> {
        match self.keeps? {
            ArgRef::At(i) => Some(i),
            ArgRef::Named(name) => schema?.args.iter().position(|a| a.name.as_str() == name),
        }
    }

    /// Returns the fact about result `index`; `None` if it is unknown.
    pub fn result(&self, index: usize, cx: &mut ShapeCx<'_>) -> Option<Fact> {
        self.rules.get(index)?(cx)
    }
}

impl Dtype {
    /// Creates the rule for an operator with one result (or whose results have the same dtype).
    pub fn from(rule: impl Fn(&ShapeCx<'_>) -> Option<DType> + Send + Sync + 'static) -> Dtype {
        Dtype { rules: smallvec![Box::new(move |cx: &ShapeCx<'_>, _: usize| rule(cx)) as _] }
    }

    /// Creates one rule for all results, which takes the position.
    pub fn by_position(rule: impl Fn(&ShapeCx<'_>, usize) -> Option<DType> + Send + Sync + 'static) -> Dtype {
        Dtype { rules: smallvec![Box::new(rule) as _] }
    }

    /// Creates rules for several results from the first rule of each item.
    pub fn results(rules: impl IntoIterator<Item = Dtype>) -> Dtype {
        Dtype { rules: rules.into_iter().flat_map(|d| d.rules.into_iter().take(1)).collect() }
    }

    /// Returns the dtype of the tensors of result `index`. If there is only one rule, it applies to all results.
    #[must_use]
    pub fn result(&self, index: usize, cx: &ShapeCx<'_>) -> Option<DType> {
        let rule = if self.rules.len() == 1 { 0 } else { index };
        self.rules.get(rule)?(cx, index)
    }
}

/// Returns the fact about result `index` by both facets.
#[must_use]
pub fn infer(
    shape: Option<&ResultShapes>,
    dtype: Option<&Dtype>,
    index: usize,
    cx: &mut ShapeCx<'_>,
) -> Fact {
    let mut fact = shape.and_then(|s| s.result(index, cx)).unwrap_or_default();
    fact.forget_impossible_sizes();
    // An `out` tensor that already has the sizes keeps its strides.
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

/// Like [`infer`], with facts implied by the operands alone: the device, and whether no gradient is required.
#[must_use]
pub fn conclude(
    shape: Option<&ResultShapes>,
    dtype: Option<&Dtype>,
    index: usize,
    cx: &mut ShapeCx<'_>,
) -> Fact {
    let mut fact = infer(shape, dtype, index, cx);
    match &mut fact {
        Fact::Tensor(_) | Fact::List(_) | Fact::Tuple(_) | Fact::ListOf(_) => {
            Implied::by(cx).complete(&mut fact)
        }
        Fact::Unknown | Fact::None | Fact::Bool(_) | Fact::Int(_) => {}
    }
    fact
}

/// The facts that the operands imply for every tensor in a result.
struct Implied {
    device: Option<Device>,
    /// Whether the tensors among the operands are known, and none requires a gradient.
    no_gradient: bool,
}

impl Implied {
    fn by(cx: &ShapeCx<'_>) -> Implied {
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
        let all = |holds: fn(&TensorFact) -> bool| {
            all_known && !tensors.is_empty() && tensors.iter().all(|t| holds(t))
        };
        let on_cpu = all(|t| t.device.is_some_and(Device::is_cpu));
        let device = match cx.position("device") {
            Some(_) => match cx.device_arg("device") {
                Some(Some(device)) => Some(device),
                Some(None) if tensors.is_empty() || on_cpu => Some(Device::CPU),
                _ => None,
            },
            None => on_cpu.then_some(Device::CPU),
        };
        Implied { device, no_gradient: all(|t| t.requires_grad == Some(false)) }
    }

    /// Sets device and gradient of every tensor of a fact. The rules bound its depth.
    fn complete(&self, fact: &mut Fact) {
        match fact {
            Fact::Tensor(t) => {
                t.device = t.device.or(self.device);
                let never = t.dtype.is_some_and(|d| d.is_integral(true));
                t.requires_grad = t.requires_grad.or((never || self.no_gradient).then_some(false));
            }
            Fact::List(elems) | Fact::Tuple(elems) => elems.iter_mut().for_each(|e| self.complete(e)),
            Fact::ListOf(elem) => self.complete(elem),
            Fact::Unknown | Fact::None | Fact::Bool(_) | Fact::Int(_) => {}
        }
    }
}

/// Sets the dtype of every tensor of a fact that has no dtype yet.
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
