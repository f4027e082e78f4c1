//! The program as data: generational arenas, types, schemas, dynamic values, registry, text form, verifier, journal.
//!
//! A [`Graph`] is a block of nodes over values. Everything is read through `&Graph` and changed through its
//! [`Editor`]; every change leaves a record in the graph's [`Journal`]. Operators are rows of a [`Registry`] that the
//! graph carries, structural ones a closed [`Prim`] enumeration, and names nobody registered survive as opaque nodes.
//! [`text`] prints graphs as TorchScript does and reads them back; [`verify`](verify::verify) says whether a graph is
//! one, and what it returns is what code emission takes.
//!
//! What always holds of a graph (the verifier's phases check it):
//! - an id either names the entity it was made for or is stale, never another;
//! - use lists, operand runs and results mirror each other exactly, in order of creation;
//! - order keys grow along every block, so "comes before" is one comparison;
//! - a block begins with `prim::Param` and ends with `prim::Return`, which carry its inputs and outputs.

pub mod attr;
pub mod diag;
mod edit;
mod graph;
mod id;
mod intern;
mod journal;
pub mod loc;
pub mod module;
mod nearest;
mod op;
mod revision;
pub mod schema;
mod stats;
pub mod symbol;
pub mod text;
pub mod types;
pub mod value;
pub mod verify;

pub use attr::{Attr, AttrSet, AttrTable, AttrsId};
pub use diag::{Diagnostic, Fault};
pub use edit::{
    At, CallArg, CallValues, CloneError, Editor, InsertError, Operands, ValueSubstitution, device_of,
};
pub use graph::{
    BlockNodes, DeepNodes, Graph, IfView, LiveNodes, LoopView, MarkLive, Name, NodeMap, NodeSet,
    TrackedNodeMap, TrackedValueMap, Use, ValueMap, ValueSet, Walk, WalkStep,
};
pub use id::{BlockId, Entity, NodeId, ValueId};
pub use journal::{Change, Journal};
pub use loc::{LocId, LocTable, Origin, Source, SourceRange};
pub use module::CompilationUnit;
pub use nearest::nearest;
pub use op::{
    AliasRule, Column, Converter, Doc, Effects, Facet, HostOp, MemoryTransfer, Op, OpDef, OpId, OpKind, Prim,
    Registry, RegistryBuilder, RegistryError, ScalarOverload,
};
pub use revision::{GraphId, Revision, Stale};
pub use schema::FunctionSchema;
pub use symbol::Symbol;
pub use types::Type;
pub use value::IValue;
