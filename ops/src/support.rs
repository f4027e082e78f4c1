//! What families share: kernels from a function that computes one tensor, and the in-place and `out=` variants that
//! follow from it.

use flambeau_analysis::Shape;
use flambeau_exec::{Kernel, KernelCx, KernelError};
use flambeau_ir::{Doc, OpDef};
use flambeau_tensor::promote::can_cast;
use flambeau_tensor::{DType, Tensor};

/// What an operator's computation gives.
pub(crate) type Computed = Result<Tensor, KernelError>;

/// The kernel of an operator that returns one fresh tensor.
pub(crate) fn fresh(f: impl Fn(&KernelCx<'_>) -> Computed + Send + Sync + 'static) -> Kernel {
    Kernel::new(move |cx| {
        let result = f(cx)?;
        cx.ret(result);
        Ok(())
    })
}

/// The kernel of the in-place variant: the result goes into argument 0, which is also what is returned.
pub(crate) fn inplace(f: impl Fn(&KernelCx<'_>) -> Computed + Send + Sync + 'static) -> Kernel {
    Kernel::new(move |cx| {
        let result = f(cx)?;
        let target = cx.take_tensor(0)?;
        if result.sizes() != target.sizes() {
            return Err(KernelError::input(format!(
                "output with shape {:?} doesn't match the broadcast shape {:?}",
                target.sizes(),
                result.sizes()
            )));
        }
        store(&target, &result)?;
        cx.ret(target);
        Ok(())
    })
}

/// The kernel of the `out=` variant: the last argument takes the result's shape and values.
pub(crate) fn into_out(f: impl Fn(&KernelCx<'_>) -> Computed + Send + Sync + 'static) -> Kernel {
    Kernel::new(move |cx| {
        let result = f(cx)?;
        let last = cx.n_args() - 1;
        let target = cx.take_tensor(last)?;
        if result.sizes() != target.sizes() {
            target.resize_(result.sizes())?;
        }
        store(&target, &result)?;
        cx.ret(target);
        Ok(())
    })
}

fn store(target: &Tensor, result: &Tensor) -> Result<(), KernelError> {
    if !can_cast(result.dtype(), target.dtype()) {
        return Err(cast_error(result.dtype(), target.dtype()));
    }
    target.layout().check_writable()?;
    Ok(target.copy_(result)?)
}

fn cast_error(from: DType, to: DType) -> KernelError {
    KernelError::input(format!(
        "result type {} can't be cast to the desired output type {}",
        from.ir_name(),
        to.ir_name()
    ))
}

/// An operator with its in-place and `out=` variants, as far as they are declared.
///
/// The in-place variant of `aten::f.Tensor` is `aten::f_.Tensor`; the `out=` variant of the overloads `""` and
/// `"Tensor"` is `out`, of any other overload `X` it is `X_out`.
pub(crate) fn with_variants(
    name: &'static str,
    overload: &'static str,
    doc: &'static str,
    f: impl Fn(&KernelCx<'_>) -> Computed + Copy + Send + Sync + 'static,
    facts: impl Fn(OpDef) -> OpDef,
) -> Vec<OpDef> {
    let out = match overload {
        "" | "Tensor" => "out".to_owned(),
        other => format!("{other}_out"),
    };
    with_variants_named(name, overload, &out, doc, f, facts)
}

/// As [`with_variants`], for operators whose `out=` variant is called otherwise: where both the default overload and
/// `Tensor` have one, that of `Tensor` is `Tensor_out`.
pub(crate) fn with_variants_named(
    name: &'static str,
    overload: &'static str,
    out: &str,
    doc: &'static str,
    f: impl Fn(&KernelCx<'_>) -> Computed + Copy + Send + Sync + 'static,
    facts: impl Fn(OpDef) -> OpDef,
) -> Vec<OpDef> {
    let functional = OpDef::overload(name, overload).with(Doc(doc)).with(fresh(f));
    let in_place = OpDef::overload(&format!("{name}_"), overload)
        .if_declared()
        .with(Doc("In place: the result replaces the first argument's elements."))
        .with(Shape::same_as(0))
        .with(inplace(f));
    let into = OpDef::overload(name, out)
        .if_declared()
        .with(Doc("The result is written into `out`, which takes its shape."))
        .with(into_out(f));
    vec![facts(functional), in_place, into]
}
