//! Bounds on the cost of reading, compiling and running programs.
//!
//! Sessions have bounds by default: [`Session::standard`] uses [`Limits::default`], under which any hostile input ends
//! in a result or in an error of fault `Limit`. [`Limits::trusted`] removes the bounds. Bounds on reading grow with the
//! input where large inputs are legitimate (tensors, code). Bounds are absolute where a few bytes of input can have a
//! large cost (nesting, loops, memory of tensors).
//!
//! [`Session::standard`]: crate::Session::standard

use flambeau_exec::Host;
use flambeau_ir::text::ReadLimits;
use std::sync::OnceLock;
use std::time::Duration;

/// The bounds of a session.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bounds on TorchScript source, also in archives, and on the graphs compiled from it.
    pub source: flambeau_frontend::FrontendLimits,
    /// Bounds on IR text.
    pub text: ReadLimits,
    /// Bounds on archives.
    #[cfg(feature = "archive")]
    pub archive: flambeau_archive::ArchiveLimits,
    /// Bounds on exported programs, in addition to those on archives.
    #[cfg(feature = "export")]
    pub exported: flambeau_export::container::Limits,
    /// Bounds on each run of a pipeline of passes.
    pub optimization: OptimizationLimits,
    /// Bounds on each call.
    pub run: RunLimits,
}

impl Limits {
    /// Returns no bounds except those of the data structures, for programs from a trusted origin.
    pub fn trusted() -> Limits {
        Limits {
            source: flambeau_frontend::FrontendLimits::trusted(),
            text: ReadLimits::trusted(),
            #[cfg(feature = "archive")]
            archive: flambeau_archive::ArchiveLimits::trusted(),
            #[cfg(feature = "export")]
            exported: flambeau_export::container::Limits::trusted(),
            optimization: OptimizationLimits::trusted(),
            run: RunLimits::trusted(),
        }
    }
}

/// Bounds on one run of a pipeline: the optimization of one function with the functions that it calls, or the freezing
/// of one method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptimizationLimits {
    /// Time of the run. It is checked between passes, at each rewrite, and during long searches.
    pub time: Option<Duration>,
}

impl Default for OptimizationLimits {
    /// - `time`: one hour. Functions of the largest allowed size are optimized within it.
    fn default() -> OptimizationLimits {
        OptimizationLimits { time: Some(Duration::from_secs(3600)) }
    }
}

impl OptimizationLimits {
    /// Returns no bounds.
    pub fn trusted() -> OptimizationLimits {
        OptimizationLimits { time: None }
    }
}

/// Bounds on one call of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Loop iterations and function calls; `u64::MAX` is no bound.
    pub fuel: u64,
    /// Bytes that tensors and large containers of the call hold at a time. Weights count only while they are loaded.
    pub memory: Option<usize>,
    /// Function calls active at a time.
    pub depth: usize,
    /// Time since the first operator. A running operator is not interrupted.
    pub time: Option<Duration>,
}

impl Default for RunLimits {
    /// - `fuel`: 2^32. An empty loop on the machine takes seconds for this; programs that compute on tensors take days.
    /// - `memory`: 16 GiB, or three quarters of the machine's memory if that is less. This is enough for activations of
    ///   models that run on one machine, and stops a few bytes of source that request terabytes.
    /// - `depth`: 10,000 calls. TorchScript forbids recursion, so only hostile archives nest calls deeper.
    /// - `time`: one hour. It ends runs that fuel and memory allow but that take too long: large products in long
    ///   loops.
    fn default() -> RunLimits {
        RunLimits {
            fuel: 1 << 32,
            memory: Some(default_memory()),
            depth: Host::MAX_DEPTH,
            time: Some(Duration::from_secs(3600)),
        }
    }
}

/// Returns the default of [`RunLimits::memory`] on this machine.
fn default_memory() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let machine = machine_memory().map_or(u64::MAX, |bytes| bytes / 4 * 3);
        usize::try_from(machine.min(16 << 30)).unwrap_or(usize::MAX)
    })
}

/// Returns the bytes of memory that the process can use: those of the machine, or of its control group if these are
/// fewer. Returns `None` where the system does not report them.
#[cfg(target_os = "linux")]
fn machine_memory() -> Option<u64> {
    let table = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let machine = kilobytes.checked_mul(1024)?;
    // A group without a limit has the text `max`; a system without groups has no such file.
    let group =
        std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    Some(group.map_or(machine, |limit: u64| limit.min(machine)))
}

/// Returns the bytes of memory that the process can use: those of the machine, or of its control group if these are
/// fewer. Returns `None` where the system does not report them.
#[cfg(not(target_os = "linux"))]
fn machine_memory() -> Option<u64> {
    None
}

impl RunLimits {
    /// Returns no bounds.
    pub fn trusted() -> RunLimits {
        RunLimits { fuel: u64::MAX, memory: None, depth: usize::MAX, time: None }
    }
}
