//! What structural operators do to memory.

use super::build::Builder;
use super::dag::{ElementId, Of, contents_type, owns_location};
use flambeau_ir::attr::names;
use flambeau_ir::{NodeId, Prim, ValueId};
use smallvec::SmallVec;

/// The ways structural operators treat memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transfer {
    /// No memory is touched or made.
    Nothing,
    /// Results are new.
    Fresh,
    /// Result `i` is operand `i`.
    Same,
    /// Every result may be any operand.
    AnyOperand,
    /// A new container of the operands.
    Construct,
    /// Results are what the operand holds.
    Extract,
    /// Results come from outside, nothing is written.
    Outside,
    /// The value of an attribute.
    Attribute,
    /// What is stored is given to the outside.
    Store,
    /// Operands may be changed and kept, results come from outside.
    Call,
    /// As `Call`, and everything the outside has may be changed.
    Host,
    /// Starts a task on the operands.
    Task,
    /// Other tasks ran meanwhile.
    Wait,
    /// As the subgraph says.
    Subgraph,
    /// A constant.
    Constant,
    /// A new object.
    Object,
    /// Writes the first operand, keeps the second.
    SetAttr,
    /// Stated when its blocks are entered and left.
    Blocks,
    /// As `Blocks`, and the operands may be kept.
    Captures,
}

fn transfer(prim: Prim) -> Transfer {
    use Prim as P;
    match prim {
        P::If | P::Loop | P::GradOf | P::Param | P::Return => Transfer::Blocks,
        P::With | P::ComprehensionScope | P::Closure | P::BailoutTemplate => Transfer::Captures,
        P::Constant => Transfer::Constant,
        P::Store | P::ReturnStmt | P::BreakStmt | P::ContinueStmt | P::LoopContinuation => Transfer::Store,
        P::Load | P::ModuleContainerIndex => Transfer::Outside,
        P::GetAttr => Transfer::Attribute,
        P::SetAttr => Transfer::SetAttr,
        P::CreateObject => Transfer::Object,
        P::TupleConstruct | P::ListConstruct | P::DictConstruct => Transfer::Construct,
        P::TupleUnpack | P::TupleIndex | P::TupleSlice | P::ListUnpack => Transfer::Extract,
        P::HasAttr | P::Isinstance | P::RaiseException | P::Print => Transfer::Nothing,
        _ => transfer_of_calls(prim).or_else(|| transfer_of_optimizer(prim)).unwrap_or(Transfer::Host),
    }
}

fn transfer_of_calls(prim: Prim) -> Option<Transfer> {
    use Prim as P;
    Some(match prim {
        P::CallFunction | P::CallMethod | P::Enter | P::Exit => Transfer::Call,
        P::PythonOp | P::IgnoredPythonOp | P::CastFromPython => Transfer::Host,
        P::Fork | P::ForkClosure | P::Awaitable => Transfer::Task,
        P::AwaitableWait => Transfer::Wait,
        P::AwaitableNowait => Transfer::Same,
        P::UncheckedCast | P::UncheckedUnwrapOptional | P::Annotate => Transfer::Same,
        P::EmptyListLiteral | P::Uninitialized | P::ToList => Transfer::Fresh,
        _ => return None,
    })
}

fn transfer_of_optimizer(prim: Prim) -> Option<Transfer> {
    use Prim as P;
    Some(match prim {
        P::Profile
        | P::ProfileIvalue
        | P::Guard
        | P::BailOut
        | P::TypeCheck
        | P::RequiresGradCheck
        | P::TensorExprDynamicGuard => Transfer::Same,
        P::IfThenElse | P::AutogradAdd | P::ConstantChunk | P::BroadcastingChunk => Transfer::AnyOperand,
        P::AutogradZero
        | P::FusedConcat
        | P::BroadcastSizes
        | P::ReductionSizes
        | P::ChunkSizes
        | P::MMTreeReduce
        | P::MMBatchSide
        | P::VarConcat
        | P::VarStack => Transfer::Fresh,
        P::AutogradAnyNonZero | P::AutogradAllNonZero | P::AutogradAllZero => Transfer::Nothing,
        P::FallbackGraph
        | P::DifferentiableGraph
        | P::FusionGroup
        | P::TensorExprGroup
        | P::TensorExprDynamicGroup
        | P::StaticSubgraph
        | P::FunctionalGraph => Transfer::Subgraph,
        _ => return None,
    })
}

/// Whether using a container as an operand neither keeps nor changes it, and what comes out is followed.
pub(crate) fn only_reads(prim: Prim) -> bool {
    match transfer(prim) {
        Transfer::Nothing | Transfer::Extract | Transfer::Fresh => true,
        Transfer::Same
        | Transfer::AnyOperand
        | Transfer::Construct
        | Transfer::Outside
        | Transfer::Attribute
        | Transfer::Store
        | Transfer::Call
        | Transfer::Host
        | Transfer::Task
        | Transfer::Wait
        | Transfer::Subgraph
        | Transfer::Constant
        | Transfer::Object
        | Transfer::SetAttr
        | Transfer::Blocks
        | Transfer::Captures => false,
    }
}

/// Whether the operator may run code that assigns attributes.
pub(crate) fn may_assign(prim: Prim) -> bool {
    matches!(
        transfer(prim),
        Transfer::Call
            | Transfer::Host
            | Transfer::Task
            | Transfer::Wait
            | Transfer::Subgraph
            | Transfer::Captures
    )
}

impl Builder<'_> {
    pub(crate) fn prim(&mut self, node: NodeId, prim: Prim) {
        let g = self.g;
        match transfer(prim) {
            Transfer::Nothing | Transfer::Blocks => {}
            Transfer::Constant => g.results(node).for_each(|v| self.constant(v)),
            Transfer::Fresh => g.results(node).for_each(|v| self.fresh(v)),
            Transfer::Same => self.same(node),
            Transfer::AnyOperand => {
                let targets: SmallVec<[ElementId; 8]> =
                    self.mutable_operands(node).into_iter().map(|v| self.element(v)).collect();
                for v in g.results(node) {
                    if self.is_mutable(v) {
                        self.any_of(v, &targets);
                    }
                }
            }
            Transfer::Construct => self.construct(node),
            Transfer::Extract => self.extract(node, prim),
            Transfer::Outside => g.results(node).for_each(|v| self.outside(v)),
            Transfer::Attribute => self.attribute(node),
            Transfer::Store | Transfer::Captures => {
                g.operands(node).for_each(|v| self.escape(v));
                g.results(node).for_each(|v| self.outside(v));
            }
            Transfer::Call => self.anything(node, false),
            Transfer::Host => self.anything(node, true),
            Transfer::Task => self.task(node),
            Transfer::Wait => {
                let all = self.dag.everything();
                self.write(node, all, true);
                g.results(node).for_each(|v| self.outside(v));
            }
            Transfer::Subgraph => self.subgraph(node),
            Transfer::Object => {
                for v in g.results(node) {
                    let e = self.element(v);
                    self.dag.open(e);
                }
            }
            Transfer::SetAttr => {
                let mut operands = g.operands(node);
                if let Some(object) = operands.next() {
                    let e = self.element(object);
                    self.write(node, e, false);
                }
                operands.for_each(|v| self.escape(v));
            }
        }
    }

    fn same(&mut self, node: NodeId) {
        let g = self.g;
        for (v, operand) in g.results(node).zip(g.operands(node)) {
            if !self.is_mutable(v) {
                continue;
            }
            if self.is_mutable(operand) {
                let e = self.element(operand);
                self.set(v, e);
            } else {
                self.outside(v);
            }
        }
        for v in g.results(node).skip(g.operand_count(node)) {
            self.outside(v);
        }
    }

    fn construct(&mut self, node: NodeId) {
        let g = self.g;
        let Some(v) = g.results(node).next() else { return };
        let ty = g.ty(v);
        if !ty.is_mutable() || contents_type(ty).is_none() {
            return;
        }
        let e = self.dag.add_exact(Of::Value(v), ty, owns_location(ty));
        self.set(v, e);
        for operand in g.operands(node) {
            if self.is_mutable(operand) {
                let item = self.element(operand);
                self.dag.put(e, item);
            }
        }
        if owns_location(ty) {
            self.container_made(v, e);
        }
    }

    fn extract(&mut self, node: NodeId, prim: Prim) {
        let g = self.g;
        let Some(container) = g.operands(node).next() else { return };
        let made = g.def(container);
        let known =
            matches!(prim, Prim::TupleUnpack | Prim::TupleIndex) && g.is_prim(made, Prim::TupleConstruct);
        for (i, v) in g.results(node).enumerate() {
            if !self.is_mutable(v) {
                continue;
            }
            if known && let Some(item) = self.tuple_item(node, prim, made, i) {
                if self.is_mutable(item) {
                    let e = self.element(item);
                    self.set(v, e);
                }
                continue;
            }
            if !self.is_mutable(container) || contents_type(g.ty(container)).is_none() {
                self.outside(v);
                continue;
            }
            let from = self.element(container);
            let inside = self.dag.contents(from);
            if prim == Prim::TupleSlice {
                let e = self.dag.add_exact(Of::Value(v), g.ty(v), false);
                self.set(v, e);
                if contents_type(g.ty(v)).is_some() {
                    self.dag.put(e, inside);
                }
            } else {
                self.set(v, inside);
            }
        }
    }

    /// The operand of `made` that a result of an unpacking or indexing is.
    fn tuple_item(&self, node: NodeId, prim: Prim, made: NodeId, result: usize) -> Option<ValueId> {
        let g = self.g;
        let count = g.operand_count(made);
        let at = match prim {
            Prim::TupleIndex if g.operand_count(node) > 1 => {
                let i = g.constant(g.operand(node, 1))?.as_int()?;
                usize::try_from(if i < 0 { i + count as i64 } else { i }).ok()?
            }
            _ => result,
        };
        (at < count).then(|| g.operand(made, at))
    }

    /// A task reads its operands, and may write them if its code can, at any time from here on.
    fn task(&mut self, node: NodeId) {
        let g = self.g;
        let writes = match g.attr(node, names::subgraph()).and_then(|a| a.as_graph()) {
            Some(body) => self.summaries.writes_anything(body),
            None => true,
        };
        for v in self.mutable_operands(node) {
            let e = self.element(v);
            if writes {
                self.write(node, e, true);
            }
            self.dag.escape(e);
        }
        if writes {
            let all = self.dag.everything();
            self.write(node, all, true);
        }
        g.results(node).for_each(|v| self.outside(v));
    }

    fn subgraph(&mut self, node: NodeId) {
        let g = self.g;
        let body = g.attr(node, names::subgraph()).and_then(|a| a.as_graph()).cloned();
        let Some(summary) = body.and_then(|body| self.summaries.of(&body)) else {
            return self.anything(node, true);
        };
        let operands: SmallVec<[ValueId; 8]> = g.operands(node).collect();
        for (i, &v) in operands.iter().enumerate() {
            let does = summary.inputs.get(i).copied().unwrap_or_default();
            if !self.is_mutable(v) || !(does.written || does.escapes) {
                continue;
            }
            let e = self.element(v);
            if does.written {
                self.write(node, e, true);
            }
            if does.escapes {
                self.dag.escape(e);
            }
        }
        if summary.writes_outside {
            let all = self.dag.everything();
            self.write(node, all, true);
        }
        for (i, v) in g.results(node).enumerate() {
            if !self.is_mutable(v) {
                continue;
            }
            match summary.outputs.get(i) {
                Some(out) if !out.outside && contents_type(g.ty(v)).is_none() => {
                    let mut targets: SmallVec<[ElementId; 4]> = SmallVec::new();
                    for &o in out.inputs.iter().filter_map(|&i| operands.get(i as usize)) {
                        if self.is_mutable(o) {
                            targets.push(self.element(o));
                        }
                    }
                    if targets.is_empty() {
                        self.fresh(v);
                    } else if out.fresh {
                        let e = self.element(v);
                        targets.into_iter().for_each(|t| self.dag.point(e, t));
                    } else {
                        self.any_of(v, &targets);
                    }
                }
                _ => {
                    operands.iter().for_each(|&o| self.escape(o));
                    self.outside(v);
                }
            }
        }
    }
}
