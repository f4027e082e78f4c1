//! The intermediate representation of programs: graphs, types, schemas, values, operators.
//!
//! The crate contains graphs in generational arenas, types, schemas, dynamic values, the operator registry, the text
//! form, the verifier and the journal of edits.
//!
//! A [`Graph`] is a tree of blocks; a block is a list of nodes, and a node has operands, results and nested blocks. All
//! reads go through `&Graph`. All changes go through the graph's [`Editor`], and every change leaves a record in the
//! graph's [`Journal`]. An operator is either a row of the [`Registry`] that the graph carries or a structural operator
//! of the closed enumeration [`Prim`]. A name without a row in the registry becomes an opaque node. [`text`] prints
//! graphs as TorchScript does and parses them back. [`verify`](verify::verify) checks a graph; code emission requires
//! the certificate that it returns.
//!
//! Invariants of a graph (the phases of the verifier check them):
//! - an id names the entity it was created for or is stale; it never names another entity;
//! - use lists mirror operands exactly, and values mirror the results of nodes, each in order of creation;
//! - order keys increase along every block, so "comes before" is one comparison;
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
    BlockNodes, DeepNodes, Graph, IfView, LiveNodes, LoopView, MarkLive, NodeMap, NodeSet, SizeRange,
    TrackedNodeMap, TrackedValueMap, Use, ValueMap, ValueName, ValueSet, Walk, WalkStep,
};
pub use id::{BlockId, Entity, NodeId, ValueId};
pub use journal::{Change, Journal};
pub use loc::{LocId, LocTable, Origin, Source, SourceRange};
pub use module::CompilationUnit;
pub use nearest::nearest;
pub use op::{
    AliasRule, AutocastPolicy, Column, Doc, Effects, Facet, HostOp, ImplicitConversion, InplaceOf,
    LoweringRole, MemoryTransfer, Op, OpDef, OpId, OpKind, Prim, PythonFunction, Registry, RegistryBuilder,
    RegistryError, ScalarOverload,
};
pub use revision::{GraphId, Revision, Stale};
pub use schema::FunctionSchema;
pub use symbol::Symbol;
pub use types::Type;
pub use value::IValue;
