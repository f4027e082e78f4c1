//! The findings of a check, printed as sorted lines of `place: message`.

use std::fmt::Display;

/// The findings of a check, and notices about checks that had no input.
#[derive(Default)]
pub(crate) struct Report {
    findings: Vec<String>,
    notices: Vec<String>,
}

impl Report {
    /// Records a violation at `place` (a path, a path with a line, a table row).
    pub(crate) fn find(&mut self, place: impl Display, message: impl Display) {
        self.findings.push(format!("{place}: {message}"));
    }

    /// Records a notice, which is not a failure.
    pub(crate) fn notice(&mut self, message: impl Display) {
        self.notices.push(message.to_string());
    }

    /// Returns the findings, sorted and without duplicates.
    pub(crate) fn findings(mut self) -> Vec<String> {
        self.findings.sort();
        self.findings.dedup();
        self.findings
    }

    /// Prints notices and findings; returns an error if there are findings.
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
