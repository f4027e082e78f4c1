//! Check: the table `Dependencies` of ARCHITECTURE.md lists exactly the external crates in use.
//!
//! Each row states the reason and the folders that use the crate.

use std::collections::BTreeMap;

use crate::architecture::Architecture;
use crate::report::Report;
use crate::workspace::Workspace;

pub(super) fn check(
    workspace: &Workspace,
    page: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut used: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in &workspace.packages {
        for name in package.manifest.dependencies() {
            if !workspace.packages.iter().any(|p| p.manifest.name() == name) {
                used.entry(name).or_default().push(package.folder.clone());
            }
        }
    }
    let Some(page) = page else { return Ok(()) };
    for name in workspace.manifest.dependencies() {
        let ours = workspace.packages.iter().any(|p| p.manifest.name() == name);
        if !ours && !used.contains_key(&name) {
            report.find("Cargo.toml", format!("nothing uses the dependency `{name}`"));
        }
    }
    let table = page.table("Dependencies")?;
    let mut listed = Vec::new();
    for row in &table.rows {
        let name = row.name(0);
        let mut stated = row.names(1);
        stated.sort();
        match used.get(&name) {
            None => report.find(row.place(), format!("no manifest names `{name}`")),
            Some(folders) => {
                let mut folders = folders.clone();
                folders.sort();
                if folders != stated {
                    report.find(row.place(), format!("`{name}` is used in {}", folders.join(", ")));
                }
            }
        }
        if row.cells.get(2).is_none_or(|why| why.is_empty()) {
            report.find(row.place(), format!("no reason for `{name}`"));
        }
        listed.push(name);
    }
    for (name, folders) in used.iter().filter(|(name, _)| !listed.contains(name)) {
        report
            .find("ARCHITECTURE.md", format!("no row for the dependency `{name}` of {}", folders.join(", ")));
    }
    Ok(())
}
