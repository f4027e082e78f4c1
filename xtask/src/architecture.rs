//! The tables of ARCHITECTURE.md, which the checks hold the code to.
//!
//! A table stands under a heading of level two and is found by it. Cells are trimmed; a cell lists several things
//! separated by commas, each in backticks. The tables, their columns, and what is checked:
//!
//! ```text
//! ## Layers        | crate | may use |
//!     `exec`  | `analysis`         One row per package, by folder. What may be used is closed under itself (exec may
//!                                  use what analysis may use); `—` where nothing may be. A crate's manifest (all
//!                                  kinds of dependencies) names nothing else of the workspace.
//! ## Dependencies  | crate | where | why |
//!     `egg`   | `rewrite`          One row per outside crate; where = the folders whose manifests name it, all of them.
//! ## Invariants    | id | invariant | kept by | tested by |
//!     I-1     | …                  kept by: paths. tested by: `path::function` (the file holds `fn function`) or a
//!                                  path. Ids rise by one from I-1.
//! ## Code map      - `ir/`: `graph/` …    One bullet per crate of the library; files and folders in it exist.
//! ## Sizes         | folder | lines |
//!     `ir`    | 5200               Lines of Rust in the folder; within a fifth of the truth, and every folder of a
//!                                  package has its row (`cargo xtask map --write` brings them up to date).
//! ## Unsafe        | module | argument |
//!     `tensor/src/raw.rs` | …      The only files where the word `unsafe` may stand; each of them holds it.
//! ```

use anyhow::Context;

use crate::workspace::root;

/// A table: the line of its heading and its rows.
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
}

/// A row of a table and its line in the file.
pub(crate) struct Row {
    pub(crate) line: usize,
    pub(crate) cells: Vec<String>,
}

impl Row {
    /// The things in backticks in the cell of a column.
    pub(crate) fn names(&self, column: usize) -> Vec<String> {
        let cell = self.cells.get(column).map_or("", String::as_str);
        cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
    }

    /// The first thing in backticks in a cell, or the cell itself.
    pub(crate) fn name(&self, column: usize) -> String {
        let cell = self.cells.get(column).map_or("", String::as_str);
        self.names(column).into_iter().next().unwrap_or_else(|| cell.to_string())
    }

    /// Where the row stands, for messages.
    pub(crate) fn place(&self) -> String {
        format!("ARCHITECTURE.md:{}", self.line)
    }
}

/// ARCHITECTURE.md.
pub(crate) struct Architecture {
    text: String,
}

impl Architecture {
    /// Reads the file; `None` where there is none yet.
    pub(crate) fn load() -> anyhow::Result<Option<Architecture>> {
        let path = root().join("ARCHITECTURE.md");
        if !path.exists() {
            return Ok(None);
        }
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Some(Architecture { text }))
    }

    /// The architecture whose text is `text`.
    #[cfg(test)]
    pub(crate) fn from_text(text: &str) -> Architecture {
        Architecture { text: text.to_string() }
    }

    /// The lines under the heading `## {heading}`, with their numbers.
    ///
    /// # Errors
    /// If there is no such heading.
    pub(crate) fn section(&self, heading: &str) -> anyhow::Result<impl Iterator<Item = (usize, &str)>> {
        let mut lines = self.text.lines().enumerate();
        lines
            .find(|(_, line)| line.strip_prefix("## ").is_some_and(|h| h.trim() == heading))
            .with_context(|| format!("ARCHITECTURE.md has no heading `## {heading}`"))?;
        let lines = lines.take_while(|(_, line)| !line.starts_with("## "));
        Ok(lines.map(|(index, line)| (index + 1, line)))
    }

    /// The table under the heading `## {heading}`.
    ///
    /// # Errors
    /// If there is no such heading, or no table under it.
    pub(crate) fn table(&self, heading: &str) -> anyhow::Result<Table> {
        let mut rows = Vec::new();
        for (line, text) in self.section(heading)? {
            let Some(inner) = text.trim().strip_prefix('|') else { continue };
            let inner = inner.strip_suffix('|').unwrap_or(inner);
            let cells: Vec<String> = inner.split('|').map(|c| c.trim().to_string()).collect();
            rows.push(Row { line, cells });
        }
        anyhow::ensure!(rows.len() >= 2, "ARCHITECTURE.md has no table under `## {heading}`");
        rows.drain(..2); // the head and the rule below it
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
