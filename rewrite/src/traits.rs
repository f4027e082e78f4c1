//! What passes ask about a node's operator, as a few bits looked up once per operator.

use flambeau_ir::{AliasRule, Effects, Graph, NodeId, Op, OpKind, Prim, Registry};
use std::cell::Cell;

/// Facts about an operator, as bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits(u16);

const KNOWN: u16 = 1;
const SIDE_EFFECTS: u16 = 2;
const RANDOM: u16 = 4;
const WRITES: u16 = 8;
const RESULT_ALIASES: u16 = 16;
/// Writes some operands, if they are there and another says so.
const WRITES_SOME: u16 = 32;
const IDENTITY: u16 = 128;

impl Traits {
    /// Must be kept, run once, and keep its place among its like.
    pub(crate) fn has_side_effects(self) -> bool {
        self.0 & SIDE_EFFECTS != 0
    }

    /// Two runs on the same operands may differ.
    pub(crate) fn is_random(self) -> bool {
        self.0 & RANDOM != 0
    }

    /// May write memory that operands reach.
    pub(crate) fn may_write(self) -> bool {
        self.0 & (WRITES | WRITES_SOME) != 0
    }

    /// Some result may share memory with an operand.
    pub(crate) fn result_aliases(self) -> bool {
        self.0 & RESULT_ALIASES != 0
    }

    /// Each run makes a thing of its own, or observes; two are never one.
    pub(crate) fn has_identity(self) -> bool {
        self.0 & IDENTITY != 0
    }
}

/// Facts about all operators of a registry, found out when first asked for.
pub(crate) struct TraitTable<'r> {
    registry: &'r Registry,
    rows: Vec<Cell<u16>>,
}

impl<'r> TraitTable<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        TraitTable { registry, rows: vec![Cell::new(0); registry.len()] }
    }

    #[inline]
    pub(crate) fn of(&self, op: Op) -> Traits {
        if let Some(id) = op.row() {
            let known = self.rows[id.index()].get();
            return if known != 0 { Traits(known) } else { self.look_up(op) };
        }
        self.look_up(op)
    }

    pub(crate) fn of_node(&self, graph: &Graph, node: NodeId) -> Traits {
        let traits = self.of(graph.op(node));
        if traits.0 & WRITES_SOME == 0 {
            return traits;
        }
        let rule = graph.op(node).row().and_then(|id| self.registry.facet::<AliasRule>(id));
        let writes = rule.is_none_or(|rule| rule.written(graph, node).any(|v| graph.ty(v).is_mutable()));
        if writes { traits } else { Traits(traits.0 & !WRITES_SOME) }
    }

    fn look_up(&self, op: Op) -> Traits {
        match op.kind() {
            OpKind::Prim(prim) => of_prim(prim),
            OpKind::Unknown(_) => Traits(KNOWN | SIDE_EFFECTS | RANDOM | WRITES | RESULT_ALIASES),
            OpKind::Row(id) => {
                let schema = self.registry.schema(id);
                let effects = self.registry.effects(id);
                let opaque = effects.contains(Effects::CONSERVATIVE);
                let stores =
                    schema.args.iter().any(|a| a.alias.as_ref().is_some_and(|i| i.is_wildcard_after()));
                let mut bits = KNOWN;
                let mut set = |bit, yes| bits |= if yes { bit } else { 0 };
                set(SIDE_EFFECTS, effects.has_side_effects());
                set(RANDOM, effects.is_nondeterministic());
                let hidden = matches!(self.registry.facet(id), Some(AliasRule::WritesWhen { .. }));
                set(WRITES, schema.is_mutable() || stores || opaque);
                set(WRITES_SOME, hidden);
                set(RESULT_ALIASES, opaque || schema.returns.iter().any(|r| r.alias.is_some()));
                self.rows[id.index()].set(bits);
                Traits(bits)
            }
        }
    }
}

fn of_prim(prim: Prim) -> Traits {
    let mut bits = KNOWN;
    if prim.has_side_effects() {
        bits |= SIDE_EFFECTS;
    }
    bits |= match prim {
        Prim::CallFunction
        | Prim::CallMethod
        | Prim::PythonOp
        | Prim::IgnoredPythonOp
        | Prim::CastFromPython
        | Prim::Enter
        | Prim::Exit
        | Prim::With
        | Prim::Fork
        | Prim::ForkClosure
        | Prim::Awaitable
        | Prim::AwaitableWait
        | Prim::BailOut
        | Prim::BailoutTemplate
        | Prim::FallbackGraph
        | Prim::DifferentiableGraph
        | Prim::StaticSubgraph => WRITES | RESULT_ALIASES | RANDOM,
        Prim::SetAttr => WRITES,
        Prim::Guard
        | Prim::TypeCheck
        | Prim::RequiresGradCheck
        | Prim::UncheckedCast
        | Prim::UncheckedUnwrapOptional
        | Prim::Annotate
        | Prim::GetAttr
        | Prim::TupleConstruct
        | Prim::TupleUnpack
        | Prim::TupleIndex
        | Prim::TupleSlice
        | Prim::ListUnpack
        | Prim::ConstantChunk
        | Prim::BroadcastingChunk
        | Prim::IfThenElse
        | Prim::ModuleContainerIndex
        | Prim::AwaitableNowait
        | Prim::If
        | Prim::Loop => RESULT_ALIASES,
        _ => 0,
    };
    if matches!(
        prim,
        Prim::CreateObject
            | Prim::Profile
            | Prim::ProfileIvalue
            | Prim::Guard
            | Prim::TypeCheck
            | Prim::Closure
            | Prim::AwaitableNowait
            | Prim::Uninitialized
            | Prim::EmptyListLiteral
            | Prim::GradOf
            | Prim::FunctionalGraph
    ) {
        bits |= IDENTITY;
    }
    Traits(bits)
}
