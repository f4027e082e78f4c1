//! A byte cursor over IR text.
//!
//! Line breaks are white space, since the grammar does not need them. A comment starts with `#` (as in the source
//! locations that PyTorch prints after nodes) or with `;` and ends with the line. Comments are allowed wherever white
//! space is.

use crate::diag::{Diagnostic, Fault};
use crate::loc::{Source, SourceRange};
use crate::types::{end_of_line, starts_comment};
use std::sync::Arc;

pub(super) struct Cursor<'t> {
    source: &'t Arc<Source>,
    pub(super) text: &'t str,
    pub(super) at: usize,
}

/// The result of parsing. The error is boxed because it is rare and large.
pub(super) type Read<T> = Result<T, Box<Diagnostic>>;

impl<'t> Cursor<'t> {
    pub(super) fn new(source: &'t Arc<Source>) -> Self {
        Cursor { source, text: &source.text, at: 0 }
    }

    fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }

    /// Skips spaces, line breaks and comments.
    pub(super) fn skip(&mut self) {
        let bytes = self.bytes();
        while let Some(&b) = bytes.get(self.at) {
            match b {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                b if starts_comment(b) => self.at = end_of_line(bytes, self.at),
                _ => break,
            }
        }
    }

    /// Skips white space and returns the next byte without consuming it; 0 at the end.
    pub(super) fn peek(&mut self) -> u8 {
        self.skip();
        self.bytes().get(self.at).copied().unwrap_or(0)
    }

    /// Returns the byte at the cursor without skipping white space; 0 at the end.
    pub(super) fn here(&self) -> u8 {
        self.bytes().get(self.at).copied().unwrap_or(0)
    }

    pub(super) fn eat(&mut self, b: u8) -> bool {
        let found = self.peek() == b;
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, b: u8) -> Read<()> {
        if self.eat(b) { Ok(()) } else { Err(self.expected(&format!("`{}`", char::from(b)))) }
    }

    /// Consumes bytes while they satisfy `f`, possibly none.
    pub(super) fn take_while(&mut self, f: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        let bytes = self.bytes();
        while bytes.get(self.at).is_some_and(|&b| f(b)) {
            self.at += 1;
        }
        // If `f` stops inside of a multi-byte character, the rest of the character is consumed.
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Consumes an identifier of letters, digits, underscores and dots.
    pub(super) fn word(&mut self) -> &'t str {
        self.skip();
        self.take_while(is_word)
    }

    /// Consumes `word` if it is the next identifier and not the namespace of a longer name; returns whether it was.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        self.skip();
        let start = self.at;
        let found = self.word() == word && self.here() != b':';
        if !found {
            self.at = start;
        }
        found
    }

    /// Consumes an operator's qualified name.
    pub(super) fn op_name(&mut self) -> Read<&'t str> {
        self.skip();
        let start = self.at;
        let name = self.take_while(|b| is_word(b) || b == b':');
        if name.is_empty() || name.starts_with(':') || name.ends_with(':') {
            self.at = start;
            return Err(self.expected("an operator, as `namespace::name`"));
        }
        Ok(name)
    }

    /// Consumes `%` and the name of a value.
    pub(super) fn value_name(&mut self) -> Read<&'t str> {
        self.expect(b'%')?;
        let name = self.take_while(is_word);
        if name.is_empty() { Err(self.expected("a value's name")) } else { Ok(name) }
    }

    /// Consumes the rest of the line up to a comment and returns the trimmed text.
    pub(super) fn rest_of_line(&mut self) -> &'t str {
        self.take_while(|b| b != b'\n' && !starts_comment(b)).trim()
    }

    pub(super) fn range(&self, start: usize, end: usize) -> SourceRange {
        SourceRange { source: Arc::clone(self.source), range: start as u32..end.max(start) as u32 }
    }

    /// Describes the text at the cursor for messages.
    fn found(&self) -> String {
        let rest = &self.text[self.at..];
        match rest.chars().next() {
            None => "the end of the text".to_owned(),
            Some('\n') => "the end of the line".to_owned(),
            Some(c) => {
                let word: String =
                    rest.chars().take_while(|&c| c.is_ascii() && is_word(c as u8)).take(32).collect();
                if word.is_empty() { format!("`{}`", c.escape_default()) } else { format!("`{word}`") }
            }
        }
    }

    pub(super) fn expected(&mut self, what: &str) -> Box<Diagnostic> {
        self.skip();
        let message = format!("expected {what}, found {}", self.found());
        self.error("T001", message, self.at, self.at + 1)
    }

    pub(super) fn error(
        &self,
        code: &'static str,
        message: impl Into<String>,
        start: usize,
        end: usize,
    ) -> Box<Diagnostic> {
        self.fault(Fault::Input, code, message, start, end)
    }

    pub(super) fn fault(
        &self,
        fault: Fault,
        code: &'static str,
        message: impl Into<String>,
        start: usize,
        end: usize,
    ) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(fault, code, message).at(self.range(start, end)))
    }
}

pub(super) fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b >= 0x80
}
