//! Replay of hostile programs: they may be accepted or rejected but must not crash or exceed their memory limit.

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
            return Verdict::failed(format!("used {peak} MB, limit {limit} MB"));
        }
        match (case.text("expect"), result) {
            (_, Err(error)) if matches!(error.fault, Fault::Internal) => verdict_of(&error, "internal error"),
            ("accept", Err(error)) => verdict_of(&error, "refused"),
            ("error", Ok(())) => Verdict::failed("accepted instead of rejected"),
            _ => Verdict::passed(),
        }
    }

    fn try_it(&self, case: &Case) -> Result<(), Error> {
        if case.text("kind") == "pt2" {
            return self.try_exported(case);
        }
        let program = self.load(case, &self.strict)?;
        if case.is("run") {
            let mut host = self.strict.host();
            host.set_stdout(std::io::sink());
            program.entry(case.text("entry"))?.call_on(&[], &[], &mut host)?;
        }
        Ok(())
    }
}

/// Resets the kernel's record of peak memory. No effect where the system has none.
fn forget_peak() {
    // Only Linux supports this; elsewhere memory is not measured.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the peak resident memory since [`forget_peak`], in megabytes.
fn peak_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024)
}
