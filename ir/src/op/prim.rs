//! The structural operators: closed, so that every layer matches them exhaustively.

use crate::symbol::Symbol;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::OnceLock;

/// A structural operator. Everything else is a row of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Prim {
    /// The value of attribute `value`; without it, `None`.
    Constant,
    /// First node of a block: its results are the block's inputs.
    Param,
    /// Last node of a block: its operands are the block's outputs.
    Return,
    /// `(cond)` with two blocks; the results are the outputs of the block taken.
    If,
    /// `(max_trip, initial_cond, carried…)` with one block `(trip, carried…) -> (cond, carried…)`; the results are the final carried values.
    Loop,
    /// Before SSA: assigns a value to the variable in attribute `name`.
    Store,
    /// Before SSA: reads the variable in attribute `name`.
    Load,
    /// Before the exit transform: returns from the function.
    ReturnStmt,
    /// Before the exit transform: leaves the loop.
    BreakStmt,
    /// Before the exit transform: goes on to the next iteration.
    ContinueStmt,
    /// Before the exit transform: the condition and carried values of a loop body.
    LoopContinuation,
    /// Before lowering: two blocks, body and exit, of a context manager.
    With,
    /// Enters a context manager object.
    Enter,
    /// Leaves a context manager object.
    Exit,
    /// Before SSA: the scope of a comprehension's target.
    ComprehensionScope,
    /// Calls the function in its first operand (a constant of function type).
    CallFunction,
    /// Calls method `name` of the object in its first operand.
    CallMethod,
    /// A function over captured variables, as a value.
    Closure,
    /// `prim::fork`: runs its subgraph as a task; the result is a future.
    Fork,
    /// Before lifting: forks a closure.
    ForkClosure,
    /// A delayed call of its subgraph.
    Awaitable,
    /// A value wrapped as a finished awaitable.
    AwaitableNowait,
    /// The value of an awaitable.
    AwaitableWait,
    /// Reads attribute `name` of an object.
    GetAttr,
    /// Writes attribute `name` of an object.
    SetAttr,
    /// Whether an object has attribute `name`.
    HasAttr,
    /// A new object of the result's class, attributes unset.
    CreateObject,
    /// A tuple of the operands.
    TupleConstruct,
    /// The elements of a tuple.
    TupleUnpack,
    /// Element `i` (second operand) of a tuple.
    TupleIndex,
    /// Elements `beg` to `end` (attributes) of a tuple.
    TupleSlice,
    /// A list of the operands.
    ListConstruct,
    /// The elements of a list, whose length must be the number of results.
    ListUnpack,
    /// A dictionary of alternating keys and values.
    DictConstruct,
    /// Before clean-up: `[]` whose element type is open.
    EmptyListLiteral,
    /// A value that is never read.
    Uninitialized,
    /// The operand, known to have the result's type.
    UncheckedCast,
    /// The operand, known not to be `None`.
    UncheckedUnwrapOptional,
    /// The operand under a declared type.
    Annotate,
    /// Whether the operand is of one of the types in attribute `types`.
    Isinstance,
    /// Raises: `(message, qualified class or None)`.
    RaiseException,
    /// Prints its operands.
    Print,
    /// `prim::tolist`: a tensor as nested lists.
    ToList,
    /// A call of the host.
    PythonOp,
    /// A call of a host function excluded from compilation.
    IgnoredPythonOp,
    /// A host object brought back under the result's type; fails when it does not fit.
    CastFromPython,
    /// An element of a module container by key.
    ModuleContainerIndex,
    /// Observes a tensor while profiling.
    Profile,
    /// Observes any value while profiling.
    ProfileIvalue,
    /// The operand, checked to have the result's type; a following bailout handles failure.
    Guard,
    /// Continues in the unoptimized program when its guard fails.
    BailOut,
    /// Holds the unoptimized program for bailouts.
    BailoutTemplate,
    /// Whether operands have the types in attribute `types`, and the operands under those types.
    TypeCheck,
    /// Whether operands require gradients as recorded.
    RequiresGradCheck,
    /// An unoptimized subgraph for failed checks.
    FallbackGraph,
    /// `(cond, a, b)`: one of two values that are both computed.
    IfThenElse,
    /// A subgraph with its derivative.
    DifferentiableGraph,
    /// A gradient formula, skipped when all incoming gradients are undefined.
    GradOf,
    /// An undefined (zero) gradient.
    AutogradZero,
    /// Sum of two gradients that may be undefined.
    AutogradAdd,
    /// Whether any gradient is defined.
    AutogradAnyNonZero,
    /// Whether all gradients are defined.
    AutogradAllNonZero,
    /// Whether all gradients are undefined.
    AutogradAllZero,
    /// A pointwise subgraph computed in one sweep.
    FusionGroup,
    /// Concatenation inside a fusion group.
    FusedConcat,
    /// The broadcast of several sizes.
    BroadcastSizes,
    /// The sizes after a reduction.
    ReductionSizes,
    /// The sizes of chunks.
    ChunkSizes,
    /// Chunks of a tensor: attributes `chunks` and `dim`.
    ConstantChunk,
    /// Chunks of several tensors broadcast together.
    BroadcastingChunk,
    /// A sum of matrix products as one product.
    MMTreeReduce,
    /// Matrix products sharing one side as one product.
    MMBatchSide,
    /// A fusion group of PyTorch's tensor expression compiler.
    TensorExprGroup,
    /// The same with symbolic shapes.
    TensorExprDynamicGroup,
    /// The check in front of it.
    TensorExprDynamicGuard,
    /// A subgraph of the static runtime.
    StaticSubgraph,
    /// A subgraph free of mutation.
    FunctionalGraph,
    /// `cat` of its operands, the last being the dimension.
    VarConcat,
    /// `stack` of its operands, the last being the dimension.
    VarStack,
}

/// Names in the order of the enum.
const NAMES: [&str; 79] = [
    "prim::Constant",
    "prim::Param",
    "prim::Return",
    "prim::If",
    "prim::Loop",
    "prim::Store",
    "prim::Load",
    "prim::ReturnStmt",
    "prim::BreakStmt",
    "prim::ContinueStmt",
    "prim::LoopContinuation",
    "prim::With",
    "prim::Enter",
    "prim::Exit",
    "prim::ComprehensionScope",
    "prim::CallFunction",
    "prim::CallMethod",
    "prim::Closure",
    "prim::fork",
    "prim::forkClosure",
    "prim::awaitable",
    "prim::awaitable_nowait",
    "prim::awaitable_wait",
    "prim::GetAttr",
    "prim::SetAttr",
    "prim::HasAttr",
    "prim::CreateObject",
    "prim::TupleConstruct",
    "prim::TupleUnpack",
    "prim::TupleIndex",
    "prim::TupleSlice",
    "prim::ListConstruct",
    "prim::ListUnpack",
    "prim::DictConstruct",
    "prim::EmptyListLiteral",
    "prim::Uninitialized",
    "prim::unchecked_cast",
    "prim::unchecked_unwrap_optional",
    "prim::annotate",
    "prim::isinstance",
    "prim::RaiseException",
    "prim::Print",
    "prim::tolist",
    "prim::PythonOp",
    "prim::IgnoredPythonOp",
    "prim::CastFromPython",
    "prim::ModuleContainerIndex",
    "prim::profile",
    "prim::profile_ivalue",
    "prim::Guard",
    "prim::BailOut",
    "prim::BailoutTemplate",
    "prim::TypeCheck",
    "prim::RequiresGradCheck",
    "prim::FallbackGraph",
    "prim::IfThenElse",
    "prim::DifferentiableGraph",
    "prim::GradOf",
    "prim::AutogradZero",
    "prim::AutogradAdd",
    "prim::AutogradAnyNonZero",
    "prim::AutogradAllNonZero",
    "prim::AutogradAllZero",
    "prim::FusionGroup",
    "prim::FusedConcat",
    "prim::BroadcastSizes",
    "prim::ReductionSizes",
    "prim::ChunkSizes",
    "prim::ConstantChunk",
    "prim::BroadcastingChunk",
    "prim::MMTreeReduce",
    "prim::MMBatchSide",
    "prim::TensorExprGroup",
    "prim::TensorExprDynamicGroup",
    "prim::TensorExprDynamicGuard",
    "prim::StaticSubgraph",
    "prim::FunctionalGraph",
    "prim::VarConcat",
    "prim::VarStack",
];

impl Prim {
    /// All structural operators, in order of their discriminants.
    pub const ALL: [Prim; 79] = [
        Prim::Constant,
        Prim::Param,
        Prim::Return,
        Prim::If,
        Prim::Loop,
        Prim::Store,
        Prim::Load,
        Prim::ReturnStmt,
        Prim::BreakStmt,
        Prim::ContinueStmt,
        Prim::LoopContinuation,
        Prim::With,
        Prim::Enter,
        Prim::Exit,
        Prim::ComprehensionScope,
        Prim::CallFunction,
        Prim::CallMethod,
        Prim::Closure,
        Prim::Fork,
        Prim::ForkClosure,
        Prim::Awaitable,
        Prim::AwaitableNowait,
        Prim::AwaitableWait,
        Prim::GetAttr,
        Prim::SetAttr,
        Prim::HasAttr,
        Prim::CreateObject,
        Prim::TupleConstruct,
        Prim::TupleUnpack,
        Prim::TupleIndex,
        Prim::TupleSlice,
        Prim::ListConstruct,
        Prim::ListUnpack,
        Prim::DictConstruct,
        Prim::EmptyListLiteral,
        Prim::Uninitialized,
        Prim::UncheckedCast,
        Prim::UncheckedUnwrapOptional,
        Prim::Annotate,
        Prim::Isinstance,
        Prim::RaiseException,
        Prim::Print,
        Prim::ToList,
        Prim::PythonOp,
        Prim::IgnoredPythonOp,
        Prim::CastFromPython,
        Prim::ModuleContainerIndex,
        Prim::Profile,
        Prim::ProfileIvalue,
        Prim::Guard,
        Prim::BailOut,
        Prim::BailoutTemplate,
        Prim::TypeCheck,
        Prim::RequiresGradCheck,
        Prim::FallbackGraph,
        Prim::IfThenElse,
        Prim::DifferentiableGraph,
        Prim::GradOf,
        Prim::AutogradZero,
        Prim::AutogradAdd,
        Prim::AutogradAnyNonZero,
        Prim::AutogradAllNonZero,
        Prim::AutogradAllZero,
        Prim::FusionGroup,
        Prim::FusedConcat,
        Prim::BroadcastSizes,
        Prim::ReductionSizes,
        Prim::ChunkSizes,
        Prim::ConstantChunk,
        Prim::BroadcastingChunk,
        Prim::MMTreeReduce,
        Prim::MMBatchSide,
        Prim::TensorExprGroup,
        Prim::TensorExprDynamicGroup,
        Prim::TensorExprDynamicGuard,
        Prim::StaticSubgraph,
        Prim::FunctionalGraph,
        Prim::VarConcat,
        Prim::VarStack,
    ];

    /// The qualified name: `prim::If`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The qualified name as a symbol.
    pub fn symbol(self) -> Symbol {
        table().symbols[self as usize]
    }

    /// The structural operator with a qualified name.
    pub fn from_symbol(name: Symbol) -> Option<Prim> {
        table().by_name.get(&name).copied()
    }

    /// Whether the operator's node carries a subgraph in attribute `Subgraph` that is printed behind the graph.
    pub fn has_subgraph(self) -> bool {
        matches!(
            self,
            Prim::FusionGroup
                | Prim::DifferentiableGraph
                | Prim::FunctionalGraph
                | Prim::FallbackGraph
                | Prim::TensorExprGroup
                | Prim::TensorExprDynamicGroup
                | Prim::StaticSubgraph
                | Prim::Fork
                | Prim::Awaitable
                | Prim::BailOut
                | Prim::BailoutTemplate
        )
    }

    /// Whether running the node does something that must neither be dropped nor repeated nor reordered with its like.
    ///
    /// Writes to memory are not meant: those are the alias analysis's business.
    pub fn has_side_effects(self) -> bool {
        matches!(
            self,
            Prim::Print
                | Prim::RaiseException
                | Prim::PythonOp
                | Prim::IgnoredPythonOp
                | Prim::CallFunction
                | Prim::CallMethod
                | Prim::BailoutTemplate
                | Prim::BailOut
                | Prim::Enter
                | Prim::Exit
                | Prim::With
                | Prim::SetAttr
                | Prim::CastFromPython
                | Prim::Fork
                | Prim::ForkClosure
                | Prim::AwaitableWait
                | Prim::Store
                | Prim::ReturnStmt
                | Prim::BreakStmt
                | Prim::ContinueStmt
                | Prim::LoopContinuation
                | Prim::Param
                | Prim::Return
        )
    }
}

struct Table {
    symbols: Vec<Symbol>,
    by_name: HashMap<Symbol, Prim, FxBuildHasher>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let symbols: Vec<Symbol> = NAMES.iter().map(|n| Symbol::new(n)).collect();
        let by_name = symbols.iter().copied().zip(Prim::ALL).collect();
        Table { symbols, by_name }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_order_of_discriminants() {
        for (i, p) in Prim::ALL.into_iter().enumerate() {
            assert_eq!(p as usize, i);
            assert_eq!(Prim::from_symbol(p.symbol()), Some(p));
        }
    }
}
