//! A check of derivatives, for tests: those of an entry's differentiated graph are compared with those of a recorded call
//! and with finite differences, the second ones with differences of the first ones too.
//!
//! A derivative is tested along one direction of all inputs at once, in which every element differs. Differences need
//! inputs in `float64`, and points at which the function is smooth.

use crate::error::Error;
use crate::gradients::graphs::SECOND_ORDER;
use crate::program::Entry;
use crate::session::Execution;
use flambeau_exec::tape::BackwardOptions;
use flambeau_ir::attr::names;
use flambeau_ir::{Graph, IValue, Prim};
use flambeau_tensor::{DType, Tensor};
use std::collections::BTreeSet;

/// The options of [`Entry::check_ad`].
#[derive(Clone, Debug)]
pub struct AdCheck {
    /// The inputs that derivatives are taken with respect to.
    pub wrt: Vec<usize>,
    /// The greatest difference from finite differences, relative to the greater of 1 and the derivative.
    pub tolerance: f64,
    /// The step of finite differences.
    pub step: f64,
    /// Whether second derivatives are checked.
    pub second: bool,
    /// Operators that must be within a `prim::DifferentiableGraph`.
    pub differentiable: Vec<String>,
    /// Operators that must be within a `prim::FusionGroup` of the forward or backward graph.
    pub fused: Vec<String>,
}

impl AdCheck {
    /// A check of first and second derivatives with respect to these inputs.
    pub fn of(wrt: &[usize]) -> AdCheck {
        AdCheck {
            wrt: wrt.to_vec(),
            tolerance: 1e-5,
            step: 1e-5,
            second: true,
            differentiable: Vec::new(),
            fused: Vec::new(),
        }
    }
}

/// The result of [`Entry::check_ad`].
#[derive(Clone, Debug)]
pub struct AdReport {
    /// The reason why the call was recorded operator by operator; `None` if it ran a differentiated graph.
    pub refused: Option<String>,
    /// The reason why gradients of gradients were recorded operator by operator, if the call itself was not.
    pub refused_second_order: Option<String>,
    /// Whether derivatives were compared with finite differences, for which all inputs of [`AdCheck::wrt`] must be in `float64`. A
    /// recorded call has the formulas of its graph, so without differences a wrong formula is not found.
    pub has_differences: bool,
    /// The operators within a `prim::DifferentiableGraph`.
    pub differentiable: BTreeSet<String>,
    /// The operators within a `prim::FusionGroup` of the forward or backward graph.
    pub fused: BTreeSet<String>,
}

/// Error of [`Entry::check_ad`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum AdProblem {
    /// A call or a walk failed.
    #[error("{0}")]
    Failed(Error),
    /// A derivative is wrong, or an operator is not within a group.
    #[error("{0}")]
    Wrong(String),
}

impl From<Error> for AdProblem {
    fn from(error: Error) -> AdProblem {
        AdProblem::Failed(error)
    }
}

/// First derivatives, the product of the gradient with a direction, and the derivative of that product.
struct Derivatives {
    grads: Vec<Option<Tensor>>,
    slope: f64,
    /// In the same direction.
    curvature: Option<f64>,
}

impl Entry {
    /// Checks the derivatives of the sum of all floating-point results, weighted.
    ///
    /// # Errors
    /// [`AdProblem::Wrong`] with the derivative that differs, or with the operators that are not in a group;
    /// [`AdProblem::Failed`] as [`Entry::grad`].
    pub fn check_ad(&self, inputs: &[IValue], check: &AdCheck) -> Result<AdReport, AdProblem> {
        let session = self.session();
        let recorded = self.on(&session.with_execution(Execution::Machine));
        let graph = self.on(&session.with_execution(Execution::Optimized).with_differentiated_after(0));
        let by_tape = recorded.derivatives(inputs, check, 0.0)?;
        let by_graph = graph.derivatives(inputs, check, 0.0)?;
        for (i, (tape, graph)) in by_tape.grads.iter().zip(&by_graph.grads).enumerate() {
            agree(tape.as_ref(), graph.as_ref(), check.tolerance)
                .map_err(|why| AdProblem::Wrong(format!("the gradient of input {}: {why}", check.wrt[i])))?;
        }
        if let (Some(tape), Some(graph)) = (by_tape.curvature, by_graph.curvature) {
            near("the second derivative", graph, tape, check.tolerance)?;
        }
        let is_exact =
            |at: &usize| inputs.get(*at).and_then(IValue::as_tensor).is_some_and(|t| t.dtype() == DType::F64);
        let has_differences = check.wrt.iter().all(is_exact);
        if has_differences {
            recorded.differences(inputs, check, &by_graph)?;
        }
        let groups = session.apply_text(self.graph(), self.unit(), GROUPS)?;
        let refusals = graph.gradient_refusals();
        let mut report = AdReport {
            refused: refusals.iter().find(|why| !why.starts_with(SECOND_ORDER)).cloned(),
            refused_second_order: refusals
                .iter()
                .find_map(|why| why.strip_prefix(SECOND_ORDER))
                .map(str::to_owned),
            has_differences,
            differentiable: within(&groups, Prim::DifferentiableGraph),
            fused: BTreeSet::new(),
        };
        for (forward, backward) in graph.gradient_graphs() {
            report.fused.extend(within(&forward, Prim::FusionGroup));
            report.fused.extend(within(&backward, Prim::FusionGroup));
        }
        contains(&report.differentiable, &check.differentiable, "prim::DifferentiableGraph")?;
        contains(&report.fused, &check.fused, "prim::FusionGroup")?;
        Ok(report)
    }

    /// Compares derivatives with differences of values and of first derivatives.
    fn differences(&self, inputs: &[IValue], check: &AdCheck, found: &Derivatives) -> Result<(), AdProblem> {
        let step = check.step;
        let value = |at: f64| self.weighted(&moved(inputs, check, at)?);
        let difference = (value(step)? - value(-step)?) / (2.0 * step);
        near("the derivative", found.slope, difference, check.tolerance)?;
        if let (Some(curvature), true) = (found.curvature, check.second) {
            let slope = |at: f64| self.derivatives(inputs, check, at).map(|found| found.slope);
            let difference = (slope(step)? - slope(-step)?) / (2.0 * step);
            near("the second derivative", curvature, difference, check.tolerance)?;
        }
        Ok(())
    }

    /// Returns the weighted sum of the results, which is not recorded.
    fn weighted(&self, inputs: &[IValue]) -> Result<f64, Error> {
        let mut host = self.session().host();
        host.set_grad_enabled(false);
        let result = self.call_on(inputs, &[], &mut host)?;
        let mut sum = 0.0;
        for tensor in floating(&result) {
            sum += product(&tensor, &weights(&tensor)?)?;
        }
        Ok(sum)
    }

    /// Returns derivatives at the inputs moved by a step in the direction of the check.
    fn derivatives(&self, inputs: &[IValue], check: &AdCheck, at: f64) -> Result<Derivatives, Error> {
        let inputs = moved(inputs, check, at)?;
        let leaves: Vec<Tensor> =
            check.wrt.iter().filter_map(|at| inputs[*at].as_tensor().cloned()).collect();
        leaves.iter().for_each(|leaf| leaf.set_requires_grad(true));
        let session = self.session();
        let mut host = session.host();
        let result = self.call_on(&inputs, &[], &mut host)?;
        let mut seeds = Vec::new();
        for tensor in floating(&result).into_iter().filter(Tensor::requires_grad) {
            let weights = weights(&tensor)?;
            seeds.push((tensor, weights));
        }
        let mode = BackwardOptions { retain_graph: true, create_graph: false };
        let grads = session.gradients_with(&seeds, &leaves, mode, &mut host)?;
        let mut slope = 0.0;
        for (leaf, grad) in leaves.iter().zip(&grads) {
            slope += grad.as_ref().map_or(Ok(0.0), |grad| product(grad, &direction(leaf)?))?;
        }
        let curvature = if check.second {
            let mode = BackwardOptions { retain_graph: true, create_graph: true };
            let again = session.gradients_with(&seeds, &leaves, mode, &mut host)?;
            let mut products = Vec::new();
            for (leaf, grad) in leaves.iter().zip(again) {
                if let Some(grad) = grad.filter(Tensor::requires_grad) {
                    products.push((grad, direction(leaf)?));
                }
            }
            let second = session.gradients(&products, &leaves, &mut host)?;
            let mut curvature = 0.0;
            for (leaf, second) in leaves.iter().zip(second) {
                curvature += second.map_or(Ok(0.0), |second| product(&second, &direction(leaf)?))?;
            }
            Some(curvature)
        } else {
            None
        };
        Ok(Derivatives { grads, slope, curvature })
    }
}

/// Makes groups of differentiable operators, also of single ones.
const GROUPS: &str = "simplify,create_autodiff_subgraphs{threshold=1}";

/// Returns the inputs with those of the check moved by a step in its direction, as leaves of their own.
fn moved(inputs: &[IValue], check: &AdCheck, at: f64) -> Result<Vec<IValue>, Error> {
    let mut moved = inputs.to_vec();
    for &i in &check.wrt {
        let tensor = inputs.get(i).and_then(IValue::as_tensor);
        let tensor = tensor.ok_or_else(|| Error::misuse(format!("input {i} is not a tensor")))?;
        if !tensor.dtype().is_floating() {
            let dtype = tensor.dtype();
            return Err(Error::misuse(format!(
                "input {i} is a tensor of {dtype}; only floating-point tensors are checked"
            )));
        }
        let copy = tensor.clone_data()?;
        if at != 0.0 {
            let values: Vec<f64> = elements(&copy)?;
            let values: Vec<f64> =
                values.iter().zip(elements(&direction(&copy)?)?).map(|(x, d)| x + at * d).collect();
            copy.copy_(&Tensor::from_slice(&values, copy.sizes())?)?;
        }
        moved[i] = IValue::Tensor(copy);
    }
    Ok(moved)
}

fn floating(value: &IValue) -> Vec<Tensor> {
    let mut found = Vec::new();
    value.visit_tensors(|t| found.push(t.clone()));
    found.retain(|t| t.dtype().is_floating());
    found
}

/// Numbers without a pattern that sums may cancel, from a counter.
fn pattern(like: &Tensor, scale: f64) -> Result<Tensor, Error> {
    let values: Vec<f64> = (0..like.numel()).map(|i| 0.5 + ((i as f64 + 1.0) * scale).fract()).collect();
    Ok(Tensor::from_slice(&values, like.sizes())?.to_dtype(like.dtype())?)
}

/// The weights of a result in the sum that is differentiated.
fn weights(like: &Tensor) -> Result<Tensor, Error> {
    pattern(like, 0.618_033_988_749_895)
}

/// The direction in which an input moves.
fn direction(like: &Tensor) -> Result<Tensor, Error> {
    pattern(like, 0.754_877_666_246_693)
}

fn elements(tensor: &Tensor) -> Result<Vec<f64>, Error> {
    Ok(tensor.to_dtype(DType::F64)?.to_vec::<f64>()?)
}

/// Returns the scalar product of two tensors.
fn product(a: &Tensor, b: &Tensor) -> Result<f64, Error> {
    Ok(elements(a)?.iter().zip(elements(b)?).map(|(x, y)| x * y).sum())
}

/// Compares the gradient of a recorded call with that of a differentiated graph.
fn agree(tape: Option<&Tensor>, graph: Option<&Tensor>, tolerance: f64) -> Result<(), String> {
    let (tape, graph) = match (tape, graph) {
        (None, None) => return Ok(()),
        (Some(tape), Some(graph)) => (tape, graph),
        (Some(_), None) => return Err("the graph has none, the recorded call has one".to_owned()),
        (None, Some(_)) => return Err("the graph has one, the recorded call has none".to_owned()),
    };
    if tape.sizes() != graph.sizes() || tape.dtype() != graph.dtype() {
        let of = |t: &Tensor| format!("{} {:?}", t.dtype(), t.sizes());
        return Err(format!("the graph has {}, the recorded call {}", of(graph), of(tape)));
    }
    let (tape, graph) = (elements(tape), elements(graph));
    let (Ok(tape), Ok(graph)) = (tape, graph) else { return Err("cannot be read".to_owned()) };
    for (i, (a, b)) in tape.iter().zip(&graph).enumerate() {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * a.abs().max(1.0);
        if !same {
            return Err(format!("element {i} is {b} by the graph and {a} by the recorded call"));
        }
    }
    Ok(())
}

fn near(what: &str, got: f64, want: f64, tolerance: f64) -> Result<(), AdProblem> {
    if (got - want).abs() <= tolerance * want.abs().max(1.0) {
        return Ok(());
    }
    Err(AdProblem::Wrong(format!("{what} is {got} in the direction of the check; differences give {want}")))
}

/// The operators in the subgraphs of nodes of a kind.
fn within(graph: &Graph, kind: Prim) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for node in graph.nodes_deep().filter(|n| graph.is_prim(*n, kind)) {
        let Some(inner) = graph.attr(node, names::subgraph()).and_then(|a| a.as_graph()) else { continue };
        let named = inner.nodes_deep().filter(|n| !inner.is_prim(*n, Prim::Constant));
        found.extend(named.map(|n| inner.op_name(n).to_string()));
    }
    found
}

fn contains(found: &BTreeSet<String>, wanted: &[String], group: &str) -> Result<(), AdProblem> {
    let missing: Vec<&str> = wanted.iter().filter(|op| !found.contains(*op)).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(AdProblem::Wrong(format!("no `{group}` contains {}", missing.join(", "))))
}
