//! Names of variables in printed source: identifiers that are unique in their function.
//!
//! A value keeps its user-given name; a second `x` is `x0`, the next `x1`. Values without a name are `_0`, `_1`, ...
//! The counters continue from function to function within a file, as in PyTorch, so that the texts agree.

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// Names with a builtin meaning in variable lookup.
const BUILTIN_NAMES: [&str; 14] = [
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

/// Keywords of the language.
const KEYWORDS: [&str; 35] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "False", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "None",
    "nonlocal", "not", "or", "pass", "raise", "return", "True", "try", "while", "with", "yield",
];

/// Functions that printed source calls. PyTorch lets variables shadow these, and then cannot read the result.
const CALLED_NAMES: [&str; 11] = [
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

/// Returns true if the text is a valid identifier.
pub fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    let head = bytes.next().is_some_and(|b| b == b'_' || b.is_ascii_alphabetic());
    head && bytes.all(|b| b == b'_' || b.is_ascii_alphanumeric()) && !KEYWORDS.contains(&text)
}

/// Converts `text` to an identifier: all other characters become underscores.
fn identifier(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    if text.bytes().next().is_none_or(|b| b.is_ascii_digit()) {
        out.push('_');
    }
    out.extend(text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
    out
}

/// Strips a numeric suffix: `x` of `x.12`.
fn base(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((base, digits)) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => name,
    }
}

/// The used names of a function, and the counters of a file.
#[derive(Default)]
pub(super) struct LocalNames {
    used: HashSet<String, FxBuildHasher>,
    next: HashMap<String, u64, FxBuildHasher>,
}

impl LocalNames {
    /// Starts a new function, in which all names are available again.
    pub(super) fn begin_function(&mut self) {
        self.used.clear();
    }

    /// Returns an unused name that starts with `wanted`.
    pub(super) fn unique(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.used.contains(&name)
            || [&BUILTIN_NAMES[..], &KEYWORDS, &CALLED_NAMES]
                .iter()
                .any(|words| words.contains(&name.as_str()))
        {
            let n = self.next.entry(name).or_insert(0);
            name = format!("{wanted}{n}");
            *n += 1;
        }
        self.used.insert(name.clone());
        name
    }

    /// Returns an unused name for a value with this debug name, or without one.
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
