//! Replays one case on a session.
//!
//! By kind: programs are loaded and called ([`program`]), IR text is read and printed ([`text`]), pairs of graphs are
//! compared in strength ([`pass`]), printed programs are compared ([`printed`]), and what must not crash is tried
//! ([`bad`]).

mod bad;
mod declared;
mod gradients;
mod pass;
mod printed;
mod program;
mod text;

use std::path::PathBuf;

use flambeau::rewrite::Checks;
use flambeau::{Error, Fault, Session};

use super::case::{Case, Verdict};
use super::options::Ways;

/// What a case may hold of memory at a time, in bytes. Bad ones have the limits that every session has.
const MEMORY: usize = 4 << 30;

/// What cases are replayed with.
pub struct Replay {
    folder: PathBuf,
    ways: Ways,
    session: Session,
    /// For programs that want too much.
    strict: Session,
}

impl Replay {
    /// Prepares a session for the suite in `folder`.
    ///
    /// # Errors
    /// If the session cannot be made.
    pub fn new(folder: PathBuf, ways: Ways) -> anyhow::Result<Replay> {
        // An optimization that fails fails its case.
        let session = Session::builder().standard().checks(Checks::Boundaries).memory(MEMORY).build()?;
        let strict = Session::standard()?;
        Ok(Replay { folder, ways, session, strict })
    }

    /// Replays a case.
    pub fn case(&self, case: &Case) -> Verdict {
        if case.get("expect").is_some() {
            return self.bad(case);
        }
        if case.get("methods").is_some() {
            return self.printed(case).err().unwrap_or_else(Verdict::passed);
        }
        let result = match case.text("kind") {
            "ir_text" => self.ir_text(case, "text"),
            "pass" => self.pass(case),
            "ir" => self.ir_text(case, "ir").and_then(|()| self.program(case)),
            "archive" | "source" | "pt2" => self.program(case),
            other => Err(Verdict::failed(format!("there is no way to replay cases of kind `{other}`"))),
        };
        result.err().unwrap_or_else(Verdict::passed)
    }

    fn ir_text(&self, case: &Case, field: &str) -> Result<(), Verdict> {
        let graph = text::read(case.text(field), self.session.registry())?;
        text::check(case, &graph, self.ways.compare_text)
    }
}

/// What an error says about a case that should have gone well.
fn verdict_of(error: &Error, doing: &str) -> Verdict {
    let message = error.message.lines().next().unwrap_or("").to_string();
    match error.fault {
        Fault::Unsupported => Verdict::unsupported(message),
        _ => Verdict::failed(format!("{doing}: {message}")),
    }
}
