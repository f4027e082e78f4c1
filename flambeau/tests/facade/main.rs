//! Tests of the façade with all features, in one program: each program of tests holds the whole library, which is 160 MB
//! without optimization. `reduced` is apart because it runs without features, `threads` because guarded runs take it alone.
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic")]

mod background;
mod built_modules;
mod composites;
mod constants;
mod decompositions;
mod executor;
mod exported;
mod exporting;
mod histories;
mod meaning;
mod module_answers;
mod modules;
mod recorded_operators;
mod recording;
mod sessions;
mod trace;
mod training;
mod unflatten;
mod upgrades;
