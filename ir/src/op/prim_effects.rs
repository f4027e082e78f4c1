//! Effects of structural operators.
//!
//! One exhaustive match states them, so a new [`Prim`] does not compile until its effects are stated.
//!
//! Each row states how the operator treats memory ([`MemoryTransfer`], which implies reads, writes and aliases) and its
//! other effects. The points-to analysis interprets the same [`MemoryTransfer`], so the two are consistent.

use super::{Effects, Prim};

/// Memory behaviour of a structural operator: its transfer function in the points-to analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryTransfer {
    /// No memory is allocated, stored or written.
    Nothing,
    /// Results are newly allocated.
    Fresh,
    /// Result `i` is operand `i`.
    Same,
    /// The result is the first operand. Or else the node's subgraph runs on the other operands, which it may write and
    /// return, in place of the rest of the function.
    Continue,
    /// Every result may be any operand.
    AnyOperand,
    /// The result is a new container of the operands.
    Construct,
    /// Results are elements of the first operand.
    Extract,
    /// Results come from outside the graph. Nothing is written.
    Wildcard,
    /// The result is the value of an attribute.
    Attribute,
    /// Operands are stored outside the graph.
    Store,
    /// Operands may be written and stored, and results come from outside.
    Call,
    /// As `Call`; in addition, any memory reachable from outside may be written.
    Host,
    /// Starts a task with the operands, which may write them at any later time.
    Task,
    /// Other tasks run: any shared memory may be written, and results come from outside.
    Wait,
    /// The behaviour of the node's subgraph.
    Subgraph,
    /// The result is a constant that is shared between runs.
    Constant,
    /// The result is a new object.
    Object,
    /// Writes the first operand and stores the others in it.
    SetAttr,
    /// The behaviour of the node's blocks, which determine inputs and outputs.
    Blocks,
    /// As `Blocks`; in addition, operands may be stored.
    Captures,
}

impl MemoryTransfer {
    /// Returns the effects implied by the memory behaviour.
    pub const fn effects(self) -> Effects {
        match self {
            MemoryTransfer::Nothing
            | MemoryTransfer::Fresh
            | MemoryTransfer::Construct
            | MemoryTransfer::Store
            | MemoryTransfer::Subgraph
            | MemoryTransfer::Constant
            | MemoryTransfer::Blocks
            | MemoryTransfer::Captures => Effects::PURE,
            MemoryTransfer::Same | MemoryTransfer::AnyOperand | MemoryTransfer::Wildcard => Effects::ALIASES,
            MemoryTransfer::Extract | MemoryTransfer::Attribute => Effects::READS.union(Effects::ALIASES),
            MemoryTransfer::Call
            | MemoryTransfer::Host
            | MemoryTransfer::Task
            | MemoryTransfer::Wait
            | MemoryTransfer::Continue => Effects::READS.union(Effects::WRITES).union(Effects::ALIASES),
            MemoryTransfer::Object => Effects::IDENTITY,
            MemoryTransfer::SetAttr => Effects::WRITES,
        }
    }

    /// Returns whether a container operand is only read: the operator neither stores nor changes the container, and the
    /// points-to analysis tracks the values extracted from it.
    pub const fn only_reads(self) -> bool {
        matches!(self, MemoryTransfer::Nothing | MemoryTransfer::Extract | MemoryTransfer::Fresh)
    }

    /// Returns whether code may run that assigns attributes of any object.
    pub const fn may_assign(self) -> bool {
        matches!(
            self,
            MemoryTransfer::Call
                | MemoryTransfer::Host
                | MemoryTransfer::Task
                | MemoryTransfer::Wait
                | MemoryTransfer::Subgraph
                | MemoryTransfer::Captures
                | MemoryTransfer::Continue
        )
    }
}

impl Prim {
    /// Returns the effects of running a node of this operator, without those of its blocks and of the subgraph it runs.
    /// [`Graph::effects`](crate::Graph::effects) adds the subgraph's effects.
    pub const fn effects(self) -> Effects {
        let (memory, others) = self.behaviour();
        memory.effects().union(others)
    }

    /// Returns the memory behaviour of the operator.
    pub const fn memory(self) -> MemoryTransfer {
        self.behaviour().0
    }

    /// Returns whether the operator evaluates its subgraph at the position of its node.
    pub const fn runs_subgraph(self) -> bool {
        matches!(self.memory(), MemoryTransfer::Subgraph)
    }

    /// Returns the memory behaviour and the effects that it does not imply.
    #[deny(clippy::wildcard_enum_match_arm)]
    const fn behaviour(self) -> (MemoryTransfer, Effects) {
        use MemoryTransfer as M;
        const PURE: Effects = Effects::PURE;
        const IDENTITY: Effects = Effects::IDENTITY;
        const RAISES: Effects = Effects::RAISES;
        const CONTROL: Effects = Effects::CONTROL;
        match self {
            Prim::Constant => (M::Constant, PURE),
            Prim::Param | Prim::Return => (M::Blocks, CONTROL),
            Prim::If => (M::Blocks, Effects::ALIASES),
            Prim::Loop => (M::Blocks, Effects::ALIASES.union(Effects::DIVERGES)),
            Prim::GradOf => (M::Blocks, Effects::ALIASES.union(IDENTITY)),
            Prim::Store => (M::Store, Effects::WRITES_STATE),
            Prim::Load => (M::Wildcard, Effects::READS_STATE),
            Prim::ReturnStmt | Prim::BreakStmt | Prim::ContinueStmt | Prim::LoopContinuation => {
                (M::Store, CONTROL)
            }
            Prim::With => (M::Captures, Effects::CALL),
            Prim::Enter | Prim::Exit | Prim::CallFunction | Prim::CallMethod => (M::Call, Effects::CALL),
            Prim::ComprehensionScope => (M::Captures, PURE),
            Prim::Closure => (M::Captures, IDENTITY),
            // The task's exception is raised by the node that waits for it.
            Prim::Fork | Prim::ForkClosure => {
                (M::Task, Effects::CALL.without(RAISES.union(Effects::WAITS).union(Effects::DIVERGES)))
            }
            Prim::Awaitable => (M::Task, IDENTITY),
            Prim::AwaitableNowait => (M::Same, IDENTITY),
            Prim::AwaitableWait => (M::Wait, Effects::CALL),
            Prim::GetAttr => (M::Attribute, RAISES),
            // The embedding program can observe attributes of its modules.
            Prim::SetAttr => (M::SetAttr, Effects::WRITES_STATE),
            Prim::HasAttr | Prim::Isinstance => (M::Nothing, PURE),
            Prim::CreateObject => (M::Object, PURE),
            Prim::ModuleContainerIndex => (M::Wildcard, Effects::READS.union(RAISES)),
            Prim::TupleConstruct => (M::Construct, Effects::ALIASES),
            Prim::ListConstruct => (M::Construct, PURE),
            Prim::DictConstruct => (M::Construct, RAISES),
            Prim::TupleUnpack | Prim::TupleSlice => (M::Extract, PURE),
            Prim::TupleIndex | Prim::ListUnpack => (M::Extract, RAISES),
            Prim::EmptyListLiteral | Prim::Uninitialized => (M::Fresh, IDENTITY),
            Prim::UncheckedCast | Prim::UncheckedUnwrapOptional | Prim::Annotate => (M::Same, PURE),
            Prim::RaiseException => (M::Nothing, RAISES.union(CONTROL)),
            Prim::Print => (M::Nothing, Effects::READS.union(Effects::IO)),
            Prim::ToList => (M::Fresh, Effects::READS.union(RAISES)),
            Prim::PythonOp | Prim::IgnoredPythonOp | Prim::CastFromPython => (M::Host, Effects::CALL),
            Prim::Profile | Prim::ProfileIvalue => (M::Same, Effects::READS.union(IDENTITY)),
            Prim::Guard => (M::Same, Effects::READS.union(RAISES).union(IDENTITY)),
            Prim::TypeCheck | Prim::TensorExprDynamicGuard => (M::Same, Effects::READS.union(IDENTITY)),
            Prim::RequiresGradCheck => (M::Same, Effects::READS),
            Prim::BailOut => (M::Continue, Effects::CALL.union(CONTROL)),
            Prim::BailoutTemplate => (M::Captures, CONTROL.union(IDENTITY)),
            Prim::IfThenElse => (M::AnyOperand, PURE),
            Prim::FallbackGraph | Prim::DifferentiableGraph | Prim::StaticSubgraph => {
                (M::Subgraph, Effects::ALIASES)
            }
            Prim::FusionGroup | Prim::TensorExprGroup | Prim::TensorExprDynamicGroup => (M::Subgraph, PURE),
            Prim::FunctionalGraph => (M::Subgraph, IDENTITY),
            Prim::AutogradZero => (M::Fresh, PURE),
            Prim::AutogradAdd => (M::AnyOperand, Effects::READS.union(RAISES)),
            Prim::AutogradAnyNonZero | Prim::AutogradAllNonZero | Prim::AutogradAllZero => (M::Nothing, PURE),
            Prim::BroadcastSizes | Prim::ReductionSizes | Prim::ChunkSizes => {
                (M::Fresh, Effects::READS.union(RAISES))
            }
            Prim::ConstantChunk | Prim::BroadcastingChunk => (M::AnyOperand, Effects::READS.union(RAISES)),
            Prim::FusedConcat | Prim::MMTreeReduce | Prim::MMBatchSide | Prim::VarConcat | Prim::VarStack => {
                (M::Fresh, Effects::READS.union(RAISES))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles this module and `effects.rs` with an enum `Prim` that has the additional variant `planted`. Returns
    /// whether the compilation succeeded, and the compiler's messages.
    fn compile_with(planted: &str) -> (bool, String) {
        let source = format!("{}/src/op", env!("CARGO_MANIFEST_DIR"));
        let names: Vec<String> = Prim::ALL.iter().map(|prim| format!("{prim:?}")).collect();
        let text = format!(
            "pub trait Facet {{ const NAME: &'static str; }}
             #[derive(Clone, Copy, Debug, PartialEq, Eq)] pub enum Prim {{ {}, {planted} }}
             #[path = \"{source}/effects.rs\"] mod effects;
             #[path = \"{source}/prim_effects.rs\"] mod prim_effects;
             pub use effects::Effects; pub use prim_effects::MemoryTransfer;",
            names.join(", ")
        );
        let folder = std::env::temp_dir().join(format!("flambeau-prims-{}-{planted}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, out) = (folder.join("prims.rs"), folder.join("prims.rmeta"));
        std::fs::write(&file, text).unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let run = std::process::Command::new(rustc)
            .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--cap-lints=allow", "-o"])
            .args([&out, &file])
            .output()
            .unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        (run.status.success(), String::from_utf8_lossy(&run.stderr).into_owned())
    }

    #[test]
    fn an_operator_without_stated_effects_does_not_compile() {
        let (compiles, errors) = compile_with("");
        assert!(compiles, "{errors}");
        let (compiles, errors) = compile_with("Planted");
        assert!(!compiles);
        assert!(errors.contains("E0004") && errors.contains("Prim::Planted"), "{errors}");
    }

    #[test]
    fn effects_include_those_implied_by_memory() {
        for &prim in Prim::ALL {
            assert!(prim.effects().contains(prim.memory().effects()), "{prim:?}");
            assert!(!prim.effects().contains(Effects::CONSERVATIVE), "{prim:?} states less than it could");
        }
    }

    #[test]
    fn side_effects_agree_with_pytorch() {
        use Prim as P;
        let kept: Vec<Prim> = Prim::ALL.iter().copied().filter(|p| p.effects().has_side_effects()).collect();
        // The operators for which `Node::hasSideEffects` of PyTorch returns true, as far as they are structural here.
        for prim in
            [P::Print, P::RaiseException, P::PythonOp, P::IgnoredPythonOp, P::SetAttr, P::CallFunction]
        {
            assert!(kept.contains(&prim), "{prim:?}");
        }
        for prim in [P::CallMethod, P::BailoutTemplate, P::BailOut, P::Enter, P::Exit, P::AwaitableWait] {
            assert!(kept.contains(&prim), "{prim:?}");
        }
        for prim in
            [P::Load, P::GetAttr, P::ListUnpack, P::TupleIndex, P::If, P::Loop, P::GradOf, P::Awaitable]
        {
            assert!(!kept.contains(&prim), "{prim:?}");
        }
    }

    #[test]
    fn only_unobservable_operators_may_be_speculated() {
        for prim in
            [Prim::Constant, Prim::TupleConstruct, Prim::IfThenElse, Prim::Isinstance, Prim::UncheckedCast]
        {
            assert!(prim.effects().may_speculate(), "{prim:?}");
        }
        for prim in
            [Prim::ListUnpack, Prim::Loop, Prim::CallFunction, Prim::RaiseException, Prim::AwaitableWait]
        {
            assert!(!prim.effects().may_speculate(), "{prim:?}");
        }
    }
}
