//! Check: every error code in the source has a section in `docs/errors.md`, and every section a code.
//!
//! A code is a literal outside of tests that consists of a letter and three or four digits. Codes of archives (`A…`)
//! are excluded: their messages need no further explanation.

use std::collections::BTreeMap;

use anyhow::Context;

use crate::architecture::Architecture;
use crate::report::Report;
use crate::source::{Kind, Source};
use crate::workspace::{Workspace, root};

const PAGE: &str = "docs/errors.md";

/// Crates whose errors are shown to users.
const CRATES: &[&str] =
    &["ir", "analysis", "exec", "rewrite", "ops", "frontend", "export", "flambeau", "cli"];

pub(super) fn check(
    workspace: &Workspace,
    _: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let page = std::fs::read_to_string(root().join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let pages: Vec<&str> =
        page.lines().filter_map(|l| l.strip_prefix("## ")?.split_whitespace().next()).collect();
    let mut used: BTreeMap<&str, String> = BTreeMap::new();
    let ours = |s: &&Source| CRATES.iter().any(|c| s.name().starts_with(&format!("{c}/src/")));
    for source in workspace.sources.iter().filter(ours) {
        for (at, code) in codes(source) {
            used.entry(code).or_insert_with(|| format!("{}:{}", source.name(), source.line_of(at)));
        }
    }
    for (code, place) in &used {
        if !pages.contains(code) {
            report.find(place, format!("`{code}` has no section in {PAGE}"));
        }
    }
    for (i, code) in pages.iter().enumerate().filter(|(i, c)| pages[..*i].contains(c)) {
        report.find(PAGE, format!("`{code}` has a second section (number {})", i + 1));
    }
    for code in pages.iter().filter(|c| !used.contains_key(**c)) {
        report.find(PAGE, format!("no error has the code `{code}`"));
    }
    Ok(())
}

/// Returns the codes among a file's literals with their offsets.
fn codes(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    source.text.match_indices('"').filter_map(|(quote, _)| {
        let at = quote + 1;
        let code = source.text[at..].split('"').next()?;
        let letter = code.as_bytes().first().is_some_and(u8::is_ascii_uppercase);
        let digits =
            code.get(1..).is_some_and(|d| matches!(d.len(), 3 | 4) && d.bytes().all(|b| b.is_ascii_digit()));
        let is_code = letter && digits && !code.starts_with('A');
        (is_code && source.kind(at) == Kind::Literal && !source.in_test(at)).then_some((at, code))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn codes_are_distinguished_from_other_words() {
        let text =
            "const A: &str = \"V020\"; // \"V021\"\nfn f() { g(\"A0001\", \"V1\", \"F0100\", \"F01000\") }\n";
        let source = Source::new(Path::new("ir/src/a.rs"), text.to_string());
        assert_eq!(codes(&source).map(|c| c.1).collect::<Vec<_>>(), ["V020", "F0100"]);
    }
}
