//! The structural operators: closed, so that every layer matches them exhaustively.

use crate::symbol::Symbol;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::OnceLock;

/// Writes the enum, its names and the list of all from one table.
macro_rules! structural {
    ($($(#[doc = $doc:literal])* $prim:ident = $name:literal,)*) => {
        /// A structural operator. Everything else is a row of the registry.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Prim {
            $($(#[doc = $doc])* $prim,)*
        }

        /// Names in the order of the enum.
        const NAMES: &[&str] = &[$($name,)*];

        impl Prim {
            /// All structural operators, in order of their discriminants.
            pub const ALL: &[Prim] = &[$(Prim::$prim,)*];
        }
    };
}

structural! {
    /// The value of attribute `value`; without it, `None`.
    Constant = "prim::Constant",
    /// First node of a block: its results are the block's inputs.
    Param = "prim::Param",
    /// Last node of a block: its operands are the block's outputs.
    Return = "prim::Return",
    /// `(cond)` with two blocks; the results are the outputs of the block taken.
    If = "prim::If",
    /// `(max_trip, initial_cond, carried…)` with one block `(trip, carried…) -> (cond, carried…)`; the results are the final carried values.
    Loop = "prim::Loop",
    /// Before SSA: assigns a value to the variable in attribute `name`.
    Store = "prim::Store",
    /// Before SSA: reads the variable in attribute `name`.
    Load = "prim::Load",
    /// Before the exit transform: returns from the function.
    ReturnStmt = "prim::ReturnStmt",
    /// Before the exit transform: leaves the loop.
    BreakStmt = "prim::BreakStmt",
    /// Before the exit transform: goes on to the next iteration.
    ContinueStmt = "prim::ContinueStmt",
    /// Before the exit transform: the condition and carried values of a loop body.
    LoopContinuation = "prim::LoopContinuation",
    /// Before lowering: two blocks, body and exit, of a context manager.
    With = "prim::With",
    /// Enters a context manager object.
    Enter = "prim::Enter",
    /// Leaves a context manager object.
    Exit = "prim::Exit",
    /// Before SSA: the scope of a comprehension's target.
    ComprehensionScope = "prim::ComprehensionScope",
    /// Calls the function in its first operand (a constant of function type).
    CallFunction = "prim::CallFunction",
    /// Calls method `name` of the object in its first operand.
    CallMethod = "prim::CallMethod",
    /// A function over captured variables, as a value.
    Closure = "prim::Closure",
    /// `prim::fork`: runs its subgraph as a task; the result is a future.
    Fork = "prim::fork",
    /// Before lifting: forks a closure.
    ForkClosure = "prim::forkClosure",
    /// A delayed call of its subgraph.
    Awaitable = "prim::awaitable",
    /// A value wrapped as a finished awaitable.
    AwaitableNowait = "prim::awaitable_nowait",
    /// The value of an awaitable.
    AwaitableWait = "prim::awaitable_wait",
    /// Reads attribute `name` of an object.
    GetAttr = "prim::GetAttr",
    /// Writes attribute `name` of an object.
    SetAttr = "prim::SetAttr",
    /// Whether an object has attribute `name`.
    HasAttr = "prim::HasAttr",
    /// A new object of the result's class, attributes unset.
    CreateObject = "prim::CreateObject",
    /// A tuple of the operands.
    TupleConstruct = "prim::TupleConstruct",
    /// The elements of a tuple.
    TupleUnpack = "prim::TupleUnpack",
    /// Element `i` (second operand) of a tuple.
    TupleIndex = "prim::TupleIndex",
    /// Elements `beg` to `end` (attributes) of a tuple.
    TupleSlice = "prim::TupleSlice",
    /// A list of the operands.
    ListConstruct = "prim::ListConstruct",
    /// The elements of a list, whose length must be the number of results.
    ListUnpack = "prim::ListUnpack",
    /// A dictionary of alternating keys and values.
    DictConstruct = "prim::DictConstruct",
    /// Before clean-up: `[]` whose element type is open.
    EmptyListLiteral = "prim::EmptyListLiteral",
    /// A value that is never read.
    Uninitialized = "prim::Uninitialized",
    /// The operand, known to have the result's type.
    UncheckedCast = "prim::unchecked_cast",
    /// The operand, known not to be `None`.
    UncheckedUnwrapOptional = "prim::unchecked_unwrap_optional",
    /// The operand under a declared type.
    Annotate = "prim::annotate",
    /// Whether the operand is of one of the types in attribute `types`.
    Isinstance = "prim::isinstance",
    /// Raises: `(message, qualified class or None)`.
    RaiseException = "prim::RaiseException",
    /// Prints its operands.
    Print = "prim::Print",
    /// `prim::tolist`: a tensor as nested lists.
    ToList = "prim::tolist",
    /// A call of the host.
    PythonOp = "prim::PythonOp",
    /// A call of a host function excluded from compilation.
    IgnoredPythonOp = "prim::IgnoredPythonOp",
    /// A host object brought back under the result's type; fails when it does not fit.
    CastFromPython = "prim::CastFromPython",
    /// An element of a module container by key.
    ModuleContainerIndex = "prim::ModuleContainerIndex",
    /// Observes a tensor while profiling.
    Profile = "prim::profile",
    /// Observes any value while profiling.
    ProfileIvalue = "prim::profile_ivalue",
    /// The operand, checked to have the result's type; a following bailout handles failure.
    Guard = "prim::Guard",
    /// Continues in the unoptimized program when its guard fails.
    BailOut = "prim::BailOut",
    /// Holds the unoptimized program for bailouts.
    BailoutTemplate = "prim::BailoutTemplate",
    /// Whether operands have the types in attribute `types`, and the operands under those types.
    TypeCheck = "prim::TypeCheck",
    /// Whether operands require gradients as recorded.
    RequiresGradCheck = "prim::RequiresGradCheck",
    /// An unoptimized subgraph for failed checks.
    FallbackGraph = "prim::FallbackGraph",
    /// `(cond, a, b)`: one of two values that are both computed.
    IfThenElse = "prim::IfThenElse",
    /// A subgraph with its derivative.
    DifferentiableGraph = "prim::DifferentiableGraph",
    /// A gradient formula, skipped when all incoming gradients are undefined.
    GradOf = "prim::GradOf",
    /// An undefined (zero) gradient.
    AutogradZero = "prim::AutogradZero",
    /// Sum of two gradients that may be undefined.
    AutogradAdd = "prim::AutogradAdd",
    /// Whether any gradient is defined.
    AutogradAnyNonZero = "prim::AutogradAnyNonZero",
    /// Whether all gradients are defined.
    AutogradAllNonZero = "prim::AutogradAllNonZero",
    /// Whether all gradients are undefined.
    AutogradAllZero = "prim::AutogradAllZero",
    /// A pointwise subgraph computed in one sweep.
    FusionGroup = "prim::FusionGroup",
    /// Concatenation inside a fusion group.
    FusedConcat = "prim::FusedConcat",
    /// The broadcast of several sizes.
    BroadcastSizes = "prim::BroadcastSizes",
    /// The sizes after a reduction.
    ReductionSizes = "prim::ReductionSizes",
    /// The sizes of chunks.
    ChunkSizes = "prim::ChunkSizes",
    /// Chunks of a tensor: attributes `chunks` and `dim`.
    ConstantChunk = "prim::ConstantChunk",
    /// Chunks of several tensors broadcast together.
    BroadcastingChunk = "prim::BroadcastingChunk",
    /// A sum of matrix products as one product.
    MMTreeReduce = "prim::MMTreeReduce",
    /// Matrix products sharing one side as one product.
    MMBatchSide = "prim::MMBatchSide",
    /// A fusion group of PyTorch's tensor expression compiler.
    TensorExprGroup = "prim::TensorExprGroup",
    /// The same with symbolic shapes.
    TensorExprDynamicGroup = "prim::TensorExprDynamicGroup",
    /// The check in front of it.
    TensorExprDynamicGuard = "prim::TensorExprDynamicGuard",
    /// A subgraph of the static runtime.
    StaticSubgraph = "prim::StaticSubgraph",
    /// A subgraph free of mutation.
    FunctionalGraph = "prim::FunctionalGraph",
    /// `cat` of its operands, the last being the dimension.
    VarConcat = "prim::VarConcat",
    /// `stack` of its operands, the last being the dimension.
    VarStack = "prim::VarStack",
}

impl Prim {
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
}

struct Table {
    symbols: Vec<Symbol>,
    by_name: HashMap<Symbol, Prim, FxBuildHasher>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let symbols: Vec<Symbol> = NAMES.iter().map(|n| Symbol::new(n)).collect();
        let by_name = symbols.iter().copied().zip(Prim::ALL.iter().copied()).collect();
        Table { symbols, by_name }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_order_of_discriminants() {
        for (i, p) in Prim::ALL.iter().copied().enumerate() {
            assert_eq!(p as usize, i);
            assert_eq!(Prim::from_symbol(p.symbol()), Some(p));
        }
    }
}
