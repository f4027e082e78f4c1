//! Rewriting by rules: text that says which terms over operators are equal.
//!
//! [`parse`] reads the language and [`rule`] resolves it against a registry; conditions and functions are words of a
//! [`vocabulary`]. Rules come from the `Rules` facet of the graph's operators and from the [`Rulebook`] of the library the
//! pass is from. A pass applies rules up to the exactness it accepts, which is [`Exactness::Exact`] unless it is told
//! otherwise. [`trial`] runs both sides of rules on drawn inputs.
//!
//! [`worklist`] applies rules one way, wherever they fit; that is the pass `rewrite`. Equality saturation searches with the
//! same rules for the cheapest program (the pass `egraph`, behind the feature of that name).

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
pub use select::{Rulebook, Selection};
pub use vocabulary::Vocabulary;
pub use worklist::Rewrite;
