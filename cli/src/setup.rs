//! What commands work with: the session to be, and how graphs are printed.

use crate::output::usage;
use anstream::eprintln;
use anyhow::Result;
use flambeau::ir::text::PrintOptions;
use flambeau::ir::types::Verbosity;
use flambeau::rewrite::Control;
use flambeau::{Error, Fault, Session, SessionBuilder};

/// PyTorch's variable for how much of types graphs show: a number from 0 to 4.
const TYPE_VERBOSITY: &str = "PYTORCH_JIT_TYPE_VERBOSITY";

/// The session of the caller of [`crate::run`], and what the environment says about printing.
pub(crate) struct Setup {
    pub(crate) builder: SessionBuilder,
    /// How graphs are printed; commands add what their options say.
    pub(crate) print: PrintOptions,
}

impl Setup {
    /// # Errors
    /// If the variable of the environment is not a level.
    pub(crate) fn new(builder: SessionBuilder) -> Result<Setup> {
        let types = match std::env::var_os(TYPE_VERBOSITY) {
            None => Verbosity::default(),
            Some(text) => level(&text.to_string_lossy())?,
        };
        Ok(Setup { builder, print: PrintOptions { types, ..PrintOptions::default() } })
    }

    /// The session, which reports failed optimizations on standard error.
    pub(crate) fn session(self) -> Result<Session> {
        session(self.builder)
    }
}

/// A session that reports failed optimizations on standard error.
pub(crate) fn session(builder: SessionBuilder) -> Result<Session> {
    let session = builder.build().map_err(|error| {
        // The environment belongs to the command line; anything else that does not fit is the extension's.
        if error.code == "S0009" { usage(error) } else { error.into() }
    })?;
    Ok(session.with_failure_hook(|failure| {
        eprintln!("warning[{}]: {failure}\n{}", failure.error.code, failure.reproducer);
    }))
}

fn level(text: &str) -> Result<Verbosity> {
    text.trim().parse().ok().and_then(Verbosity::from_number).ok_or_else(|| {
        let message = format!("{TYPE_VERBOSITY} is `{text}`, and not a number from 0 to 4");
        usage(Error::new(Fault::Misuse, "S0009", message))
    })
}

/// Limits on rewrites from the environment.
pub(crate) fn control() -> Result<Control> {
    Control::from_env().map_err(|error| usage(Error::new(Fault::Misuse, "S0009", error.to_string())))
}
