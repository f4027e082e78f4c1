//! Comparison of recorded gradients of a call's inputs, given the gradients of its results.

use flambeau::json::read_as;
use flambeau::tensor::Tensor;
use flambeau::{IValue, Session, Type};
use serde_json::Value;

use super::super::call::Call;
use super::super::case::Verdict;
use super::verdict_of;
use crate::value::compare::compare;
use flambeau::exec::Host;

/// Collects the tensors in a value, from left to right.
fn tensors(value: &IValue, found: &mut Vec<Tensor>) {
    match value {
        IValue::Tensor(t) => found.push(t.clone()),
        IValue::List(list) => list.read().iter().for_each(|v| tensors(&v, found)),
        IValue::Tuple(tuple) => tuple.items().iter().for_each(|v| tensors(v, found)),
        IValue::Dict(dict) => dict.read().iter().for_each(|(_, v)| tensors(v, found)),
        _ => {}
    }
}

/// Compares gradients with the recorded ones. `inputs` are the positional inputs followed by the keyword inputs.
pub(super) fn judge(
    call: &Call<'_>,
    session: &Session,
    host: &mut Host,
    inputs: &[IValue],
    result: &IValue,
) -> Result<(), Verdict> {
    let (mut sources, mut results) = (Vec::new(), Vec::new());
    inputs.iter().for_each(|v| tensors(v, &mut sources));
    tensors(result, &mut results);
    let mut outputs = Vec::new();
    for (result, grad) in results.into_iter().zip(call.gradients("grad_outputs").unwrap_or_default()) {
        if grad.get("t").and_then(Value::as_str) == Some("none") {
            continue;
        }
        let grad = read_as(grad, Type::TENSOR).map_err(|e| verdict_of(&e.into(), "reading a gradient"))?;
        outputs.extend(grad.as_tensor().map(|grad| (result, grad.clone())));
    }
    let found =
        session.gradients(&outputs, &sources, host).map_err(|e| verdict_of(&e, "the gradients failed"))?;
    for (i, (want, (source, grad))) in
        call.gradients("grad_inputs").unwrap_or_default().iter().zip(sources.iter().zip(found)).enumerate()
    {
        if !source.requires_grad() {
            continue;
        }
        let got = grad.map_or(IValue::None, IValue::Tensor);
        let got = flambeau::json::write(&got).map_err(|e| verdict_of(&e.into(), "writing a gradient"))?;
        compare(&got, want, call.tolerance())
            .map_err(|why| Verdict::failed(format!("wrong gradient of input {i}: {why}")))?;
    }
    Ok(())
}
