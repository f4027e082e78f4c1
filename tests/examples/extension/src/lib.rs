//! An example extension: an operator, a rule, a pass and an analysis, as described in CONTRIBUTING.md.
//!
//! Each tutorial of CONTRIBUTING.md shows a part of this crate literally (`tests/tutorials.rs` compares them). The crate
//! depends only on `flambeau`, and Flambeau does not depend on it.

mod assert_branches;
mod drop_asserts;
mod swish;

pub use assert_branches::AssertBranches;
pub use drop_asserts::DropAsserts;

use flambeau::SessionBuilder;
use flambeau::rewrite::PassEntry;

/// Adds the extension to a session: `Session::builder().standard().with(extension::extend)`.
pub fn extend(builder: SessionBuilder) -> SessionBuilder {
    builder
        .ops([swish::swish()])
        .rules("extension.rules", include_str!("extension.rules"))
        .pass(PassEntry::of::<DropAsserts>())
        .pipeline("extension", "drop_asserts,default")
}
