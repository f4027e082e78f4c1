//! Rewrite rules: text that states which terms over operators are equal.
//!
//! [`parse`] parses the language and [`rule`] resolves it against a registry; conditions and functions come from a
//! [`vocabulary`]. Rules come from the `Rules` facet of the graph's operators and from the [`RuleLibrary`] of the pass
//! library. A pass applies rules up to an exactness, by default [`Exactness::Exact`]. [`trial`] evaluates both sides of
//! rules on random inputs.
//!
//! [`worklist`] applies rules greedily from left to right (the pass `rewrite`). Equality saturation uses the same rules
//! to search for the cheapest program (the pass `egraph`, feature `egraph`).

mod concerned;
pub(crate) mod contradiction;
pub(crate) mod eligible;
pub mod parse;
pub mod rule;
mod select;
pub(crate) mod sharing;
pub mod trial;
pub mod vocabulary;
pub mod worklist;

pub use parse::Exactness;
pub use rule::{Rule, RuleSet};
pub use select::{RuleLibrary, Selection};
pub use vocabulary::Vocabulary;
pub use worklist::Rewrite;
