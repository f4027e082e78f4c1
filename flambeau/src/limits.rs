//! Bounds on what reading, compiling and running programs may cost, in one value.
//!
//! A session is bounded unless it is told otherwise: [`Limits::default`] is what [`Session::standard`] has, and hostile
//! input of any kind ends in a result or in an error of fault `Limit` under it. [`Limits::trusted`] lifts the bounds.
//! Bounds on reading grow with the input where input may be large for good reasons (tensors, code); what a few bytes can
//! ask for (nesting, loops, memory of tensors) is bounded absolutely.
//!
//! [`Session::standard`]: crate::Session::standard

use flambeau_exec::Host;
use flambeau_ir::text::ReadLimits;
use std::time::Duration;

/// The bounds of a session.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// On TorchScript source, also that in archives, and on the graphs compiled from it.
    pub source: flambeau_frontend::Limits,
    /// On IR text.
    pub text: ReadLimits,
    /// On archives.
    #[cfg(feature = "archive")]
    pub archive: flambeau_archive::Limits,
    /// On each call.
    pub run: RunLimits,
}

impl Limits {
    /// No bounds but those of the data structures, for programs whose origin is known.
    pub fn trusted() -> Limits {
        Limits {
            source: flambeau_frontend::Limits::trusted(),
            text: ReadLimits::trusted(),
            #[cfg(feature = "archive")]
            archive: flambeau_archive::Limits::trusted(),
            run: RunLimits::trusted(),
        }
    }
}

/// Bounds on one call of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Loop iterations and calls of functions; `u64::MAX` is no bound.
    pub fuel: u64,
    /// Bytes that tensors and large containers made by the call hold at a time. Weights count only when they are loaded.
    pub memory: Option<usize>,
    /// Calls of functions that are active at a time.
    pub depth: usize,
    /// Time from the first operator on. A single operator is not interrupted.
    pub time: Option<Duration>,
}

impl Default for RunLimits {
    /// - `fuel`: 2^32. An empty loop on the machine runs as long in seconds; programs that compute on tensors run for days
    ///   before they have as many iterations.
    /// - `memory`: 16 GiB. Activations of models that run on one machine fit; a few bytes of source that ask for terabytes
    ///   do not.
    /// - `depth`: 10,000 calls. TorchScript forbids recursion, so only hostile archives nest calls deeper.
    /// - `time`: one hour. It ends runs that fuel and memory allow but that take too long: large products in long loops.
    fn default() -> RunLimits {
        RunLimits {
            fuel: 1 << 32,
            memory: Some(usize::try_from(16_u64 << 30).unwrap_or(usize::MAX)),
            depth: Host::MAX_DEPTH,
            time: Some(Duration::from_secs(3600)),
        }
    }
}

impl RunLimits {
    /// No bounds.
    pub fn trusted() -> RunLimits {
        RunLimits { fuel: u64::MAX, memory: None, depth: usize::MAX, time: None }
    }
}
