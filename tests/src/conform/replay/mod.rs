//! Replays one case on a session.

mod declared;
mod reference;
mod text;

use std::path::PathBuf;
use std::sync::Arc;

use flambeau_ir::Registry;

use super::case::{Case, Verdict};

/// What cases are replayed with.
pub struct Replay {
    folder: PathBuf,
    compare_text: bool,
    registry: Arc<Registry>,
}

impl Replay {
    /// Prepares a session for the suite in `folder`.
    ///
    /// # Errors
    /// If the session cannot be made.
    pub fn new(folder: PathBuf, compare_text: bool) -> anyhow::Result<Replay> {
        let registry = flambeau_ops::registry();
        Ok(Replay { folder, compare_text, registry })
    }

    /// Replays a case.
    pub fn case(&self, case: &Case) -> Verdict {
        let field = match case.text("kind") {
            "ir_text" => "text",
            "ir" => "ir",
            other => return Verdict::unsupported(format!("cases of kind {other}")),
        };
        let graph = text::read(case.text(field), &self.registry);
        match case.text("expect") {
            "" => {}
            "accept" => return graph.err().unwrap_or_else(Verdict::passed),
            "error" if graph.is_ok() => return Verdict::failed("accepted, where an error is due"),
            _ => return Verdict::passed(),
        }
        let result = graph.and_then(|graph| text::check(case, &graph, self.compare_text));
        match result {
            Err(verdict) => verdict,
            Ok(()) if case.get("expected").is_some() => reference::run(case, &self.registry),
            Ok(()) => Verdict::passed(),
        }
    }
}
