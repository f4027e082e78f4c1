//! Check: files have at most 900 lines, functions at most 120, and ARCHITECTURE.md states the sizes of crates.

use crate::architecture::Architecture;
use crate::report::Report;
use crate::workspace::Workspace;

const MAX_FILE: usize = 900;
const MAX_FUNCTION: usize = 120;

/// A stated size may differ from the actual size by one part in this many.
const TOLERANCE: usize = 5;

pub(super) fn check(
    workspace: &Workspace,
    page: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    for source in &workspace.sources {
        if source.lines() > MAX_FILE {
            report.find(source.name(), format!("{} lines; at most {MAX_FILE}", source.lines()));
        }
        for f in source.functions() {
            if f.lines > MAX_FUNCTION && !f.may_be_long {
                let place = format!("{}:{}", source.name(), f.line);
                report.find(place, format!("`fn {}` has {} lines; at most {MAX_FUNCTION}", f.name, f.lines));
            }
        }
    }
    if let Some(page) = page {
        check_stated(workspace, page, report)?;
    }
    Ok(())
}

fn check_stated(workspace: &Workspace, page: &Architecture, report: &mut Report) -> anyhow::Result<()> {
    let table = page.table("Sizes")?;
    for package in &workspace.packages {
        if !table.rows.iter().any(|r| r.name(0).trim_end_matches('/') == package.folder) {
            report.find("ARCHITECTURE.md", format!("no row for `{}` in the table `Sizes`", package.folder));
        }
    }
    for row in &table.rows {
        let folder = row.name(0).trim_end_matches('/').to_string();
        let lines: usize = workspace.sources_of(&folder).map(crate::source::Source::lines).sum();
        let digits: String = row.name(1).chars().filter(char::is_ascii_digit).collect();
        let stated: usize = digits.parse().unwrap_or(0);
        if stated.abs_diff(lines) * TOLERANCE > lines {
            report.find(
                row.place(),
                format!("`{folder}` has {lines} lines, not {stated} (`cargo xtask map --write`)"),
            );
        }
    }
    Ok(())
}
