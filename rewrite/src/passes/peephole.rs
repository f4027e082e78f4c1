//! Peephole optimization: the exact rules that operators state, idioms of containers and types ([`super::idioms`]), and
//! dead code elimination.
//!
//! The pass itself applies the rules. Its schedule adds the idioms and dead code elimination and repeats all three
//! until a round changes nothing.

use super::dce::Dce;
use super::idioms::Idioms;
use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{PassEntry, PassOptions};
use crate::rules::worklist::OPTIONS;
use crate::rules::{Exactness, Rewrite, RuleLibrary};
use crate::schedule::Schedule;
use std::sync::Arc;

/// See the module documentation.
#[derive(Default)]
pub struct Peephole {
    /// The rules to apply.
    pub rules: Rewrite,
}

/// Maximum number of rounds of rules and idioms.
const MAX_ROUNDS: u32 = 8;

impl Peephole {
    /// The pass entry, with the rules of a library.
    pub(crate) fn entry(library: Arc<RuleLibrary>) -> PassEntry {
        PassEntry::made(OPTIONS, move |options: &PassOptions| {
            Ok(Peephole { rules: Rewrite::configure(options, &library)? })
        })
    }
}

impl Pass for Peephole {
    const NAME: &'static str = "peephole";
    const DOC: &'static str = "Applies rewrite rules and idioms of containers and types to a fixed point.";

    fn exactness(&self) -> Exactness {
        self.rules.exactness()
    }

    /// If rules are selected by name, the pass applies only those, without idioms and dead code elimination.
    fn schedule(&self) -> Schedule {
        let named_only = !self.rules.select.only.is_empty();
        if named_only {
            return Schedule::alone();
        }
        Schedule::alone().then(Idioms).then(Dce::default()).rounds(MAX_ROUNDS)
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        self.rules.apply(cx)
    }
}
