//! The context of a shape or dtype rule: facts about the operands, and a source of symbols.
//!
//! Operands are identified by [`ArgRef`], by position or by name in the schema. A missing or unknown operand is `None` or
//! [`Fact::Unknown`]. So a rule may access any fact, and its result is less precise if facts are missing.

use super::{Dims, Fact, Range, Symbols, TensorFact};
use flambeau_ir::types::{Dim, Type, TypeKind};
use flambeau_ir::{FunctionSchema, IValue};
use flambeau_tensor::{DType, Device};
use smallvec::SmallVec;
use std::borrow::Cow;

/// An argument of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgRef {
    /// By position.
    At(usize),
    /// By its name in the schema.
    Named(&'static str),
}

impl From<usize> for ArgRef {
    fn from(index: usize) -> ArgRef {
        ArgRef::At(index)
    }
}

impl From<&usize> for ArgRef {
    fn from(index: &usize) -> ArgRef {
        ArgRef::At(*index)
    }
}

impl From<&'static str> for ArgRef {
    fn from(name: &'static str) -> ArgRef {
        ArgRef::Named(name)
    }
}

impl From<&&'static str> for ArgRef {
    fn from(name: &&'static str) -> ArgRef {
        ArgRef::Named(name)
    }
}

/// The facts about one operand.
#[derive(Clone, Debug)]
pub struct OperandFact<'a> {
    /// The fact.
    pub fact: Cow<'a, Fact>,
    /// The type.
    pub ty: Type,
    /// The value, if the operand is a constant.
    pub constant: Option<IValue>,
}

impl OperandFact<'_> {
    /// Creates a constant operand from a value, for applying a rule to actual values.
    #[must_use]
    pub fn of(value: &IValue) -> OperandFact<'static> {
        OperandFact { fact: Cow::Owned(Fact::of(value)), ty: value.type_of(), constant: Some(value.clone()) }
    }
}

/// The operands of one node, for rules of the facets [`ResultShapes`](super::ResultShapes) and [`Dtype`](super::Dtype).
pub struct ShapeCx<'a> {
    schema: Option<&'a FunctionSchema>,
    operands: SmallVec<[OperandFact<'a>; 8]>,
    /// The symbols of the graph.
    pub symbols: &'a mut Symbols,
}

impl<'a> ShapeCx<'a> {
    /// Creates a context for one node. Omitted trailing operands have the schema's defaults.
    pub fn new(
        schema: Option<&'a FunctionSchema>,
        operands: impl IntoIterator<Item = OperandFact<'a>>,
        symbols: &'a mut Symbols,
    ) -> Self {
        let mut operands: SmallVec<[OperandFact<'a>; 8]> = operands.into_iter().collect();
        let left_out = schema.and_then(|schema| schema.args.get(operands.len()..)).unwrap_or(&[]);
        let default = |value| -> OperandFact<'a> { OperandFact::of(value) };
        operands.extend(left_out.iter().map_while(|arg| arg.default.as_ref()).map(default));
        ShapeCx { schema, operands, symbols }
    }

    /// Returns the number of operands.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operands.len()
    }

    /// Whether there are no operands.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    /// Returns the position of an argument.
    #[must_use]
    pub fn position(&self, arg: impl Into<ArgRef>) -> Option<usize> {
        match arg.into() {
            ArgRef::At(i) => Some(i),
            ArgRef::Named(name) => self.schema?.args.iter().position(|a| a.name.as_str() == name),
        }
    }

    /// Returns the position of the `out` argument for result `index` of an `out=` variant.
    #[must_use]
    pub fn output(&self, index: usize) -> Option<usize> {
        let args = self.schema?.args.iter().enumerate();
        args.filter(|(_, a)| a.is_out()).nth(index).map(|(i, _)| i)
    }

    fn operand(&self, arg: impl Into<ArgRef>) -> Option<&OperandFact<'a>> {
        self.operands.get(self.position(arg)?)
    }

    /// Returns the fact about an operand.
    #[must_use]
    pub fn fact(&self, arg: impl Into<ArgRef>) -> &Fact {
        self.operand(arg).map_or(&Fact::Unknown, |o| &o.fact)
    }

    /// Returns the type of an operand.
    #[must_use]
    pub fn ty(&self, arg: impl Into<ArgRef>) -> Option<Type> {
        self.operand(arg).map(|o| o.ty)
    }

    /// Returns the value of an operand, if it is a constant.
    #[must_use]
    pub fn constant(&self, arg: impl Into<ArgRef>) -> Option<&IValue> {
        self.operand(arg)?.constant.as_ref()
    }

    /// Whether an operand is `None`; the result is `None` if that is unknown.
    #[must_use]
    pub fn is_none(&self, arg: impl Into<ArgRef>) -> Option<bool> {
        let operand = self.operand(arg)?;
        match &*operand.fact {
            Fact::None => Some(true),
            Fact::Unknown => match &operand.constant {
                Some(value) => Some(value.is_none()),
                // A type variable stands for any type.
                None => (!operand.ty.may_be_none() && !operand.ty.has_vars()).then_some(false),
            },
            _ => Some(false),
        }
    }

    /// Returns the fact about a tensor operand.
    #[must_use]
    pub fn tensor(&self, arg: impl Into<ArgRef>) -> Option<&TensorFact> {
        self.fact(arg).as_tensor()
    }

    /// Returns the sizes of a tensor operand of known rank.
    #[must_use]
    pub fn dims(&self, arg: impl Into<ArgRef>) -> Option<&Dims> {
        self.tensor(arg)?.dims.as_ref()
    }

    /// Returns the rank of a tensor operand, if known.
    #[must_use]
    pub fn rank(&self, arg: impl Into<ArgRef>) -> Option<usize> {
        self.tensor(arg)?.rank()
    }

    /// Returns the dtype of a tensor operand, if known.
    #[must_use]
    pub fn dtype(&self, arg: impl Into<ArgRef>) -> Option<DType> {
        self.tensor(arg)?.dtype
    }

    /// Returns the value of an integer operand: [`Dim::Unknown`] if the operand is an `int` of unknown value; `None` if it is
    /// not known to be an integer.
    #[must_use]
    pub fn int(&self, arg: impl Into<ArgRef>) -> Option<Dim> {
        let operand = self.operand(arg)?;
        match &*operand.fact {
            Fact::Int(d) => Some(*d),
            Fact::Unknown if operand.ty == Type::INT => Some(Dim::Unknown),
            _ => None,
        }
    }

    /// Returns the value of an integer operand, if known.
    #[must_use]
    pub fn known_int(&self, arg: impl Into<ArgRef>) -> Option<i64> {
        self.int(arg)?.known()
    }

    /// Returns the value of a bool operand, if known.
    #[must_use]
    pub fn bool(&self, arg: impl Into<ArgRef>) -> Option<bool> {
        match self.fact(arg) {
            Fact::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Returns a list of integers of known length. A single integer is a list of one, as in `int[1]`.
    #[must_use]
    pub fn ints(&self, arg: impl Into<ArgRef>) -> Option<Dims> {
        match self.fact(arg) {
            Fact::List(elems) => elems
                .iter()
                .map(|e| match e {
                    Fact::Int(d) => Some(*d),
                    Fact::Unknown => Some(Dim::Unknown),
                    _ => None,
                })
                .collect(),
            Fact::Int(d) => Some(Dims::from_slice(&[*d])),
            _ => None,
        }
    }

    /// Returns a list of integers, if all are known.
    #[must_use]
    pub fn known_ints(&self, arg: impl Into<ArgRef>) -> Option<SmallVec<[i64; 4]>> {
        self.ints(arg)?.into_iter().map(Dim::known).collect()
    }

    /// Returns the elements of a list or tuple operand of known length.
    #[must_use]
    pub fn elements(&self, arg: impl Into<ArgRef>) -> Option<&[Fact]> {
        match self.fact(arg) {
            Fact::List(elems) | Fact::Tuple(elems) => Some(elems),
            _ => None,
        }
    }

    /// Returns the value of an optional `dtype` argument, if known: `Some(None)` if it is `None`.
    #[must_use]
    pub fn dtype_arg(&self, arg: impl Into<ArgRef> + Copy) -> Option<Option<DType>> {
        if self.is_none(arg) == Some(true) {
            return Some(None);
        }
        DType::from_scalar_type(self.known_int(arg)?).map(Some)
    }

    /// Returns the value of an optional `device` argument, if known: `Some(None)` if it is `None`.
    #[must_use]
    pub fn device_arg(&self, arg: impl Into<ArgRef> + Copy) -> Option<Option<Device>> {
        if self.is_none(arg) == Some(true) {
            return Some(None);
        }
        self.constant(arg)?.as_device().map(Some)
    }

    /// Whether the type of an operand is a number instead of a tensor.
    #[must_use]
    pub fn is_number(&self, arg: impl Into<ArgRef>) -> bool {
        self.operand(arg).is_some_and(|o| {
            matches!(
                o.ty.kind(),
                TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Complex | TypeKind::Number
            )
        })
    }

    /// Creates a symbol for a size.
    pub fn fresh_size(&mut self) -> Dim {
        self.symbols.fresh(Range::SIZE)
    }

    /// Creates symbols for the sizes of a tensor of this rank.
    pub fn fresh_dims(&mut self, rank: usize) -> Dims {
        (0..rank).map(|_| self.fresh_size()).collect()
    }

    /// Returns `dim`, or a new symbol for a size if it is unknown.
    pub fn size_or_fresh(&mut self, dim: Dim) -> Dim {
        if dim == Dim::Unknown { self.fresh_size() } else { dim }
    }

    /// Returns a copy of the sizes of a tensor operand, with new symbols for unknown ones.
    pub fn dims_or_fresh(&mut self, arg: impl Into<ArgRef>) -> Option<Dims> {
        let dims = self.dims(arg)?.clone();
        Some(dims.into_iter().map(|d| self.size_or_fresh(d)).collect())
    }

    /// Returns the position that a `dim` argument denotes among `rank` dimensions; negative values count from the end.
    /// `None` if the argument is unknown or out of range (the node then raises at run time).
    #[must_use]
    pub fn wrap(&self, arg: impl Into<ArgRef>, rank: usize) -> Option<usize> {
        wrap(self.known_int(arg)?, rank)
    }

    /// Like [`ShapeCx::wrap`], but an index below `rank`: a zero-dimensional tensor has none.
    #[must_use]
    pub fn axis(&self, arg: impl Into<ArgRef>, rank: usize) -> Option<usize> {
        axis(self.known_int(arg)?, rank)
    }
}

/// Returns the dimension that `dim` denotes, an index below `rank`; negative values count from the end.
#[must_use]
pub fn axis(dim: i64, rank: usize) -> Option<usize> {
    wrap(dim, rank).filter(|&at| at < rank)
}

/// Returns the position that `dim` denotes among `rank` dimensions; negative values count from the end. As in PyTorch,
/// a zero-dimensional tensor accepts 0 and -1, so the result is not an index into its sizes: see [`axis`].
#[must_use]
pub fn wrap(dim: i64, rank: usize) -> Option<usize> {
    flambeau_tensor::wrap_dim(dim, rank).ok()
}
