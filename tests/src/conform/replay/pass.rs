//! Pairs of graphs before and after one of PyTorch's passes: ours has to leave no more nodes than PyTorch's.

use std::sync::Arc;

use flambeau_ir::Graph;

use super::super::case::{Case, Verdict};
use super::{Replay, text, verdict_of};

/// Pipelines that do what one of PyTorch's passes does, where they are named otherwise.
const PIPELINES: &[(&str, &str)] = &[("dce_with_side_effects", "dce")];

impl Replay {
    pub(super) fn pass(&self, case: &Case) -> Result<(), Verdict> {
        let name = case.text("pass");
        let pipeline = PIPELINES.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours);
        if !self.session.has_pass(pipeline) {
            return Err(Verdict::unsupported(format!("the pass {name}")));
        }
        let before = self.before(case)?;
        let after =
            self.session.optimize(&before, pipeline).map_err(|e| verdict_of(&e, "the pass failed"))?;
        if let Err(errors) = flambeau_ir::verify::verify(&after) {
            let first =
                errors.errors().first().map_or(String::new(), |e| format!("{}: {}", e.code, e.message));
            return Err(Verdict::failed(format!("the pass left a broken graph: {first}")));
        }
        let wanted = case.get("after_nodes").and_then(serde_json::Value::as_u64).unwrap_or(0) as usize;
        let got = text::size_of(&after);
        if got > wanted {
            return Err(Verdict::failed(format!("{} nodes more than PyTorch leaves", got - wanted)));
        }
        Ok(())
    }

    fn before(&self, case: &Case) -> Result<Arc<Graph>, Verdict> {
        if case.get("source").is_none() {
            return text::read(case.text("before"), self.session.registry()).map(Arc::new);
        }
        let program = self
            .session
            .compile_source(case.text("source"), "case")
            .map_err(|e| verdict_of(&e, "refused"))?;
        let entry = program.entry(case.text("entry")).map_err(|e| verdict_of(&e, "refused"))?;
        let graph = entry.graph().clone();
        if case.is("inlined_first") {
            return self.session.optimize(&graph, "inline").map_err(|e| verdict_of(&e, "inlining failed"));
        }
        Ok(graph)
    }
}
