//! Common setup of commands: the session builder and the options for printing graphs.

use crate::output::{self, usage};
use anyhow::Result;
use flambeau::ir::text::PrintOptions;
use flambeau::ir::types::Verbosity;
use flambeau::rewrite::control::{Control, Deadline};
use flambeau::{Error, Fault, OptimizationLimits, Session, SessionBuilder};

/// PyTorch's variable for the detail of types in printed graphs: a number from 0 to 4.
const TYPE_VERBOSITY: &str = "PYTORCH_JIT_TYPE_VERBOSITY";

/// The session builder of the caller of [`crate::run`], and the print options from the environment.
pub(crate) struct Setup {
    pub(crate) builder: SessionBuilder,
    /// Options for printing graphs; commands add their own options.
    pub(crate) print: PrintOptions,
}

impl Setup {
    /// # Errors
    /// If the environment variable is not a valid level.
    pub(crate) fn new(builder: SessionBuilder) -> Result<Setup> {
        let types = match std::env::var_os(TYPE_VERBOSITY) {
            None => Verbosity::default(),
            Some(text) => level(&text.to_string_lossy())?,
        };
        Ok(Setup { builder, print: PrintOptions { types, ..PrintOptions::default() } })
    }

    /// Builds the session, which reports failed optimizations on standard error.
    pub(crate) fn session(self) -> Result<Session> {
        session(self.builder)
    }
}

/// Builds a session that reports failed optimizations on standard error.
pub(crate) fn session(builder: SessionBuilder) -> Result<Session> {
    let session = builder.build().map_err(|error| {
        // Errors in environment variables count as errors of the command line; all others are errors of the extension.
        if error.code == "S0009" { usage(error) } else { error.into() }
    })?;
    let session = session.with_failure_hook(|failure| {
        output::error_line(format_args!(
            "warning[{}]: {failure}\n{}",
            failure.error.code, failure.reproducer
        ));
    });
    // The process ends with the command. Its tables of operators need not be freed one by one, which takes as long as a small
    // call.
    std::mem::forget(session.clone());
    Ok(session)
}

fn level(text: &str) -> Result<Verbosity> {
    text.trim().parse().ok().and_then(Verbosity::from_number).ok_or_else(|| {
        let message = format!("{TYPE_VERBOSITY} is `{text}`; expected a number from 0 to 4");
        usage(Error::new(Fault::Misuse, "S0009", message))
    })
}

/// Reads limits on rewrites from the environment, and sets the time limit of sessions.
pub(crate) fn control() -> Result<Control> {
    let limits = Control::from_env();
    let limits = limits.map_err(|error| usage(Error::new(Fault::Misuse, "S0009", error.to_string())))?;
    Ok(limits.with_deadline(Deadline::after(OptimizationLimits::default().time)))
}
