//! A Rust file for the checks: which bytes are code, comments and literals, and which are only compiled for tests.
//!
//! This is a scanner, not a parser. It handles strings (including raw and byte strings), character literals, lifetimes,
//! nested block comments, and brackets. That suffices to count the lines of functions and to search for words in code
//! without matches in comments and literals.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// The kind of a byte of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Code,
    Comment,
    Literal,
}

/// A scanned source file.
pub(crate) struct Source {
    /// Path relative to the workspace root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// The text with every byte of comments and literals replaced by a space (line ends are kept), so that byte offsets
    /// and line numbers agree with `text`.
    pub(crate) code: String,
    kinds: Vec<Kind>,
    line_starts: Vec<usize>,
    test_ranges: Vec<Range<usize>>,
    /// Names of modules declared by `#[cfg(test)] mod name;`. Their files contain only tests.
    pub(crate) test_modules: Vec<String>,
}

/// A function of a source file.
pub(crate) struct Function {
    pub(crate) name: String,
    /// First line, from 1.
    pub(crate) line: usize,
    /// Number of lines from the `fn` keyword to the closing brace that contain code or literals; comments do not count.
    pub(crate) lines: usize,
    /// Whether an attribute `too_many_lines` exempts the function from the length limit.
    pub(crate) may_be_long: bool,
}

impl Source {
    /// Scans `text`.
    pub(crate) fn new(path: &Path, text: String) -> Source {
        let kinds = crate::scan::classify(text.as_bytes());
        let code = mask(&text, &kinds);
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        let mut source = Source {
            path: path.to_path_buf(),
            text,
            code,
            kinds,
            line_starts,
            test_ranges: Vec::new(),
            test_modules: Vec::new(),
        };
        source.find_tests();
        source
    }

    /// Returns the path with forward slashes.
    pub(crate) fn name(&self) -> String {
        self.path.to_string_lossy().replace('\\', "/")
    }

    /// Returns the number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Returns the line of a byte offset, from 1.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset)
    }

    /// Returns whether the byte at `offset` is only compiled for tests.
    pub(crate) fn in_test(&self, offset: usize) -> bool {
        self.test_ranges.iter().any(|r| r.contains(&offset))
    }

    /// Returns the kind of the byte at `offset`.
    pub(crate) fn kind(&self, offset: usize) -> Kind {
        self.kinds.get(offset).copied().unwrap_or(Kind::Code)
    }

    /// Marks the whole file as a test.
    pub(crate) fn mark_as_test(&mut self) {
        let all = 0..self.text.len();
        self.test_ranges.push(all);
    }

    /// Returns the offsets of the whole word `word` in code.
    pub(crate) fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        whole_words(&self.code, word)
    }

    /// Returns the first line of the `//!` head comment without the marker; `None` if there is no head comment.
    pub(crate) fn head(&self) -> Option<&str> {
        let line = self.text.lines().find(|l| !l.trim().is_empty() && !l.starts_with("#!"))?;
        let head = line.strip_prefix("//!")?.trim();
        (!head.is_empty()).then_some(head)
    }

    /// Returns all functions with a body.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let bytes = self.code.as_bytes();
        let mut found = Vec::new();
        for at in self.words("fn") {
            let name = identifier_at(&self.code, at + 2);
            if name.is_empty() {
                continue; // a function pointer type
            }
            let Some(open) = body_start(bytes, at) else { continue };
            let close = matching(bytes, open).unwrap_or(bytes.len());
            let line = self.line_of(at);
            // The attributes start after the previous item, which ends with a brace or a semicolon.
            let start = self.code[..at].rfind(['{', '}', ';']).unwrap_or(0);
            let may_be_long = self.code[start..at].contains("too_many_lines");
            found.push(Function {
                may_be_long,
                name: name.to_string(),
                line,
                lines: self.code_lines(at, close),
            });
        }
        found
    }

    /// Counts the lines between two offsets that contain something other than whitespace and comments.
    fn code_lines(&self, from: usize, to: usize) -> usize {
        let end = (to + 1).min(self.text.len());
        let mut last = 0;
        let holds = |(i, b): (usize, u8)| {
            let significant = !b.is_ascii_whitespace() && self.kind(i) != Kind::Comment;
            let line = if significant { self.line_of(i) } else { last };
            let new = line != last;
            last = line;
            new
        };
        self.text.bytes().enumerate().take(end).skip(from).map(holds).filter(|new| *new).count()
    }

    fn find_tests(&mut self) {
        let bytes = self.code.as_bytes();
        for (at, _) in self.code.match_indices("#[cfg(test)]") {
            let after = at + "#[cfg(test)]".len();
            let end = item_end(bytes, after);
            let item = self.code[after..end].trim();
            if let Some(rest) = item.strip_suffix(';').and_then(|i| i.split("mod ").nth(1)) {
                self.test_modules.push(rest.trim().to_string());
            }
            self.test_ranges.push(at..end);
        }
    }
}

/// Returns the offsets of `word` in `text` that are not adjacent to identifier characters.
pub(crate) fn whole_words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at == 0 || !is_word(bytes[at - 1]);
        let after = bytes.get(at + word.len()).is_none_or(|&b| !is_word(b));
        before && after
    })
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the identifier after the whitespace at `at`, or an empty string.
pub(crate) fn identifier_at(text: &str, at: usize) -> &str {
    let rest = text[at..].trim_start();
    let end = rest.bytes().position(|b| !is_word(b)).unwrap_or(rest.len());
    &rest[..end]
}

/// Returns the offset of the bracket that closes the bracket at `open`.
pub(crate) fn matching(code: &[u8], open: usize) -> Option<usize> {
    let (up, down) = match code[open] {
        b'{' => (b'{', b'}'),
        b'(' => (b'(', b')'),
        _ => (b'[', b']'),
    };
    let mut depth = 0usize;
    for (i, &b) in code.iter().enumerate().skip(open) {
        if b == up {
            depth += 1;
        } else if b == down {
            depth -= 1;
            if depth == 0 {
                return Some(i);
            }
        }
    }
    None
}

/// Returns the offset of the opening brace of the function whose `fn` is at `at`; `None` if it has no body.
fn body_start(code: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, &b) in code.iter().enumerate().skip(at) {
        match b {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(i),
            b';' | b'}' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns the end of the item (attributes, then up to `;` or the closing brace) that starts at `at`.
fn item_end(code: &[u8], at: usize) -> usize {
    let mut depth = 0usize;
    for (i, &b) in code.iter().enumerate().skip(at) {
        match b {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => return i + 1,
            b'{' if depth == 0 => return matching(code, i).map_or(code.len(), |end| end + 1),
            _ => {}
        }
    }
    code.len()
}

fn mask(text: &str, kinds: &[Kind]) -> String {
    let masked: Vec<u8> = text
        .bytes()
        .zip(kinds)
        .map(|(b, k)| if *k == Kind::Code || b == b'\n' { b } else { b' ' })
        .map(|b| if b.is_ascii() { b } else { b' ' })
        .collect();
    String::from_utf8(masked).expect("invariant: only ASCII bytes are left")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Source {
        Source::new(Path::new("a/src/lib.rs"), text.to_string())
    }

    #[test]
    fn braces_in_strings_do_not_affect_function_lengths() {
        let s = scan(
            "fn a(x: [u8; 2]) -> u8 {\n  let _ = \"}\"; // }\n  0\n}\ntrait T { fn b(); }\ntype F = fn(u8);\n",
        );
        let found = s.functions();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].line, found[0].lines), ("a", 1, 4));
    }

    #[test]
    fn test_items_are_known() {
        let s = scan(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\n#[cfg(test)]\nmod more;\nfn c() {}\n",
        );
        let at = |w: &str| s.text.find(w).unwrap();
        assert!(!s.in_test(at("fn a")));
        assert!(s.in_test(at("fn b")));
        assert!(!s.in_test(at("fn c")));
        assert_eq!(s.test_modules, ["more"]);
    }

    #[test]
    fn head_comments_are_found() {
        assert_eq!(scan("//! What it is for.\n").head(), Some("What it is for."));
        assert_eq!(scan("use a;\n").head(), None);
    }
}
