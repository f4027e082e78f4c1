//! A stranger's extension: an operator, a rule, a pass and an analysis, by the book.
//!
//! The book is CONTRIBUTING.md: each of its walks shows a piece of this crate, word for word (`tests/walks.rs` compares
//! them). The crate uses nothing but `flambeau`, and nothing in Flambeau knows of it.

mod drop_asserts;
mod guards;
mod swish;

pub use drop_asserts::DropAsserts;
pub use guards::Guards;

use flambeau::SessionBuilder;
use flambeau::rewrite::PassEntry;

/// Adds all of it to a session: `Session::builder().standard().with(stranger::extend)`.
pub fn extend(builder: SessionBuilder) -> SessionBuilder {
    builder
        .ops([swish::swish()])
        .rules("stranger.rules", include_str!("stranger.rules"))
        .pass(PassEntry::of::<DropAsserts>())
        .pipeline("stranger", "drop_asserts,default")
}
