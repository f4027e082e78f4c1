//! Checks for forbidden words: marks of unfinished work, names of operators in crates below the operator library, and `allow`
//! attributes without a reason. The check also limits the number of macros, and requires the comment of each to show what an example
//! expands to.

use crate::architecture::Architecture;
use crate::report::Report;
use crate::source::{Kind, Source, is_word, matching};
use crate::workspace::Workspace;

/// Crates that must not name operators; they use facets and effects.
const OPERATOR_FREE: &[&str] = &["ir", "analysis", "exec", "rewrite", "executor"];

/// Maximum number of `macro_rules!` in the workspace.
const MACROS: usize = 20;

/// Marks of unfinished work, concatenated here so that this file does not contain them.
const UNFINISHED: &[&str] = &[concat!("FIX", "ME"), concat!("X", "XX"), concat!("TO", "DO")];

pub(super) fn check(
    workspace: &Workspace,
    _: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut macros = Vec::new();
    for source in &workspace.sources {
        unfinished(source, report);
        operator_names(source, report);
        allowances(source, report);
        expansions(source, report);
        macros.extend(source.words("macro_rules").map(|at| place(source, at)));
    }
    if macros.len() > MACROS {
        report.find(
            "the workspace",
            format!("{} macro_rules; at most {MACROS}: {}", macros.len(), macros.join(", ")),
        );
    }
    Ok(())
}

fn place(source: &Source, at: usize) -> String {
    format!("{}:{}", source.name(), source.line_of(at))
}

/// Reports macros whose comment shows no expansion. A reader understands a macro by the result of one use.
fn expansions(source: &Source, report: &mut Report) {
    for at in source.words("macro_rules") {
        let mut above: Vec<&str> = source.text[..at].lines().collect();
        if !source.text[..at].ends_with('\n') {
            // The indentation of the macro itself.
            above.pop();
        }
        let is_comment = |line: &&&str| ["//", "#["].iter().any(|mark| line.trim_start().starts_with(mark));
        let lines: Vec<&str> = above.iter().rev().take_while(is_comment).copied().collect();
        let words: Vec<&str> = lines.iter().rev().flat_map(|line| line.split_whitespace()).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| *word != "///" && *word != "//").collect();
        if !words.windows(2).any(|pair| matches!(pair, ["expands" | "expand", "to"])) {
            report.find(
                place(source, at),
                "the comment of a macro must show an example and what it expands to",
            );
        }
    }
}

fn unfinished(source: &Source, report: &mut Report) {
    for word in UNFINISHED {
        for at in crate::source::whole_words(&source.text, word) {
            if source.kind(at) != Kind::Literal {
                report.find(place(source, at), format!("`{word}`: finish it, or report it as unsupported"));
            }
        }
    }
    for word in ["todo", "unimplemented"] {
        for at in source.words(word) {
            if source.code[at + word.len()..].starts_with('!') {
                report.find(
                    place(source, at),
                    format!("`{word}!`: return an error that names what is missing"),
                );
            }
        }
    }
}

fn operator_names(source: &Source, report: &mut Report) {
    let folder = source.name().split('/').next().unwrap_or("").to_string();
    if !OPERATOR_FREE.contains(&folder.as_str()) || !source.name().contains("/src/") {
        return;
    }
    for (at, _) in source.text.match_indices("aten::") {
        if source.kind(at) == Kind::Literal && !source.in_test(at) {
            report.find(place(source, at), "an operator's name below the operator library: use facets");
        }
    }
}

fn allowances(source: &Source, report: &mut Report) {
    let bytes = source.code.as_bytes();
    for at in source.words("allow") {
        let open = at + "allow".len();
        let in_attribute =
            at > 0 && matches!(last_code(bytes, at), b'[' | b',') && bytes.get(open) == Some(&b'(');
        if !in_attribute || !is_attribute(bytes, at) {
            continue;
        }
        let close = matching(bytes, open).unwrap_or(bytes.len());
        if crate::source::whole_words(&source.code[open..close], "reason").next().is_none() {
            report.find(place(source, at), "`allow` without `reason = …`");
        }
    }
}

/// Returns the last byte before `at` that is not whitespace.
fn last_code(bytes: &[u8], at: usize) -> u8 {
    bytes[..at].iter().rev().copied().find(|b| !b.is_ascii_whitespace()).unwrap_or(b' ')
}

/// Returns whether the innermost open bracket before `at` belongs to `#[…]` or `#![…]`.
fn is_attribute(bytes: &[u8], at: usize) -> bool {
    let Some(open) = bytes[..at].iter().rposition(|&b| b == b'[') else { return false };
    let between = &bytes[open + 1..at];
    let plain = between.iter().all(|&b| is_word(b) || b.is_ascii_whitespace() || b"(),=:".contains(&b));
    plain && matches!(last_code(bytes, open), b'#' | b'!')
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(Path::new(path), text.to_string());
        let mut report = Report::default();
        unfinished(&source, &mut report);
        operator_names(&source, &mut report);
        allowances(&source, &mut report);
        expansions(&source, &mut report);
        report.findings()
    }

    #[test]
    fn each_word_is_found_in_its_context() {
        assert_eq!(findings("ir/src/a.rs", "fn a() { todo!() }").len(), 1);
        assert_eq!(findings("ir/src/a.rs", "fn a() { let todo = 1; }").len(), 0);
        assert_eq!(findings("ir/src/a.rs", concat!("// FIX", "ME: later")).len(), 1);
        assert_eq!(findings("ir/src/a.rs", "const A: &str = \"aten::add\";").len(), 1);
        assert_eq!(findings("ir/src/a.rs", "/// `aten::add` is one\nfn a() {}").len(), 0);
        assert_eq!(
            findings("ir/src/a.rs", "#[cfg(test)]\nmod t { const A: &str = \"aten::add\"; }").len(),
            0
        );
        assert_eq!(findings("ops/src/a.rs", "const A: &str = \"aten::add\";").len(), 0);
        assert_eq!(findings("ops/src/a.rs", "#[allow(dead_code)]\nfn a() {}").len(), 1);
        assert_eq!(findings("ops/src/a.rs", "#[cfg_attr(test, allow(dead_code))]\nfn a() {}").len(), 1);
        assert_eq!(
            findings("ops/src/a.rs", "#![allow(dead_code, reason = \"x\")]\nfn a() { allow(1) }").len(),
            0
        );
        assert_eq!(findings("ops/src/a.rs", "fn a() { f([1, allow(1)]) }").len(), 0);
        let example = "/// `a!()` expands\n/// to `1`.\n#[macro_export]\nmacro_rules! a { () => { 1 } }";
        assert_eq!(findings("ops/src/a.rs", example).len(), 0);
        assert_eq!(findings("ops/src/a.rs", "/// One.\n\nmacro_rules! a { () => { 1 } }").len(), 1);
    }
}
