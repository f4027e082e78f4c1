//! Campaigns: many cases against an oracle, counted, with the first failure reduced.

use crate::generate::{Case, Menu};
use crate::oracle::{Oracle, Outcome};
use crate::reduce::reduce;
use flambeau_exec::Gen;
use flambeau_ir::Registry;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How cases ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// What must hold was looked at, and holds.
    pub checked: u64,
    /// Cases that did not bear on the question.
    pub rejected: u64,
    /// Cases that took too long.
    pub timeout: u64,
    /// Cases in which it does not hold.
    pub failed: u64,
}

/// A failure with its smallest form.
pub struct Finding {
    /// The bytes the case was made from.
    pub seed: u64,
    /// The smallest case that still fails.
    pub case: Case,
    /// What fails.
    pub why: String,
}

/// Many cases against oracles.
pub struct Campaign {
    menu: Menu,
    seed: u64,
}

impl Campaign {
    /// A campaign over the operators of a registry; equal seeds make equal cases.
    pub fn new(registry: &Arc<Registry>, seed: u64) -> Campaign {
        Campaign { menu: Menu::new(registry), seed }
    }

    /// The same, with operators of chance in many cases.
    #[must_use]
    pub fn favouring_chance(self) -> Campaign {
        Campaign { menu: self.menu.favouring_chance(), ..self }
    }

    /// The operators drawn from.
    pub fn menu(&self) -> &Menu {
        &self.menu
    }

    /// Case number `i`.
    pub fn case(&self, i: u64) -> Case {
        let mut g = Gen::from_seed(self.seed.wrapping_mul(0x9E37_79B9).wrapping_add(i));
        let bytes: Vec<u8> = (0..96).flat_map(|_| g.bits().to_le_bytes()).collect();
        self.menu.case(&bytes)
    }

    /// Checks cases until `limit` of them, or `time`, or the first failure, which is reduced.
    pub fn run(
        &self,
        oracle: &dyn Oracle,
        limit: u64,
        time: Duration,
        mut progress: impl FnMut(&Tally),
    ) -> (Tally, Option<Finding>) {
        let start = Instant::now();
        let mut tally = Tally::default();
        for i in 0..limit {
            if start.elapsed() > time {
                break;
            }
            let case = self.case(i);
            match oracle.check(&case) {
                Outcome::Checked => tally.checked += 1,
                Outcome::Rejected(_) => tally.rejected += 1,
                Outcome::Timeout => tally.timeout += 1,
                Outcome::Failed(_) => {
                    tally.failed += 1;
                    let (small, _) = reduce(&case, oracle, 2_000);
                    let why = match oracle.check(&small) {
                        Outcome::Failed(why) => why,
                        other => format!("{other:?}"),
                    };
                    return (tally, Some(Finding { seed: i, case: small, why }));
                }
            }
            progress(&tally);
        }
        (tally, None)
    }
}
