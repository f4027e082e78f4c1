//! Check: `unsafe` occurs exactly in the files that ARCHITECTURE.md lists, each with an argument for its soundness.

use crate::architecture::Architecture;
use crate::report::Report;
use crate::workspace::Workspace;

pub(super) fn check(
    workspace: &Workspace,
    page: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let Some(page) = page else { return Ok(()) };
    let table = page.table("Unsafe")?;
    let listed: Vec<String> = table.rows.iter().flat_map(|row| row.names(0)).collect();
    for row in &table.rows {
        if row.cells.get(1).is_none_or(|argument| argument.len() < 20) {
            report.find(row.place(), "no argument why the unsafe code is sound");
        }
        for path in row.names(0) {
            let source = workspace.sources.iter().find(|s| s.name() == path);
            if source.is_none_or(|s| s.words("unsafe").next().is_none()) {
                report.find(row.place(), format!("`{path}` contains no unsafe code"));
            }
        }
    }
    for source in workspace.sources.iter().filter(|s| !listed.contains(&s.name())) {
        if let Some(at) = source.words("unsafe").next() {
            let place = format!("{}:{}", source.name(), source.line_of(at));
            report.find(
                place,
                "unsafe code in a file that the table `Unsafe` of ARCHITECTURE.md does not list",
            );
        }
    }
    Ok(())
}
