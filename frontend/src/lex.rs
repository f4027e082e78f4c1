//! Lexer: source text to a flat array of tokens.
//!
//! The lexer makes one pass over the bytes, and one more per nesting level of f-strings, so its time is linear in the
//! length of the source. A stack of columns turns indentation into [`Tok::Indent`] and [`Tok::Dedent`]; line ends inside
//! brackets are skipped. The column of the first statement is the base, so an indented snippet is a valid source.
//!
//! Invariants: tokens are in source order and do not overlap; every `Indent` has its `Dedent` before [`Tok::Eof`]; the
//! last token is `Eof`. A token is only a kind and a range: the parser decodes literals, because it can report errors
//! in terms of the construct around them.
//!
//! An f-string becomes a run of tokens: [`Tok::FStart`], then text pieces and expressions between [`Tok::FOpen`] and
//! [`Tok::FClose`], then [`Tok::FEnd`].

use crate::limits::FrontendLimits;
use crate::span::{Problem, ProblemKind, Span};

/// Kinds of tokens. Operators and keywords are named after their text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "each is the token of its name")]
pub enum Tok {
    Eof,
    Newline,
    Indent,
    Dedent,
    Ident,
    Number,
    Str,
    /// The opening of an f-string, prefix and quotes included.
    FStart,
    /// Literal text inside an f-string, escapes not yet decoded.
    FText,
    FOpen,
    FClose,
    FEnd,
    /// `# type:`; the tokens of the type follow.
    TypeComment,
    LParen,
    RParen,
    LBracket,
    RBracket,
    LBrace,
    RBrace,
    Colon,
    Comma,
    Semicolon,
    Dot,
    Ellipsis,
    At,
    Arrow,
    Walrus,
    Assign,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    DoubleStar,
    DoubleSlash,
    Shl,
    Shr,
    Amp,
    Pipe,
    Caret,
    Tilde,
    Bang,
    Lt,
    Gt,
    Le,
    Ge,
    EqEq,
    NotEq,
    PlusAssign,
    MinusAssign,
    StarAssign,
    SlashAssign,
    PercentAssign,
    DoubleStarAssign,
    DoubleSlashAssign,
    AtAssign,
    ShlAssign,
    ShrAssign,
    AmpAssign,
    PipeAssign,
    CaretAssign,
    Def,
    Class,
    If,
    Elif,
    Else,
    While,
    For,
    In,
    Not,
    And,
    Or,
    Is,
    Return,
    Raise,
    Assert,
    Break,
    Continue,
    Del,
    Pass,
    Import,
    From,
    With,
    As,
    Global,
    Nonlocal,
    Try,
    Except,
    Finally,
    Lambda,
    Yield,
    Async,
    Await,
    True,
    False,
    None,
}

impl Tok {
    /// Returns the name of the token kind in messages.
    pub fn describe(self) -> &'static str {
        use Tok::*;
        match self {
            Eof => "end of file",
            Newline => "end of line",
            Indent => "indented block",
            Dedent => "end of block",
            Ident => "name",
            Number => "number",
            Str => "string",
            FStart | FText | FOpen | FClose | FEnd => "f-string",
            TypeComment => "`# type:` comment",
            _ => OPERATORS.iter().chain(KEYWORDS).find(|(_, t)| *t == self).map_or("token", |(s, _)| s),
        }
    }

    fn keyword(text: &str) -> Option<Tok> {
        let first = *text.as_bytes().first()?;
        rows_of(KEYWORDS, &KEYWORD_STARTS, first).find(|(s, _)| *s == text).map(|(_, t)| *t)
    }

    /// Returns true for keywords, which are still valid as a member name after a dot.
    pub fn is_keyword(self) -> bool {
        self as u8 >= Tok::Def as u8
    }
}

/// Operators, grouped by first byte. Within a group the longest come first, so the first match is the longest.
const OPERATORS: &[(&str, Tok)] = &[
    ("**=", Tok::DoubleStarAssign),
    ("**", Tok::DoubleStar),
    ("*=", Tok::StarAssign),
    ("*", Tok::Star),
    ("//=", Tok::DoubleSlashAssign),
    ("//", Tok::DoubleSlash),
    ("/=", Tok::SlashAssign),
    ("/", Tok::Slash),
    ("<<=", Tok::ShlAssign),
    ("<<", Tok::Shl),
    ("<=", Tok::Le),
    ("<", Tok::Lt),
    (">>=", Tok::ShrAssign),
    (">>", Tok::Shr),
    (">=", Tok::Ge),
    (">", Tok::Gt),
    ("...", Tok::Ellipsis),
    (".", Tok::Dot),
    ("->", Tok::Arrow),
    ("-=", Tok::MinusAssign),
    ("-", Tok::Minus),
    (":=", Tok::Walrus),
    (":", Tok::Colon),
    ("==", Tok::EqEq),
    ("=", Tok::Assign),
    ("!=", Tok::NotEq),
    ("!", Tok::Bang),
    ("+=", Tok::PlusAssign),
    ("+", Tok::Plus),
    ("%=", Tok::PercentAssign),
    ("%", Tok::Percent),
    ("@=", Tok::AtAssign),
    ("@", Tok::At),
    ("&=", Tok::AmpAssign),
    ("&", Tok::Amp),
    ("|=", Tok::PipeAssign),
    ("|", Tok::Pipe),
    ("^=", Tok::CaretAssign),
    ("^", Tok::Caret),
    ("(", Tok::LParen),
    (")", Tok::RParen),
    ("[", Tok::LBracket),
    ("]", Tok::RBracket),
    ("{", Tok::LBrace),
    ("}", Tok::RBrace),
    (",", Tok::Comma),
    (";", Tok::Semicolon),
    ("~", Tok::Tilde),
];

/// Keywords, sorted by first byte.
const KEYWORDS: &[(&str, Tok)] = &[
    ("False", Tok::False),
    ("None", Tok::None),
    ("True", Tok::True),
    ("and", Tok::And),
    ("as", Tok::As),
    ("assert", Tok::Assert),
    ("async", Tok::Async),
    ("await", Tok::Await),
    ("break", Tok::Break),
    ("class", Tok::Class),
    ("continue", Tok::Continue),
    ("def", Tok::Def),
    ("del", Tok::Del),
    ("elif", Tok::Elif),
    ("else", Tok::Else),
    ("except", Tok::Except),
    ("finally", Tok::Finally),
    ("for", Tok::For),
    ("from", Tok::From),
    ("global", Tok::Global),
    ("if", Tok::If),
    ("import", Tok::Import),
    ("in", Tok::In),
    ("is", Tok::Is),
    ("lambda", Tok::Lambda),
    ("nonlocal", Tok::Nonlocal),
    ("not", Tok::Not),
    ("or", Tok::Or),
    ("pass", Tok::Pass),
    ("raise", Tok::Raise),
    ("return", Tok::Return),
    ("try", Tok::Try),
    ("while", Tok::While),
    ("with", Tok::With),
    ("yield", Tok::Yield),
];

/// Returns, for each first byte, the index of its first row in `rows`, or `rows.len()` if there is none.
const fn starts(rows: &[(&str, Tok)]) -> [u8; 128] {
    let mut starts = [rows.len() as u8; 128];
    let mut i = rows.len();
    while i > 0 {
        i -= 1;
        starts[rows[i].0.as_bytes()[0] as usize] = i as u8;
    }
    starts
}

static OPERATOR_STARTS: [u8; 128] = starts(OPERATORS);
static KEYWORD_STARTS: [u8; 128] = starts(KEYWORDS);

/// Returns the rows of a table whose text starts with `first`.
fn rows_of(
    rows: &'static [(&'static str, Tok)],
    starts: &[u8; 128],
    first: u8,
) -> impl Iterator<Item = &'static (&'static str, Tok)> {
    let start = starts.get(first as usize).map_or(rows.len(), |&i| i as usize);
    rows[start..].iter().take_while(move |(text, _)| text.as_bytes()[0] == first)
}

/// Returns the number of leading spaces of `text`.
fn spaces(text: &[u8]) -> usize {
    const WORD: usize = size_of::<u64>();
    let words = text.chunks_exact(WORD).take_while(|word| **word == [b' '; WORD]).count();
    let rest = &text[words * WORD..];
    words * WORD + rest.iter().take_while(|&&b| b == b' ').count()
}

/// One token: a kind and the byte range it covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// The kind.
    pub kind: Tok,
    /// Offset of the first byte.
    pub start: u32,
    /// Length in bytes (0 for `Indent`, `Dedent`, `Eof` and an implied `Newline`).
    pub len: u32,
}

impl Token {
    /// Returns the byte range of the token.
    pub fn span(self) -> Span {
        Span::new(self.start, self.start + self.len)
    }
}

/// Maximum nesting of f-strings: each level needs different quotes, and there are four kinds of quotes.
const MAX_F_NESTING: u32 = 4;

/// Splits `src` into tokens. Appends problems to `problems`, up to `limits.problems` of them, and continues to the end of
/// the source.
pub fn lex(src: &str, limits: &FrontendLimits, problems: &mut Vec<Problem>) -> Vec<Token> {
    if src.len() > limits.source_bytes.min(u32::MAX as usize - 1) {
        problems.push(Problem::new(
            ProblemKind::Limit,
            Span::new(0, 0),
            format!("the source has {} bytes, more than the limit `source_bytes`", src.len()),
        ));
        return vec![Token { kind: Tok::Eof, start: 0, len: 0 }];
    }
    let mut lexer = Lexer {
        src,
        bytes: src.as_bytes(),
        pos: if src.starts_with('\u{feff}') { 3 } else { 0 },
        end: src.len(),
        tokens: Vec::with_capacity(src.len() / 3),
        indents: Vec::new(),
        brackets: Vec::new(),
        problems,
        max_problems: limits.max_problems(),
    };
    lexer.file();
    lexer.tokens
}

struct Lexer<'a> {
    src: &'a str,
    bytes: &'a [u8],
    pos: usize,
    /// End of the text, or of the f-string expression being lexed.
    end: usize,
    tokens: Vec<Token>,
    indents: Vec<u32>,
    /// Offsets of the open brackets, each with its closing byte.
    brackets: Vec<(u32, u8)>,
    /// The problems found, at most `max_problems`; further ones are dropped.
    problems: &'a mut Vec<Problem>,
    max_problems: usize,
}

impl Lexer<'_> {
    fn at(&self, i: usize) -> u8 {
        if i < self.end { self.bytes[i] } else { 0 }
    }

    fn push(&mut self, kind: Tok, start: usize, end: usize) {
        self.tokens.push(Token { kind, start: start as u32, len: (end - start) as u32 });
    }

    fn problem(&mut self, start: usize, end: usize, message: impl Into<String>) {
        if self.problems.len() < self.max_problems {
            let span = Span::new(start as u32, end.max(start) as u32);
            self.problems.push(Problem::new(ProblemKind::Syntax, span, message));
        }
    }

    fn file(&mut self) {
        loop {
            if !self.indentation() {
                break;
            }
            self.tokens_until_newline(0);
        }
        self.unclosed_brackets();
        let end = self.bytes.len();
        if self.tokens.last().is_some_and(|t| !matches!(t.kind, Tok::Newline | Tok::Dedent)) {
            self.push(Tok::Newline, end, end);
        }
        for _ in 1..self.indents.len() {
            self.push(Tok::Dedent, end, end);
        }
        self.push(Tok::Eof, end, end);
    }

    fn unclosed_brackets(&mut self) {
        if let Some((at, _)) = self.brackets.first().copied() {
            let at = at as usize;
            let open = self.bytes[at] as char;
            self.problem(at, at + 1, format!("`{open}` is never closed"));
        }
        self.brackets.clear();
    }

    /// Measures the indentation of the next line that has a statement. Returns false at the end of the text.
    fn indentation(&mut self) -> bool {
        let mut column = 0u32;
        loop {
            match self.at(self.pos) {
                _ if self.pos >= self.end => return false,
                b' ' => {
                    let count = spaces(&self.bytes[self.pos..self.end]);
                    column += count as u32;
                    self.pos += count;
                    continue;
                }
                b'\t' => column = column / 8 * 8 + 8,
                b'\n' | b'\r' | 0x0c => column = 0,
                b'#' if self.type_comment().is_none() => {
                    self.skip_comment();
                    continue;
                }
                b'\\' if self.line_end_len(self.pos + 1) > 0 => {
                    self.pos += self.line_end_len(self.pos + 1);
                }
                _ => break,
            }
            self.pos += 1;
        }
        let here = self.pos;
        let current = *self.indents.last().unwrap_or(&column);
        if self.indents.is_empty() {
            self.indents.push(column);
        } else if column > current {
            self.indents.push(column);
            self.push(Tok::Indent, here, here);
        } else if column < current {
            while self.indents.len() > 1 && self.indents.last().is_some_and(|&c| c > column) {
                self.indents.pop();
                self.push(Tok::Dedent, here, here);
            }
            if self.indents.last() != Some(&column) {
                self.problem(here, here, "this line's indentation matches no enclosing block");
            }
        }
        true
    }

    /// Returns the length in bytes of the line end at `i`, or 0 if there is none.
    fn line_end_len(&self, i: usize) -> usize {
        match (self.at(i), self.at(i + 1)) {
            (b'\r', b'\n') => 2,
            (b'\n' | b'\r', _) => 1,
            _ => 0,
        }
    }

    fn skip_comment(&mut self) {
        while self.pos < self.end && !matches!(self.bytes[self.pos], b'\n' | b'\r') {
            self.pos += 1;
        }
    }

    /// Returns the offset after `# type:` if the comment at the cursor is a type comment (and not `type: ignore`).
    fn type_comment(&self) -> Option<usize> {
        let rest = &self.bytes[self.pos + 1..self.end];
        let blanks = rest.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        let after = rest[blanks..].strip_prefix(b"type:")?;
        if after.trim_ascii_start().starts_with(b"ignore") {
            return None;
        }
        Some(self.pos + 1 + blanks + b"type:".len())
    }

    /// Lexes tokens up to and including the next line end outside of brackets.
    fn tokens_until_newline(&mut self, f_depth: u32) {
        while self.pos < self.end {
            let start = self.pos;
            match self.bytes[start] {
                b' ' | b'\t' | 0x0c => self.pos += 1,
                b'\n' | b'\r' => {
                    self.pos += self.line_end_len(start);
                    if self.brackets.is_empty() || (f_depth == 0 && self.definition_ahead()) {
                        self.unclosed_brackets();
                        self.push(Tok::Newline, start, self.pos);
                        return;
                    }
                }
                b'\\' if self.line_end_len(start + 1) > 0 => {
                    self.pos += 1 + self.line_end_len(start + 1);
                }
                b'#' => match self.type_comment() {
                    Some(end) => {
                        self.push(Tok::TypeComment, start, end);
                        self.pos = end;
                    }
                    None => self.skip_comment(),
                },
                b'0'..=b'9' => self.number(),
                b'.' if self.at(start + 1).is_ascii_digit() => self.number(),
                b'"' | b'\'' => self.string(start, f_depth),
                b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => self.word(f_depth),
                _ => self.operator(),
            }
        }
    }

    /// Returns true if a definition starts in column 0 here. Such a definition ends an unclosed bracket, which would
    /// otherwise swallow the rest of the file.
    fn definition_ahead(&self) -> bool {
        let rest = &self.bytes[self.pos..self.end];
        rest.starts_with(b"def ") || rest.starts_with(b"class ")
    }

    fn word(&mut self, f_depth: u32) {
        let start = self.pos;
        let bytes = self.bytes[start..self.end].iter();
        self.pos += bytes.take_while(|&&b| b == b'_' || b.is_ascii_alphanumeric()).count();
        let rest = if self.at(self.pos) < 0x80 { "" } else { &self.src[self.pos..self.end] };
        let more = self.pos;
        for (i, c) in rest.char_indices() {
            let fits = c == '_' || c.is_ascii_alphanumeric() || (!c.is_ascii() && c.is_alphanumeric());
            if !fits {
                break;
            }
            self.pos = more + i + c.len_utf8();
        }
        if self.pos == start {
            let c = self.src[start..].chars().next().map_or(1, char::len_utf8);
            self.pos += c;
            self.problem(start, self.pos, "this character has no meaning here");
            return;
        }
        let text = &self.src[start..self.pos];
        if matches!(self.at(self.pos), b'"' | b'\'')
            && text.len() <= 2
            && text.bytes().all(|b| b"rRbBfFuU".contains(&b))
        {
            return self.string(start, f_depth);
        }
        let kind = Tok::keyword(text).unwrap_or(Tok::Ident);
        self.push(kind, start, self.pos);
    }

    fn number(&mut self) {
        let start = self.pos;
        let mut i = start;
        let radix = matches!((self.at(i), self.at(i + 1) | 0x20), (b'0', b'x' | b'b' | b'o'));
        if radix {
            i += 2;
            while self.at(i).is_ascii_alphanumeric() || self.at(i) == b'_' {
                i += 1;
            }
        } else {
            while self.at(i).is_ascii_digit() || self.at(i) == b'_' {
                i += 1;
            }
            if self.at(i) == b'.' {
                i += 1;
                while self.at(i).is_ascii_digit() || self.at(i) == b'_' {
                    i += 1;
                }
            }
            if self.at(i) | 0x20 == b'e' {
                let sign = usize::from(matches!(self.at(i + 1), b'+' | b'-'));
                if self.at(i + 1 + sign).is_ascii_digit() {
                    i += 2 + sign;
                    while self.at(i).is_ascii_digit() || self.at(i) == b'_' {
                        i += 1;
                    }
                }
            }
            if self.at(i) | 0x20 == b'j' {
                i += 1;
            }
        }
        self.pos = i;
        self.push(Tok::Number, start, i);
    }

    /// Lexes a string: its token starts at `start` (the prefix), its quote is at the cursor.
    fn string(&mut self, start: usize, f_depth: u32) {
        let quote = self.bytes[self.pos];
        let triple = self.at(self.pos + 1) == quote && self.at(self.pos + 2) == quote;
        let quotes = if triple { 3 } else { 1 };
        let prefix = &self.bytes[start..self.pos];
        let formatted = prefix.iter().any(|b| b | 0x20 == b'f');
        let body = self.pos + quotes;
        let mut i = body;
        let closed = loop {
            match self.at(i) {
                _ if i >= self.end => break false,
                b'\\' => i += 1 + self.line_end_len(i + 1).max(1),
                b'\n' | b'\r' if !triple => break false,
                c if c == quote && (!triple || (self.at(i + 1) == quote && self.at(i + 2) == quote)) => {
                    break true;
                }
                _ => i += 1,
            }
        };
        let body_end = i.min(self.end);
        self.pos = if closed { body_end + quotes } else { body_end };
        if !closed {
            self.problem(start, body_end, "this string is never closed");
        }
        if !formatted {
            self.push(Tok::Str, start, self.pos);
        } else if f_depth >= MAX_F_NESTING {
            self.problem(start, self.pos, "f-strings are nested too deeply");
        } else {
            self.f_string(start, body, body_end, f_depth);
        }
    }

    fn f_string(&mut self, start: usize, body: usize, body_end: usize, f_depth: u32) {
        let after = self.pos;
        self.push(Tok::FStart, start, body);
        let (mut i, mut text) = (body, body);
        while i < body_end {
            let c = self.bytes[i];
            if (c == b'{' || c == b'}') && i + 1 < body_end && self.bytes[i + 1] == c {
                i += 2;
            } else if c == b'}' {
                self.problem(i, i + 1, "a single `}` in an f-string");
                i += 1;
            } else if c == b'{' {
                if text < i {
                    self.push(Tok::FText, text, i);
                }
                i = self.f_expression(i, body_end, f_depth);
                text = i;
            } else {
                i += 1;
            }
        }
        if text < body_end {
            self.push(Tok::FText, text, body_end);
        }
        self.push(Tok::FEnd, body_end, after);
        self.pos = after;
    }

    /// Lexes `{expression}` at `open`; returns the offset after it.
    fn f_expression(&mut self, open: usize, body_end: usize, f_depth: u32) -> usize {
        let (mut close, mut depth, mut quote) = (open + 1, 0u32, 0u8);
        while close < body_end {
            let c = self.bytes[close];
            match c {
                _ if quote != 0 => quote = if c == quote { 0 } else { quote },
                b'"' | b'\'' => quote = c,
                b'(' | b'[' | b'{' => depth += 1,
                b'}' if depth == 0 => break,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            close += 1;
        }
        self.push(Tok::FOpen, open, open + 1);
        if close >= body_end {
            self.problem(open, open + 1, "`{` of the f-string is never closed");
        }
        let (outer_end, outer_brackets) = (self.end, std::mem::take(&mut self.brackets));
        self.brackets.push((open as u32, 0));
        (self.pos, self.end) = (open + 1, close);
        self.tokens_until_newline(f_depth + 1);
        if let Some((at, _)) = self.brackets.get(1).copied() {
            self.problem(at as usize, at as usize + 1, "this bracket is never closed");
        }
        self.end = outer_end;
        self.brackets = outer_brackets;
        let after = (close + 1).min(body_end);
        self.push(Tok::FClose, close.min(body_end), after);
        after
    }

    fn operator(&mut self) {
        let start = self.pos;
        let rest = &self.bytes[start..self.end];
        let mut rows = rows_of(OPERATORS, &OPERATOR_STARTS, rest[0]);
        let Some((text, kind)) = rows.find(|(s, _)| rest.starts_with(s.as_bytes())) else {
            self.pos += 1;
            return self.problem(start, start + 1, "this character has no meaning here");
        };
        match kind {
            Tok::LParen => self.brackets.push((start as u32, b')')),
            Tok::LBracket => self.brackets.push((start as u32, b']')),
            Tok::LBrace => self.brackets.push((start as u32, b'}')),
            Tok::RParen | Tok::RBracket | Tok::RBrace
                // The parser reports mismatched brackets; here they only must not hide line ends.
                if self.brackets.last().is_some_and(|&(_, c)| c == rest[0]) => {
                    self.brackets.pop();
                }
            _ => {}
        }
        self.pos += text.len();
        self.push(*kind, start, start + text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(src: &str) -> Vec<Tok> {
        let mut problems = Vec::new();
        let toks = lex(src, &FrontendLimits::default(), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        toks.into_iter().map(|t| t.kind).collect()
    }

    fn problems(src: &str) -> Vec<String> {
        let mut problems = Vec::new();
        lex(src, &FrontendLimits::default(), &mut problems);
        problems.into_iter().map(|p| p.message).collect()
    }

    #[test]
    fn indentation_is_a_stack() {
        use Tok::*;
        let src = "def f():\n  if a:\n      b\n\n  # note\n  c\nd";
        assert_eq!(
            kinds(src),
            [
                Def, Ident, LParen, RParen, Colon, Newline, Indent, If, Ident, Colon, Newline, Indent, Ident,
                Newline, Dedent, Ident, Newline, Dedent, Ident, Newline, Eof
            ]
        );
        assert_eq!(kinds("   a\n   b\n"), [Ident, Newline, Ident, Newline, Eof]);
        assert_eq!(problems("if a:\n    b\n  c\n").len(), 1);
    }

    #[test]
    fn brackets_and_backslashes_join_lines() {
        use Tok::*;
        assert_eq!(kinds("(a,\n   b)\n"), [LParen, Ident, Comma, Ident, RParen, Newline, Eof]);
        assert_eq!(kinds("a + \\\n  b\n"), [Ident, Plus, Ident, Newline, Eof]);
        assert_eq!(kinds("a\r\nb\r\n"), [Ident, Newline, Ident, Newline, Eof]);
    }

    #[test]
    fn tables_are_in_order() {
        for (rows, starts) in [(OPERATORS, &OPERATOR_STARTS), (KEYWORDS, &KEYWORD_STARTS)] {
            for row in rows {
                assert!(rows_of(rows, starts, row.0.as_bytes()[0]).any(|r| r == row), "{row:?}");
            }
        }
        assert!(OPERATORS.windows(2).all(|w| !w[1].0.starts_with(w[0].0)), "longest first");
        assert_eq!([spaces(b""), spaces(b"  x "), spaces(&[b' '; 19])], [0, 2, 19]);
    }

    #[test]
    fn comments() {
        use Tok::*;
        assert_eq!(kinds("a # b\n# c\n"), [Ident, Newline, Eof]);
        assert_eq!(kinds("# type: int\n"), [TypeComment, Ident, Newline, Eof]);
        assert_eq!(kinds("a # type: ignore[x]\n"), [Ident, Newline, Eof]);
    }

    #[test]
    fn numbers_and_strings() {
        let mut p = Vec::new();
        let src = "1 1.5 .5 5. 1e-5 1e5j 0x1F 1_000 'a\\'b' \"\"\"x\ny\"\"\" r'\\d' 1.e3 2..x";
        let toks = lex(src, &FrontendLimits::default(), &mut p);
        let texts: Vec<_> = toks.iter().map(|t| &src[t.start as usize..(t.start + t.len) as usize]).collect();
        assert_eq!(
            texts[..14],
            [
                "1",
                "1.5",
                ".5",
                "5.",
                "1e-5",
                "1e5j",
                "0x1F",
                "1_000",
                "'a\\'b'",
                "\"\"\"x\ny\"\"\"",
                "r'\\d'",
                "1.e3",
                "2.",
                "."
            ]
        );
        assert_eq!(problems("'abc\n").len(), 1);
        assert_eq!(problems("a $ b").len(), 1);
    }

    #[test]
    fn f_strings_are_token_runs() {
        use Tok::*;
        assert_eq!(
            kinds("f\"a{x+1}b{{c}}{d['k']}\""),
            [
                FStart, FText, FOpen, Ident, Plus, Number, FClose, FText, FOpen, Ident, LBracket, Str,
                RBracket, FClose, FEnd, Newline, Eof
            ]
        );
        assert_eq!(problems("f'{a'").len(), 1);
    }

    #[test]
    fn an_unclosed_bracket_ends_at_the_next_definition() {
        let p = problems("def f():\n  return (1\ndef g():\n  return 2\n");
        assert_eq!(p, ["`(` is never closed"]);
    }

    #[test]
    fn longest_operator_wins() {
        use Tok::*;
        assert_eq!(
            kinds("a//=b**c>>=d->e...:="),
            [
                Ident,
                DoubleSlashAssign,
                Ident,
                DoubleStar,
                Ident,
                ShrAssign,
                Ident,
                Arrow,
                Ident,
                Ellipsis,
                Walrus,
                Newline,
                Eof
            ]
        );
    }
}
