//! Bounds and thresholds of executors.
//!
//! All numbers of profiles, plans and compilations of a function are bounded, so that a function whose arguments always
//! differ costs a bounded time more than without an executor.

use crate::deopt::Deopt;

/// Number of failed runs after which an argument spec is not profiled any more.
pub(crate) const MAX_FAILED_RUNS: u32 = 8;

/// A guard that fails in less than one of this many runs stays in its plan: the other runs profit from it, and a
/// specialized continuation serves those that fail.
pub(crate) const RARE: u32 = 16;

/// Settings of an executor.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorSettings {
    /// Number of profiled runs before a plan is made.
    pub profiled_runs: u32,
    /// Maximum number of plans of a function.
    pub max_plans: usize,
    /// Maximum number of [`ArgumentSpec`](crate::ArgumentSpec)s that are profiled.
    pub max_specs: usize,
    /// Maximum number of plans and continuations that are compiled for one function in its lifetime.
    pub max_compilations: u32,
    /// Number of failures of a guard after which the next plan omits it, unless it failed in less than one of 16 runs.
    pub max_failures: u32,
    /// Number of entries after which the continuation of a guard is specialized; 0 for never.
    pub hot_continuation: u32,
    /// Guards that are made to fail.
    pub deopt: Option<Deopt>,
}

impl Default for ExecutorSettings {
    fn default() -> Self {
        ExecutorSettings {
            profiled_runs: 2,
            max_plans: 8,
            max_specs: 8,
            max_compilations: 32,
            max_failures: 3,
            hot_continuation: 8,
            deopt: None,
        }
    }
}
