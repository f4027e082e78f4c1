//! Byte ranges of a source, and problems reported at them.

/// A half-open byte range of one source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the range `start..end`.
    pub fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// Returns the smallest range that covers `self` and `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Classes of problems.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ProblemKind {
    /// The source is not valid TorchScript.
    Syntax,
    /// The source is valid Python outside of the TorchScript subset.
    Unsupported,
    /// A limit of [`crate::FrontendLimits`] is exceeded.
    Limit,
}

/// A problem found while reading a source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The class of the problem.
    pub kind: ProblemKind,
    /// The range of the source that causes the problem.
    pub span: Span,
    /// One line of text that describes the problem.
    pub message: String,
}

impl Problem {
    /// Creates a problem of class `kind` at `span`.
    pub fn new(kind: ProblemKind, span: Span, message: impl Into<String>) -> Self {
        Problem { kind, span, message: message.into() }
    }
}
