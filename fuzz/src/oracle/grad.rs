//! Checks that differentiated graphs have the gradients of recorded calls.
//!
//! Each case is differentiated with respect to its tensor arguments of floating-point dtype. The recorded call is the
//! truth; the tests of formulas compare those with finite differences. Two ways are compared with it: an entry that runs
//! differentiated graphs, specialized to its arguments, and the graphs that [`Session::differentiate`] returns, whose
//! branches and loops stay, run by the reference evaluator. Results, which of them require gradients, and which arguments
//! have a gradient must be the same; elements may differ by rounding. Programs that cannot be recorded, or whose gradients
//! are not finite, are rejected.

use super::{CheckOutcome, Oracle};
use crate::case::Case;
use crate::observe;
use crate::planted::GradBug;
use flambeau::rewrite::autodiff::Gradient;
use flambeau::{Error, Execution, Fault, Session};
use flambeau_exec::{Host, reference};
use flambeau_ir::types::TensorType;
use flambeau_ir::{Graph, IValue, Type, ValueId};
use flambeau_tensor::{DType, Tensor};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Compares differentiated graphs with recorded calls.
pub struct GradientsAgree {
    tape: Session,
    graphs: Session,
    planted: Option<GradBug>,
}

impl GradientsAgree {
    /// Creates the oracle over the operators and passes of a session.
    pub fn new(session: &Session) -> GradientsAgree {
        GradientsAgree {
            tape: session.with_execution(Execution::Machine),
            graphs: session.with_execution(Execution::Optimized).with_differentiated_after(0),
            planted: None,
        }
    }

    /// Plants a fault in backward graphs, which the oracle must find.
    #[must_use]
    pub(crate) fn planted(self, bug: GradBug) -> GradientsAgree {
        GradientsAgree { planted: Some(bug), ..self }
    }
}

impl Oracle for GradientsAgree {
    fn name(&self) -> String {
        "grad".into()
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        let wrt: Vec<usize> =
            (0..case.inputs.len()).filter(|i| is_differentiable(&case.inputs[*i])).collect();
        if wrt.is_empty() {
            return CheckOutcome::Rejected("no argument has a gradient");
        }
        let truth = match derived(&self.tape, case, &wrt) {
            Ok(truth) if truth.is_finite() => truth,
            Ok(_) => return CheckOutcome::Rejected("a gradient is not finite"),
            Err(error) if error.fault == Fault::Internal => return CheckOutcome::Failed(error.to_string()),
            Err(_) => return CheckOutcome::Rejected("the call cannot be recorded"),
        };
        if self.planted.is_none() {
            match derived(&self.graphs, case, &wrt) {
                Ok(found) => {
                    if let Err(why) = truth.agrees(&found) {
                        return differs(case, format!("an entry that runs differentiated graphs: {why}"));
                    }
                }
                Err(error) if error.fault == Fault::Limit => return CheckOutcome::Timeout,
                Err(error) => {
                    return CheckOutcome::Failed(format!("only the differentiated graph fails: {error}"));
                }
            }
        }
        // A tensor that is reached twice, also in a container, has one recorded gradient, and several by graphs.
        let mut addresses = BTreeSet::new();
        let mut is_reached_once = true;
        let mut reach = |t: &Tensor| is_reached_once &= addresses.insert(t.storage().address());
        case.inputs.iter().for_each(|input| input.visit_tensors(&mut reach));
        if !is_reached_once {
            return CheckOutcome::Checked;
        }
        match self.by_graphs(case, &wrt, &truth) {
            Ok(outcome) => outcome,
            Err(why) => CheckOutcome::Failed(format!("differentiated graphs: {why}")),
        }
    }
}

/// The outcome of a case whose gradients differ. With a large number among the operands, a gradient can be a sum of terms that
/// cancel, as that of `lerp(x, x, -2 ** 63)`: its rounding depends on the order of the terms.
fn differs(case: &Case, why: String) -> CheckOutcome {
    if has_large_number(case) { CheckOutcome::Rejected(CANCELS) } else { CheckOutcome::Failed(why) }
}

const CANCELS: &str = "terms of a gradient may cancel";

/// Largest operand whose products with gradients cancel within the tolerance.
const LARGE: f64 = 1e6;

/// Whether a number of the program or among its arguments is large.
fn has_large_number(case: &Case) -> bool {
    let is_large = |value: &IValue| match value {
        IValue::Int(v) => v.unsigned_abs() as f64 > LARGE,
        IValue::Float(v) => v.is_finite() && v.abs() > LARGE,
        _ => false,
    };
    let graph = &case.graph;
    let mut constants =
        graph.nodes_deep().flat_map(|node| graph.results(node)).filter_map(|v| graph.constant(v));
    constants.any(|constant| is_large(&constant)) || case.inputs.iter().any(is_large)
}

impl GradientsAgree {
    /// Runs the graphs of the case's derivative.
    fn by_graphs(&self, case: &Case, wrt: &[usize], truth: &Derived) -> Result<CheckOutcome, String> {
        let graph = self.with_integer_types(case)?;
        let gradient = match self.tape.differentiate(&graph, wrt) {
            Ok(gradient) => gradient,
            Err(error) if error.fault == Fault::Internal => return Err(error.to_string()),
            Err(_) => return Ok(CheckOutcome::Checked),
        };
        let Gradient { forward, mut backward, conditional, outputs, results, captures } = gradient;
        let seeds = outputs.len();
        if let Some(bug) = self.planted {
            bug.apply_bug(&mut backward);
        }
        let mut host = observe::host();
        let values = run(forward, case.fresh_inputs(), case, &mut host)?;
        let (values, kept) = values.split_at(results.min(values.len()));
        let flagged = conditional.iter().filter(|c| **c).count();
        let (flags, kept) = kept.split_at(flagged.min(kept.len()));
        let mut kept = kept.get(wrt.len()..).unwrap_or_default().to_vec();
        debug_assert_eq!(kept.len(), captures);
        if self.planted == Some(GradBug::StaleCapture) {
            make_stale(&mut kept);
        }
        let mut flags = flags.iter();
        let mut args = Vec::with_capacity(seeds + kept.len());
        for (path, conditional) in outputs.iter().zip(&conditional) {
            let depends = !conditional || flags.next().and_then(IValue::as_bool) == Some(true);
            match Gradient::tensor_at(values, path).filter(|_| depends) {
                Some(tensor) if tensor.dtype().is_floating() => {
                    let weights = seed(&tensor).map_err(|error| error.to_string())?;
                    args.push(IValue::Tensor(weights));
                }
                Some(_) => return Ok(CheckOutcome::Checked),
                None if depends => return Err("a result has another structure than its type".to_owned()),
                None => args.push(IValue::None),
            }
        }
        args.extend(kept);
        // As in a backward pass whose gradients have no history.
        host.set_grad_enabled(false);
        let found = run(backward, args, case, &mut host)?;
        for (i, (found, want)) in found.iter().zip(&truth.grads).enumerate() {
            let found = found.as_tensor().cloned();
            if let Err(why) = same(want.as_ref(), found.as_ref(), truth.tolerance) {
                return Ok(differs(case, format!("differentiated graphs: argument {}: {why}", wrt[i])));
            }
        }
        Ok(CheckOutcome::Changed)
    }
}

impl GradientsAgree {
    /// Returns the graph, with the dtypes of arguments that are tensors of integers. A conversion to the dtype of such an argument
    /// ends a gradient, which a graph without types cannot state.
    fn with_integer_types(&self, case: &Case) -> Result<Arc<Graph>, String> {
        let mut graph = (*case.graph).clone();
        let inputs: Vec<ValueId> = graph.inputs().collect();
        let mut is_typed = false;
        for (value, input) in inputs.into_iter().zip(&case.inputs) {
            if let Some(tensor) = input.as_tensor().filter(|t| t.dtype().is_integral(true)) {
                let ty = TensorType { dtype: Some(tensor.dtype()), ..TensorType::default() };
                graph.edit().set_type(value, Type::tensor(ty));
                is_typed = true;
            }
        }
        if !is_typed {
            return Ok(Arc::clone(&case.graph));
        }
        self.tape.optimize(&graph, "propagate_shapes").map_err(|error| error.to_string())
    }
}

/// Whether an argument can require a gradient.
fn is_differentiable(value: &IValue) -> bool {
    value.as_tensor().is_some_and(|t| t.dtype().is_floating())
}

fn run(graph: Graph, args: Vec<IValue>, case: &Case, host: &mut Host) -> Result<Vec<IValue>, String> {
    let result = reference::run(&Arc::new(graph), args, &*case.unit, host);
    result.map_err(|error| format!("{}: {}", error.class, error.message))
}

/// The results and gradients of a call.
struct Derived {
    requires: Vec<bool>,
    grads: Vec<Option<Tensor>>,
    /// The tolerance of the coarsest dtype among the arguments: a gradient of an f64 argument is computed in bf16 where the program
    /// converts to that.
    tolerance: f64,
}

impl Derived {
    fn is_finite(&self) -> bool {
        self.grads.iter().flatten().all(|t| elements(t).is_some_and(|v| v.iter().all(|x| x.is_finite())))
    }

    fn agrees(&self, other: &Derived) -> Result<(), String> {
        if self.requires != other.requires {
            let (want, got) = (&self.requires, &other.requires);
            return Err(format!("which results require gradients: {got:?}; recorded {want:?}"));
        }
        for (i, (want, got)) in self.grads.iter().zip(&other.grads).enumerate() {
            same(want.as_ref(), got.as_ref(), self.tolerance)
                .map_err(|why| format!("gradient {i}: {why}"))?;
        }
        Ok(())
    }
}

/// Calls a case; returns the gradients of its weighted floating-point results.
fn derived(session: &Session, case: &Case, wrt: &[usize]) -> Result<Derived, Error> {
    let program = session.program_with((*case.graph).clone(), Arc::clone(&case.unit))?;
    let entry = program.entry("forward")?;
    let inputs = case.fresh_inputs();
    let leaves: Vec<Tensor> = wrt.iter().filter_map(|i| inputs[*i].as_tensor().cloned()).collect();
    leaves.iter().for_each(|leaf| leaf.set_requires_grad(true));
    let mut host = observe::host();
    let result = entry.call_on(&inputs, &[], &mut host)?;
    let (mut requires, mut outputs) = (Vec::new(), Vec::new());
    // Each position counts, also if several hold one container.
    let mut open = vec![result];
    while let Some(value) = open.pop() {
        match value {
            IValue::Tensor(t) => {
                requires.push(t.requires_grad());
                outputs.extend((t.requires_grad() && t.dtype().is_floating()).then_some(t));
            }
            IValue::Tuple(tuple) => open.extend(tuple.items().iter().rev().cloned()),
            IValue::List(list) => open.extend(list.to_vec().into_iter().rev()),
            IValue::Dict(dict) => open.extend(dict.read().iter().map(|(_, value)| value.clone())),
            _ => {}
        }
    }
    let mut seeded = Vec::with_capacity(outputs.len());
    for output in outputs {
        let weights = seed(&output)?;
        seeded.push((output, weights));
    }
    let grads = session.gradients(&seeded, &leaves, &mut host)?;
    let mut of_arguments = 0.0_f64;
    let mut coarsen = |t: &Tensor| of_arguments = of_arguments.max(tolerance(t.dtype()));
    inputs.iter().for_each(|input| input.visit_tensors(&mut coarsen));
    Ok(Derived { requires, grads, tolerance: of_arguments })
}

/// Returns the largest difference of two gradients of a dtype, relative to their largest element.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 | DType::C64 => 1e-2,
        DType::F16 | DType::BF16 => 0.2,
        _ => 1e-6,
    }
}

/// The weights of a result in the sum that is differentiated.
fn seed(like: &Tensor) -> Result<Tensor, Error> {
    let values: Vec<f64> = (0..like.numel()).map(|i| 0.5 + f64::from(i as u32 % 5) * 0.25).collect();
    Ok(Tensor::from_slice(&values, like.sizes())?.to_dtype(like.dtype())?)
}

fn elements(tensor: &Tensor) -> Option<Vec<f64>> {
    tensor.to_dtype(DType::F64).ok()?.to_vec::<f64>().ok()
}

/// Compares a gradient with the recorded one, up to rounding of its dtype, or to a larger tolerance.
fn same(want: Option<&Tensor>, got: Option<&Tensor>, least: f64) -> Result<(), String> {
    let (want, got) = match (want, got) {
        (None, None) => return Ok(()),
        (Some(want), Some(got)) => (want, got),
        (want, _) => {
            let has = |yes: bool| if yes { "one" } else { "none" };
            return Err(format!("has {}; recorded {}", has(want.is_none()), has(want.is_some())));
        }
    };
    if want.sizes() != got.sizes() || want.dtype() != got.dtype() {
        let of = |t: &Tensor| format!("{} {:?}", t.dtype(), t.sizes());
        return Err(format!("is {}; recorded {}", of(got), of(want)));
    }
    let tolerance = tolerance(want.dtype()).max(least);
    let (Some(want), Some(got)) = (elements(want), elements(got)) else {
        return Err("cannot be read".to_owned());
    };
    let scale = want.iter().fold(1.0_f64, |scale, x| scale.max(x.abs()));
    let differs = |(a, b): &(&f64, &f64)| a != b && !((**a - **b).abs() <= tolerance * scale);
    match want.iter().zip(&got).enumerate().find(|(_, pair)| differs(pair)) {
        Some((i, (want, got))) => Err(format!("element {i} is {got}; recorded {want}")),
        None => Ok(()),
    }
}

/// Replaces the first kept tensor by one that was changed since.
fn make_stale(kept: &mut [IValue]) {
    for value in kept {
        if let IValue::Tensor(t) = value
            && t.dtype().is_floating()
            && t.numel() > 0
            && let Some(values) = elements(t)
        {
            let moved: Vec<f64> = values.iter().map(|x| x * 1.5 + 1.0).collect();
            let moved = Tensor::from_slice(&moved, t.sizes()).and_then(|moved| moved.to_dtype(t.dtype()));
            if let Ok(moved) = moved {
                *value = IValue::Tensor(moved);
                return;
            }
        }
    }
}
