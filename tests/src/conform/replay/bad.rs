//! Hostile programs: accepted, refused, or either, but never fatal, and within bounds of memory.

use flambeau::{Error, Fault};

use super::super::case::{Case, Verdict};
use super::{Replay, verdict_of};

impl Replay {
    pub(super) fn bad(&self, case: &Case) -> Verdict {
        forget_peak();
        let result = self.try_it(case);
        let limit = case.get("limit_mb").and_then(serde_json::Value::as_u64);
        if let (Some(limit), Some(peak)) = (limit, peak_mb())
            && peak > limit
        {
            return Verdict::failed(format!("took {peak} MB where {limit} are allowed"));
        }
        match (case.text("expect"), result) {
            (_, Err(error)) if matches!(error.fault, Fault::Internal) => verdict_of(&error, "internal error"),
            ("accept", Err(error)) => verdict_of(&error, "refused"),
            ("error", Ok(())) => Verdict::failed("accepted, where an error is due"),
            _ => Verdict::passed(),
        }
    }

    fn try_it(&self, case: &Case) -> Result<(), Error> {
        let program = self.load(case, &self.strict)?;
        if case.is("run") {
            let mut host = self.strict.host();
            host.set_stdout(std::io::sink());
            program.entry(case.text("entry"))?.call_on(&[], &[], &mut host)?;
        }
        Ok(())
    }
}

/// Lets the kernel's mark of the highest memory use start again, where it has one.
fn forget_peak() {
    // Only Linux has it; elsewhere nothing is measured.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The highest resident memory since [`forget_peak`], in megabytes.
fn peak_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024)
}
