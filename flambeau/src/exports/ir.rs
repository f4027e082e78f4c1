//! The intermediate representation: graphs, operators, types, values, text.
//!
//! A [`Graph`] is read through `&Graph` and changed through the [`Editor`] that [`Graph::edit`] returns. Operators are
//! rows of a [`Registry`], created from [`OpDef`]s with [`Facet`]s; structural operators are the closed enumeration
//! [`Prim`].

pub use flambeau_ir::{
    AliasRule, At, Attr, AttrSet, BlockId, CallArg, Change, Column, CompilationUnit, Diagnostic, Doc, Editor,
    Effects, Facet, Fault, FunctionSchema, Graph, GraphId, HostOp, IValue, IfView, ImplicitConversion,
    InplaceOf, InsertError, Journal, LocId, LoopView, MemoryTransfer, NodeId, NodeMap, NodeSet, Op, OpDef,
    OpId, OpKind, Operands, Origin, Prim, Registry, RegistryBuilder, RegistryError, Revision, ScalarOverload,
    Source, SourceRange, Stale, Symbol, Type, Use, ValueId, ValueMap, ValueName, ValueSet, WalkStep, nearest,
};

/// Names of attributes.
pub mod attr {
    pub use flambeau_ir::attr::names;
}

/// Errors with positions in texts.
pub mod diag {
    pub use flambeau_ir::diag::Label;
}

/// Compilation units: functions, classes, interfaces, enumerations.
pub mod module {
    pub use flambeau_ir::module::{
        Attribute, AttributeKind, Class, CompilationUnit, Enumeration, Function, Interface, Property,
    };
}

/// Signatures of operators and functions.
pub mod schema {
    pub use flambeau_ir::schema::{AliasInfo, AliasSet, Argument, CallError, FunctionSchema};
}

/// IR text: the printer and parser of PyTorch's format of graphs.
pub mod text {
    pub use flambeau_ir::text::{PrintOptions, ReadLimits, parse_graph, parse_graph_with};
}

/// Static types.
pub mod types {
    pub use flambeau_ir::types::{
        ClassEnv, Dim, NoClasses, TensorType, TupleType, Type, TypeKind, Verbosity, is_subtype, parse_ir_type,
    };
}

/// Dynamic values.
pub mod value {
    pub use flambeau_ir::value::{
        Dict, EnumValue, Future, Generator, HostObject, HostValue, IValue, List, ListItems, Object, Str,
        Tuple, ValueError,
    };
}

/// Verification of graphs.
pub mod verify {
    pub use flambeau_ir::verify::{Verified, VerifyError, VerifyErrors, verify, verify_with};
}
