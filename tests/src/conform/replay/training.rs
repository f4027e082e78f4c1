//! Replay of training: one instance of a module takes several steps of gradient descent.

use flambeau::exec::tape::BackwardOptions;
use flambeau::json::read_as;
use flambeau::tensor::Tensor;
use flambeau::{Entry, IValue, Module, Program, Session};
use serde_json::Value;

use super::super::call::Call;
use super::super::case::{Case, Verdict};
use super::gradients::{compare_gradient, tensors};
use super::verdict_of;
use crate::value::compare::compare;

/// The update `p - lr * grad`, which a step applies to each parameter.
const UPDATE: &str = "def update(p: Tensor, grad: Tensor, lr: float):\n    p -= lr * grad\n";

/// Takes the recorded steps, then compares parameters and buffers. Returns the entry that was called.
pub(super) fn replay(case: &Case, session: &Session, program: &Program) -> Result<Entry, Verdict> {
    let module = program.module().ok_or_else(|| Verdict::failed("training of a program without a module"))?;
    let failed = |e: flambeau::Error| verdict_of(&e, "training");
    let entry = program.entry(case.text("entry")).map_err(failed)?;
    let update = session.compile_source(UPDATE, "update.py").map_err(failed)?;
    let update = update.entry("update").map_err(failed)?;
    let lr = case.get("lr").and_then(Value::as_f64).unwrap_or(0.0);
    let steps = case.get("steps").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (i, json) in steps.iter().enumerate() {
        let step = Step { call: Call::new(case, json), session, entry: &entry, module: &module };
        let taken = step.take(&update, lr);
        taken.map_err(|verdict| Verdict { why: format!("step {i}: {}", verdict.why), ..verdict })?;
    }
    let after = Call::new(case, case.json());
    compare_all(&after, "params_after", module.named_parameters())?;
    compare_all(&after, "buffers_after", module.named_buffers())?;
    Ok(entry)
}

/// A step of training.
struct Step<'a> {
    call: Call<'a>,
    session: &'a Session,
    entry: &'a Entry,
    module: &'a Module,
}

impl Step<'_> {
    fn take(&self, update: &Entry, lr: f64) -> Result<(), Verdict> {
        let failed = |e: flambeau::Error| verdict_of(&e, "training");
        let params = self.entry.params();
        let inputs = self.call.inputs().iter().zip(params).map(|(input, param)| read_as(input, param.ty));
        let inputs: Vec<IValue> = inputs.collect::<Result<_, _>>().map_err(|e| failed(e.into()))?;
        let mut host = self.session.host();
        host.set_stdout(std::io::sink());
        let result = self.entry.call_on(&inputs, &[], &mut host).map_err(failed)?;
        let mut results = Vec::new();
        tensors(&result, &mut results);
        let loss = results.into_iter().next().ok_or_else(|| Verdict::failed("no loss"))?;
        let json = flambeau::json::write(&IValue::Tensor(loss.clone()));
        let json = json.map_err(|e| failed(e.into()))?;
        if let Some(want) = self.call.get("loss") {
            compare(&json, want, self.call.tolerance())
                .map_err(|why| Verdict::failed(format!("wrong loss: {why}")))?;
        }
        let one = Tensor::full(&[], 1.0.into(), loss.dtype());
        let one = one.map_err(|e| Verdict::failed(e.to_string()))?;
        let parameters = self.module.named_parameters();
        let trained: Vec<Tensor> = parameters.iter().map(|(_, p)| p.clone()).collect();
        let found =
            self.session.gradients_with(&[(loss, one)], &trained, BackwardOptions::default(), &mut host);
        let found = found.map_err(failed)?;
        host.set_grad_enabled(false);
        for ((name, parameter), grad) in parameters.iter().zip(found) {
            if let Some(want) = self.call.get("param_grads").and_then(|all| all.get(name)) {
                compare_gradient(&self.call, &format!("parameter `{name}`"), grad.as_ref(), want)?;
            }
            let Some(grad) = grad else { continue };
            let args = [IValue::Tensor(parameter.clone()), IValue::Tensor(grad), IValue::Float(lr)];
            update.call_on(&args, &[], &mut host).map_err(failed)?;
        }
        Ok(())
    }
}

/// Compares tensors with the recorded ones of the same names.
fn compare_all(call: &Call<'_>, field: &str, found: Vec<(String, Tensor)>) -> Result<(), Verdict> {
    let Some(recorded) = call.get(field).and_then(Value::as_object) else { return Ok(()) };
    for (name, want) in recorded {
        let tensor = found.iter().find(|(n, _)| n == name);
        let (_, tensor) = tensor.ok_or_else(|| Verdict::failed(format!("there is no `{name}`")))?;
        let got = flambeau::json::write(&IValue::Tensor(tensor.clone()));
        let got = got.map_err(|e| verdict_of(&e.into(), "writing a parameter"))?;
        compare(&got, want, call.tolerance())
            .map_err(|why| Verdict::failed(format!("{field}: `{name}`: {why}")))?;
    }
    Ok(())
}
