//! Names of variables in printed source: identifiers that are unique in their function.
//!
//! A value keeps the name a person gave it; a second `x` is `x0`, the next `x1`, and values without a name are `_0`,
//! `_1`. Counters run on from function to function of a file, as PyTorch's do, so that texts agree.

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// Names that mean something where variables are looked up.
const TAKEN: [&str; 14] = [
    "_",
    "aten",
    "attribute",
    "CONSTANTS",
    "fork",
    "getattr",
    "inf",
    "nan",
    "infj",
    "nanj",
    "ops",
    "__torch__",
    "uninitialized",
    "unchecked_cast",
];

/// Words of the language.
const KEYWORDS: [&str; 35] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "False", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "None",
    "nonlocal", "not", "or", "pass", "raise", "return", "True", "try", "while", "with", "yield",
];

/// What the text around a variable calls; PyTorch lets variables hide these, and cannot read the result.
const CALLED: [&str; 11] = [
    "annotate",
    "awaitable",
    "bool",
    "float",
    "int",
    "isinstance",
    "print",
    "range",
    "sorted",
    "str",
    "torch",
];

/// Can the text stand as a name in source?
pub fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    let head = bytes.next().is_some_and(|b| b == b'_' || b.is_ascii_alphabetic());
    head && bytes.all(|b| b == b'_' || b.is_ascii_alphanumeric()) && !KEYWORDS.contains(&text)
}

/// `text` with everything replaced that cannot stand in an identifier.
fn identifier(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    if text.bytes().next().is_none_or(|b| b.is_ascii_digit()) {
        out.push('_');
    }
    out.extend(text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
    out
}

/// `x` of `x.12`.
fn base(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((base, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => name,
    }
}

/// The names of one function, and the counters of one file.
#[derive(Default)]
pub(super) struct LocalNames {
    used: HashSet<String, FxBuildHasher>,
    next: HashMap<String, u64, FxBuildHasher>,
}

impl LocalNames {
    /// A new function begins, which may use all names again.
    pub(super) fn begin_function(&mut self) {
        self.used.clear();
    }

    /// A name that begins like `wanted` and is not used yet.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.used.contains(&name)
            || [&TAKEN[..], &KEYWORDS, &CALLED].iter().any(|words| words.contains(&name.as_str()))
        {
            let n = self.next.entry(name).or_insert(0);
            name = format!("{wanted}{n}");
            *n += 1;
        }
        self.used.insert(name.clone());
        name
    }

    /// A name for a value that has this debug name, or none.
    pub(super) fn for_value(&mut self, debug_name: Option<&str>) -> String {
        match debug_name {
            Some(name) => self.unique(&identifier(base(name))),
            None => self.unique("_"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_identifiers() {
        let mut names = LocalNames::default();
        assert_eq!(names.for_value(Some("x.1")), "x");
        assert_eq!(names.for_value(Some("x.3")), "x0");
        assert_eq!(names.for_value(Some("x0")), "x00");
        assert_eq!(names.for_value(Some("x")), "x1");
        assert_eq!(names.for_value(None), "_0");
        assert_eq!(names.for_value(Some("3d.view")), "_3d_view");
        assert_eq!(names.for_value(Some("in")), "in0");
        names.begin_function();
        assert_eq!(names.for_value(Some("x")), "x");
        assert_eq!(names.for_value(None), "_1");
    }

    #[test]
    fn identifiers() {
        assert!(is_identifier("weight") && is_identifier("_0") && is_identifier("inf"));
        assert!(!is_identifier("0") && !is_identifier("") && !is_identifier("a.b") && !is_identifier("for"));
    }
}
