//! Check: all files and folders in the code map of ARCHITECTURE.md exist, and every crate of the library is in the map.
//!
//! A bullet starts with the crate's folder in backticks. The files and folders in the bullet are relative to the crate
//! or its `src` folder. Names without a dot or a slash are not paths.

use crate::architecture::Architecture;
use crate::report::Report;
use crate::workspace::{Workspace, root};

/// Folders of packages that need not be in the map: tools and tests.
const UNMAPPED: &[&str] = &["tests", "tests/examples/extension", "fuzz", "fuzz/targets", "xtask"];

pub(super) fn check(
    workspace: &Workspace,
    page: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let Some(page) = page else { return Ok(()) };
    let mut known = Vec::new();
    let exists = |folder: &str, name: &str| {
        let crate_root = root().join(folder);
        crate_root.join("src").join(name).exists() || crate_root.join(name).exists()
    };
    let mut folder = String::new();
    for (line, text) in page.section("Code map")? {
        let mut names = text.split('`').skip(1).step_by(2);
        if text.starts_with("- ") {
            folder = names.next().unwrap_or_default().trim_end_matches('/').to_owned();
            known.push(folder.clone());
        }
        for name in names.filter(|n| is_path(n)) {
            if !exists(&folder, name.trim_end_matches('/')) && !root().join(name).exists() {
                report.find(format!("ARCHITECTURE.md:{line}"), format!("`{folder}` has no `{name}`"));
            }
        }
    }
    for package in &workspace.packages {
        if !known.contains(&package.folder) && !UNMAPPED.contains(&package.folder.as_str()) {
            report.find("ARCHITECTURE.md", format!("`{}` is not on the code map", package.folder));
        }
    }
    Ok(())
}

/// Returns whether a word in backticks is a file or a folder.
fn is_path(word: &str) -> bool {
    let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
    plain && (word.ends_with('/') || word.ends_with(".rs") || word.ends_with(".txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_reported() {
        let page = Architecture::from_text(
            "## Code map\n\n- `xtask/`: `main.rs`, `tidy/`, and\n  `gone.rs`; `Graph` is not a path\n\n## Next\n",
        );
        let mut report = Report::default();
        check(&Workspace::load().unwrap(), Some(&page), &mut report).unwrap();
        let findings = report.findings();
        assert!(findings.iter().any(|f| f.contains("`xtask` has no `gone.rs`")), "{findings:?}");
        assert!(findings.iter().any(|f| f.contains("`ir` is not on the code map")), "{findings:?}");
        assert!(!findings.iter().any(|f| f.contains("main.rs") || f.contains("Graph")), "{findings:?}");
    }
}
