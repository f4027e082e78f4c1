//! Facets that passes of this crate read.

use flambeau_ir::{Facet, IValue, OpId, Registry};

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

    /// Returns these rules together with `more`.
    #[must_use]
    pub fn and(mut self, more: Rules) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Returns the names and texts.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        self.0.iter().copied()
    }
}

impl Facet for Rules {
    const NAME: &'static str = "rules";
}

/// Rewrite rules that decompose or combine operators instead of lowering the cost. They apply only if a pipeline names
/// them or their rule set.
#[derive(Clone, Debug)]
pub struct OptInRules(pub Rules);

impl Facet for OptInRules {
    const NAME: &'static str = "rules-on-request";
}

/// The run-time cost of an operator, in tenths of a pointwise operation. An operator without this facet costs
/// [`Cost::POINTWISE`], or [`Cost::VIEW`] if its result aliases an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(pub u32);

impl Cost {
    /// Creation of a view.
    pub const VIEW: Cost = Cost(2);
    /// One pass over the elements.
    pub const POINTWISE: Cost = Cost(10);
    /// A matrix product.
    pub const PRODUCT: Cost = Cost(200);

    /// Returns the cost of an operator: the one that it states, or the default.
    #[must_use]
    pub fn of(registry: &Registry, op: OpId) -> Cost {
        registry.facet::<Cost>(op).copied().unwrap_or_else(|| {
            let is_view = registry.schema(op).returns.iter().any(|r| r.alias.is_some());
            if is_view { Cost::VIEW } else { Cost::POINTWISE }
        })
    }
}

impl Facet for Cost {
    const NAME: &'static str = "cost";
}

/// The operator's result is always a new tensor object over the memory of the operand that the schema annotates: never
/// that operand itself, and never a copy. The rewrite engine takes the result of an operator whose schema has an alias
/// annotation, but which does not state this facet, for either. States more than the annotation `(a)`, which
/// `contiguous` and `reshape` have too.
///
/// ```
/// use flambeau_ir::{OpDef, RegistryBuilder, Symbol};
/// use flambeau_rewrite::AlwaysView;
///
/// let mut builder = RegistryBuilder::new();
/// builder.add([OpDef::new("mine::flip_view(Tensor(a) self) -> Tensor(a)").with(AlwaysView)]);
/// let registry = builder.build().expect("the schema is right");
/// let op = registry.find(Symbol::new("mine::flip_view"), Symbol::EMPTY).expect("it was added");
/// assert!(registry.facet::<AlwaysView>(op).is_some());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlwaysView;

impl Facet for AlwaysView {
    const NAME: &'static str = "always-view";
}

/// The operands of the operator are a tensor, a number of chunks and a dimension; its result is the list of the
/// tensor's chunks along the dimension, as views.
#[derive(Clone, Copy, Debug)]
pub struct ChunkOp;

impl Facet for ChunkOp {
    const NAME: &'static str = "chunk";
}

/// Facet of an operator whose results depend on the strides or the storage offset of its first operand, and not only on its
/// elements, or which refuses some strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadsStrides;

impl Facet for ReadsStrides {
    const NAME: &'static str = "reads_strides";
}

/// The operation that an operator performs on a list or dictionary, which is its first operand. Passes evaluate the
/// operation at compile time if the elements are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerOp {
    /// Returns the number of elements.
    Count,
    /// Returns the element at an index; negative indices count from the end.
    Item,
    /// Returns a new list with the elements from start to end by a step.
    Slice,
    /// Returns a new list with the elements of both operands.
    Concat,
    /// Returns a new list with the same elements.
    Copy,
    /// Returns the value of a key.
    Value,
    /// Appends an element and returns the list.
    Append,
    /// Inserts an element before the one at an index.
    Insert,
    /// Replaces the element at an index and returns the list, or sets the value of a key.
    Replace,
    /// Returns a new list that repeats the elements a number of times.
    Repeat,
    /// Appends the elements of another list, and returns the list or nothing.
    Extend,
    /// Removes the element at an index, or a key.
    Delete,
    /// Removes the element at an index, by default the last one, or a key, and returns the element or value.
    Pop,
    /// Removes all elements.
    Clear,
    /// Reverses the order of the elements.
    Reverse,
    /// Returns whether a dictionary has a key.
    Contains,
    /// Returns the value of a key, or if there is none, the third operand or `None`.
    Get,
    /// Returns a new list of the keys.
    Keys,
    /// Returns a new list of the values.
    Values,
    /// Returns a new list of the pairs of keys and values.
    Items,
}

impl ContainerOp {
    /// Whether the operation changes the list or dictionary.
    #[must_use]
    pub fn writes(self) -> bool {
        use ContainerOp::{Append, Clear, Delete, Extend, Insert, Pop, Replace, Reverse};
        matches!(self, Append | Insert | Replace | Extend | Delete | Pop | Clear | Reverse)
    }
}

impl Facet for ContainerOp {
    const NAME: &'static str = "elements";
}

/// Facet of an operator that writes arguments which its schema does not let it return: the operator that returns their new
/// elements instead. Its arguments have the same names; its first results are those of the operator, and `x_out` has the new
/// elements of argument `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionalForm(pub &'static str);

impl Facet for FunctionalForm {
    const NAME: &'static str = "functional_form";
}

/// The function of an operator that passes look up instead of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpRole {
    /// `(int, int)`: the sum, with wraparound.
    Sum,
    /// `(int, int)`: the difference, with wraparound.
    Difference,
    /// `(int, int)`: the product, with wraparound.
    Product,
    /// `(int, int)`: the quotient, rounded towards zero.
    Quotient,
    /// `(int, int)`: whether both are equal.
    Equal,
    /// `(int, int)`: whether they differ.
    Unequal,
    /// `(bool)`: the negation.
    Not,
    /// `(matrix, matrix)`: their product.
    MatrixProduct,
    /// `(tensor, tensor, number)`: the first plus the second times the number.
    ScaledSum,
    /// `(future)`: the value of the future.
    Wait,
    /// `(number)`: a zero-dimensional tensor with the number.
    AsTensor,
    /// An activation: an elementwise function of one tensor (and numbers).
    Activation,
    /// `(tensor)`: the number of dimensions.
    Rank,
    /// `(tensor)`: the dtype.
    DtypeOf,
    /// `(tensor)`: the device.
    DeviceOf,
    /// `(number, dtype, device, whether gradients are required)`: a zero-dimensional tensor with the number.
    NumberTensor,
    /// `(tensor, tensor, ...)`: writes the elements of the second into the first, and returns it.
    Copy,
    /// `(tensor, int)`: writes the number into all elements, and returns the tensor.
    WriteInt,
    /// `(tensor, float)`: writes the number into all elements, and returns the tensor.
    WriteFloat,
}

impl Facet for OpRole {
    const NAME: &'static str = "role";
}

/// The operator's result is linear in its weights and bias, and each channel of the result depends only on one slice of
/// the weights and one element of the bias. If the result has the rank of the weights, dimension 1 holds the channels.
#[derive(Clone, Copy, Debug)]
pub struct ChannelLinear {
    /// Index of the operand with the weights.
    pub weight: usize,
    /// Index of the operand with the bias, whose value may be `None`.
    pub bias: usize,
    /// The slice of the weights that belongs to a channel.
    pub slices: ChannelSlices,
    /// Whether an input whose rank differs from that of the weights lacks the batch dimension, instead of having one
    /// more dimension. Passes may then insert a check that the batch dimension is present.
    pub batched: bool,
}

/// The position of a channel's slice in the weights.
#[derive(Clone, Copy, Debug)]
pub enum ChannelSlices {
    /// In dimension 0.
    First,
    /// In dimension 1, separately for each of the groups that dimension 0 is divided into.
    Second {
        /// Index of the operand with the number of groups.
        groups: usize,
    },
    /// Depends on the operand `second`: dimension 1 if it is true, else dimension 0.
    Either {
        /// Index of a boolean operand.
        second: usize,
        /// Index of the operand with the number of groups.
        groups: usize,
    },
}

impl Facet for ChannelLinear {
    const NAME: &'static str = "channel-linear";
}

/// The operator multiplies each channel (dimension 1) of its first operand by a factor and adds a summand. The function
/// returns (factor, summand) per channel if the other operands are suitable constants, else `None`. The first operand
/// is not read; an entry `None` is an operand that is not a constant.
#[derive(Clone, Copy)]
pub struct ChannelAffine(pub fn(&[Option<IValue>]) -> Option<Vec<(f64, f64)>>);

impl Facet for ChannelAffine {
    const NAME: &'static str = "channel-affine";
}
