//! A cursor over text, shared by the parsers of types and schemas.

use super::TypeParseError;
use flambeau_tensor::Fault;

/// A position in a text with the token functions of the type and schema parsers. Tokens skip leading whitespace and, in
/// graph text, comments.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    pub(crate) text: &'a str,
    pub(crate) pos: usize,
    /// Whether comments count as whitespace, as in graph text.
    pub(crate) comments: bool,
}

/// Returns whether this byte starts a comment of graph text, which extends to the end of the line.
#[inline]
pub(crate) fn starts_comment(b: u8) -> bool {
    matches!(b, b'#' | b';')
}

/// Returns the end of the line that contains `pos`.
pub(crate) fn end_of_line(bytes: &[u8], pos: usize) -> usize {
    bytes[pos..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| pos + n)
}

pub(crate) fn starts_name(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_'
}

pub(crate) fn continues_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, pos: usize) -> Self {
        Self { text, pos, comments: false }
    }

    #[inline]
    pub(crate) fn blanks(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&b) = bytes.get(self.pos) {
            if b.is_ascii_whitespace() {
                self.pos += 1;
            } else if self.comments && starts_comment(b) {
                self.pos = end_of_line(bytes, self.pos);
            } else {
                break;
            }
        }
    }

    /// Skips whitespace and returns the next byte.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.here()
    }

    /// Returns the byte at the position.
    #[inline]
    pub(crate) fn here(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    /// Returns the byte `n` bytes after the position.
    #[inline]
    pub(crate) fn ahead(&self, n: usize) -> Option<u8> {
        self.text.as_bytes().get(self.pos + n).copied()
    }

    /// Consumes `token` if it is next.
    #[inline]
    pub(crate) fn eat(&mut self, token: &str) -> bool {
        self.blanks();
        let found = self.text.as_bytes()[self.pos..].starts_with(token.as_bytes());
        if found {
            self.pos += token.len();
        }
        found
    }

    pub(crate) fn expect(&mut self, token: &str) -> Result<(), TypeParseError> {
        if self.eat(token) { Ok(()) } else { Err(self.error(format!("expected `{token}`"))) }
    }

    /// Consumes a name without dots; returns the empty string if no name is next.
    #[inline]
    pub(crate) fn name(&mut self) -> &'a str {
        self.blanks();
        self.name_here(false)
    }

    /// Consumes a name with dots between its parts; returns the empty string if no name is next.
    #[inline]
    pub(crate) fn dotted(&mut self) -> &'a str {
        self.blanks();
        self.name_here(true)
    }

    fn name_here(&mut self, dots: bool) -> &'a str {
        let bytes = self.text.as_bytes();
        let start = self.pos;
        if !self.here().is_some_and(starts_name) {
            return "";
        }
        let mut at = start + 1;
        while let Some(&b) = bytes.get(at) {
            let dot = dots && b == b'.' && bytes.get(at + 1).is_some_and(|&next| continues_name(next));
            if !dot && !continues_name(b) {
                break;
            }
            at += 1;
        }
        self.pos = at;
        &self.text[start..at]
    }

    /// Consumes an integer with an optional minus sign.
    pub(crate) fn int(&mut self) -> Result<i64, TypeParseError> {
        self.blanks();
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let mut at = start + usize::from(self.here() == Some(b'-'));
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        let value = self.text[start..at].parse().map_err(|_| self.error("expected an integer"))?;
        self.pos = at;
        Ok(value)
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> TypeParseError {
        TypeParseError { offset: self.pos, message: message.into(), fault: Fault::Input }
    }
}
