//! What a check found: lines of `where: what`, sorted and printed together.

use std::fmt::Display;

/// Findings of the checks, and remarks about checks that had nothing to read.
#[derive(Default)]
pub(crate) struct Report {
    findings: Vec<String>,
    notices: Vec<String>,
}

impl Report {
    /// Records that `what` is wrong at `place` (a path, a path with a line, a table row).
    pub(crate) fn find(&mut self, place: impl Display, what: impl Display) {
        self.findings.push(format!("{place}: {what}"));
    }

    /// Records a remark that is no failure.
    pub(crate) fn notice(&mut self, what: impl Display) {
        self.notices.push(what.to_string());
    }

    /// Everything wrong, sorted.
    pub(crate) fn findings(mut self) -> Vec<String> {
        self.findings.sort();
        self.findings.dedup();
        self.findings
    }

    /// Prints all and fails if anything was found.
    pub(crate) fn finish(self, check: &str) -> anyhow::Result<()> {
        for notice in &self.notices {
            println!("note: {notice}");
        }
        let findings = self.findings();
        for finding in &findings {
            println!("{finding}");
        }
        anyhow::ensure!(findings.is_empty(), "{check}: {} findings", findings.len());
        println!("{check}: ok");
        Ok(())
    }
}
