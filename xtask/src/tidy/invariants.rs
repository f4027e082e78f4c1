//! Check: every invariant of ARCHITECTURE.md names existing files that keep it and existing tests of it.

use crate::architecture::{Architecture, TableRow};
use crate::report::Report;
use crate::source::identifier_at;
use crate::workspace::{Workspace, root};

pub(super) fn check(
    workspace: &Workspace,
    page: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let Some(page) = page else { return Ok(()) };
    let table = page.table("Invariants")?;
    for (index, row) in table.rows.iter().enumerate() {
        let id = format!("I-{}", index + 1);
        if row.name(0) != id {
            report.find(row.place(), format!("the invariant's id is `{}`, not {id}", row.name(0)));
        }
        for column in [2, 3] {
            if row.names(column).is_empty() {
                report.find(row.place(), format!("{id} names nothing in column {}", column + 1));
            }
        }
        for kept in row.names(2) {
            if !root().join(&kept).exists() {
                report.find(row.place(), format!("{id} is kept by `{kept}`, which does not exist"));
            }
        }
        for test in row.names(3) {
            check_test(workspace, row, &id, &test, report);
        }
    }
    Ok(())
}

fn check_test(workspace: &Workspace, row: &TableRow, id: &str, test: &str, report: &mut Report) {
    let (path, function) = test.split_once("::").map_or((test, None), |(p, f)| (p, Some(f)));
    if !root().join(path).exists() {
        report.find(row.place(), format!("{id} is tested by `{path}`, which does not exist"));
        return;
    }
    let Some(function) = function else { return };
    let name = function.rsplit("::").next().unwrap_or(function);
    let source = workspace.sources.iter().find(|s| s.name() == path);
    let holds = source.is_some_and(|s| s.words("fn").any(|at| identifier_at(&s.code, at + 2) == name));
    if !holds {
        report.find(row.place(), format!("{id} is tested by `fn {name}`, which `{path}` does not contain"));
    }
}
