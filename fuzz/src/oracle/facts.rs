//! Checks that observed values satisfy the claims of shape propagation.

use super::{CheckOutcome, Oracle};
use crate::case::Case;
use crate::observe::host;
use flambeau_exec::Gen;
use flambeau_exec::soundness::{Watched, watch, watch_partial};

/// Number of random subsets of the arguments' facts, per case.
const PARTS: u64 = 4;

/// Compares every value of a run with [`flambeau_analysis::shape::Shapes`]: with claims derived from the types of the
/// inputs alone, and from subsets of the facts about the arguments.
pub struct FactsHold;

impl Oracle for FactsHold {
    fn name(&self) -> String {
        "facts".into()
    }

    fn check(&self, case: &Case) -> CheckOutcome {
        let unit = &*case.unit;
        let mut claims = 0;
        for part in 0..=PARTS {
            let args = case.fresh_inputs();
            let Watched { wrong, claims: more, .. } = match part {
                0 => watch(&case.graph, args, unit, &mut host()),
                _ => watch_partial(&case.graph, args, unit, &mut host(), &mut Gen::from_seed(part)),
            };
            if let Some(why) = wrong {
                return CheckOutcome::Failed(why);
            }
            claims += more;
        }
        if claims == 0 { CheckOutcome::Rejected("nothing is claimed") } else { CheckOutcome::Checked }
    }
}
