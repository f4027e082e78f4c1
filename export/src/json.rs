//! A pull parser for JSON: the caller asks for the value it expects, and no tree is built.
//!
//! `serde_json` is not used here for three reasons: files of schema 8.2 have the bare tokens `NaN`, `Infinity` and
//! `-Infinity`, which are not JSON; fields of later versions are kept as text; and errors have the path of the field and
//! the byte offset.
//!
//! [`JsonReader::object`] and [`JsonReader::array`] call a function per member, which must read exactly one value. The
//! nesting of calls is bounded by the limit of the constructor; [`JsonReader::skip`] uses no stack. Errors have code
//! `E001` (not JSON), `E002` (a value of another kind) or `E009` (nested too deeply), the offset, and the path.

use std::borrow::Cow;

use crate::error::quoted;
use crate::{ExportCode, ExportError};

/// Number of digits up to which integers are read without their text. All such numbers fit into 64 bits.
const SHORT_INT: usize = 18;

/// Number of bytes up to which strings are searched byte by byte.
const SHORT_TEXT: usize = 32;

/// A result of reading JSON.
pub type Res<T> = Result<T, ExportError>;

/// The kind of a value, known from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number, or a bare `NaN`, `Infinity` or `-Infinity`.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonKind {
    fn name(self) -> &'static str {
        match self {
            JsonKind::Null => "null",
            JsonKind::Bool => "a bool",
            JsonKind::Number => "a number",
            JsonKind::String => "a string",
            JsonKind::Array => "an array",
            JsonKind::Object => "an object",
        }
    }
}

/// A reader at a position of a JSON text.
#[derive(Debug)]
pub struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    /// Number of arrays and objects that may still be opened.
    depth: usize,
}

impl<'a> JsonReader<'a> {
    /// Creates a reader of `text` whose arrays and objects are nested at most `depth` deep.
    pub fn new(text: &'a str, depth: usize) -> Self {
        JsonReader { text, at: 0, depth }
    }

    /// Returns the current offset in bytes.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Returns the whole text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Continues at a byte offset, which must be one that [`JsonReader::offset`] returned for the same text.
    pub fn seek(&mut self, offset: usize) {
        self.at = offset;
    }

    /// Returns the kind of the next value.
    ///
    /// # Errors
    ///
    /// Returns `E001` if no value follows.
    #[inline]
    pub fn kind(&mut self) -> Res<JsonKind> {
        Ok(match self.next_byte() {
            Some(b'n') => JsonKind::Null,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'0'..=b'9' | b'-' | b'N' | b'I') => JsonKind::Number,
            Some(b'"') => JsonKind::String,
            Some(b'[') => JsonKind::Array,
            Some(b'{') => JsonKind::Object,
            _ => return Err(self.broken("expected a value")),
        })
    }

    /// Reads `null` if it is next, and returns whether it was.
    ///
    /// # Errors
    ///
    /// Returns `E001` if no value follows.
    pub fn null(&mut self) -> Res<bool> {
        Ok(self.kind()? == JsonKind::Null && self.word("null")?)
    }

    /// Reads a value, or `null` as `None`.
    ///
    /// # Errors
    ///
    /// Returns the errors of `read`.
    pub fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Res<T>) -> Res<Option<T>> {
        if self.null()? { Ok(None) } else { read(self).map(Some) }
    }

    /// Reads a bool.
    ///
    /// # Errors
    ///
    /// Returns `E002` if another value follows.
    pub fn bool(&mut self) -> Res<bool> {
        self.expect(JsonKind::Bool)?;
        match self.bytes()[self.at] {
            b't' => self.word("true"),
            _ => self.word("false").map(|_| false),
        }
    }

    /// Reads an integer of 64 bits.
    ///
    /// # Errors
    ///
    /// Returns `E002` if another value follows.
    pub fn int(&mut self) -> Res<i64> {
        self.expect(JsonKind::Number)?;
        if let Some(value) = self.short_int() {
            return Ok(value);
        }
        let from = self.at;
        let text = self.number()?;
        text.parse().map_err(|_| {
            let message = format!("expected an integer of 64 bits, found {}", quoted(text));
            ExportError::new(ExportCode::Field, message).at(from)
        })
    }

    /// Reads an integer of few digits, which most numbers of a program are; `None` if the number has another form.
    fn short_int(&mut self) -> Option<i64> {
        let rest = &self.bytes()[self.at..];
        let digits = rest.iter().take(SHORT_INT + 1).take_while(|b| b.is_ascii_digit()).count();
        let is_whole = matches!(rest.get(digits)?, b',' | b'}' | b']' | b' ' | b'\n');
        let has_zero_first = digits > 1 && rest[0] == b'0';
        if digits == 0 || digits > SHORT_INT || has_zero_first || !is_whole {
            return None;
        }
        self.at += digits;
        Some(rest[..digits].iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    }

    /// Reads a float: a number, one of the tokens `NaN`, `Infinity` and `-Infinity`, or one of these as a string.
    ///
    /// # Errors
    ///
    /// Returns `E002` if another value follows.
    pub fn float(&mut self) -> Res<f64> {
        let is_string = self.kind()? == JsonKind::String;
        let from = self.at;
        let text = if is_string {
            self.string()?
        } else {
            self.expect(JsonKind::Number)?;
            Cow::Borrowed(self.number()?)
        };
        match &*text {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            other if is_string => Err(self.not_a_float(other, from)),
            other => other.parse().map_err(|_| self.not_a_float(other, from)),
        }
    }

    fn not_a_float(&self, text: &str, at: usize) -> ExportError {
        ExportError::new(ExportCode::Field, format!("expected a float, found {}", quoted(text))).at(at)
    }

    /// Reads a string. It borrows from the text unless it has escapes.
    ///
    /// # Errors
    ///
    /// Returns `E002` if another value follows and `E001` if the string is malformed.
    pub fn string(&mut self) -> Res<Cow<'a, str>> {
        self.expect(JsonKind::String)?;
        let start = self.at + 1;
        // Names of fields and values are short: a search by the byte is faster than one that prepares vectors.
        let rest = &self.bytes()[start..];
        let plain = plain_bytes(rest);
        if rest.get(plain) == Some(&b'"') {
            self.at = start + plain + 1;
            return Ok(Cow::Borrowed(&self.text[start..start + plain]));
        }
        self.long_string(start)
    }

    /// Reads the rest of a string that begins at `start` and is long or has escapes.
    fn long_string(&mut self, start: usize) -> Res<Cow<'a, str>> {
        let mut from = start;
        let mut out = String::new();
        loop {
            let Some(length) = memchr::memchr2(b'"', b'\\', &self.bytes()[from..]) else {
                self.at = self.text.len();
                return Err(self.broken("a string does not end"));
            };
            let part = &self.text[from..from + length];
            self.at = from + length;
            // Without an early end the comparison of many bytes is one instruction.
            if part.bytes().fold(false, |found, b| found | (b < b' ')) {
                return Err(self.broken("a string has a control character"));
            }
            if self.bytes()[self.at] == b'"' {
                self.at += 1;
                if from == start {
                    return Ok(Cow::Borrowed(part));
                }
                out.push_str(part);
                return Ok(Cow::Owned(out));
            }
            if from == start {
                let end = memchr::memchr(b'"', &self.bytes()[self.at..]);
                out.reserve(length + end.unwrap_or_default());
            }
            out.push_str(part);
            out.push(self.escape()?);
            from = self.at;
        }
    }

    /// Reads the escape sequence at the current position.
    fn escape(&mut self) -> Res<char> {
        let kind = self.bytes().get(self.at + 1).copied();
        let simple = match kind {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.broken("a string has an unknown escape sequence")),
        };
        self.at += 2;
        Ok(simple)
    }

    /// Reads `\uXXXX`, or two of them that are the halves of one character.
    fn unicode_escape(&mut self) -> Res<char> {
        let unit = |at: usize| -> Option<u32> {
            let digits = self.bytes().get(at..at + 6)?.strip_prefix(b"\\u")?;
            let digits =
                std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
            u32::from_str_radix(digits, 16).ok()
        };
        let first = unit(self.at);
        let (code, length) = match first {
            Some(high @ 0xd800..0xdc00) => match unit(self.at + 6) {
                Some(low @ 0xdc00..0xe000) => (Some(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)), 12),
                _ => (None, 0),
            },
            other => (other, 6),
        };
        let Some(c) = code.and_then(char::from_u32) else {
            return Err(self.broken("a string has an escape sequence that is not a character"));
        };
        self.at += length;
        Ok(c)
    }

    /// Reads an array; `item` reads one element. Errors of an element get its index.
    ///
    /// # Errors
    ///
    /// Returns `E002` if another value follows, `E009` if it is nested too deeply, and the errors of `item`.
    pub fn array<T>(&mut self, mut item: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        self.open(JsonKind::Array)?;
        let mut out = Vec::new();
        while self.another(b']', out.is_empty())? {
            let value = item(self).map_err(|e| e.in_item(out.len()))?;
            out.push(value);
        }
        self.depth += 1;
        Ok(out)
    }

    /// Reads an object; `field` reads the value of the member with the given name. Errors get the name.
    ///
    /// # Errors
    ///
    /// Returns `E002` if another value follows, `E009` if it is nested too deeply, and the errors of `field`.
    pub fn object(&mut self, mut field: impl FnMut(&mut Self, &str) -> Res<()>) -> Res<()> {
        self.open(JsonKind::Object)?;
        let mut first = true;
        while self.another(b'}', first)? {
            first = false;
            let name = self.string()?;
            if self.next_byte() != Some(b':') {
                return Err(self.broken("expected `:`"));
            }
            self.at += 1;
            field(self, &name).map_err(|e| e.in_field(&name))?;
        }
        self.depth += 1;
        Ok(())
    }

    /// Skips a value and returns its text. Checks the balance of brackets and the form of strings, no more.
    ///
    /// # Errors
    ///
    /// Returns `E001` if no value follows or it does not end.
    pub fn skip(&mut self) -> Res<&'a str> {
        let kind = self.kind()?;
        let from = self.at;
        match kind {
            JsonKind::Array | JsonKind::Object => self.skip_nested()?,
            JsonKind::String => drop(self.string()?),
            JsonKind::Number => drop(self.number()?),
            JsonKind::Null => drop(self.word("null")?),
            JsonKind::Bool => drop(self.bool()?),
        }
        Ok(&self.text[from..self.at])
    }

    /// Skips to the end of the array or object that begins here. The open brackets are kept as one bit each.
    fn skip_nested(&mut self) -> Res<()> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.bytes().get(self.at) {
                Some(&bracket @ (b'[' | b'{')) => open.push(bracket),
                Some(&bracket @ (b']' | b'}')) => {
                    // The closing brackets are two code points behind the opening ones.
                    if open.pop().is_none_or(|o| o + 2 != bracket) {
                        return Err(self.broken("a bracket closes another one"));
                    }
                    if open.is_empty() {
                        self.at += 1;
                        return Ok(());
                    }
                }
                Some(b'"') => {
                    self.string()?;
                    continue;
                }
                Some(_) => {}
                None => return Err(self.broken("an array or object does not end")),
            }
            self.at += 1;
        }
    }

    /// Checks that only white space follows.
    ///
    /// # Errors
    ///
    /// Returns `E001` if anything else follows.
    pub fn end(&mut self) -> Res<()> {
        match self.next_byte() {
            None => Ok(()),
            Some(_) => Err(self.broken("the text continues after its value")),
        }
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Skips white space and returns the next byte.
    #[inline]
    fn next_byte(&mut self) -> Option<u8> {
        loop {
            match self.bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    #[inline]
    fn expect(&mut self, wanted: JsonKind) -> Res<()> {
        let found = self.kind()?;
        if found == wanted { Ok(()) } else { Err(self.unexpected(wanted, found)) }
    }

    #[cold]
    fn unexpected(&self, wanted: JsonKind, found: JsonKind) -> ExportError {
        let message = format!("expected {}, found {}", wanted.name(), found.name());
        ExportError::new(ExportCode::Field, message).at(self.at)
    }

    fn open(&mut self, kind: JsonKind) -> Res<()> {
        self.expect(kind)?;
        self.depth = self.depth.checked_sub(1).ok_or_else(|| {
            let message = "arrays and objects are nested deeper than the limit";
            ExportError::new(ExportCode::Limit, message).at(self.at)
        })?;
        self.at += 1;
        Ok(())
    }

    /// Reads the comma before a member, or the closing bracket. Returns whether a member follows.
    fn another(&mut self, close: u8, first: bool) -> Res<bool> {
        match self.next_byte() {
            Some(b) if b == close => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if first => Ok(true),
            _ => Err(self.broken("expected `,` or the end of an array or object")),
        }
    }

    /// Reads a word that must be next. Returns true.
    fn word(&mut self, word: &str) -> Res<bool> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.broken("expected a value"));
        }
        self.at += word.len();
        Ok(true)
    }

    /// Reads the text of a number, or of a bare `NaN`, `Infinity` or `-Infinity`.
    fn number(&mut self) -> Res<&'a str> {
        let rest = &self.bytes()[self.at..];
        let length = rest
            .iter()
            .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')))
            .unwrap_or(rest.len());
        let text = &self.text[self.at..self.at + length];
        if !is_number(text) {
            return Err(self.broken("expected a number"));
        }
        self.at += length;
        Ok(text)
    }

    #[cold]
    fn broken(&self, message: &str) -> ExportError {
        ExportError::new(ExportCode::Json, format!("this is not JSON: {message}")).at(self.at)
    }
}

/// Returns the number of bytes, at most [`SHORT_TEXT`], before the first one that ends a string or does not stand for itself in it.
/// Eight bytes are compared at once: subtraction of 1 from a byte sets its highest bit if the byte is 0, and of a space if it is
/// a control character. A borrow makes only bytes behind the first match wrong.
#[inline]
fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    for (i, eight) in bytes.chunks_exact(8).take(SHORT_TEXT / 8).enumerate() {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        let word = u64::from_le_bytes(word);
        let is_zero = |x: u64| x.wrapping_sub(ONES) & !x;
        let quotes = is_zero(word ^ (ONES * u64::from(b'"')));
        let backslashes = is_zero(word ^ (ONES * u64::from(b'\\')));
        let controls = word.wrapping_sub(ONES * u64::from(b' ')) & !word;
        let found = (quotes | backslashes | controls) & HIGH;
        if found != 0 {
            return i * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let from = (bytes.len() / 8 * 8).min(SHORT_TEXT);
    let rest = bytes[from..].iter().take(SHORT_TEXT - from);
    from + rest.take_while(|b| !matches!(b, b'"' | b'\\' | 0..b' ')).count()
}

/// Returns true for numbers of JSON and the tokens for values that are not finite.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if matches!(text, "NaN") || unsigned == "Infinity" {
        return true;
    }
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> JsonReader<'_> {
        JsonReader::new(text, 8)
    }

    #[test]
    fn scalars_are_read() {
        assert_eq!(json(" -9223372036854775808 ").int(), Ok(i64::MIN));
        for (text, value) in [
            ("0,", 0),
            ("17 ", 17),
            ("999999999999999999]", 999_999_999_999_999_999),
            ("1234567890123456789}", 1_234_567_890_123_456_789),
        ] {
            assert_eq!(json(text).int(), Ok(value));
        }
        assert!(json("01,").int().is_err() && json("1.5,").int().is_err() && json("1e2,").int().is_err());
        assert_eq!(json("1e300").float(), Ok(1e300));
        assert_eq!(json("3").float(), Ok(3.0));
        for text in ["Infinity", "\"Infinity\""] {
            assert_eq!(json(text).float(), Ok(f64::INFINITY));
        }
        assert!(json("NaN").float().is_ok_and(f64::is_nan));
        assert_eq!(json("-Infinity").float(), Ok(f64::NEG_INFINITY));
        assert_eq!(json("true").bool(), Ok(true));
        assert_eq!(json("null").null(), Ok(true));
        assert_eq!(json("\"a\\u00e9\\ud83d\\ude00\\n\"").string().as_deref(), Ok("aé😀\n"));
        assert!(matches!(json("\"plain\"").string(), Ok(Cow::Borrowed("plain"))));
        // Bytes that end a short string or are an error are found at each position, next to bytes like them.
        for at in 0..48 {
            for (byte, is_error) in [('"', false), ('\u{1}', true), ('\u{1f}', true)] {
                let text = format!("\"{}{byte}!!{}", "!".repeat(at), "\u{80}".repeat(16));
                let found = json(&text).string();
                assert_eq!(
                    (found.is_err(), found.as_deref().unwrap_or_default()),
                    (
                        is_error,
                        match is_error {
                            true => "",
                            false => &text[1..=at],
                        }
                    )
                );
            }
        }
        for length in [0, 1, 31, 32, 33, 200] {
            let (plain, escaped) = ("é".repeat(length), "\\n".repeat(length));
            assert_eq!(json(&format!("\"{plain}\"")).string(), Ok(Cow::Owned(plain)));
            let text = format!("\"{}{escaped}x\"", "y".repeat(length));
            assert_eq!(json(&text).string().map(|s| s.len()), Ok(2 * length + 1));
        }
    }

    #[test]
    fn wrong_kinds_and_broken_text_are_told_apart() {
        for text in ["1.5", "NaN", "9223372036854775808", "\"1\"", "[]", "null"] {
            assert_eq!(json(text).int().expect_err(text).code(), ExportCode::Field, "{text}");
        }
        for text in ["", "nul", "01", "1.", "1e", "-", "+1", "\"a", "\"\\x\"", "\"\\ud800\"", "\"\t\"", "Inf"]
        {
            assert_eq!(json(text).skip().expect_err(text).code(), ExportCode::Json, "{text}");
        }
        for text in ["\"inf\"", "\"1\"", "true"] {
            assert_eq!(json(text).float().expect_err(text).code(), ExportCode::Field, "{text}");
        }
        let mut twice = json("1 2");
        assert_eq!((twice.int(), twice.end().map_err(|e| e.code())), (Ok(1), Err(ExportCode::Json)));
    }

    #[test]
    fn errors_have_path_and_offset() {
        let read = |json: &mut JsonReader<'_>| json.array(JsonReader::int);
        let mut out = Vec::new();
        let error = json("{\"a\": [1], \"b\": [1, 2.5]}")
            .object(|json, name| {
                out.push((name.to_owned(), read(json)?));
                Ok(())
            })
            .expect_err("no int");
        assert_eq!(out, [("a".to_owned(), vec![1])]);
        assert_eq!((error.field(), error.offset()), ("b[1]", Some(20)));
    }

    #[test]
    fn depth_is_limited_and_skipping_needs_no_stack() {
        fn depth(json: &mut JsonReader<'_>) -> Res<usize> {
            Ok(1 + json.array(depth)?.first().copied().unwrap_or(0))
        }
        assert_eq!(depth(&mut json("[[[[[[[[]]]]]]]]")), Ok(8));
        assert_eq!(depth(&mut json("[[[[[[[[[]]]]]]]]]")).expect_err("too deep").code(), ExportCode::Limit);
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(json(&deep).skip().map(str::len), Ok(200_000));
        let error = json("{\"a\": [}").skip().expect_err("unbalanced");
        assert_eq!((error.code(), error.offset()), (ExportCode::Json, Some(7)));
        assert!(json("[\"]\"").skip().is_err());
    }
}
