//! Replay of passes: after our pass, a graph must have at most as many nodes as after PyTorch's.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use flambeau_ir::{CompilationUnit, Graph};
use flambeau_rewrite::{Checks, Manager, PassLibrary, Pipeline};

use serde_json::Value;

use super::super::case::{Case, Verdict};
use super::{Replay, text, verdict_of};

/// Pipelines for passes with another name or behaviour in PyTorch. PyTorch folds constants that callers can write; our
/// pass does so only with the option `escaping`.
const NAMES: &[(&str, &str)] = &[
    ("constant_propagation", "constant_propagation{escaping}"),
    ("run_decompositions", "decompose_ops,fix{2}(peephole,constant_propagation{escaping})"),
];

impl Replay {
    pub(super) fn pass(&self, case: &Case) -> Result<(), Verdict> {
        let name = case.text("pass");
        let name = NAMES.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours);
        let library = PassLibrary::standard();
        let program;
        let (mut graph, unit);
        if case.get("source").is_none() {
            graph = text::read(case.text("before"), self.session.registry())?;
            unit = None;
        } else {
            program = self
                .session
                .compile_source(case.text("source"), "case.py")
                .map_err(|e| verdict_of(&e, "refused"))?;
            let entry = program.entry(case.text("entry")).map_err(|e| verdict_of(&e, "refused"))?;
            graph = Graph::clone(entry.graph());
            unit = Some(&**program.unit());
        }
        if !library.knows(name.split(['{', ',']).next().unwrap_or(name)) {
            return Err(Verdict::unsupported(format!("the pass {}", case.text("pass"))));
        }
        if case.is("inlined_first") {
            run("inline", &library, &mut graph, unit)?;
        }
        let size = |graph: &Graph| text::counts_of_sweeps(graph).values().sum::<usize>();
        let before = text::counts_of_sweeps(&graph);
        let recorded = |field| case.get(field).and_then(Value::as_u64).unwrap_or(0) as usize;
        // The compiled source may have more nodes here than in PyTorch; the difference is added to the limit.
        let more = size(&graph).saturating_sub(recorded("before_nodes"));
        run(name, &library, &mut graph, unit)?;
        let (got, wanted) = (size(&graph), recorded("after_nodes") + more);
        if got > wanted {
            let kinds = surplus(case, &before, &text::counts_of_sweeps(&graph));
            return Err(Verdict::failed(format!("{} nodes more than PyTorch leaves{kinds}", got - wanted)));
        }
        Ok(())
    }
}

/// Returns the kinds of nodes with more nodes left than in PyTorch.
fn surplus(case: &Case, before: &BTreeMap<&str, usize>, after: &BTreeMap<&str, usize>) -> String {
    let recorded =
        |field, kind| case.get(field).and_then(|c| c.get(kind)).and_then(Value::as_u64).unwrap_or(0) as i64;
    let mut text = String::new();
    for (kind, &n) in after {
        let given = before.get(kind).copied().unwrap_or(0) as i64 - recorded("before_counts", kind);
        let more = n as i64 - recorded("after_counts", kind) - given.max(0);
        if more > 0 {
            let _ = write!(text, " ({kind} +{more})");
        }
    }
    text
}

fn run(
    pass: &str,
    library: &PassLibrary,
    graph: &mut Graph,
    unit: Option<&CompilationUnit>,
) -> Result<(), Verdict> {
    let pipeline = Pipeline::parse(pass, library).map_err(|e| Verdict::failed(e.message))?;
    let mut manager = Manager::new().checks(Checks::EveryPass);
    if let Some(unit) = unit {
        manager = manager.unit(unit);
    }
    manager.run(graph, &pipeline).map(|_| ()).map_err(|e| Verdict::failed(format!("the pass failed: {e}")))
}
