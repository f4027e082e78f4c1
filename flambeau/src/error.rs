//! The error type of all functions of the façade.

use flambeau_exec::{ExecError, TraceEntry};
use flambeau_ir::verify::VerifyErrors;
use flambeau_ir::{Diagnostic, Fault, RegistryError};
use std::fmt;

/// An error: message, kind, code and position.
#[derive(Clone, Debug)]
pub struct Error {
    /// Kind of the error: the party that caused it.
    pub fault: Fault,
    /// Stable code; `flambeau explain CODE` prints its description.
    pub code: &'static str,
    /// One or more lines; the first is a summary.
    pub message: String,
    /// Python's exception class, for errors of running programs: `RuntimeError`, or the class that a script raised.
    pub class: Option<String>,
    /// Positions in texts, for errors of compiling and reading.
    pub diagnostics: Vec<Diagnostic>,
    /// The calls that were active, outermost first, for errors of running programs.
    pub trace: Vec<TraceEntry>,
    /// A suggestion, if there is one. Diagnostics have their own.
    pub help: Option<String>,
}

impl Error {
    /// Creates an error without positions.
    pub fn new(fault: Fault, code: &'static str, message: impl Into<String>) -> Self {
        Error {
            fault,
            code,
            message: message.into(),
            class: None,
            diagnostics: Vec::new(),
            trace: Vec::new(),
            help: None,
        }
    }

    /// Creates an error for a call that violates the documented contract.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Error::new(Fault::Misuse, "X0003", message)
    }

    /// Names the file that the error is about, unless its positions do.
    pub(crate) fn in_file(self, file: impl fmt::Display) -> Self {
        if !self.diagnostics.is_empty() || self.trace.iter().any(|t| t.range.is_some()) {
            return self;
        }
        Error { message: format!("{file}: {}", self.message), ..self }
    }

    /// Returns the full text: diagnostics with their source lines, or the traceback.
    pub fn render(&self) -> String {
        if !self.diagnostics.is_empty() {
            return self.diagnostics.iter().map(Diagnostic::render).collect();
        }
        if self.trace.iter().any(|t| t.range.is_some()) {
            let error = ExecError {
                fault: self.fault,
                class: self.class.clone().unwrap_or_default(),
                message: self.message.clone(),
                trace: self.trace.clone(),
                help: self.help.clone(),
            };
            return format!("{}[{}]: {}", self.fault, self.code, error.render());
        }
        let help = self.help.iter().map(|help| format!("  help: {help}\n")).collect::<String>();
        format!("{}[{}]: {}\n{help}", self.fault, self.code, self.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render().trim_end())
    }
}

impl std::error::Error for Error {}

impl From<Diagnostic> for Error {
    fn from(d: Diagnostic) -> Self {
        Error { diagnostics: vec![d.clone()], ..Error::new(d.fault, d.code, d.message) }
    }
}

impl From<Box<Diagnostic>> for Error {
    fn from(d: Box<Diagnostic>) -> Self {
        Error::from(*d)
    }
}

impl From<Vec<Diagnostic>> for Error {
    /// Converts the diagnostics of one text, of which there is at least one.
    fn from(all: Vec<Diagnostic>) -> Self {
        // A plain error takes precedence over an unsupported feature, because the program may be invalid as a whole.
        let main = all.iter().find(|d| d.fault != Fault::Unsupported).or(all.first());
        match main {
            Some(d) => Error { diagnostics: all.clone(), ..Error::new(d.fault, d.code, d.message.clone()) },
            None => Error::new(Fault::Internal, "X0001", "an error without a diagnostic"),
        }
    }
}

impl From<ExecError> for Error {
    fn from(e: ExecError) -> Self {
        Error {
            class: Some(e.class),
            trace: e.trace,
            help: e.help,
            ..Error::new(e.fault, "X0002", e.message)
        }
    }
}

impl From<flambeau_tensor::TensorError> for Error {
    fn from(error: flambeau_tensor::TensorError) -> Self {
        ExecError::of(&flambeau_exec::KernelError::from(error)).into()
    }
}

impl From<crate::json::JsonError> for Error {
    fn from(e: crate::json::JsonError) -> Self {
        Error::new(e.fault(), "X0004", e.to_string())
    }
}

impl From<VerifyErrors> for Error {
    fn from(e: VerifyErrors) -> Self {
        let code = e.errors().first().map_or("V000", |e| e.code);
        Error::new(Fault::Input, code, e.to_string())
    }
}

impl From<Vec<RegistryError>> for Error {
    fn from(errors: Vec<RegistryError>) -> Self {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Error::new(Fault::Misuse, "S0001", lines.join("\n"))
    }
}
