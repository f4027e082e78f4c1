//! Operators that compute gradients of earlier operations. They require a recorded run.

use crate::per_type::{OverloadRow, row};
use crate::support::kernel;
use flambeau_analysis::shape::Fact;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::tape::{
    self, BackwardOptions, NoDerivatives, ReadsHistory, RecordingQuery, RequestsGradients, Tape, ViewRecord,
};
use flambeau_exec::{Gen, Host, KernelCx, KernelError, KernelResult, Sample, sample};
use flambeau_ir::value::List;
use flambeau_ir::{Doc, Effects, IValue, OpDef, Type};
use flambeau_tensor::{DType, Tensor};
use std::sync::Arc;

/// Operators whose results depend on the history of their operand.
const READ_HISTORY: [&str; 4] =
    ["aten::is_leaf", "prim::requires_grad", "prim::grad", "aten::requires_grad_"];

/// Adds the facet of operators that read the history of tensors.
pub(crate) fn add_facets(builder: &mut flambeau_ir::RegistryBuilder) {
    for op in READ_HISTORY {
        builder.facet(op, ReadsHistory);
    }
    builder.facet("prim::requires_grad", RecordingQuery::RequiresGrad);
    builder.facet("aten::is_grad_enabled", RecordingQuery::GradEnabled);
    builder.facet("aten::set_grad_enabled", RecordingQuery::SetGradEnabled);
    builder.facet("aten::detach_", RecordingQuery::Detach);
    builder.facet("aten::as_strided", ViewRecord::Memory);
}

/// Returns the host's tape, which is set for every run that must record.
fn recorded(cx: &mut KernelCx<'_>) -> Result<Tape, KernelError> {
    let tape = cx.host().tape().cloned();
    tape.ok_or_else(|| {
        KernelError::unsupported("gradients in a run that records no operations: set a tape on its host")
    })
}

/// Pairs outputs with their initial gradients: the default for an output of one element is 1.
fn seeded(outputs: &[Tensor], given: &[Option<Tensor>]) -> Result<Vec<(Tensor, Tensor)>, KernelError> {
    if !given.is_empty() && given.len() != outputs.len() {
        let (n, m) = (outputs.len(), given.len());
        return Err(KernelError::input(format!("got {n} tensors and {m} gradients")));
    }
    let one = |(i, output): (usize, &Tensor)| {
        let grad = match given.get(i).cloned().flatten() {
            Some(grad) => grad,
            None if tape::is_recorded(output) => tape::implicit_gradient(output)?,
            None => {
                let message =
                    format!("element {i} of tensors does not require grad and does not have a grad_fn");
                return Err(KernelError::input(message));
            }
        };
        Ok((output.clone(), grad))
    };
    outputs.iter().enumerate().map(one).collect()
}

/// Returns the tensors of an optional list of optional tensors.
fn optional_tensors(cx: &KernelCx<'_>, i: usize) -> Result<Vec<Option<Tensor>>, KernelError> {
    if cx.arg(i)?.is_none() {
        return Ok(Vec::new());
    }
    Ok(cx.list(i)?.read().iter().map(|v| v.as_tensor().cloned()).collect())
}

/// Returns the mode of a backward pass from the arguments `retain_graph` and `create_graph`, which follow each other. The graph is
/// retained by default if it is differentiated again.
fn mode(cx: &KernelCx<'_>, retain_graph: usize) -> Result<BackwardOptions, KernelError> {
    let create_graph = cx.boolean(retain_graph + 1)?;
    let given = cx.arg(retain_graph)?.as_bool();
    Ok(BackwardOptions { retain_graph: given.unwrap_or(create_graph), create_graph })
}

fn backward_of_one(cx: &mut KernelCx<'_>) -> KernelResult {
    let (output, given) = (cx.tensor(0)?.clone(), cx.opt_tensor(1)?.cloned());
    backward(cx, &[output], &[given])
}

fn backward_of_list(cx: &mut KernelCx<'_>) -> KernelResult {
    let (outputs, given) = (cx.tensors(0)?, optional_tensors(cx, 1)?);
    backward(cx, &outputs, &given)
}

fn backward(cx: &mut KernelCx<'_>, outputs: &[Tensor], given: &[Option<Tensor>]) -> KernelResult {
    let (tape, mode) = (recorded(cx)?, mode(cx, 2)?);
    let outputs = seeded(outputs, given)?;
    tape::backward(&tape, &outputs, mode, cx.host()).map_err(|e| KernelError::of_task(&e))
}

fn grad(cx: &mut KernelCx<'_>) -> KernelResult {
    let (inputs, may_miss, mode) = (cx.tensors(1)?, cx.boolean(5)?, mode(cx, 3)?);
    if let Some(i) = inputs.iter().position(|t| !tape::is_recorded(t)) {
        return Err(KernelError::input(format!("element {i} of the input tensors does not require grad")));
    }
    let outputs = seeded(&cx.tensors(0)?, &optional_tensors(cx, 2)?)?;
    let tape = recorded(cx)?;
    let found =
        tape::gradients(&tape, &outputs, &inputs, mode, cx.host()).map_err(|e| KernelError::of_task(&e))?;
    if let Some(i) = found.iter().position(Option::is_none).filter(|_| !may_miss) {
        return Err(KernelError::input(format!(
            "element {i} of the differentiated Tensors appears to not have been used in the graph. Set \
             allow_unused=True if this is the desired behavior."
        )));
    }
    let found = found.into_iter().map(|grad| grad.map_or(IValue::None, IValue::Tensor));
    cx.ret(List::from_values(Type::optional(Type::TENSOR), found.collect()));
    Ok(())
}

/// Sets whether a tensor requires a gradient.
///
/// # Errors
/// Returns an input error if its dtype is neither floating point nor complex.
pub(crate) fn require_grad(tensor: &Tensor, wanted: bool) -> KernelResult {
    let dtype = tensor.dtype();
    if wanted && !dtype.is_floating() && !dtype.is_complex() {
        let message = "Only Tensors of floating point and complex dtype can require gradients";
        return Err(KernelError::input(message));
    }
    tensor.set_requires_grad(wanted);
    Ok(())
}

fn requires_grad_(cx: &mut KernelCx<'_>) -> KernelResult {
    let (tensor, wanted) = (cx.tensor(0)?.clone(), cx.boolean(1)?);
    if !wanted && !tape::is_leaf(&tensor) {
        return Err(KernelError::input("you can only change requires_grad flags of leaf variables."));
    }
    require_grad(&tensor, wanted)?;
    cx.ret(tensor);
    Ok(())
}

/// Draws a scalar tensor that requires a gradient.
fn leaf(g: &mut Gen<'_>) -> IValue {
    let leaf = sample::tensor(g, &[], DType::F32, &Default::default());
    leaf.set_requires_grad(true);
    IValue::Tensor(leaf)
}

/// Draws a leaf with an accumulated gradient.
fn gathering(g: &mut Gen<'_>) -> IValue {
    let leaf = leaf(g);
    if let IValue::Tensor(leaf) = &leaf {
        let tape = Tape::new(Arc::new(NoDerivatives));
        tape::backward(
            &tape,
            &[(leaf.clone(), leaf.alias())],
            BackwardOptions::default(),
            &mut Host::quiet(),
        )
        .expect("invariant: a leaf gathers what comes to it");
    }
    leaf
}

fn rows() -> Vec<OverloadRow> {
    let with_effects = |row: OverloadRow| row.effects(Effects::IO | Effects::RAISES | Effects::CONSERVATIVE);
    vec![
        with_effects(row(
            "aten::backward",
            "",
            "Accumulates the gradients of a tensor in its leaves.",
            backward_of_one,
        ))
        .sample(|g, _| vec![leaf(g)]),
        with_effects(row(
            "aten::backward",
            "TensorList",
            "Accumulates the gradients of tensors in their leaves.",
            backward_of_list,
        ))
        .sample(|g, _| vec![IValue::list(Type::TENSOR, vec![leaf(g), leaf(g)])]),
        with_effects(row("aten::grad", "", "The gradients of outputs with respect to inputs.", grad)).sample(
            |g, _| {
                let one = leaf(g);
                let all = || IValue::list(Type::TENSOR, vec![one.clone()]);
                vec![all(), all()]
            },
        ),
    ]
}

pub(crate) fn family() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> =
        rows().iter().flat_map(OverloadRow::defs).map(|def| def.with(RequestsGradients)).collect();
    defs.push(
        OpDef::named("prim::grad")
            .with(Doc("The accumulated gradient of a leaf, or `None`."))
            // The gradient changes while the tensor does not.
            .with(Effects::RANDOM)
            // No facts are known about an absent gradient.
            .with(ResultShapes::from(|_| None::<Fact>))
            .with(Dtype::from(|_| None))
            .with(Sample::args(|g| vec![gathering(g)]).exact().not_differentiable())
            .with(kernel(|cx| {
                let grad = tape::accumulated_grad(cx.tensor(0)?);
                cx.ret_opt(grad);
                Ok(())
            })),
    );
    defs.push(
        OpDef::named("aten::detach_")
            .with(Doc("Detaches the tensor from the gradient graph, in place."))
            .with(Effects::RAISES)
            .with(ResultShapes::same_as(0))
            .with(Dtype::same_as(0))
            .with(Sample::tensors(1).floats().not_differentiable())
            .with(kernel(|cx| {
                tape::detach(cx.tensor(0)?)?;
                let tensor = cx.take(0);
                cx.ret(tensor);
                Ok(())
            })),
    );
    defs.push(
        OpDef::named("aten::retain_grad")
            .with(Doc("Lets the gradient of a tensor that is not a leaf accumulate."))
            .with(Effects::IO | Effects::RAISES | Effects::CONSERVATIVE)
            .with(Sample::args(|g| vec![leaf(g)]).not_differentiable())
            .with(kernel(|cx| tape::retain_grad(cx.tensor(0)?))),
    );
    defs.push(
        OpDef::named("aten::requires_grad_")
            .with(Doc("Sets whether the tensor requires a gradient."))
            .with(Effects::RAISES)
            .with(ResultShapes::same_as(0))
            .with(Dtype::same_as(0))
            .with(Sample::tensors(1).floats().not_differentiable())
            .with(kernel(requires_grad_)),
    );
    defs
}
