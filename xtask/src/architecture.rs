//! Parser for the tables of ARCHITECTURE.md, which the checks compare with the code.
//!
//! A table is found by the level-two heading above it. Cells are trimmed; a cell with several items separates them by
//! commas, each in backticks. The tables, their columns, and the checks:
//!
//! ```text
//! ## Layers        | crate | may use |
//!     `exec`  | `analysis`         One row per package, by folder. The relation is transitive (exec may use
//!                                  what analysis may use); `—` means none. A crate's manifest (all kinds of
//!                                  dependencies) must not name any other crate of the workspace.
//! ## Dependencies  | crate | where | why |
//!     `egg`   | `rewrite`          One row per external crate; where = all folders whose manifests name it.
//! ## Invariants    | id | invariant | kept by | tested by |
//!     I-1     | …                  kept by: paths. tested by: `path::function` (the file contains `fn function`) or a
//!                                  path. Ids are consecutive from I-1.
//! ## Code map      - `ir/`: `graph/` …    One bullet per crate of the library; the files and folders in it must exist.
//! ## Sizes         | folder | lines |
//!     `ir`    | 5200               Lines of Rust in the folder, with an error of at most a fifth; one row per package
//!                                  (`cargo xtask map --write` updates them).
//! ## Unsafe        | module | argument |
//!     `tensor/src/raw.rs` | …      The only files that may contain the word `unsafe`; each of them must contain it.
//! ```

use anyhow::Context;

use crate::workspace::root;

/// The rows of a table.
pub(crate) struct Table {
    pub(crate) rows: Vec<TableRow>,
}

/// A row of a table with its line number in the file.
pub(crate) struct TableRow {
    pub(crate) line: usize,
    pub(crate) cells: Vec<String>,
}

impl TableRow {
    /// Returns the items in backticks in a column's cell.
    pub(crate) fn names(&self, column: usize) -> Vec<String> {
        let cell = self.cells.get(column).map_or("", String::as_str);
        cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
    }

    /// Returns the first item in backticks in a column's cell, or the whole cell if there is none.
    pub(crate) fn name(&self, column: usize) -> String {
        let cell = self.cells.get(column).map_or("", String::as_str);
        self.names(column).into_iter().next().unwrap_or_else(|| cell.to_string())
    }

    /// Returns file and line of the row, for messages.
    pub(crate) fn place(&self) -> String {
        format!("ARCHITECTURE.md:{}", self.line)
    }
}

/// ARCHITECTURE.md.
pub(crate) struct Architecture {
    text: String,
}

impl Architecture {
    /// Reads the file; returns `None` if it does not exist.
    pub(crate) fn load() -> anyhow::Result<Option<Architecture>> {
        let path = root().join("ARCHITECTURE.md");
        if !path.exists() {
            return Ok(None);
        }
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Some(Architecture { text }))
    }

    /// Parses the given text.
    #[cfg(test)]
    pub(crate) fn from_text(text: &str) -> Architecture {
        Architecture { text: text.to_string() }
    }

    /// Returns the lines below the heading `## {heading}` with their line numbers.
    ///
    /// # Errors
    /// Returns an error if there is no such heading.
    pub(crate) fn section(&self, heading: &str) -> anyhow::Result<impl Iterator<Item = (usize, &str)>> {
        let mut lines = self.text.lines().enumerate();
        lines
            .find(|(_, line)| line.strip_prefix("## ").is_some_and(|h| h.trim() == heading))
            .with_context(|| format!("ARCHITECTURE.md has no heading `## {heading}`"))?;
        let lines = lines.take_while(|(_, line)| !line.starts_with("## "));
        Ok(lines.map(|(index, line)| (index + 1, line)))
    }

    /// Returns the table below the heading `## {heading}`.
    ///
    /// # Errors
    /// Returns an error if there is no such heading or no table below it.
    pub(crate) fn table(&self, heading: &str) -> anyhow::Result<Table> {
        let mut rows = Vec::new();
        for (line, text) in self.section(heading)? {
            let Some(inner) = text.trim().strip_prefix('|') else { continue };
            let inner = inner.strip_suffix('|').unwrap_or(inner);
            let cells: Vec<String> = inner.split('|').map(|c| c.trim().to_string()).collect();
            rows.push(TableRow { line, cells });
        }
        anyhow::ensure!(rows.len() >= 2, "ARCHITECTURE.md has no table under `## {heading}`");
        rows.drain(..2); // the header and the delimiter row
        Ok(Table { rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_under_their_heading() {
        let text =
            "# A\n## Sizes\n\n| folder | lines |\n|---|---|\n| `ir` | 12 |\n| `a`, `b` | 3 |\n\n## Layers\n";
        let architecture = Architecture::from_text(text);
        let table = architecture.table("Sizes").unwrap();
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[0].name(0), "ir");
        assert_eq!(table.rows[0].name(1), "12");
        assert_eq!(table.rows[1].names(0), ["a", "b"]);
        assert_eq!(table.rows[1].line, 7);
        assert!(architecture.table("Layers").is_err());
    }
}
