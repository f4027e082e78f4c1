//! Kinds of fact about operators that rewriting consumes.

use flambeau_ir::Facet;

/// Rewrite rules stated by an operator; see [`crate::egraph::ruleparse`] for the language.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<(&'static str, &'static str)>);

impl Rules {
    /// Rules from a text.
    pub fn text(text: &'static str) -> Self {
        Rules(vec![("<rules>", text)])
    }

    /// Rules from a file: `Rules::file("pointwise.rules", include_str!("pointwise.rules"))`.
    pub fn file(name: &'static str, text: &'static str) -> Self {
        Rules(vec![(name, text)])
    }

    /// Together with further rules.
    #[must_use]
    pub fn and(mut self, more: Rules) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Names and texts.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        self.0.iter().copied()
    }
}

impl Facet for Rules {
    const NAME: &'static str = "rules";
}

/// What running an operator costs, in units of one pointwise operation. Without this facet an operator costs
/// [`Cost::POINTWISE`], or [`Cost::VIEW`] if its result shares memory with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(pub u32);

impl Cost {
    /// A new view.
    pub const VIEW: Cost = Cost(2);
    /// One sweep over the elements.
    pub const POINTWISE: Cost = Cost(10);
    /// A matrix product.
    pub const PRODUCT: Cost = Cost(200);
}

impl Facet for Cost {
    const NAME: &'static str = "cost";
}

/// States that an operator's operands are a tensor, a number of chunks and a dimension, and that its result is the list
/// of that tensor's chunks along the dimension, as views.
#[derive(Clone, Copy, Debug)]
pub struct Chunk;

impl Facet for Chunk {
    const NAME: &'static str = "chunk";
}
