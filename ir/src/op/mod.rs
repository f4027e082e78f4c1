//! Operators: the closed set of structural operators ([`Prim`]) and the open set of the registry.
//!
//! An [`Op`] is the operator of a node in four bytes: a structural operator, a row of the graph's [`Registry`], or a
//! name without a row, which denotes an opaque operator.

mod alias_rule;
mod converter;
mod effects;
mod facet;
mod host;
mod inplace_of;
mod prim;
mod prim_arity;
mod prim_effects;
mod python_function;
mod registry;
mod scalar_overload;

pub use alias_rule::AliasRule;
pub use converter::ImplicitConversion;
pub use effects::Effects;
pub use facet::{Column, Doc, Facet};
pub use host::HostOp;
pub(crate) use host::scalar_args;
pub use inplace_of::InplaceOf;
pub use prim::Prim;
pub use prim_effects::MemoryTransfer;
pub use python_function::{AutocastPolicy, LoweringRole, PythonFunction};
pub use registry::{OpDef, Registry, RegistryBuilder, RegistryError};
pub use scalar_overload::ScalarOverload;

use crate::symbol::Symbol;
use std::fmt;

/// A row of a [`Registry`]: one overload of one operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub(crate) u32);

impl OpId {
    /// Returns the row's number, dense from 0 in order of registration.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op{}", self.0)
    }
}

const TAG_SHIFT: u32 = 30;
const PAYLOAD: u32 = (1 << TAG_SHIFT) - 1;
const TAG_PRIM: u32 = 0;
const TAG_ROW: u32 = 1;
const TAG_UNKNOWN: u32 = 2;

/// The operator of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Op(u32);

/// The three kinds of [`Op`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// A structural operator.
    Prim(Prim),
    /// A row of the graph's registry.
    Row(OpId),
    /// A name without a row: an opaque operator with the effects [`Effects::UNKNOWN`].
    Unknown(Symbol),
}

impl Op {
    /// Creates an operator that is not in the registry.
    pub fn unknown(name: Symbol) -> Op {
        Op(TAG_UNKNOWN << TAG_SHIFT | name.raw())
    }

    /// Returns the kind of the operator.
    pub fn kind(self) -> OpKind {
        match self.0 >> TAG_SHIFT {
            TAG_PRIM => OpKind::Prim(Prim::ALL[(self.0 & PAYLOAD) as usize]),
            TAG_ROW => OpKind::Row(OpId(self.0 & PAYLOAD)),
            _ => OpKind::Unknown(Symbol::from_raw(self.0 & PAYLOAD)),
        }
    }

    /// Returns the structural operator, if it is one.
    pub fn prim(self) -> Option<Prim> {
        (self.0 >> TAG_SHIFT == TAG_PRIM).then(|| Prim::ALL[(self.0 & PAYLOAD) as usize])
    }

    /// Returns the registry row, if it is one.
    pub fn row(self) -> Option<OpId> {
        (self.0 >> TAG_SHIFT == TAG_ROW).then_some(OpId(self.0 & PAYLOAD))
    }
}

impl From<Prim> for Op {
    fn from(prim: Prim) -> Op {
        Op(TAG_PRIM << TAG_SHIFT | prim as u32)
    }
}

impl From<OpId> for Op {
    fn from(id: OpId) -> Op {
        Op(TAG_ROW << TAG_SHIFT | id.0)
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.kind(), f)
    }
}
