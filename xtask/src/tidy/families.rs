//! Every file that holds operators is on the list of its family, and every file that holds a pass is on the list of
//! passes: a file that is declared but not listed would compile, and its operators would be missing at run time.

use crate::architecture::Architecture;
use crate::report::Report;
use crate::workspace::Workspace;

/// A list, the folder whose files it names, and the word by which a file shows that it belongs on it.
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
