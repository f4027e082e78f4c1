//! Byte ranges of a source, and problems found in them.

/// A half-open range of bytes in one source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`.
    pub fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// The smallest range that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Whose fault a problem is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ProblemKind {
    /// The text is not TorchScript.
    Syntax,
    /// The text is Python, but not of the part that TorchScript has.
    Unsupported,
    /// A bound of [`crate::Limits`] is exceeded.
    Limit,
}

/// One problem of reading a source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Whose fault.
    pub kind: ProblemKind,
    /// Where.
    pub span: Span,
    /// What, in one line.
    pub message: String,
}

impl Problem {
    /// A problem of `kind` at `span`.
    pub fn new(kind: ProblemKind, span: Span, message: impl Into<String>) -> Self {
        Problem { kind, span, message: message.into() }
    }
}
