//! Output of results and errors: JSON in a pipe, readable text on a terminal.

use annotate_snippets::{Annotation, AnnotationKind, Level, Renderer, Snippet};
use anyhow::{Context, Result};
use flambeau::exec::TraceEntry;
use flambeau::ir::text::PrintOptions;
use flambeau::ir::{Diagnostic, SourceRange, WalkStep, nearest};
use flambeau::{Error, Fault, Graph, IValue};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Options for the format of results.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct OutputArgs {
    /// Write JSON, even to a terminal.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write readable text, even to a pipe.
    #[arg(long, conflicts_with = "json")]
    pub(crate) text: bool,
}

impl OutputArgs {
    /// Returns whether the output is JSON.
    pub(crate) fn wants_json(self) -> bool {
        self.json || (!self.text && !std::io::stdout().is_terminal())
    }

    /// Writes a value.
    pub(crate) fn value(self, value: &IValue) -> Result<()> {
        if !self.wants_json() {
            return line(value);
        }
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let written = flambeau::json::write_to(&mut out, value).map_err(Error::from)?;
        written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).context(STANDARD_OUTPUT)
    }
}

/// Writes text to standard output, without colours unless it is a terminal.
///
/// # Errors
/// If standard output cannot be written, as on a full device. The macros of the standard library panic then.
pub(crate) fn text(text: impl Display) -> Result<()> {
    let mut out = anstream::stdout();
    write!(out, "{text}").and_then(|()| out.flush()).context(STANDARD_OUTPUT)
}

/// Writes a line to standard output, as [`text`].
///
/// # Errors
/// Those of [`text`].
pub(crate) fn line(content: impl Display) -> Result<()> {
    text(format_args!("{content}\n"))
}

const STANDARD_OUTPUT: &str = "writing to standard output";

/// Writes text to standard error. An error of standard error cannot be reported anywhere.
pub(crate) fn error_text(text: impl Display) {
    let _ = write!(anstream::stderr(), "{text}");
}

/// Writes a line to standard error, as [`error_text`].
pub(crate) fn error_line(content: impl Display) {
    error_text(format_args!("{content}\n"));
}

/// Returns whether an error means that the reader of standard output has closed it, as `head` does.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_closed = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    error.to_string() == STANDARD_OUTPUT && error.downcast_ref::<std::io::Error>().is_some_and(is_closed)
}

/// Maximum number of bytes of indentation in a graph's text: indentation grows with the square of the nesting.
const MAX_INDENT: usize = 1 << 28;

/// Returns the text of a graph, or an error if it is nested so deep that the text would be mostly indentation.
pub(crate) fn graph_text(graph: &Graph, options: PrintOptions) -> Result<String> {
    let (mut depth, mut indent) = (0usize, 0usize);
    for step in graph.walk(graph.root()) {
        match step {
            WalkStep::Enter(_) => depth += 1,
            WalkStep::Leave(_) => depth -= 1,
            WalkStep::Node(_) | WalkStep::Done(_) => indent += 4 * depth,
        }
        if indent > MAX_INDENT {
            let text = format!(
                "blocks are nested so deep that the text would have more than {MAX_INDENT} bytes of indentation"
            );
            return Err(Error::new(Fault::Limit, "T002", text).into());
        }
    }
    Ok(graph.to_text(options))
}

/// Marks errors of the command line, such as an unknown name in an option.
#[derive(Debug)]
pub(crate) struct CommandLine;

impl Display for CommandLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the command line is wrong")
    }
}

/// Marks an error as one of the command line, for which the command exits with 2.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    error.into().context(CommandLine)
}

/// Creates an error of the command line for an option with an unknown value.
pub(crate) fn unknown(option: &str, value: &str, known: &[&str]) -> anyhow::Error {
    let text = format!("unknown {option} `{value}`; known are {}", known.join(", "));
    let mut error = Error::new(Fault::Misuse, "X0003", text);
    error.help = did_you_mean(value, known.iter().copied());
    usage(error)
}

/// Creates any other error of the command line.
pub(crate) fn command_line_error(text: impl Into<String>) -> anyhow::Error {
    usage(Error::new(Fault::Misuse, "X0003", text))
}

/// Returns a help text with the known name most similar to an unknown one, if there is one.
pub(crate) fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
    nearest(name, known).map(|near| format!("did you mean `{near}`?"))
}

/// Writes an error to standard error, with source lines; with colours on a terminal.
pub(crate) fn print_error(error: &anyhow::Error) {
    match error.downcast_ref::<Error>() {
        Some(e) if !e.diagnostics.is_empty() => {
            print_diagnostics(&e.diagnostics);
        }
        Some(e) => error_text(e.render()),
        None => error_line(format_args!("error: {error:#}")),
    }
}

/// Maximum number of diagnostics with the same code and message that are shown.
const MAX_ALIKE: usize = 10;

/// Writes diagnostics to standard error. For each code and message that occurs more often than [`MAX_ALIKE`], the
/// last line has the number of those not shown.
fn print_diagnostics(all: &[Diagnostic]) {
    let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for d in all {
        let count = kinds.entry((d.code, d.message.as_str())).or_default();
        *count += 1;
        if *count <= MAX_ALIKE {
            error_text(rendered(d));
        }
    }
    for ((code, message), count) in kinds.iter().filter(|(_, count)| **count > MAX_ALIKE) {
        error_line(format_args!("{} more with [{code}] {message}", count - MAX_ALIKE));
    }
}

/// Writes an error to standard error as one line of JSON: `{"errors": […]}`, each with its code, message and position;
/// errors of running programs have the active calls, outermost first.
pub(crate) fn print_error_json(error: &anyhow::Error) {
    let errors = match error.downcast_ref::<Error>() {
        Some(e) if !e.diagnostics.is_empty() => e.diagnostics.iter().map(as_json).collect(),
        Some(e) => {
            let fault = e.fault.to_string();
            let traceback: Vec<Value> = e.trace.iter().map(call_as_json).collect();
            vec![json!({
                "code": e.code, "fault": fault, "class": e.class, "message": e.message, "traceback": traceback,
                "help": e.help,
            })]
        }
        None => vec![json!({"message": format!("{error:#}")})],
    };
    error_line(json!({ "errors": errors }));
}

fn call_as_json(call: &TraceEntry) -> Value {
    let mut fields = json!({"function": call.function.to_string(), "operator": call.op.to_string()});
    if let Some(range) = &call.range {
        let (line, column) = range.source.line_column(range.range.start as usize);
        fields["file"] = range.source.name.to_string().into();
        fields["line"] = line.into();
        fields["column"] = column.into();
    }
    fields
}

fn as_json(d: &Diagnostic) -> Value {
    let place = |label: &flambeau::ir::diag::Label| {
        let (source, range) = (&label.at.source, &label.at.range);
        let (line, column) = source.line_column(range.start as usize);
        let (end_line, end_column) = source.line_column(range.end as usize);
        json!({
            "file": source.name.to_string(), "line": line, "column": column, "end_line": end_line,
            "end_column": end_column, "label": label.text,
        })
    };
    json!({
        "code": d.code,
        "fault": d.fault.to_string(),
        "message": d.message,
        "place": d.primary.as_ref().map(place),
        "related": d.secondary.iter().map(place).collect::<Vec<_>>(),
        "notes": d.notes,
        "help": d.help,
    })
}

/// A source longer than this is shown in the plain form, which truncates it.
const MAX_SOURCE: usize = 1 << 20;

fn rendered(d: &Diagnostic) -> String {
    let Some(primary) = &d.primary else { return d.render() };
    if !can_be_shown(&primary.at) {
        return d.render();
    }
    // The source from which an archive's code was printed is shown below the code.
    let original = primary.at.original().filter(can_be_shown);
    let kind = d.fault.to_string();
    let title = Level::ERROR.with_name(&kind).primary_title(&d.message).id(d.code);
    let mut group = title.element(snippet(&primary.at, &primary.text));
    if let Some(original) = &original {
        group = group.element(snippet(original, "printed from here"));
    }
    let mut text = format!("{}\n", Renderer::styled().render(&[group]));
    for note in &d.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    if let Some(help) = &d.help {
        text.push_str(&format!("  help: {help}\n"));
    }
    text
}

/// Returns whether a position is within its text, and the text is short enough to be shown with surrounding lines.
fn can_be_shown(at: &SourceRange) -> bool {
    let (text, start, end) = (&at.source.text, at.range.start as usize, at.range.end as usize);
    let whole = text.len() <= MAX_SOURCE && start <= text.len() && text.is_char_boundary(start);
    whole && text.is_char_boundary(end.clamp(start, text.len())) && longest_line(text) <= 400
}

/// Returns a snippet of a position for which [`can_be_shown`] is true, with its lines.
fn snippet<'a>(at: &'a SourceRange, label: &'a str) -> Snippet<'a, Annotation<'a>> {
    let (source, start) = (&at.source, at.range.start as usize);
    let end = (at.range.end as usize).clamp(start, source.text.len());
    let snippet = Snippet::source(&source.text).path(&source.name).line_start(source.first_line as usize);
    snippet.annotation(AnnotationKind::Primary.span(start..end).label(label))
}

fn longest_line(text: &str) -> usize {
    text.lines().map(str::len).max().unwrap_or(0)
}
