//! What a shape or dtype rule is given: the operands as far as they are known, and a source of symbols.
//!
//! Operands are named by [`Arg`], by position or by the schema's name. An operand that is not there, or not known,
//! reads as `None` or [`Fact::Unknown`], so a rule is written for what it needs and answers less when it gets less.

use super::{Dims, Fact, Range, Symbols, TensorFact};
use flambeau_ir::types::{Dim, Type, TypeKind};
use flambeau_ir::{FunctionSchema, IValue};
use flambeau_tensor::{DType, Device};
use smallvec::SmallVec;
use std::borrow::Cow;

/// An argument of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// By position.
    At(usize),
    /// By its name in the schema.
    Named(&'static str),
}

impl From<usize> for Arg {
    fn from(index: usize) -> Arg {
        Arg::At(index)
    }
}

impl From<&usize> for Arg {
    fn from(index: &usize) -> Arg {
        Arg::At(*index)
    }
}

impl From<&'static str> for Arg {
    fn from(name: &'static str) -> Arg {
        Arg::Named(name)
    }
}

impl From<&&'static str> for Arg {
    fn from(name: &&'static str) -> Arg {
        Arg::Named(name)
    }
}

/// One operand as far as it is known.
#[derive(Clone, Debug)]
pub struct Operand<'a> {
    /// What is known.
    pub fact: Cow<'a, Fact>,
    /// Its type.
    pub ty: Type,
    /// Its value, if it is a constant.
    pub constant: Option<IValue>,
}

impl Operand<'_> {
    /// A value that is at hand, as a constant: for running a rule on actual operands.
    #[must_use]
    pub fn of(value: &IValue) -> Operand<'static> {
        Operand { fact: Cow::Owned(Fact::of(value)), ty: value.type_of(), constant: Some(value.clone()) }
    }
}

/// The operands of one node, for [`Shape`](super::Shape) and [`Dtype`](super::Dtype) rules.
pub struct ShapeCx<'a> {
    schema: Option<&'a FunctionSchema>,
    operands: SmallVec<[Operand<'a>; 8]>,
    /// The symbols of the graph.
    pub symbols: &'a mut Symbols,
}

impl<'a> ShapeCx<'a> {
    /// A context for one node. Operands that are left out at the end are the schema's defaults.
    pub fn new(
        schema: Option<&'a FunctionSchema>,
        operands: impl IntoIterator<Item = Operand<'a>>,
        symbols: &'a mut Symbols,
    ) -> Self {
        let mut operands: SmallVec<[Operand<'a>; 8]> = operands.into_iter().collect();
        let left_out = schema.and_then(|schema| schema.args.get(operands.len()..)).unwrap_or(&[]);
        let default = |value| -> Operand<'a> { Operand::of(value) };
        operands.extend(left_out.iter().map_while(|arg| arg.default.as_ref()).map(default));
        ShapeCx { schema, operands, symbols }
    }

    /// Number of operands.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operands.len()
    }

    /// Whether there are no operands.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    /// The position of an argument.
    #[must_use]
    pub fn position(&self, arg: impl Into<Arg>) -> Option<usize> {
        match arg.into() {
            Arg::At(i) => Some(i),
            Arg::Named(name) => self.schema?.args.iter().position(|a| a.name.as_str() == name),
        }
    }

    /// The position of the argument that takes result `index` of an `out=` variant.
    #[must_use]
    pub fn output(&self, index: usize) -> Option<usize> {
        let args = self.schema?.args.iter().enumerate();
        args.filter(|(_, a)| a.is_out()).nth(index).map(|(i, _)| i)
    }

    fn operand(&self, arg: impl Into<Arg>) -> Option<&Operand<'a>> {
        self.operands.get(self.position(arg)?)
    }

    /// What is known of an operand.
    #[must_use]
    pub fn fact(&self, arg: impl Into<Arg>) -> &Fact {
        self.operand(arg).map_or(&Fact::Unknown, |o| &o.fact)
    }

    /// The type of an operand.
    #[must_use]
    pub fn ty(&self, arg: impl Into<Arg>) -> Option<Type> {
        self.operand(arg).map(|o| o.ty)
    }

    /// An operand's value, if it is a constant.
    #[must_use]
    pub fn constant(&self, arg: impl Into<Arg>) -> Option<&IValue> {
        self.operand(arg)?.constant.as_ref()
    }

    /// Whether an operand is known to be `None` (`Some(true)`) or known not to be.
    #[must_use]
    pub fn is_none(&self, arg: impl Into<Arg>) -> Option<bool> {
        let operand = self.operand(arg)?;
        match &*operand.fact {
            Fact::None => Some(true),
            Fact::Unknown => match &operand.constant {
                Some(value) => Some(value.is_none()),
                None => (!operand.ty.may_be_none()).then_some(false),
            },
            _ => Some(false),
        }
    }

    /// The tensor an operand is known to be.
    #[must_use]
    pub fn tensor(&self, arg: impl Into<Arg>) -> Option<&TensorFact> {
        self.fact(arg).as_tensor()
    }

    /// The sizes of a tensor operand of known rank.
    #[must_use]
    pub fn dims(&self, arg: impl Into<Arg>) -> Option<&Dims> {
        self.tensor(arg)?.dims.as_ref()
    }

    /// The rank of a tensor operand.
    #[must_use]
    pub fn rank(&self, arg: impl Into<Arg>) -> Option<usize> {
        self.tensor(arg)?.rank()
    }

    /// The dtype of a tensor operand.
    #[must_use]
    pub fn dtype(&self, arg: impl Into<Arg>) -> Option<DType> {
        self.tensor(arg)?.dtype
    }

    /// An integer operand, as far as it is known ([`Dim::Unknown`] for any integer); `None` if it may be no integer.
    #[must_use]
    pub fn int(&self, arg: impl Into<Arg>) -> Option<Dim> {
        let operand = self.operand(arg)?;
        match &*operand.fact {
            Fact::Int(d) => Some(*d),
            Fact::Unknown if operand.ty == Type::INT => Some(Dim::Unknown),
            _ => None,
        }
    }

    /// An integer operand whose value is known.
    #[must_use]
    pub fn known_int(&self, arg: impl Into<Arg>) -> Option<i64> {
        self.int(arg)?.known()
    }

    /// A truth value that is known.
    #[must_use]
    pub fn bool(&self, arg: impl Into<Arg>) -> Option<bool> {
        match self.fact(arg) {
            Fact::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// A list of integers of known length. A single integer reads as a list of one, as in `int[1]`.
    #[must_use]
    pub fn ints(&self, arg: impl Into<Arg>) -> Option<Dims> {
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

    /// A list of integers that are all known.
    #[must_use]
    pub fn known_ints(&self, arg: impl Into<Arg>) -> Option<SmallVec<[i64; 4]>> {
        self.ints(arg)?.into_iter().map(Dim::known).collect()
    }

    /// The elements of a list or tuple operand of known length.
    #[must_use]
    pub fn elements(&self, arg: impl Into<Arg>) -> Option<&[Fact]> {
        match self.fact(arg) {
            Fact::List(elems) | Fact::Tuple(elems) => Some(elems),
            _ => None,
        }
    }

    /// The dtype that an optional `dtype` argument names: `Some(None)` if it is known to be `None`.
    #[must_use]
    pub fn dtype_arg(&self, arg: impl Into<Arg> + Copy) -> Option<Option<DType>> {
        if self.is_none(arg) == Some(true) {
            return Some(None);
        }
        DType::from_scalar_type(self.known_int(arg)?).map(Some)
    }

    /// The device that an optional `device` argument names: `Some(None)` if it is known to be `None`.
    #[must_use]
    pub fn device_arg(&self, arg: impl Into<Arg> + Copy) -> Option<Option<Device>> {
        if self.is_none(arg) == Some(true) {
            return Some(None);
        }
        self.constant(arg)?.as_device().map(Some)
    }

    /// Whether an operand is a number of the program rather than a tensor, going by its type.
    #[must_use]
    pub fn is_number(&self, arg: impl Into<Arg>) -> bool {
        self.operand(arg).is_some_and(|o| {
            matches!(
                o.ty.kind(),
                TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Complex | TypeKind::Number
            )
        })
    }

    /// A new symbol for a size.
    pub fn fresh_size(&mut self) -> Dim {
        self.symbols.fresh(Range::SIZE)
    }

    /// New symbols for a tensor of this rank.
    pub fn fresh_dims(&mut self, rank: usize) -> Dims {
        (0..rank).map(|_| self.fresh_size()).collect()
    }

    /// `dim`, or a new symbol for a size if it is unknown.
    pub fn size_or_fresh(&mut self, dim: Dim) -> Dim {
        if dim == Dim::Unknown { self.fresh_size() } else { dim }
    }

    /// The sizes of a tensor operand for changing, unknown ones given symbols.
    pub fn take_dims(&mut self, arg: impl Into<Arg>) -> Option<Dims> {
        let dims = self.dims(arg)?.clone();
        Some(dims.into_iter().map(|d| self.size_or_fresh(d)).collect())
    }

    /// The position that a `dim` argument names among `rank` dimensions, counting from the end if negative; `None`
    /// if it is not known or out of range (the node then fails when it runs).
    #[must_use]
    pub fn wrap(&self, arg: impl Into<Arg>, rank: usize) -> Option<usize> {
        wrap(self.known_int(arg)?, rank)
    }

    /// As [`ShapeCx::wrap`], an index below `rank`: for a tensor without dimensions there is none.
    #[must_use]
    pub fn axis(&self, arg: impl Into<Arg>, rank: usize) -> Option<usize> {
        axis(self.known_int(arg)?, rank)
    }
}

/// The dimension that `dim` names among `rank`, counting from the end if negative: an index below `rank`.
#[must_use]
pub fn axis(dim: i64, rank: usize) -> Option<usize> {
    wrap(dim, rank).filter(|&at| at < rank)
}

/// Position `dim` among `rank` dimensions, counting from the end if negative. A 0-dimensional tensor has position 0
/// and -1, as in PyTorch, so this is no index of its sizes: see [`axis`].
#[must_use]
pub fn wrap(dim: i64, rank: usize) -> Option<usize> {
    flambeau_tensor::wrap_dim(dim, rank).ok()
}
