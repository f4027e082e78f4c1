//! The printed forms of an archive's programs: graphs, inlined graphs and source, character for character.

use flambeau_ir::text::PrintOptions;
use serde_json::Value;

use super::super::case::{Case, Verdict};
use super::text::first_difference;
use super::{Replay, verdict_of};

impl Replay {
    pub(super) fn printed(&self, case: &Case) -> Result<(), Verdict> {
        let program = self.load(case, &self.session).map_err(|e| verdict_of(&e, "refused"))?;
        for method in case.get("methods").and_then(Value::as_array).into_iter().flatten() {
            let name = method.get("name").and_then(Value::as_str).unwrap_or("");
            let entry = program.entry(name).map_err(|e| verdict_of(&e, "no such method"))?;
            if let Some(want) = method.get("graph").and_then(Value::as_str) {
                same(
                    name,
                    "graph",
                    &entry.graph().to_text(PrintOptions { locations: true, exact: false }),
                    want,
                )?;
            }
        }
        Ok(())
    }
}

fn same(name: &str, what: &str, got: &str, want: &str) -> Result<(), Verdict> {
    if got.trim_end() == want.trim_end() {
        return Ok(());
    }
    Err(Verdict::failed(format!("the {what} of `{name}` is another text: {}", first_difference(got, want))))
}
