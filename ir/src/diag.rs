//! Diagnostics as data: message, kind of fault, source ranges, notes and a suggestion.
//!
//! Library crates return diagnostics; only programs render them. [`Diagnostic::render`] produces plain text; the
//! command line adds colours.

use crate::loc::SourceRange;
pub use flambeau_tensor::Fault;
use std::fmt;

/// A source range with a remark.
#[derive(Clone, Debug)]
pub struct Label {
    /// The source range.
    pub at: SourceRange,
    /// The remark; may be empty for the primary range.
    pub text: String,
}

/// An error with the source ranges it refers to.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The kind of fault: wrong input, missing feature, misuse of the library, a limit, or an internal error.
    pub fault: Fault,
    /// Stable code: `F…` frontend, `V…` verifier, `S…` schema, `T…` text, `A…` archive, `X…` execution, `R…` rules.
    pub code: &'static str,
    /// One sentence without a final stop.
    pub message: String,
    /// The source range that caused the error.
    pub primary: Option<Label>,
    /// Source ranges that explain the error.
    pub secondary: Vec<Label>,
    /// Remarks without a place: candidates, the chain of calls being compiled.
    pub notes: Vec<String>,
    /// A suggestion for a fix.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates a diagnostic without source ranges.
    pub fn new(fault: Fault, code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            fault,
            code,
            message: message.into(),
            primary: None,
            secondary: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// Sets the primary source range; one of an edited text becomes that of its original.
    pub fn at(mut self, at: SourceRange) -> Self {
        self.primary = Some(Label { at: at.before_edits(), text: String::new() });
        self
    }

    /// Sets the remark at the primary range. No effect without a primary range.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        if let Some(primary) = &mut self.primary {
            primary.text = text.into();
        }
        self
    }

    /// Adds a secondary source range with a remark; one of an edited text becomes that of its original.
    pub fn also(mut self, at: SourceRange, text: impl Into<String>) -> Self {
        self.secondary.push(Label { at: at.before_edits(), text: text.into() });
        self
    }

    /// Adds a note.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Sets the suggestion.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Renders plain multi-line text: the message, then each source range with its line underlined, then notes and the
    /// suggestion.
    pub fn render(&self) -> String {
        let mut out = format!("{}[{}]: {}\n", self.fault, self.code, self.message);
        for label in self.primary.iter().chain(&self.secondary) {
            render_label(&mut out, label);
            if let Some(at) = label.at.original() {
                render_label(&mut out, &Label { at, text: "printed from here".to_owned() });
            }
        }
        for note in &self.notes {
            out.push_str(&format!("  note: {}\n", note.replace('\n', "\n        ")));
        }
        if let Some(help) = &self.help {
            out.push_str(&format!("  help: {help}\n"));
        }
        out
    }
}

/// Longest part of a source line that is shown, in bytes. Hostile inputs have lines of megabytes.
const MAX_LINE_BYTES: usize = 160;

fn render_label(out: &mut String, label: &Label) {
    let source = &label.at.source;
    let start = floor_boundary(&source.text, label.at.range.start as usize);
    let (line, column) = source.line_column(start);
    out.push_str(&format!("  --> {}:{line}:{column}\n", source.name));
    let line_start = source.text[..start].rfind('\n').map_or(0, |i| i + 1);
    let line_end = source.text[start..].find('\n').map_or(source.text.len(), |i| start + i);
    let from = if start - line_start > MAX_LINE_BYTES / 2 {
        floor_boundary(&source.text, start - MAX_LINE_BYTES / 2)
    } else {
        line_start
    };
    let to = floor_boundary(&source.text, line_end.min(from + MAX_LINE_BYTES));
    let shown = &source.text[from..to];
    let end = floor_boundary(&source.text, label.at.range.end as usize).clamp(start, to.max(start));
    let pad = source.text[from..start].chars().count();
    let width = source.text[start..end].chars().count().max(1);
    let number = line.to_string();
    out.push_str(&format!("  {number} | {shown}\n"));
    out.push_str(&format!("  {} | {}{}", " ".repeat(number.len()), " ".repeat(pad), "^".repeat(width)));
    if !label.text.is_empty() {
        out.push_str(&format!(" {}", label.text));
    }
    out.push('\n');
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render().trim_end())
    }
}

impl std::error::Error for Diagnostic {}
