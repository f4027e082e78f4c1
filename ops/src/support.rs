//! Kernels from functions that compute one or several tensors, and the in-place and `out=` variants derived from them.

pub(crate) use crate::compute::kernel;
use crate::compute::{Change, Compute, change, compute};
pub(crate) use crate::output_layout::OutputLayout;
pub(crate) use crate::overlap::InPlaceRules;
use crate::synonyms::canonical;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::kernel::Rets;
use flambeau_exec::{Fault, Kernel, KernelCx, KernelError};
use flambeau_ir::value::List;
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::promote::can_cast;
use flambeau_tensor::{DType, Scalar, Tensor, TensorError, loops};
use std::sync::OnceLock;

/// Result of a computation with one result.
pub(crate) type Computed = Result<Tensor, KernelError>;

/// Result of a computation with several results.
pub(crate) type Several = Result<Vec<Tensor>, KernelError>;

/// Returns the sum of numbers, 0 if there are none; [`Iterator::sum`] starts from -0.
pub(crate) fn total(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |sum, number| sum + number)
}

/// Creates the kernel of an operator that returns one new tensor.
pub(crate) fn fresh(f: impl Fn(&KernelCx<'_>) -> Computed + Send + Sync + 'static) -> Kernel {
    fresh_of(compute(f))
}

fn fresh_of(f: Compute<Tensor>) -> Kernel {
    kernel(move |cx| {
        let result = f(cx)?;
        cx.ret(result);
        Ok(())
    })
}

/// Creates the kernel of an operator that returns several new tensors.
pub(crate) fn several(f: impl Fn(&KernelCx<'_>) -> Several + Send + Sync + 'static) -> Kernel {
    several_of(compute(f))
}

fn several_of(f: Compute<Vec<Tensor>>) -> Kernel {
    kernel(move |cx| {
        let results = f(cx)?;
        results.into_iter().for_each(|result| cx.ret(result));
        Ok(())
    })
}

/// Creates the kernel of an in-place variant, which stores the result in argument 0 and returns that.
pub(crate) fn inplace(f: impl Fn(&KernelCx<'_>) -> Computed + Send + Sync + 'static) -> Kernel {
    inplace_by(InPlaceRules::default(), f)
}

/// Like [`inplace`], with the operator's rules for operands that share memory with the written tensor.
pub(crate) fn inplace_by(
    rules: InPlaceRules,
    f: impl Fn(&KernelCx<'_>) -> Computed + Send + Sync + 'static,
) -> Kernel {
    inplace_of(compute(f), rules, false)
}

fn inplace_of(f: Compute<Tensor>, rules: InPlaceRules, resizes: bool) -> Kernel {
    kernel(move |cx| {
        rules.check(cx.args())?;
        cx.set_in_place();
        let result = f(cx)?;
        let target = cx.take_tensor(0)?;
        if result.ptr_eq(&target) {
            cx.ret(target);
            return Ok(());
        }
        if rules.exact {
            check_in_place_dtype(target.dtype(), result.dtype())?;
        }
        if result.sizes() != target.sizes() {
            if !resizes {
                return Err(KernelError::input(format!(
                    "output with shape {:?} doesn't match the broadcast shape {:?}",
                    target.sizes(),
                    result.sizes()
                )));
            }
            target.resize_(result.sizes())?;
        }
        store(&target, &result)?;
        cx.ret(target);
        Ok(())
    })
}

fn check_in_place_dtype(target: DType, result: DType) -> Result<(), KernelError> {
    if target == result {
        return Ok(());
    }
    Err(KernelError::input(format!(
        "Bad in-place call: input tensor dtype {} and output tensor dtype {} should match",
        target.ir_name(),
        result.ir_name()
    )))
}

/// Like [`inplace_of`], for operators with a dtype argument at `at`: it must be the dtype of argument 0.
fn inplace_typed(f: Compute<Tensor>, at: usize, rules: InPlaceRules, resizes: bool) -> Kernel {
    let f = move |cx: &KernelCx<'_>| {
        if let Some(dtype) = cx.opt_dtype(at)? {
            check_in_place_dtype(cx.tensor(0)?.dtype(), dtype)?;
        }
        f(cx)
    };
    inplace_of(compute(f), rules, resizes)
}

/// Creates the kernel of an `out=` variant: the last argument receives the result's shape and values.
pub(crate) fn into_out(f: impl Fn(&KernelCx<'_>) -> Computed + Send + Sync + 'static) -> Kernel {
    into_out_of(compute(f), OutRules::default())
}

fn into_out_of(f: Compute<Tensor>, rules: OutRules) -> Kernel {
    into_out_checked(f, None, rules)
}

/// Like [`into_out_of`], for operators with a dtype argument: if it is not `None`, it must be the dtype of the output.
fn into_out_checked(f: Compute<Tensor>, dtype_at: Option<usize>, rules: OutRules) -> Kernel {
    kernel(move |cx| {
        let named = dtype_at.map_or(Ok(false), |at| cx.arg(at).map(|dtype| !dtype.is_none()))?;
        let result = f(cx)?;
        resize_and_copy_to_outputs(cx, &[result], OutRules { exact: rules.exact || named, ..rules })
    })
}

/// Restrictions of an `out=` variant and the layout of resized outputs, as in PyTorch (recorded in `outs.txt` by
/// `tests/oracle/outs.py`). For a variant not in the table, an output may have any dtype that the result can be cast
/// to.
#[derive(Clone, Copy, Debug, Default)]
struct OutRules {
    /// Rejects outputs of another dtype.
    exact: bool,
    /// Rejects complex outputs for real results.
    real: bool,
    /// Rejects outputs that partially overlap an operand.
    partial: bool,
    /// Rejects outputs that are identical to an operand.
    whole: bool,
    /// Rejects outputs with internal overlap, even if they are resized.
    internal: bool,
    /// Resized outputs take the strides of the result; otherwise they become row-major.
    keeps_layout: bool,
}

/// Description of the in-place variant of a functional operator.
pub(crate) const IN_PLACE_DOC: &str =
    "As the operator without the final `_`; the result is written to the elements of the first argument.";

impl OutRules {
    fn of(name: &str, overload: &str) -> OutRules {
        // By operator and overload.
        static ROWS: OnceLock<Vec<((&'static str, &'static str), OutRules)>> = OnceLock::new();
        let rows = ROWS.get_or_init(|| {
            let row = |line: &'static str| {
                let (full, flags) = line.split_once(' ').unwrap_or((line, ""));
                let name = full.split_once('.').unwrap_or((full, ""));
                let has = |flag: &str| flags.split(' ').any(|f| f == flag);
                let rules = OutRules {
                    exact: has("exact"),
                    real: has("real"),
                    partial: has("partial"),
                    whole: has("whole"),
                    internal: has("internal"),
                    keeps_layout: has("layout"),
                };
                (name, rules)
            };
            let mut rows: Vec<_> = include_str!("outs.txt").lines().map(row).collect();
            rows.sort_unstable_by_key(|row| row.0);
            rows
        });
        let name = canonical(name);
        let found = rows.binary_search_by_key(&(&*name, overload), |row| row.0);
        found.map_or_else(|_| OutRules::default(), |i| rows[i].1)
    }

    /// Checks whether an output may be written with these arguments.
    fn check(self, target: &Tensor, result: &Tensor, args: &[IValue]) -> Result<(), KernelError> {
        let unreal = self.real && target.dtype().is_complex() && !result.dtype().is_complex();
        if unreal || self.exact && target.dtype() != result.dtype() {
            return Err(KernelError::input(format!(
                "Expected out tensor to have dtype {}, but got {} instead",
                result.dtype().ir_name(),
                target.dtype().ir_name()
            )));
        }
        if self.internal {
            target.layout().check_writable()?;
        }
        if !(self.partial || self.whole) {
            return Ok(());
        }
        let listed = args.iter().filter_map(IValue::as_list).flat_map(|list| list.to_vec());
        let listed: Vec<Tensor> = listed.filter_map(|item| item.as_tensor().cloned()).collect();
        for operand in args.iter().filter_map(IValue::as_tensor).chain(&listed) {
            if loops::is_shared(target, operand)? && self.whole {
                return Err(TensorError::PartialOverlap.into());
            }
        }
        Ok(())
    }

    /// Resizes an output to the result's sizes.
    fn resize(self, target: &Tensor, result: &Tensor) -> Result<(), KernelError> {
        if result.sizes() == target.sizes() {
            return Ok(());
        }
        let strides = result.strides();
        match self.keeps_layout && result.layout().is_non_overlapping_and_dense() {
            true => target.resize_strided_(result.sizes(), strides)?,
            false => target.resize_(result.sizes())?,
        }
        Ok(())
    }
}

/// Stores results in the last arguments, which are resized, and returns them.
fn resize_and_copy_to_outputs(
    cx: &mut KernelCx<'_>,
    results: &[Tensor],
    rules: OutRules,
) -> Result<(), KernelError> {
    let first = cx.n_args().saturating_sub(results.len());
    for (i, result) in results.iter().enumerate() {
        let target = cx.tensor(first + i)?.clone();
        rules.check(&target, result, &cx.args()[..first])?;
    }
    for (i, result) in results.iter().enumerate() {
        let target = cx.take_tensor(first + i)?;
        rules.resize(&target, result)?;
        store(&target, result)?;
        cx.ret(target);
    }
    Ok(())
}

/// Creates the kernel of an `out=` variant that lacks the options (dtype, layout, device, pinning) which the functional
/// operator has from position `at`. The dtype is that of `out`.
fn into_out_without_options(f: Compute<Tensor>, at: usize) -> Kernel {
    kernel(move |cx| {
        let last = cx.n_args().saturating_sub(1);
        let dtype = IValue::Int(cx.tensor(last)?.dtype().scalar_type());
        let site = cx.site();
        let (args, _, host) = cx.parts();
        let mut full: Vec<IValue> = args[..last].to_vec();
        let at = at.min(full.len());
        full.splice(at..at, [dtype, IValue::None, IValue::None, IValue::None]);
        let result = f(&KernelCx::new(&mut full, &mut Rets::new(), site, host))?;
        resize_and_copy_to_outputs(cx, &[result], OutRules::default())
    })
}

/// Creates the kernel of an `out=` variant that computes in the dtype argument at `at` or, by default, in the dtype of
/// `out`.
fn into_out_typed(f: Compute<Tensor>, at: usize, rules: OutRules) -> Kernel {
    kernel(move |cx| {
        let last = cx.n_args().saturating_sub(1);
        let named = !cx.arg(at)?.is_none();
        if !named {
            cx.args()[at] = IValue::Int(cx.tensor(last)?.dtype().scalar_type());
        }
        let result = f(cx)?;
        // An explicit dtype must be that of the output.
        resize_and_copy_to_outputs(cx, &[result], OutRules { exact: rules.exact || named, ..rules })
    })
}

fn store(target: &Tensor, result: &Tensor) -> Result<(), KernelError> {
    if !can_cast(result.dtype(), target.dtype()) {
        return Err(cast_error(result.dtype(), target.dtype()));
    }
    target.layout().check_writable()?;
    Ok(target.copy_(result)?)
}

/// Converts a result to the dtype of the tensor that receives it.
///
/// # Errors
/// Returns an error if the dtypes are not castable.
pub(crate) fn fitting(result: &Tensor, dtype: DType) -> Computed {
    match can_cast(result.dtype(), dtype) {
        true => Ok(result.to_dtype(dtype)?),
        false => Err(cast_error(result.dtype(), dtype)),
    }
}

pub(crate) fn cast_error(from: DType, to: DType) -> KernelError {
    KernelError::input(format!(
        "result type {} can't be cast to the desired output type {}",
        from.ir_name(),
        to.ir_name()
    ))
}

/// Checks that a number is in the range of `dtype`.
pub(crate) fn in_range(value: Scalar, dtype: DType) -> Result<Scalar, KernelError> {
    Ok(value.in_range_of(dtype)?)
}

/// Returns the name of the element type in C++, as some of PyTorch's messages write it.
pub(crate) fn cpp_name(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I16 => "short int",
        DType::I32 => "int",
        DType::I64 => "long int",
        DType::F16 => "c10::Half",
        DType::BF16 => "c10::BFloat16",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C32 => "c10::complex<c10::Half>",
        DType::C64 => "c10::complex<float>",
        DType::C128 => "c10::complex<double>",
        DType::Bool => "bool",
    }
}

/// Returns the error for a dimension argument of a tensor of rank 0.
#[cold]
pub(crate) fn no_dimensions(dim: i64) -> KernelError {
    let text = format!("Dimension specified as {dim} but tensor has no dimensions");
    KernelError::new(Fault::Input, "IndexError", text)
}

/// Returns an error unless all tensors have the first one's dtype.
pub(crate) fn same_dtypes(tensors: &[&Tensor]) -> Result<(), KernelError> {
    let Some((first, rest)) = tensors.split_first() else { return Ok(()) };
    match rest.iter().find(|t| t.dtype() != first.dtype()) {
        None => Ok(()),
        Some(other) => Err(KernelError::input(format!(
            "expected scalar type {} but found {}",
            first.dtype().ir_name(),
            other.dtype().ir_name()
        ))),
    }
}

/// An operator stated once for all its names, with the in-place and `out=` variants derived from it.
///
/// ```text
/// op("swapaxes swapdims", "", "Two dimensions exchanged.").facts(|d| d.with(…)).one(|cx| …)
/// ```
pub(crate) struct OpSpec<'a> {
    names: &'a str,
    overload: &'a str,
    out: Option<&'a str>,
    options_at: Option<usize>,
    has_out: bool,
    required: bool,
    resizes: bool,
    overlapping: bool,
    typed_at: Option<usize>,
    named_at: Option<usize>,
    layout: OutputLayout,
    doc: &'static str,
    facts: Box<dyn Fn(OpDef) -> OpDef + 'a>,
}

/// Creates a row for an operator with one or several names, separated by spaces; the default namespace is `aten`.
pub(crate) fn op<'a>(names: &'a str, overload: &'a str, doc: &'static str) -> OpSpec<'a> {
    OpSpec {
        names,
        overload,
        out: None,
        options_at: None,
        has_out: true,
        required: true,
        resizes: false,
        overlapping: false,
        typed_at: None,
        named_at: None,
        layout: OutputLayout::AsComputed,
        doc,
        facts: Box::new(|def| def),
    }
}

impl<'a> OpSpec<'a> {
    /// Sets the name of the `out=` overload if it does not follow [`candidate_out_overloads`].
    pub(crate) fn out(mut self, overload: &'a str) -> Self {
        self.out = Some(overload);
        self
    }

    /// Skips the operator if it is not declared; for names generated by a scheme that not all operators follow.
    pub(crate) fn if_declared(mut self) -> Self {
        self.required = false;
        self
    }

    /// Omits the `out=` variant, because the overload of that name belongs to another operator.
    pub(crate) fn without_out(mut self) -> Self {
        self.has_out = false;
        self
    }

    /// Makes the in-place variant resize its tensor to the result's sizes, as `out=` variants do.
    pub(crate) fn resizing(mut self) -> Self {
        self.resizes = true;
        self
    }

    /// Sets the layout of results.
    pub(crate) fn output_layout(mut self, layout: OutputLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Permits the in-place variant to write tensors with internal overlap.
    pub(crate) fn overlapping(mut self) -> Self {
        self.overlapping = true;
        self
    }

    /// Sets the position of the dtype argument; its default in the `out=` variant is the dtype of `out`.
    pub(crate) fn typed_at(mut self, i: usize) -> Self {
        self.typed_at = Some(i);
        self
    }

    /// Sets the position of the options (dtype, layout, device, pinning), which the `out=` variant of a factory lacks.
    pub(crate) fn options_at(mut self, i: usize) -> Self {
        self.options_at = Some(i);
        self
    }

    /// Adds facts to the functional variant.
    pub(crate) fn facts(mut self, facts: impl Fn(OpDef) -> OpDef + 'a) -> Self {
        self.facts = Box::new(facts);
        self
    }

    /// States the argument with the dtype of the result; if it is given, an output must have it.
    pub(crate) fn named_at(mut self, i: usize) -> Self {
        self.named_at = Some(i);
        self
    }

    /// Defines an operator with one result tensor.
    pub(crate) fn one(
        self,
        f: impl Fn(&KernelCx<'_>) -> Computed + Copy + Send + Sync + 'static,
    ) -> Vec<OpDef> {
        self.one_of(compute(f))
    }

    fn one_of(self, f: Compute<Tensor>) -> Vec<OpDef> {
        let f: Compute<Tensor> = match self.layout {
            OutputLayout::AsComputed => f,
            layout => compute(move |cx| layout.apply(cx.tensor(0)?, f(cx)?)),
        };
        let (options_at, typed_at, resizes) = (self.options_at, self.typed_at, self.resizes);
        let named_at = self.named_at;
        let into = |rules| match (options_at, typed_at) {
            (Some(at), _) => into_out_without_options(f.clone(), at),
            (None, Some(at)) => into_out_typed(f.clone(), at, rules),
            (None, None) => into_out_checked(f.clone(), named_at, rules),
        };
        let inplace = |rules| match typed_at {
            Some(at) => inplace_typed(f.clone(), at, rules, resizes),
            None => inplace_of(f.clone(), rules, resizes),
        };
        self.defs(&|| fresh_of(f.clone()), &|rules| Some(inplace(rules)), &into)
    }

    /// Defines an operator with several results.
    pub(crate) fn several(
        self,
        f: impl Fn(&KernelCx<'_>) -> Several + Copy + Send + Sync + 'static,
    ) -> Vec<OpDef> {
        self.several_of(compute(f))
    }

    fn several_of(self, f: Compute<Vec<Tensor>>) -> Vec<OpDef> {
        let f: Compute<Vec<Tensor>> = match self.layout {
            OutputLayout::AsComputed => f,
            layout => compute(move |cx| {
                f(cx)?.into_iter().map(|result| layout.apply(cx.tensor(0)?, result)).collect()
            }),
        };
        let functional = || several_of(f.clone());
        let into = |rules| {
            let f = f.clone();
            kernel(move |cx| {
                let results = f(cx)?;
                resize_and_copy_to_outputs(cx, &results, rules)
            })
        };
        self.defs(&functional, &|_| None, &into)
    }

    /// Defines an operator that returns one list of tensors.
    pub(crate) fn list(
        self,
        f: impl Fn(&KernelCx<'_>) -> Several + Copy + Send + Sync + 'static,
    ) -> Vec<OpDef> {
        self.list_of(compute(f))
    }

    fn list_of(self, f: Compute<Vec<Tensor>>) -> Vec<OpDef> {
        let functional = || {
            let f = f.clone();
            kernel(move |cx| {
                let results = f(cx)?;
                cx.ret(IValue::List(List::from_tensors(results)));
                Ok(())
            })
        };
        // Lists of outputs are written one by one; nothing is returned.
        let into = |_| {
            let f = f.clone();
            kernel(move |cx| {
                let results = f(cx)?;
                let targets = cx.tensors(cx.n_args().saturating_sub(1))?;
                if targets.len() != results.len() {
                    return Err(KernelError::input(format!(
                        "expected {} output tensors but got {}",
                        results.len(),
                        targets.len()
                    )));
                }
                for (target, result) in targets.iter().zip(&results) {
                    if target.sizes() != result.sizes() {
                        target.resize_(result.sizes())?;
                    }
                    store(target, result)?;
                }
                Ok(())
            })
        };
        self.defs(&functional, &|_| None, &into)
    }

    /// Defines an operator that modifies a tensor: a copy of argument 0, or argument 0 itself in the in-place variant.
    pub(crate) fn editing(
        self,
        f: impl Fn(&KernelCx<'_>, &Tensor) -> Result<(), KernelError> + Copy + Send + Sync + 'static,
    ) -> Vec<OpDef> {
        self.editing_of(change(f))
    }

    fn editing_of(self, f: Change) -> Vec<OpDef> {
        let (change, layout) = (f.clone(), self.layout);
        let changed: Compute<Tensor> = compute(move |cx| {
            let x = cx.tensor(0)?;
            let copy = match layout {
                OutputLayout::RowMajor => x.clone_contiguous()?,
                OutputLayout::PreserveStrides => x.clone_spread()?,
                _ => x.clone_data()?,
            };
            change(cx, &copy)?;
            Ok(copy)
        });
        let overlapping = self.overlapping;
        let in_place = |rules| Some(edited_by(f.clone(), rules, overlapping));
        self.defs(&|| fresh_of(changed.clone()), &in_place, &|rules| into_out_of(changed.clone(), rules))
    }

    /// Defines only the in-place variant, which modifies argument 0.
    pub(crate) fn editing_only(
        self,
        f: impl Fn(&KernelCx<'_>, &Tensor) -> Result<(), KernelError> + Copy + Send + Sync + 'static,
    ) -> Vec<OpDef> {
        let f = change(f);
        let in_place = |name: String| {
            let name = format!("{name}_");
            let rules = InPlaceRules::of(&name, self.overload);
            let def = OpDef::overload(&name, self.overload).with(Doc(self.doc));
            let def = def.with(ResultShapes::same_as(0)).with(Dtype::same_as(0));
            (self.facts)(def.with(edited_by(f.clone(), rules, self.overlapping)))
        };
        full_names(self.names).map(in_place).collect()
    }

    fn defs(
        self,
        functional: &dyn Fn() -> Kernel,
        in_place: &dyn Fn(InPlaceRules) -> Option<Kernel>,
        into: &dyn Fn(OutRules) -> Kernel,
    ) -> Vec<OpDef> {
        let outs = match (self.has_out, self.out) {
            (false, _) => Vec::new(),
            (true, Some(out)) => vec![out.to_owned()],
            (true, None) => candidate_out_overloads(self.overload),
        };
        let mut defs = Vec::new();
        for name in full_names(self.names) {
            let base = OpDef::overload(&name, self.overload);
            let base = if self.required { base } else { base.if_declared() };
            let base = base.with(Doc(self.doc)).with(functional());
            defs.push((self.facts)(base));
            let outs: Vec<(&str, OutRules)> =
                outs.iter().map(|out| (out.as_str(), OutRules::of(&name, out))).collect();
            let exact = outs.iter().any(|(_, rules)| rules.exact);
            let changing = format!("{name}_");
            let rules = InPlaceRules { exact, ..InPlaceRules::of(&changing, self.overload) };
            defs.extend(in_place(rules).map(|kernel| {
                let def = OpDef::overload(&changing, self.overload);
                let shaped = match self.resizes {
                    true => (self.facts)(def).only::<ResultShapes>(),
                    false => def.with(ResultShapes::same_as(0)),
                };
                shaped.if_declared().with(Doc(IN_PLACE_DOC)).with(Dtype::same_as(0)).with(kernel)
            }));
            let into_out =
                |(out, rules): (&str, OutRules)| into_outputs(&name, out, &self.facts, into(rules));
            defs.extend(outs.into_iter().map(into_out));
        }
        defs
    }
}

/// Defines an `out=` variant, if it is declared, with the shape rule of the functional operator.
pub(crate) fn into_outputs(
    name: &str,
    overload: &str,
    facts: impl Fn(OpDef) -> OpDef,
    kernel: Kernel,
) -> OpDef {
    facts(OpDef::overload(name, overload))
        .only::<ResultShapes>()
        .if_declared()
        .with(Doc("The result is written into `out`, which is resized to its shape."))
        .with(Dtype::of_outputs())
        .with(kernel)
}

/// Returns the possible overload names of an `out=` variant; the declaration determines which of them exist.
fn candidate_out_overloads(overload: &str) -> Vec<String> {
    match overload {
        "" => vec!["out".to_owned()],
        "Tensor" => vec!["out".to_owned(), "Tensor_out".to_owned()],
        "Tensor_mode" => vec!["out_mode".to_owned()],
        "other" => vec!["out".to_owned()],
        other => vec![format!("{other}_out")],
    }
}

/// Returns names separated by spaces, with the default namespace `aten`.
fn full_names(names: &str) -> impl Iterator<Item = String> + '_ {
    let full = |name: &str| if name.contains("::") { name.to_owned() } else { format!("aten::{name}") };
    names.split_whitespace().map(full)
}

/// Creates the kernel that modifies argument 0 and returns it.
pub(crate) fn edited(
    f: impl Fn(&KernelCx<'_>, &Tensor) -> Result<(), KernelError> + Send + Sync + 'static,
) -> Kernel {
    edited_by(change(f), InPlaceRules::default(), false)
}

fn edited_by(f: Change, rules: InPlaceRules, overlapping: bool) -> Kernel {
    kernel(move |cx| {
        rules.check(cx.args())?;
        let target = cx.tensor(0)?;
        if !overlapping {
            target.layout().check_writable()?;
        }
        f(cx, target)?;
        let target = cx.take(0);
        cx.ret(target);
        Ok(())
    })
}

/// Defines an operator with its in-place and `out=` variants, as far as they are declared.
pub(crate) fn with_variants(
    name: &'static str,
    overload: &'static str,
    doc: &'static str,
    f: impl Fn(&KernelCx<'_>) -> Computed + Copy + Send + Sync + 'static,
    facts: impl Fn(OpDef) -> OpDef,
) -> Vec<OpDef> {
    op(name, overload, doc).facts(facts).one(f)
}

/// Like [`with_variants`], with an explicit name of the `out=` overload: where both the default overload and `Tensor`
/// have an `out=` variant, that of `Tensor` is `Tensor_out`.
pub(crate) fn with_variants_named(
    name: &'static str,
    overload: &'static str,
    out: &str,
    doc: &'static str,
    f: impl Fn(&KernelCx<'_>) -> Computed + Copy + Send + Sync + 'static,
    facts: impl Fn(OpDef) -> OpDef,
) -> Vec<OpDef> {
    op(name, overload, doc).out(out).facts(facts).one(f)
}
