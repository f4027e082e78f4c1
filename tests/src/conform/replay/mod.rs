//! Replay of one case on a session.
//!
//! Each kind of case has a module. Programs are loaded and called ([`program`], [`exported`]), IR text is parsed and printed
//! ([`text`]), gradients are computed to second order ([`gradients`]), modules are trained ([`training`]), passes are
//! compared by the sizes of their results ([`pass`]), printed programs are compared
//! ([`printed`]), and hostile programs must not crash ([`bad`]).

mod bad;
mod declared;
mod exported;
mod exported_text;
mod gradients;
mod pass;
mod printed;
mod program;
mod text;
mod training;

use std::cell::RefCell;
use std::path::PathBuf;

use flambeau::rewrite::Checks;
use flambeau::{Compilation, Error, Fault, Session};

use super::case::{Case, Verdict};
use super::instructions::Executions;
use super::options::Variants;
use super::tally::EXECUTED;

/// Memory limit of a case in bytes. Hostile programs use the session's default limits.
const MEMORY: usize = 4 << 30;

/// The state for replaying cases of a suite.
pub struct Replay {
    folder: PathBuf,
    variants: Variants,
    session: Session,
    /// A session with default limits, for hostile programs.
    strict: Session,
    /// The instructions that the current case executed, if they are counted.
    executed: RefCell<Executions>,
}

impl Replay {
    /// Creates the sessions for the suite in `folder`.
    ///
    /// # Errors
    /// Returns an error if a session cannot be created.
    pub fn new(folder: PathBuf, variants: Variants) -> anyhow::Result<Replay> {
        // A failing optimization fails the case.
        let builder = Session::builder().standard().checks(Checks::Boundaries).memory(MEMORY);
        let builder = builder.differentiated_after(if variants.gradient_graphs { 0 } else { 1 });
        let compilation =
            if variants.threads > 1 { Compilation::Background } else { Compilation::Synchronous };
        let builder = builder.execution(variants.execution).profiled_runs(1).compilation(compilation);
        let session = builder.threads(variants.threads).build()?.with_deopt(variants.deopt);
        let strict = Session::standard()?;
        Ok(Replay { folder, variants, session, strict, executed: RefCell::default() })
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
            "archive" | "source" => self.program(case),
            "pt2" => self.exported_text(case).and_then(|()| self.exported(case)),
            other => Err(Verdict::failed(format!("unknown kind of case `{other}`"))),
        };
        let executed = self.executed.take().to_text();
        match result {
            Ok(()) if !executed.is_empty() => {
                Verdict { why: format!("{EXECUTED}{executed}"), ..Verdict::passed() }
            }
            result => result.err().unwrap_or_else(Verdict::passed),
        }
    }

    fn ir_text(&self, case: &Case, field: &str) -> Result<(), Verdict> {
        let graph = text::read(case.text(field), self.session.registry())?;
        text::check(case, &graph, self.variants.compare_text)
    }
}

/// Returns the verdict for an unexpected error.
fn verdict_of(error: &Error, doing: &str) -> Verdict {
    let message = error.message.lines().next().unwrap_or("").to_string();
    match error.fault {
        Fault::Unsupported => Verdict::unsupported(message),
        _ => Verdict::failed(format!("{doing}: {message}")),
    }
}
