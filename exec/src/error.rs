//! Errors of a run and their source locations.
//!
//! A kernel reports only the failure ([`KernelError`]); the evaluator adds the location ([`ExecError`]). TorchScript
//! has no exception handlers, so an error always ends the run, and the trace is built only then.

use flambeau_ir::Symbol;
use flambeau_ir::loc::{LocId, LocTable, SourceRange};
use flambeau_ir::value::ValueError;
pub use flambeau_tensor::Fault;
use flambeau_tensor::TensorError;
use std::borrow::Cow;
use std::fmt;

/// An error of a kernel: fault category, Python exception class, message. One pointer wide.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct KernelError(Box<Details>);

#[derive(Clone, Debug)]
struct Details {
    fault: Fault,
    class: Cow<'static, str>,
    message: String,
    help: Option<String>,
    /// Calls of the failed task, if the error is raised again by a wait for that task.
    trace: Vec<TraceEntry>,
}

impl KernelError {
    /// Creates an error of a class (`"RuntimeError"`, `"IndexError"`, or the qualified name of a script's exception).
    #[cold]
    pub fn new(fault: Fault, class: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        KernelError(Box::new(Details {
            fault,
            class: class.into(),
            message: message.into(),
            help: None,
            trace: Vec::new(),
        }))
    }

    /// Creates a `RuntimeError` for wrong input.
    #[cold]
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Fault::Input, "RuntimeError", message)
    }

    /// Creates a `NotImplementedError` for a missing feature.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Fault::Unsupported, "NotImplementedError", message)
    }

    /// Creates an error for a violation of this library's contract by the caller.
    #[cold]
    pub fn misuse(message: impl Into<String>) -> Self {
        Self::new(Fault::Misuse, "RuntimeError", message)
    }

    /// Creates an error for a configured limit that was reached.
    #[cold]
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(Fault::Limit, "RuntimeError", message)
    }

    /// Creates an error for a broken invariant of this library.
    #[cold]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Fault::Internal, "RuntimeError", message)
    }

    /// Adds a hint how to fix the error.
    #[cold]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Creates the error that a wait for a failed task raises; keeps the task's trace.
    #[cold]
    pub fn of_task(error: &ExecError) -> Self {
        let mut raised = Self::new(error.fault, error.class.clone(), error.message.clone());
        raised.0.help.clone_from(&error.help);
        let named = |entry: &TraceEntry| match entry.function == Symbol::EMPTY {
            true => TraceEntry { function: Symbol::new("<forked function>"), ..entry.clone() },
            false => entry.clone(),
        };
        raised.0.trace = error.trace.iter().map(named).collect();
        raised
    }

    /// Creates the error of a run that ends with the error of a part of it; keeps the part's trace.
    #[cold]
    pub(crate) fn again(error: &ExecError) -> Self {
        let mut raised = Self::new(error.fault, error.class.clone(), error.message.clone());
        raised.0.help.clone_from(&error.help);
        raised.0.trace.clone_from(&error.trace);
        raised
    }

    /// Returns the fault category.
    pub fn fault(&self) -> Fault {
        self.0.fault
    }

    /// Returns the Python class: `"RuntimeError"`, or the qualified name of a script's exception.
    pub fn class(&self) -> &str {
        &self.0.class
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl From<TensorError> for KernelError {
    #[cold]
    fn from(error: TensorError) -> Self {
        let class = match &error {
            TensorError::DimRange { .. } | TensorError::IndexRange { .. } => "IndexError",
            TensorError::Unsupported(_) | TensorError::DType { .. } => "NotImplementedError",
            _ => "RuntimeError",
        };
        KernelError::new(error.fault(), class, error.to_string())
    }
}

impl From<ValueError> for KernelError {
    #[cold]
    fn from(error: ValueError) -> Self {
        KernelError::new(error.fault(), "RuntimeError", error.to_string())
    }
}

/// One level of an [`ExecError`]'s trace.
#[derive(Clone, Debug)]
pub struct TraceEntry {
    /// The function that was running; empty for a graph without function.
    pub function: Symbol,
    /// The operator that was running.
    pub op: Symbol,
    /// Its source range, if known.
    pub range: Option<SourceRange>,
}

/// The error that ended a run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{class}: {message}")]
pub struct ExecError {
    /// The fault category.
    pub fault: Fault,
    /// The Python class of the error.
    pub class: String,
    /// The message.
    pub message: String,
    /// The active calls, outermost first.
    pub trace: Vec<TraceEntry>,
    /// A hint how to fix the error, if there is one.
    pub help: Option<String>,
}

/// Number of calls at either end of a traceback that are shown.
const MAX_SHOWN: usize = 32;

impl ExecError {
    /// Creates an error without location.
    #[cold]
    pub fn of(error: &KernelError) -> Self {
        ExecError {
            fault: error.fault(),
            class: error.class().to_owned(),
            message: error.message().to_owned(),
            trace: error.0.trace.clone(),
            help: error.0.help.clone(),
        }
    }

    /// Prepends the trace levels of a location: the location itself and the calls it was inlined through. Must be
    /// called for the innermost function first.
    pub fn push_outer(&mut self, function: Symbol, op: Symbol, locs: &LocTable, loc: LocId) {
        // Inlined calls are listed outermost first; the function names are those of the bodies.
        let mut levels = vec![];
        let mut at = loc;
        let mut inner_op = op;
        // A longer chain can only result from a corrupted table.
        for _ in 0..10_000 {
            let caller = locs.caller(at);
            let name = caller.map_or(function, |(_, callee)| callee);
            levels.push(TraceEntry { function: name, op: inner_op, range: locs.range(at) });
            let Some((outer, _)) = caller else { break };
            inner_op = Symbol::new("prim::CallFunction");
            at = outer;
        }
        levels.reverse();
        levels.append(&mut self.trace);
        self.trace = levels;
    }

    /// Formats the error like a Python traceback: source lines, then class and message.
    pub fn render(&self) -> String {
        use fmt::Write as _;
        let mut out = String::from("Traceback of TorchScript (most recent call last):\n");
        let left_out = self.trace.len().saturating_sub(2 * MAX_SHOWN);
        for (i, entry) in self.trace.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = match i.checked_sub(MAX_SHOWN) {
                Some(0) if left_out > 0 => writeln!(out, "  … {left_out} calls …"),
                Some(after) if after < left_out => Ok(()),
                _ => entry.write_to(&mut out),
            };
        }
        // An error that is not raised by the program has no class.
        let class = if self.class.is_empty() { String::new() } else { format!("{}: ", self.class) };
        out.push_str(&format!("{class}{}\n", self.message));
        if let Some(help) = &self.help {
            out.push_str(&format!("  help: {help}\n"));
        }
        out
    }
}

impl TraceEntry {
    fn write_to(&self, out: &mut String) -> fmt::Result {
        use fmt::Write as _;
        // The last part of a qualified name, as PyTorch writes it; the file tells the rest.
        let function = match self.function.as_str() {
            "" => "<graph>",
            name => name.rsplit_once('.').map_or(name, |(_, last)| last),
        };
        let Some(range) = &self.range else {
            return writeln!(out, "  in {function}, at {}", self.op);
        };
        write_place(out, range, function)?;
        match range.original() {
            Some(original) => write_place(out, &original, "original source"),
            None => Ok(()),
        }
    }
}

/// Writes file, line and the underlined source.
fn write_place(out: &mut String, range: &SourceRange, function: &str) -> fmt::Result {
    use fmt::Write;
    let (start, end) = (range.range.start as usize, range.range.end as usize);
    let (line, _) = range.source.line_column(start);
    writeln!(out, "  File \"{}\", line {line}, in {function}", range.source.name)?;
    let text = &range.source.text;
    let begin = text.get(..start).and_then(|t| t.rfind('\n')).map_or(0, |i| i + 1);
    let finish = text.get(start..).and_then(|t| t.find('\n')).map_or(text.len(), |i| start + i);
    let Some(source) = text.get(begin..finish) else { return Ok(()) };
    let width = end.clamp(start + 1, finish.max(start + 1)) - start;
    writeln!(out, "    {source}")?;
    writeln!(out, "    {}{} <--- HERE", " ".repeat(start - begin), "~".repeat(width))
}
