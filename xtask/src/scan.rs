//! A scanner that classifies every byte of a Rust file as code, comment or literal.

use crate::source::{Kind, is_word};

/// Returns the kind of every byte of `text`.
pub(crate) fn classify(text: &[u8]) -> Vec<Kind> {
    let mut kinds = vec![Kind::Code; text.len()];
    let mut at = 0;
    while at < text.len() {
        let (end, kind) = match text[at] {
            b'/' if text.get(at + 1) == Some(&b'/') => (line_end(text, at), Kind::Comment),
            b'/' if text.get(at + 1) == Some(&b'*') => (block_end(text, at), Kind::Comment),
            b'"' => (string_end(text, at), Kind::Literal),
            b'r' if !after_word(text, at) => match raw_end(text, at) {
                Some(end) => (end, Kind::Literal),
                None => (at + 1, Kind::Code),
            },
            b'\'' => match char_end(text, at) {
                Some(end) => (end, Kind::Literal),
                None => (at + 1, Kind::Code),
            },
            _ => (at + 1, Kind::Code),
        };
        kinds[at..end].fill(kind);
        at = end;
    }
    kinds
}

/// Returns whether an identifier ends at `at`. The `b` of `br"…"` and the `c` of `cr"…"` do not count as identifiers.
fn after_word(text: &[u8], at: usize) -> bool {
    if at == 0 || !is_word(text[at - 1]) {
        return false;
    }
    !(matches!(text[at - 1], b'b' | b'c') && (at == 1 || !is_word(text[at - 2])))
}

fn line_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|&b| b == b'\n').map_or(text.len(), |n| at + n)
}

fn block_end(text: &[u8], at: usize) -> usize {
    let mut depth = 0usize;
    let mut i = at;
    while i < text.len() {
        match &text[i..text.len().min(i + 2)] {
            b"/*" => {
                depth += 1;
                i += 2;
            }
            b"*/" => {
                depth -= 1;
                i += 2;
                if depth == 0 {
                    return i;
                }
            }
            _ => i += 1,
        }
    }
    text.len()
}

fn string_end(text: &[u8], at: usize) -> usize {
    let mut i = at + 1;
    while i < text.len() {
        match text[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    text.len()
}

/// Returns the end of the raw string whose `r` is at `at`; `None` if there is no raw string.
fn raw_end(text: &[u8], at: usize) -> Option<usize> {
    let hashes = text[at + 1..].iter().take_while(|&&b| b == b'#').count();
    let open = at + 1 + hashes;
    if text.get(open) != Some(&b'"') {
        return None;
    }
    let mut i = open + 1;
    while i < text.len() {
        let closes =
            text[i] == b'"' && text[i + 1..].iter().take(hashes).filter(|&&b| b == b'#').count() == hashes;
        if closes {
            return Some(i + 1 + hashes);
        }
        i += 1;
    }
    Some(text.len())
}

/// Returns the end of the character literal whose quote is at `at`; `None` for a lifetime or a label.
fn char_end(text: &[u8], at: usize) -> Option<usize> {
    let first = *text.get(at + 1)?;
    if first == b'\\' {
        let close = text[at + 3..].iter().position(|&b| b == b'\'')?;
        return Some(at + 3 + close + 1);
    }
    let width = match first {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    (text.get(at + 1 + width) == Some(&b'\'')).then_some(at + 2 + width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let kinds = classify(text.as_bytes());
        text.bytes().zip(kinds).filter(|(_, k)| *k == Kind::Code).map(|(b, _)| b as char).collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(code("a // b\nc /* d /* e */ f */ g"), "a \nc  g");
        assert_eq!(code(r#"x("y\"z", 'q', '\n', b"w")"#), "x(, , , b)");
        assert_eq!(code("r#\"a\"b\"# c for r in d"), " c for r in d");
        assert_eq!(code("br\"a\\\" c"), "b c");
        assert_eq!(code("fn f<'a>(x: &'a str, y: char) -> 'é'"), "fn f<'a>(x: &'a str, y: char) -> ");
    }
}
