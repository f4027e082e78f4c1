//! Kinds of fact about operators that rewriting consumes.

use flambeau_ir::{Facet, IValue};

/// Rewrite rules stated by an operator; see [`crate::rules::parse`] for the language.
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

/// Rewrite rules that change the shape of a program rather than making it cheaper (one operator as several, several as
/// one): they apply only where a pipeline names them or their rule set.
#[derive(Clone, Debug)]
pub struct OnRequest(pub Rules);

impl Facet for OnRequest {
    const NAME: &'static str = "rules-on-request";
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

/// What an operator does with a list or dictionary, its first operand, stated so that it can be done before the program
/// runs where the elements are in sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Gives the number of elements.
    Count,
    /// Gives the element at an index, from the end if negative.
    Item,
    /// Gives a new list of those from a start to an end, by a step.
    Slice,
    /// Gives a new list of the elements of both operands.
    Concat,
    /// Gives a new list of the same elements.
    Copy,
    /// Gives the value under a key.
    Value,
    /// Puts an element behind the last and gives the list.
    Append,
    /// Puts an element before the one at an index.
    Insert,
    /// Replaces the element at an index and gives the list.
    Replace,
}

impl Facet for Elements {
    const NAME: &'static str = "elements";
}

/// What a pass looks for an operator as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `(int, int)`: the sum, wrapping around.
    Sum,
    /// `(int, int)`: the difference, wrapping around.
    Difference,
    /// `(int, int)`: the product, wrapping around.
    Product,
    /// `(int, int)`: the quotient, rounded towards zero.
    Quotient,
    /// `(int, int)`: whether both are the same.
    Equal,
    /// `(int, int)`: whether they differ.
    Unequal,
    /// `(bool)`: the other truth value.
    Not,
    /// `(matrix, matrix)`: their product.
    MatrixProduct,
    /// `(tensor, tensor, number)`: the first and so many times the second.
    ScaledSum,
    /// `(future)`: what it resolves to.
    Wait,
    /// `(number)`: a tensor of no dimensions that holds it.
    AsTensor,
    /// A function of one tensor (and numbers), element by element, that networks put behind their layers.
    Activation,
    /// `(tensor)`: the number of its dimensions.
    Rank,
}

impl Facet for Role {
    const NAME: &'static str = "role";
}

/// States that an operator's result is linear in its weights and bias, and that a slice of the weights and an element of
/// the bias make one channel of it alone. Where the result has the rank of the weights, dimension 1 holds the channels.
#[derive(Clone, Copy, Debug)]
pub struct ChannelLinear {
    /// The operand that is the weights.
    pub weight: usize,
    /// The operand that is the bias, `None` for none.
    pub bias: usize,
    /// Which slice of the weights belongs to a channel.
    pub slices: Slices,
    /// Whether an input of another rank than the weights' is a batch left out, and not one more dimension. Passes may
    /// insist on the batch then.
    pub batched: bool,
}

/// Where the slices of the weights that belong to channels are.
#[derive(Clone, Copy, Debug)]
pub enum Slices {
    /// In dimension 0.
    First,
    /// In dimension 1, within each of the groups that dimension 0 falls into: the operand with their number.
    Second {
        /// The number of groups.
        groups: usize,
    },
    /// As the operand `second` says: in dimension 1 if it is true, else in dimension 0.
    Either {
        /// A boolean.
        second: usize,
        /// The number of groups.
        groups: usize,
    },
}

impl Facet for ChannelLinear {
    const NAME: &'static str = "channel-linear";
}

/// States that an operator scales and shifts the channels (dimension 1) of its first operand: factors and summands as
/// the other operands give them, where these are constants and it does nothing else. What the first operand is does
/// not matter; a `None` is no constant.
#[derive(Clone, Copy)]
pub struct ChannelAffine(pub fn(&[Option<IValue>]) -> Option<Vec<(f64, f64)>>);

impl Facet for ChannelAffine {
    const NAME: &'static str = "channel-affine";
}
