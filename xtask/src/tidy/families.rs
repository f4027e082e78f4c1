//! Check: every file that defines operators or a pass is in the list of families or of passes.
//!
//! A file that is declared as a module but not listed would compile, and its operators would be missing at run time.

use crate::architecture::Architecture;
use crate::report::Report;
use crate::workspace::Workspace;

/// A list, the folder of the files it must name, and the text that marks a file as an entry.
const LISTS: &[(&str, &str, &str)] = &[];

pub(super) fn check(
    workspace: &Workspace,
    _: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    for (list, folder, mark) in LISTS {
        let Some(list_source) = workspace.sources.iter().find(|s| s.name() == *list) else {
            report.find(list, "the list does not exist");
            continue;
        };
        for source in workspace.sources.iter().filter(|s| s.name().starts_with(folder) && s.name() != *list) {
            if !source.code.contains(mark) {
                continue;
            }
            let module = source.path.file_stem().and_then(|s| s.to_str()).unwrap_or("");
            let entry = format!("{module}::");
            if !list_source.code.contains(&entry) {
                report.find(source.name(), format!("not on the list in {list} (`{entry}…`)"));
            }
        }
    }
    Ok(())
}
