//! Small rewrites wherever they fit: the exact rules that operators state, idioms of containers and types ([`super::idioms`]),
//! and the removal of what they leave over.
//!
//! The rules are applied first and again after the idioms, for as long as either finds something, at most a few rounds.

use super::dce::Dce;
use super::idioms::Idioms;
use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Options, PassEntry};
use crate::rules::worklist::OPTIONS;
use crate::rules::{Exactness, Rewrite, Rulebook};
use std::sync::Arc;

/// See the module's head.
#[derive(Default)]
pub struct Peephole {
    /// The rules.
    pub rules: Rewrite,
}

/// Most rounds of rules and idioms.
const MAX_ROUNDS: usize = 8;

impl Peephole {
    /// The pass with the rules of a book at hand.
    pub(crate) fn entry(book: Arc<Rulebook>) -> PassEntry {
        PassEntry::made(OPTIONS, move |options: &Options| {
            Ok(Peephole { rules: Rewrite::configure(options, &book)? })
        })
    }
}

impl Pass for Peephole {
    const NAME: &'static str = "peephole";
    const DOC: &'static str = "applies rewrite rules and idioms of containers and types wherever they fit";

    fn exactness(&self) -> Exactness {
        self.rules.exactness()
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let named_only = !self.rules.select.only.is_empty();
        for _ in 0..MAX_ROUNDS {
            let before = cx.graph().journal().revision();
            self.rules.run(cx)?;
            if named_only {
                return Ok(());
            }
            Idioms.run(cx)?;
            let found = cx.graph().journal().revision() != before;
            Dce::default().run(cx)?;
            if !found {
                return Ok(());
            }
        }
        Ok(())
    }
}
