//! The structural operators. The set is closed, so every layer matches them exhaustively.

use crate::symbol::Symbol;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::OnceLock;

/// Generates the enum, its names and the list of all variants from one table. `structural! { /// Doc. If = "prim::If", }`
/// expands to
///
/// ```text
/// pub enum Prim {
///     /// Doc.
///     If,
/// }
/// const NAMES: &[&str] = &["prim::If"];
/// impl Prim {
///     pub const ALL: &[Prim] = &[Prim::If];
/// }
/// ```
macro_rules! structural {
    ($($(#[doc = $doc:literal])* $prim:ident = $name:literal,)*) => {
        /// A structural operator. All other operators are rows of the registry.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Prim {
            $($(#[doc = $doc])* $prim,)*
        }

        /// Names in the order of the variants.
        const NAMES: &[&str] = &[$($name,)*];

        impl Prim {
            /// All structural operators, in order of their discriminants.
            pub const ALL: &[Prim] = &[$(Prim::$prim,)*];
        }
    };
}

structural! {
    /// The value of attribute `value`, or `None` without the attribute.
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
    /// Before the exit transform: continues with the next iteration.
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
    /// Wraps a value as a finished awaitable.
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
    /// Before clean-up: `[]` with an undetermined element type.
    EmptyListLiteral = "prim::EmptyListLiteral",
    /// An undefined value that is never read.
    Uninitialized = "prim::Uninitialized",
    /// The operand, assumed to have the result's type.
    UncheckedCast = "prim::unchecked_cast",
    /// The operand, assumed not to be `None`.
    UncheckedUnwrapOptional = "prim::unchecked_unwrap_optional",
    /// The operand with a declared type.
    Annotate = "prim::annotate",
    /// Whether the operand is of one of the types in attribute `types`.
    Isinstance = "prim::isinstance",
    /// Raises: `(message, qualified class or None)`.
    RaiseException = "prim::RaiseException",
    /// Prints its operands.
    Print = "prim::Print",
    /// `prim::tolist`: a tensor as nested lists.
    ToList = "prim::tolist",
    /// Calls a function or accesses an object of the embedding program: see [`HostOp`](crate::HostOp).
    PythonOp = "prim::PythonOp",
    /// Calls a host function that is excluded from compilation.
    IgnoredPythonOp = "prim::IgnoredPythonOp",
    /// Converts a host object to the result's type; raises if the object does not match.
    CastFromPython = "prim::CastFromPython",
    /// Selects an element of a module container by key.
    ModuleContainerIndex = "prim::ModuleContainerIndex",
    /// Records a tensor while profiling.
    Profile = "prim::profile",
    /// Records any value while profiling.
    ProfileIvalue = "prim::profile_ivalue",
    /// The operand, checked to have the result's type; a following bailout handles a failed check.
    Guard = "prim::Guard",
    /// Continues in the unoptimized program if its guard fails.
    BailOut = "prim::BailOut",
    /// Holds the unoptimized program for bailouts.
    BailoutTemplate = "prim::BailoutTemplate",
    /// Returns whether the operands have the types in attribute `types`, and the operands with those types.
    TypeCheck = "prim::TypeCheck",
    /// Returns whether the operands require gradients as recorded.
    RequiresGradCheck = "prim::RequiresGradCheck",
    /// An unoptimized subgraph that runs after a failed check.
    FallbackGraph = "prim::FallbackGraph",
    /// `(cond, a, b)`: selects one of two values, both of which are computed.
    IfThenElse = "prim::IfThenElse",
    /// A subgraph with its derivative.
    DifferentiableGraph = "prim::DifferentiableGraph",
    /// A gradient formula that is skipped if all incoming gradients are undefined.
    GradOf = "prim::GradOf",
    /// An undefined gradient, which stands for zero.
    AutogradZero = "prim::AutogradZero",
    /// Sum of two gradients that may be undefined.
    AutogradAdd = "prim::AutogradAdd",
    /// Whether any gradient is defined.
    AutogradAnyNonZero = "prim::AutogradAnyNonZero",
    /// Whether all gradients are defined.
    AutogradAllNonZero = "prim::AutogradAllNonZero",
    /// Whether all gradients are undefined.
    AutogradAllZero = "prim::AutogradAllZero",
    /// A pointwise subgraph computed in one loop.
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
    /// Chunks of several tensors that are first broadcast together.
    BroadcastingChunk = "prim::BroadcastingChunk",
    /// A sum of matrix products, computed as one product.
    MMTreeReduce = "prim::MMTreeReduce",
    /// Several matrix products with a common left or right side, computed as one product.
    MMBatchSide = "prim::MMBatchSide",
    /// A fusion group of PyTorch's tensor expression compiler.
    TensorExprGroup = "prim::TensorExprGroup",
    /// A fusion group of PyTorch's tensor expression compiler with symbolic shapes.
    TensorExprDynamicGroup = "prim::TensorExprDynamicGroup",
    /// The check before a `prim::TensorExprDynamicGroup`.
    TensorExprDynamicGuard = "prim::TensorExprDynamicGuard",
    /// A subgraph of the static runtime.
    StaticSubgraph = "prim::StaticSubgraph",
    /// A subgraph without mutation.
    FunctionalGraph = "prim::FunctionalGraph",
    /// `cat` of all operands but the last, which is the dimension.
    VarConcat = "prim::VarConcat",
    /// `stack` of all operands but the last, which is the dimension.
    VarStack = "prim::VarStack",
}

impl Prim {
    /// Returns the qualified name: `prim::If`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// Returns the qualified name as a symbol.
    pub fn symbol(self) -> Symbol {
        table().symbols[self as usize]
    }

    /// Returns the structural operator with a qualified name.
    pub fn from_symbol(name: Symbol) -> Option<Prim> {
        table().by_name.get(&name).copied()
    }

    /// Returns whether nodes of the operator carry a subgraph in attribute `Subgraph`, which is printed after the
    /// graph.
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
