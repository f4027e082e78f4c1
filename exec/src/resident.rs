//! A bound on the growth of the process's resident memory, which covers allocations that no budget counts.
//!
//! Budgets count tensors and large containers. A program can also make very many small lists, strings and objects, and
//! counting each would cost more than making it. So a long run compares the memory of the process with that soon after
//! its start: a reading takes longer than most runs. The growth includes what other threads of the process allocate
//! meanwhile, so the bound is above the limit of the run. Where the system does not report the memory, there is no such
//! bound.

use std::time::Duration;

/// Growth beyond the limit of a run that is not an error: at least 256 MiB, or a quarter of the limit.
const TOLERATED_GROWTH: usize = 256 << 20;

/// Time from the start of a run to the first reading. A run that fills memory meanwhile stays within [`TOLERATED_GROWTH`].
pub(crate) const FIRST_READING: Duration = Duration::from_millis(1);

/// Interval of readings.
pub(crate) const INTERVAL: Duration = Duration::from_millis(16);

/// Returns the largest growth of the process that a run with a memory limit allows.
pub(crate) fn bound(limit: usize) -> usize {
    limit.saturating_add(TOLERATED_GROWTH.max(limit / 4))
}

/// Returns the resident bytes of the process, if the system reports them.
#[cfg(target_os = "linux")]
pub(crate) fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Returns the resident bytes of the process, if the system reports them.
#[cfg(not(target_os = "linux"))]
pub(crate) fn resident_bytes() -> Option<usize> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_process_is_reported() {
        let before = resident_bytes().unwrap();
        let pages = vec![1_u8; 64 << 20];
        let after = resident_bytes().unwrap();
        assert!(before > 0 && after >= before + (32 << 20), "{before}, {after}, {}", pages.len());
    }
}
