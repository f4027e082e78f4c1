//! Comparison of recorded gradients of a call, given the gradients of its results: those of the inputs, of the
//! parameters of the module, and the second derivatives.

use flambeau::exec::Host;
use flambeau::exec::tape::BackwardOptions;
use flambeau::json::read_as;
use flambeau::tensor::Tensor;
use flambeau::{IValue, Module, Session, Type};
use serde_json::Value;

use super::super::call::Call;
use super::super::case::Verdict;
use super::verdict_of;
use crate::value::compare::compare;
use crate::value::tag;

/// Collects the tensors in a value, from left to right.
pub(super) fn tensors(value: &IValue, found: &mut Vec<Tensor>) {
    match value {
        IValue::Tensor(t) => found.push(t.clone()),
        IValue::List(list) => list.read().iter().for_each(|v| tensors(&v, found)),
        IValue::Tuple(tuple) => tuple.items().iter().for_each(|v| tensors(v, found)),
        IValue::Dict(dict) => dict.read().iter().for_each(|(_, v)| tensors(v, found)),
        _ => {}
    }
}

/// A finished call.
pub(super) struct Run<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) session: &'a Session,
    /// The module, if the program has one.
    pub(super) module: Option<Module>,
}

/// A tensor of the call with its recorded gradient.
struct Expected<'a> {
    what: String,
    tensor: Tensor,
    grad: &'a Value,
}

impl<'a> Run<'a> {
    /// Compares gradients with the recorded ones. `inputs` are the positional inputs followed by the keyword inputs.
    pub(super) fn compare_gradients(
        &self,
        host: &mut Host,
        inputs: &[IValue],
        result: &IValue,
    ) -> Result<(), Verdict> {
        let Some(grads) = self.call.gradients() else { return Ok(()) };
        let (mut sources, mut results) = (Vec::new(), Vec::new());
        inputs.iter().for_each(|v| tensors(v, &mut sources));
        tensors(result, &mut results);
        let second = self.call.get("second");
        let mut outputs = Vec::new();
        let mut seeds = Vec::new();
        for (result, grad) in results.into_iter().zip(list(grads, "grad_outputs")) {
            let seed = tensor(grad)?;
            if let Some(seed) = &seed {
                seed.set_requires_grad(second.is_some());
                outputs.push((result, seed.clone()));
            }
            seeds.push(seed);
        }
        let mode = BackwardOptions { retain_graph: second.is_some(), create_graph: second.is_some() };
        let expected = self.expected(&sources, grads);
        let found = self.gradients(&outputs, &expected, mode, host)?;
        for (expected, found) in expected.iter().zip(&found) {
            self.compare(&expected.what, found.as_ref(), expected.grad)?;
        }
        if let Some(second) = second {
            self.second(second, &sources, &seeds, &found, host)?;
        }
        Ok(())
    }

    /// Returns the inputs and parameters with recorded gradients.
    fn expected(&self, sources: &[Tensor], grads: &'a Value) -> Vec<Expected<'a>> {
        let mut expected = Vec::new();
        for (i, (source, grad)) in sources.iter().zip(list(grads, "grad_inputs")).enumerate() {
            expected.push(Expected { what: format!("input {i}"), tensor: source.clone(), grad });
        }
        if let Some(of_params) = self.call.get("param_grads").and_then(Value::as_object) {
            for (name, tensor) in self.module.iter().flat_map(Module::named_parameters) {
                let Some(grad) = of_params.get(&name) else { continue };
                expected.push(Expected { what: format!("parameter `{name}`"), tensor, grad });
            }
        }
        expected
    }

    fn gradients(
        &self,
        outputs: &[(Tensor, Tensor)],
        expected: &[Expected<'_>],
        mode: BackwardOptions,
        host: &mut Host,
    ) -> Result<Vec<Option<Tensor>>, Verdict> {
        let tensors: Vec<Tensor> = expected.iter().map(|e| e.tensor.clone()).collect();
        self.session
            .gradients_with(outputs, &tensors, mode, host)
            .map_err(|e| verdict_of(&e, "the gradients failed"))
    }

    /// Compares the gradients of the scalar products of `found` with the recorded vectors.
    fn second(
        &self,
        recorded: &'a Value,
        sources: &[Tensor],
        seeds: &[Option<Tensor>],
        found: &[Option<Tensor>],
        host: &mut Host,
    ) -> Result<(), Verdict> {
        let mut outputs = Vec::new();
        for (found, vector) in found.iter().zip(list(recorded, "vectors")) {
            if let (Some(found), Some(vector)) = (found, tensor(vector)?)
                && found.requires_grad()
            {
                outputs.push((found.clone(), vector));
            }
        }
        let mut expected = Vec::new();
        for (i, (source, grad)) in sources.iter().zip(list(recorded, "grad_inputs")).enumerate() {
            expected.push(Expected { what: format!("second of input {i}"), tensor: source.clone(), grad });
        }
        for (i, (seed, grad)) in seeds.iter().zip(list(recorded, "grad_grad_outputs")).enumerate() {
            let what = format!("second of output {i}");
            expected.extend(seed.clone().map(|tensor| Expected { what, tensor, grad }));
        }
        let found = self.gradients(&outputs, &expected, BackwardOptions::default(), host)?;
        for (Expected { what, tensor, grad }, found) in expected.iter().zip(found) {
            match (found, tag(grad)) {
                // No gradient and zeros are equal here.
                (None, "none") => {}
                (None, _) => self.compare(what, Some(&zeros_like(tensor)?), grad)?,
                (Some(found), "none") => {
                    let zeros = flambeau::json::write(&IValue::Tensor(zeros_like(&found)?))
                        .map_err(|e| verdict_of(&e.into(), "writing zeros"))?;
                    self.compare(what, Some(&found), &zeros)?;
                }
                (Some(found), _) => self.compare(what, Some(&found), grad)?,
            }
        }
        Ok(())
    }

    fn compare(&self, what: &str, got: Option<&Tensor>, want: &Value) -> Result<(), Verdict> {
        compare_gradient(self.call, what, got, want)
    }
}

/// Compares a gradient with the recorded one.
pub(super) fn compare_gradient(
    call: &Call<'_>,
    what: &str,
    got: Option<&Tensor>,
    want: &Value,
) -> Result<(), Verdict> {
    let got = got.cloned().map_or(IValue::None, IValue::Tensor);
    let got = flambeau::json::write(&got).map_err(|e| verdict_of(&e.into(), "writing a gradient"))?;
    compare(&got, want, call.tolerance())
        .map_err(|why| Verdict::failed(format!("wrong gradient ({what}): {why}")))
}

fn zeros_like(tensor: &Tensor) -> Result<Tensor, Verdict> {
    let zeros = Tensor::zeros(tensor.sizes(), tensor.dtype());
    zeros.map_err(|e| Verdict::failed(format!("making zeros: {e}")))
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Reads a recorded tensor; `None` for the value `none`.
fn tensor(value: &Value) -> Result<Option<Tensor>, Verdict> {
    if tag(value) == "none" {
        return Ok(None);
    }
    let read = read_as(value, Type::TENSOR).map_err(|e| verdict_of(&e.into(), "reading a gradient"))?;
    Ok(read.as_tensor().cloned())
}
