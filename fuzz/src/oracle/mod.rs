//! Oracles: functions that check a property of a case.
//!
//! To add an oracle, implement [`Oracle`]; [`crate::observe`] runs programs and compares their results. This oracle
//! checks that a program prints as the same text twice:
//!
//! ```
//! use flambeau_fuzz::{Campaign, Case, Oracle, CheckOutcome};
//! use std::time::Duration;
//!
//! struct PrintsOnce;
//!
//! impl Oracle for PrintsOnce {
//!     fn name(&self) -> String {
//!         "prints-once".into()
//!     }
//!
//!     fn check(&self, case: &Case) -> CheckOutcome {
//!         match case.graph.to_string() == case.graph.to_string() {
//!             true => CheckOutcome::Checked,
//!             false => CheckOutcome::Failed("two texts".into()),
//!         }
//!     }
//! }
//!
//! let campaign = Campaign::new(&flambeau_ops::registry(), 7);
//! let (tally, finding) = campaign.run(&PrintsOnce, 20, Duration::from_secs(10), |_| {});
//! assert!(tally.checked == 20 && finding.is_none());
//! ```

mod alias;
mod deopt;
mod facts;
mod grad;
mod journal;
mod machine;
mod pass;
mod sharing;
mod source;
mod text;

pub use alias::AliasTruth;
pub use deopt::PlansAgree;
pub use facts::FactsHold;
pub use grad::GradientsAgree;
pub use journal::JournalReplay;
pub use machine::MachineAgrees;
pub(crate) use pass::RAISED;
pub use pass::{GraphFunction, PassEquivalence};
pub use sharing::AliasedInputsAgree;
pub use source::SourceRoundTrip;
pub use text::TextRoundTrip;

use crate::case::Case;

/// Outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The property was tested and holds.
    Checked,
    /// The property was tested and holds, and the tested pass changed the program.
    Changed,
    /// The property does not apply to the case; with the reason.
    Rejected(&'static str),
    /// The check exceeded the time limit.
    Timeout,
    /// The property does not hold; with the reason.
    Failed(String),
}

/// A property of every case.
pub trait Oracle: Send + Sync {
    /// Returns the name, for reports.
    fn name(&self) -> String;

    /// Checks a case.
    fn check(&self, case: &Case) -> CheckOutcome;

    /// Returns the number of guards that failed in all checks so far.
    fn failed_guards(&self) -> u64 {
        0
    }
}
