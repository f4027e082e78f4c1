//! Numbers of operands and results of structural operators.
//!
//! One exhaustive match states them, so a new [`Prim`] does not compile until they are stated. The verifier compares every
//! node with them; passes, analyses and emission rely on that when they index operands and results.

use super::Prim;
use std::ops::RangeInclusive;

/// How many operands and results nodes of a structural operator may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arity {
    /// Numbers of operands.
    pub(crate) operands: RangeInclusive<usize>,
    /// Numbers of results.
    pub(crate) results: RangeInclusive<usize>,
}

const ANY: RangeInclusive<usize> = 0..=usize::MAX;
const SOME: RangeInclusive<usize> = 1..=usize::MAX;

impl Prim {
    /// Returns the numbers of operands and results that the operator admits. Blocks and subgraphs may bound them further.
    pub(crate) fn arity(self) -> Arity {
        let (operands, results) = match self {
            // Parameters, returns and nodes with blocks, whose signatures the verifier compares with the blocks'.
            Prim::Param | Prim::Return | Prim::If | Prim::Loop | Prim::With | Prim::ComprehensionScope => {
                (ANY, ANY)
            }
            Prim::ReturnStmt | Prim::BreakStmt | Prim::ContinueStmt | Prim::LoopContinuation => (ANY, ANY),

            Prim::Constant
            | Prim::Load
            | Prim::EmptyListLiteral
            | Prim::Uninitialized
            | Prim::AutogradZero => (0..=0, 1..=1),
            Prim::Store => (1..=1, 0..=0),
            Prim::Print => (ANY, 0..=0),
            Prim::RaiseException => (1..=2, 0..=0),

            Prim::GetAttr | Prim::HasAttr | Prim::Isinstance | Prim::Annotate => (1..=1, 1..=1),
            Prim::UncheckedCast | Prim::UncheckedUnwrapOptional | Prim::CastFromPython => (1..=1, 1..=1),
            Prim::AwaitableNowait | Prim::AwaitableWait | Prim::TupleSlice => (1..=1, 1..=1),
            Prim::TupleIndex | Prim::ModuleContainerIndex | Prim::AutogradAdd => (2..=2, 1..=1),
            Prim::IfThenElse => (3..=3, 1..=1),
            Prim::SetAttr => (2..=2, 0..=1),
            Prim::TupleUnpack | Prim::ListUnpack | Prim::ConstantChunk => (1..=1, ANY),
            Prim::ChunkSizes => (1..=1, 2..=2),

            Prim::TupleConstruct | Prim::ListConstruct | Prim::DictConstruct | Prim::CreateObject => {
                (ANY, 1..=1)
            }
            Prim::AutogradAnyNonZero | Prim::AutogradAllNonZero | Prim::AutogradAllZero => (ANY, 1..=1),
            Prim::Fork | Prim::Awaitable | Prim::FusedConcat | Prim::BroadcastSizes | Prim::MMTreeReduce => {
                (ANY, 1..=1)
            }
            Prim::VarConcat | Prim::VarStack | Prim::ToList | Prim::ReductionSizes => (SOME, 1..=1),
            Prim::Guard | Prim::BailOut | Prim::ForkClosure => (SOME, 1..=1),

            Prim::Enter | Prim::Exit | Prim::CallFunction | Prim::CallMethod => (SOME, ANY),
            Prim::TypeCheck | Prim::RequiresGradCheck | Prim::TensorExprDynamicGuard => (ANY, SOME),

            Prim::Closure | Prim::PythonOp | Prim::IgnoredPythonOp => (ANY, ANY),
            Prim::Profile | Prim::ProfileIvalue | Prim::BailoutTemplate => (ANY, ANY),
            Prim::FallbackGraph | Prim::DifferentiableGraph | Prim::GradOf | Prim::FusionGroup => (ANY, ANY),
            Prim::BroadcastingChunk | Prim::MMBatchSide | Prim::TensorExprGroup => (ANY, ANY),
            Prim::TensorExprDynamicGroup | Prim::StaticSubgraph | Prim::FunctionalGraph => (ANY, ANY),
        };
        Arity { operands, results }
    }
}
