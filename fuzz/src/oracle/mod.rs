//! Oracles: functions from a case to whether something that must hold does.

mod alias;
mod journal;
mod machine;
mod pass;
mod source;
mod text;

pub use alias::AliasTruth;
pub use journal::JournalReplay;
pub use machine::MachineAgrees;
pub use pass::PassKeeps;
pub use source::SourceRoundTrip;
pub use text::TextRoundTrip;

use crate::generate::{Case, deep_copy};
use flambeau_exec::{ExecError, Host, reference};
use flambeau_ir::{CompilationUnit, Graph, IValue};
use flambeau_tensor::compare;
use std::sync::Arc;

/// How a check ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// What must hold was looked at, and holds.
    Checked,
    /// The case does not bear on the question.
    Rejected(&'static str),
    /// It took longer than allowed.
    Timeout,
    /// What must hold does not; why.
    Failed(String),
}

/// Something that must hold of every case.
pub trait Oracle: Send + Sync {
    /// The name, for reports.
    fn name(&self) -> String;

    /// Checks a case.
    fn check(&self, case: &Case) -> Outcome;
}

/// Loop iterations and calls a generated program may take.
const FUEL: u64 = 100_000;

/// What a run comes to: results and the arguments as they are afterwards.
pub(crate) struct Ran {
    pub(crate) results: Vec<IValue>,
    pub(crate) inputs: Vec<IValue>,
}

/// A quiet host with bounded fuel.
pub(crate) fn host() -> Host {
    let mut host = Host::quiet();
    host.set_fuel(FUEL);
    crate::chance::seed(&mut host);
    host
}

/// Runs a graph on the reference evaluator.
pub(crate) fn run_reference(graph: &Arc<Graph>, case: &Case) -> Result<Ran, ExecError> {
    let inputs = case.fresh_inputs();
    let results = reference::run(graph, inputs.clone(), &CompilationUnit::new(), &mut host())?;
    Ok(Ran { results: results.iter().map(deep_copy).collect(), inputs })
}

/// Whether two runs came to the same, floats within rounding of each other.
pub(crate) fn same(a: &Ran, b: &Ran, tolerance: f64) -> Result<(), String> {
    for (what, x, y) in [("result", &a.results, &b.results), ("input", &a.inputs, &b.inputs)] {
        if x.len() != y.len() {
            return Err(format!("{} {what}s and {}", x.len(), y.len()));
        }
        for (i, (x, y)) in x.iter().zip(y).enumerate() {
            same_value(x, y, tolerance).map_err(|why| format!("{what} {i}: {why}"))?;
        }
    }
    Ok(())
}

fn same_value(a: &IValue, b: &IValue, tolerance: f64) -> Result<(), String> {
    match (a, b) {
        (IValue::Tensor(x), IValue::Tensor(y)) => {
            if x.dtype() != y.dtype() || x.sizes() != y.sizes() {
                return Err(format!("{:?}{:?} and {:?}{:?}", x.dtype(), x.sizes(), y.dtype(), y.sizes()));
            }
            match compare::close(x, y, tolerance, tolerance) {
                Ok(true) => Ok(()),
                _ => Err(format!("tensors differ:\n{a}\nand\n{b}")),
            }
        }
        (IValue::List(x), IValue::List(y)) => {
            let (x, y) = (x.to_vec(), y.to_vec());
            if x.len() != y.len() {
                return Err(format!("lists of {} and {}", x.len(), y.len()));
            }
            x.iter().zip(&y).try_for_each(|(x, y)| same_value(x, y, tolerance))
        }
        (IValue::Float(x), IValue::Float(y)) if close(*x, *y, tolerance) => Ok(()),
        (IValue::Complex(x), IValue::Complex(y))
            if close(x.re, y.re, tolerance) && close(x.im, y.im, tolerance) =>
        {
            Ok(())
        }
        _ if a.equals(b).unwrap_or(false) => Ok(()),
        _ => Err(format!("{a} and {b}")),
    }
}

/// Equal, both not a number, or within rounding of each other.
fn close(x: f64, y: f64, tolerance: f64) -> bool {
    x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * (1.0 + y.abs())
}
