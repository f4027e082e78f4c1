//! The pass `drop_asserts`: removes checks that only raise, as `python -O` does.
//!
//! A program whose checks succeed keeps its meaning. A program with a failing check continues instead of raising.

use crate::AssertBranches;
use flambeau::rewrite::{Pass, PassCx, PassError};

/// See the module's documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropAsserts;

impl Pass for DropAsserts {
    const NAME: &'static str = "drop_asserts";
    const DOC: &'static str = "removes branches that only raise";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let (_, branches) = cx.with::<AssertBranches>();
        for node in branches.nodes().to_vec() {
            if !cx.fuel("drop", node) {
                break;
            }
            cx.edit().erase(node);
        }
        Ok(())
    }
}
