//! Fuzzing of passes that are written in Python.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flambeau::Graph;
use flambeau_fuzz::Campaign;
use flambeau_fuzz::oracle::PassEquivalence;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::extend::session;
use crate::graph::PyGraph;
use crate::host::Hosted;
use crate::values::or_raise;

/// The exception that ends a search: `KeyboardInterrupt` or `SystemExit`.
type Ended = Arc<Mutex<Option<PyErr>>>;

/// Calls a Python function with a graph, and takes the changed graph back.
fn apply(pass: &Py<PyAny>, program: &Hosted, ended: &Ended, graph: &mut Graph) -> Result<(), String> {
    let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
    if ended.is_some() {
        return Err("the search ended".to_owned());
    }
    Python::attach(|py| {
        let object = PyGraph::new(graph.clone(), program.clone());
        let shared = Bound::new(py, object).and_then(|object| pass.call1(py, (&object,)).map(|_| object));
        let shared = shared.map_err(|error| {
            let text = error.to_string();
            if !error.is_instance_of::<PyException>(py) {
                *ended = Some(error);
            }
            text
        })?;
        *graph = shared.get().snapshot();
        Ok(())
    })
}

/// The numbers of checked and changed cases, and the reason of the first failure with its case.
type Outcome = (u64, u64, Option<(String, String)>);

/// Runs a pass on generated programs for a time. Returns the number of checked cases, the number of those that the pass changed,
/// and the first failure in its smallest form, if there is one: the reason, and the case as a file test.
#[pyfunction]
pub(crate) fn fuzz_pass(
    py: Python<'_>,
    pass_: Py<PyAny>,
    name: &str,
    seconds: f64,
    seed: u64,
) -> PyResult<Outcome> {
    let session = session(py)?;
    let program: Hosted = or_raise(py, session.parse_ir("graph():\n  return ()\n"))?.into();
    let pass = Arc::new(pass_);
    let ended = Ended::default();
    let of_pass = Arc::clone(&ended);
    let function = Box::new(move |graph: &mut Graph| apply(&pass, &program, &of_pass, graph));
    let oracle = PassEquivalence::of_function(name, function);
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO);
    let registry = Arc::clone(session.registry());
    let (tally, finding) = py.detach(|| Campaign::new(&registry, seed).run(&oracle, u64::MAX, time, |_| {}));
    if let Some(error) = ended.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    let finding = finding.map(|finding| (finding.why, finding.case.to_text()));
    Ok((tally.checked, tally.changed, finding))
}
