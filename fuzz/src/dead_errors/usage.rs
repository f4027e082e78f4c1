//! The treatment of nodes with poison operands.

use super::continued::{ContinuedRun, MAX_CALLS};
use flambeau_ir::{Effects, Graph, IValue, NodeId, OpKind, Prim, ValueMap};
use flambeau_rewrite::ContainerOp;

/// The effect of poison operands on a node.
pub(super) enum OperandUse {
    /// The node only moves the operands, or runs a body, which is checked itself.
    Moves,
    /// The node cannot run without the operands, so its results are poison too.
    Computes,
    /// The loop around the end of the block cannot continue, so it ends, and its results are poison.
    Ends,
    /// The node must run, but cannot.
    Needs,
}

impl ContinuedRun {
    /// Returns how a node uses operands of which some are poison or contain poison values.
    pub(super) fn usage(&self, graph: &Graph, node: NodeId, operands: &[IValue]) -> OperandUse {
        let contains_poison = |i: usize| operands.get(i).is_some_and(|v| self.contains_poison(v));
        let is_itself = || operands.iter().any(|v| self.is_poison(v));
        let is_needed = |node: NodeId| self.effects(graph, node, MAX_CALLS).has_side_effects();
        let by_effects = || if is_needed(node) { OperandUse::Needs } else { OperandUse::Computes };
        match graph.op(node).kind() {
            OpKind::Prim(prim) => {
                match prim {
                    Prim::TupleConstruct | Prim::ListConstruct | Prim::CallFunction | Prim::Fork => {
                        OperandUse::Moves
                    }
                    Prim::TupleUnpack | Prim::TupleIndex | Prim::TupleSlice | Prim::ListUnpack => {
                        if is_itself() { OperandUse::Computes } else { OperandUse::Moves }
                    }
                    Prim::DictConstruct => {
                        let lacks_key = operands.iter().step_by(2).any(|key| self.contains_poison(key));
                        if lacks_key { OperandUse::Computes } else { OperandUse::Moves }
                    }
                    Prim::UncheckedCast | Prim::Annotate => OperandUse::Moves,
                    // The first output of a loop's body is the condition. The operands of a loop are the number of
                    // iterations, the condition, and the carried values.
                    Prim::Return => {
                        let owner = graph.owner(graph.parent(node)).filter(|&n| graph.is_prim(n, Prim::Loop));
                        match owner {
                            Some(owner) if contains_poison(0) && is_needed(owner) => OperandUse::Needs,
                            Some(_) if contains_poison(0) => OperandUse::Ends,
                            _ => OperandUse::Moves,
                        }
                    }
                    Prim::Loop if contains_poison(0) || contains_poison(1) => by_effects(),
                    Prim::Loop => OperandUse::Moves,
                    prim if prim.runs_subgraph() => OperandUse::Moves,
                    _ => by_effects(),
                }
            }
            // A task's result may be poison if it is not needed.
            _ if graph.effects(node).contains(Effects::WAITS) => {
                if is_itself() {
                    OperandUse::Needs
                } else {
                    OperandUse::Moves
                }
            }
            OpKind::Row(id) => match graph.registry().facet::<ContainerOp>(id).map(moved_element) {
                Some(None) if is_itself() => OperandUse::Computes,
                Some(None) => OperandUse::Moves,
                // The list and the position must be known.
                Some(Some(element)) => {
                    let others = operands.iter().enumerate().filter(|&(i, _)| i != element);
                    if others.into_iter().any(|(_, v)| self.is_poison(v)) {
                        by_effects()
                    } else {
                        OperandUse::Moves
                    }
                }
                None => by_effects(),
            },
            _ => by_effects(),
        }
    }
}

/// Returns the `i`th result of a node if it needs no condition: all branches return the same value or the same constant,
/// or a loop carries the value unchanged.
pub(super) fn without_condition(
    graph: &Graph,
    node: NodeId,
    i: usize,
    defined: &ValueMap<IValue>,
) -> Option<IValue> {
    if let Some(looped) = graph.as_loop(node) {
        let passes = looped.next(graph, i) == looped.current(graph, i);
        return passes.then(|| defined[looped.initial(graph, i)].clone());
    }
    let mut outputs =
        graph.blocks(node).filter(|_| graph.is_prim(node, Prim::If)).map(|b| graph.operand(graph.ret(b), i));
    let first = outputs.next()?;
    match graph.constant(first) {
        Some(value) => {
            outputs.all(|v| graph.constant(v).is_some_and(|other| other.is_same(&value))).then_some(value)
        }
        None if outputs.all(|v| v == first) => Some(defined[first].clone()),
        None => None,
    }
}

/// Returns the position of the operand that an operator stores in a container, or returns for a key that is not there;
/// `None` if it only counts, moves or removes elements. No operator of this facet looks at an element.
fn moved_element(what: &ContainerOp) -> Option<usize> {
    use ContainerOp::{
        Append, Clear, Concat, Contains, Copy, Count, Delete, Extend, Get, Insert, Item, Items, Keys, Pop,
        Repeat, Replace, Reverse, Slice, Value, Values,
    };
    match what {
        Count | Item | Slice | Concat | Copy | Value | Repeat | Contains | Keys | Values | Items | Extend
        | Delete | Pop | Clear | Reverse => None,
        Append => Some(1),
        Insert | Replace | Get => Some(2),
    }
}
