//! Dependencies between crates: compares the manifests with the table `Layers` of ARCHITECTURE.md.
//!
//! Some dependencies are forbidden here in addition to the table, because the design relies on their absence.
//! Mechanisms do not depend on the operator library, execution does not depend on rewriting, the IR does not depend on
//! libraries of its algorithms, and library crates do not depend on conveniences for programs.

use std::collections::BTreeMap;

use crate::architecture::Architecture;
use crate::report::Report;
use crate::workspace::Workspace;

/// Dependencies that are forbidden regardless of the table: the packages on the left (by folder) must not depend on the
/// crates on the right.
const FORBIDDEN: &[(&[&str], &[&str])] = &[
    (&["ir"], &["egg", "petgraph"]),
    (&["analysis"], &["egg"]),
    (&["exec"], &["flambeau-rewrite", "egg"]),
    (
        &["tensor", "ir", "analysis", "exec", "rewrite", "executor", "frontend", "archive", "export"],
        &["flambeau-ops", "flambeau"],
    ),
];

/// Dependencies that only these packages may have.
const RESERVED: &[(&str, &[&str])] = &[
    ("anyhow", &["cli", "xtask", "tests", "fuzz", "fuzz/targets"]),
    ("clap", &["cli", "xtask", "tests", "fuzz", "fuzz/targets"]),
    ("pyo3", &["python"]),
];

/// `cargo xtask layers`.
pub(crate) fn run(_args: &[String]) -> anyhow::Result<()> {
    let workspace = Workspace::load()?;
    let mut report = Report::default();
    check(&workspace, Architecture::load()?.as_ref(), &mut report)?;
    report.finish("layers")
}

/// Compares the manifests with the table `Layers` and with the forbidden dependencies.
pub(crate) fn check(
    workspace: &Workspace,
    page: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    check_names(workspace, report);
    let Some(page) = page else {
        report.notice("layers: there is no ARCHITECTURE.md, so the allowed dependencies are not checked");
        return Ok(());
    };
    let table = page.table("Layers")?;
    let mut arrows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in &table.rows {
        if arrows.insert(row.name(0), row.names(1)).is_some() {
            report.find(row.place(), format!("a second row for `{}`", row.name(0)));
        }
        for used in row.names(1).iter().chain([&row.name(0)]) {
            if !workspace.packages.iter().any(|p| p.folder == *used) {
                report.find(row.place(), format!("unknown package `{used}`"));
            }
        }
    }
    for package in &workspace.packages {
        let place = format!("{}/Cargo.toml", package.folder);
        if !arrows.contains_key(&package.folder) {
            report.find(&place, "the package has no row in the table `Layers` of ARCHITECTURE.md");
            continue;
        }
        let allowed = closure(&arrows, &package.folder);
        if allowed.contains(&package.folder) {
            report.find(&place, "the table `Layers` has a cycle through the package");
        }
        for used in package.manifest.dependencies() {
            let Some(target) = workspace.packages.iter().find(|p| p.manifest.name() == used) else {
                continue;
            };
            if !allowed.contains(&target.folder) {
                report.find(&place, format!("must not use `{used}`: the table `Layers` forbids it"));
            }
        }
    }
    Ok(())
}

fn check_names(workspace: &Workspace, report: &mut Report) {
    for package in &workspace.packages {
        let place = format!("{}/Cargo.toml", package.folder);
        let folder = package.folder.as_str();
        for used in package.manifest.dependencies() {
            let forbidden =
                FORBIDDEN.iter().any(|(from, to)| from.contains(&folder) && to.contains(&used.as_str()));
            if forbidden {
                report.find(&place, format!("must not use `{used}`"));
            }
            let reserved = RESERVED.iter().find(|(name, _)| *name == used);
            if reserved.is_some_and(|(_, by)| !by.contains(&folder)) {
                report.find(&place, format!("`{used}` is for programs, not for the library"));
            }
        }
    }
}

/// Returns the packages reachable from `start`; `start` itself only if it is on a cycle.
fn closure(arrows: &BTreeMap<String, Vec<String>>, start: &str) -> Vec<String> {
    let mut reached: Vec<String> = Vec::new();
    let mut open: Vec<&String> = arrows.get(start).map_or(Vec::new(), |to| to.iter().collect());
    while let Some(next) = open.pop() {
        if !reached.contains(next) {
            reached.push(next.clone());
            open.extend(arrows.get(next).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_use_only_allowed_crates() {
        let workspace = Workspace::load().unwrap();
        let mut report = Report::default();
        check(&workspace, Architecture::load().unwrap().as_ref(), &mut report).unwrap();
        assert_eq!(report.findings(), Vec::<String>::new());
    }

    #[test]
    fn a_forbidden_dependency_is_detected() {
        let workspace = Workspace::load().unwrap();
        let page = Architecture::from_text(
            "## Layers\n| crate | may use |\n|---|---|\n| `ir` | — |\n| `exec` | `ir` |\n",
        );
        let mut report = Report::default();
        check(&workspace, Some(&page), &mut report).unwrap();
        let findings = report.findings();
        assert!(findings.iter().any(|f| f.starts_with("ir/Cargo.toml: must not use `flambeau-tensor`")));
        assert!(findings.iter().any(|f| f.starts_with("exec/Cargo.toml: must not use `flambeau-analysis`")));
        assert!(!findings.iter().any(|f| f.contains("must not use `flambeau-ir`")));
        assert!(findings.iter().any(|f| f.starts_with("cli/Cargo.toml: the package has no row")));
    }
}
