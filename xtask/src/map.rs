//! The code map: the crates, their sizes, and the first line of each file's head comment.

use std::fmt::Write as _;

use anyhow::Context;

use crate::source::Source;
use crate::workspace::{Workspace, root};

/// `cargo xtask map [--write]`.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let workspace = Workspace::load()?;
    if args.iter().any(|a| a == "--write") {
        let path = root().join("ARCHITECTURE.md");
        let text = std::fs::read_to_string(&path).context("cannot read ARCHITECTURE.md")?;
        let changed = with_sizes(&text, &sizes(&workspace))?;
        std::fs::write(&path, changed)?;
        println!("ARCHITECTURE.md: brought the table `Sizes` up to date");
        return Ok(());
    }
    print!("{}", map(&workspace));
    Ok(())
}

/// Returns the lines of Rust per package.
fn sizes(workspace: &Workspace) -> Vec<(String, usize)> {
    let size = |folder: &str| workspace.sources_of(folder).map(Source::lines).sum();
    workspace.packages.iter().map(|p| (p.folder.clone(), size(&p.folder))).collect()
}

fn map(workspace: &Workspace) -> String {
    let mut text = String::new();
    let mut total = 0;
    for (folder, lines) in sizes(workspace) {
        total += lines;
        let _ = writeln!(text, "\n{folder}/  {lines} lines");
        for source in workspace.sources_of(&folder) {
            let name = source.name();
            let name = name.strip_prefix(&format!("{folder}/")).unwrap_or(&name);
            let _ = writeln!(text, "  {name:40} {:5}  {}", source.lines(), source.head().unwrap_or("—"));
        }
    }
    let _ = writeln!(text, "\n{total} lines of Rust");
    text
}

/// Returns the page with the rows of the table `Sizes` updated. Rows keep their order and their further columns.
fn with_sizes(text: &str, sizes: &[(String, usize)]) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut inside = false;
    let mut listed = Vec::new();
    let mut end_of_table = None;
    for line in text.split_inclusive('\n') {
        if line.starts_with("## ") {
            inside = line.trim_end() == "## Sizes";
        }
        let folder = line.split('`').nth(1).filter(|_| inside && line.starts_with('|'));
        let row = folder.and_then(|f| sizes.iter().find(|(name, _)| name == f.trim_end_matches('/')));
        match row {
            Some((folder, lines)) => {
                let mut cells: Vec<String> = line.trim_end().split('|').map(str::to_string).collect();
                anyhow::ensure!(cells.len() >= 3, "a row of the table `Sizes` has no column of lines");
                cells[2] = format!(" {lines} ");
                out.push_str(&cells.join("|"));
                out.push('\n');
                listed.push(folder.clone());
            }
            None if folder.is_some() => {} // a folder that no longer exists
            None => out.push_str(line),
        }
        if inside && line.starts_with('|') {
            end_of_table = Some(out.len());
        }
    }
    let at = end_of_table.context("ARCHITECTURE.md has no table under `## Sizes`")?;
    let missing = sizes.iter().filter(|(folder, _)| !listed.contains(folder));
    let rows: String = missing.map(|(folder, lines)| format!("| `{folder}` | {lines} |\n")).collect();
    out.insert_str(at, &rows);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_sizes_is_updated() {
        let text =
            "## Sizes\n| folder | lines |\n|---|---|\n| `ir` | 1 |\n| `old` | 1 |\n\n## Next\n| `ir` | 7 |\n";
        let sizes = [("ir".to_string(), 20), ("ops".to_string(), 30)];
        let want = "## Sizes\n| folder | lines |\n|---|---|\n| `ir` | 20 |\n| `ops` | 30 |\n\n## Next\n| `ir` | 7 |\n";
        assert_eq!(with_sizes(text, &sizes).unwrap(), want);
    }
}
