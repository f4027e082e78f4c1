//! Runs that continue after errors: the results and writes of a failing operator are poison, and so are all values that depend on
//! them.

use super::poison;
use super::usage::{OperandUse, without_condition};
use flambeau_analysis::calls::callee;
use flambeau_analysis::shape::Fact;
use flambeau_analysis::{AliasDb, Analyses, ResultShapes};
use flambeau_exec::reference::{ErrorPolicy, PolicyResult};
use flambeau_exec::{Fault, KernelError};
use flambeau_ir::{CompilationUnit, Effects, Graph, IValue, NodeId, Prim, ValueId, ValueMap};
use flambeau_tensor::Tensor;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Maximum nesting of calls whose effects are those of the called functions.
pub(super) const MAX_CALLS: u32 = 8;

/// The error of a node, by the number of earlier errors of the same node.
pub(super) type ErrorId = (GraphAddress, NodeId, usize);
pub(super) type GraphAddress = usize;

/// The errors that are removed.
pub(super) enum Removed {
    /// Whether each of the first errors is removed. Later ones remain.
    These(Vec<bool>),
    /// Whether the errors of each of the first nodes that fail are removed. Those of other nodes remain.
    OfNodes(Vec<bool>),
    /// Every error but these, and those of nodes of these graphs: passes may clean a program and
    /// not its tasks.
    AllBut(BTreeSet<ErrorId>, BTreeSet<GraphAddress>),
    /// So many first errors, without those of nodes of these graphs. Later ones remain.
    First(usize, BTreeSet<GraphAddress>),
}

impl Default for Removed {
    fn default() -> Self {
        Self::These(Vec::new())
    }
}

/// A run that continues after errors.
#[derive(Default)]
pub(super) struct ContinuedRun {
    pub(super) removed: Removed,
    /// Number of errors so far, of each node, in the order of their first errors.
    pub(super) errors: Vec<((GraphAddress, NodeId), usize)>,
    unit: Option<Arc<CompilationUnit>>,
    /// Removed errors of operators with needed results.
    pub(super) needed: BTreeSet<ErrorId>,
    pub(super) has_unsupported: bool,
    /// Addresses of poison values, and of storages, tensors and containers with poison writes, with the removed errors
    /// that are the cause. The handles keep the addresses from being reused.
    poison: BTreeMap<usize, BTreeSet<ErrorId>>,
    /// Identities of tensors and lists of which the poison writes may have changed the size.
    resized: BTreeSet<usize>,
    handles: Vec<IValue>,
    /// The operands of the running node.
    operands: Vec<IValue>,
}

impl ContinuedRun {
    /// Begins a run of a program with the functions of a unit.
    pub(super) fn new(removed: Removed, unit: Arc<CompilationUnit>) -> ContinuedRun {
        ContinuedRun { removed, unit: Some(unit), ..ContinuedRun::default() }
    }

    /// Returns whether a value is poison, or contains a poison value.
    pub(super) fn contains_poison(&self, value: &IValue) -> bool {
        let look = |value: &IValue| match self.is_poison(value) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        !self.poison.is_empty() && value.visit(look).is_break()
    }

    /// Returns whether a value itself is poison, ignoring its contents.
    pub(super) fn is_poison(&self, value: &IValue) -> bool {
        addresses(value).any(|address| self.poison.contains_key(&address))
    }

    /// Returns the removed errors that are the cause of poison parts of some values.
    pub(super) fn causes(&self, values: &[IValue]) -> BTreeSet<ErrorId> {
        let mut causes = BTreeSet::new();
        for value in values.iter().filter(|_| !self.poison.is_empty()) {
            let _ = value.visit(|value| {
                causes.extend(addresses(value).filter_map(|address| self.poison.get(&address)).flatten());
                ControlFlow::<()>::Continue(())
            });
        }
        causes
    }

    /// Returns poison results for a node that does not run because of these errors. Marks the memory that it would have
    /// written.
    fn poison_results(
        &mut self,
        graph: &Graph,
        node: NodeId,
        causes: &BTreeSet<ErrorId>,
        defined: &ValueMap<IValue>,
    ) -> Vec<IValue> {
        let operands = std::mem::take(&mut self.operands);
        let facts = self.facts_about_results(graph, node, &operands);
        if let Some(id) = graph.op(node).row() {
            let schema = graph.registry().schema(id);
            let kept = graph.registry().facet::<ResultShapes>(id).and_then(|shape| shape.keeps(Some(schema)));
            for (i, (arg, value)) in schema.args.iter().zip(operands).enumerate() {
                if arg.is_write() {
                    self.resized.extend(value.identity().filter(|_| kept != Some(i)));
                    self.mark_poison(value, causes);
                }
            }
        }
        self.poison_writes(graph, node, defined, causes);
        let results: Vec<IValue> = facts.into_iter().map(poison::value).collect();
        for result in &results {
            self.mark_poison(result.clone(), causes);
        }
        results
    }

    /// Marks the memory that nested nodes would have written, by alias analysis.
    fn poison_writes(
        &mut self,
        graph: &Graph,
        node: NodeId,
        defined: &ValueMap<IValue>,
        causes: &BTreeSet<ErrorId>,
    ) {
        if graph.block_count(node) == 0 || !self.effects(graph, node, MAX_CALLS).contains(Effects::WRITES) {
            return;
        }
        let mut analyses = Analyses::new();
        let aliases = analyses.get::<AliasDb>(graph);
        for inner in graph.blocks(node).flat_map(|block| graph.nodes_deep_in(block)) {
            let is_written = |v: &ValueId| {
                graph.ty(*v).is_mutable()
                    && graph.is_before(graph.def(*v), node)
                    && aliases.writes_to(graph, node, &[*v])
            };
            for v in graph.operands(inner).filter(is_written) {
                let value = defined[v].clone();
                self.resized.extend(value.identity());
                self.mark_poison(value, causes);
            }
        }
    }

    /// Returns the effects of a node and of nested nodes that may run: the branch of a known condition, no body of a loop
    /// without iterations. A called function of the program has the effects of its nodes.
    pub(super) fn effects(&self, graph: &Graph, node: NodeId, calls: u32) -> Effects {
        let mut all = Effects::PURE;
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            let callee = graph.is_prim(node, Prim::CallFunction).then(|| self.callee(graph, node)).flatten();
            all = match callee.filter(|_| calls > 0) {
                Some(body) => {
                    body.nodes(body.root()).fold(all, |all, n| all | self.effects(&body, n, calls - 1))
                }
                None => all | graph.effects(node),
            };
            let taken = graph.as_if(node).and_then(|branch| branch.taken(graph));
            let is_skipped = graph.as_loop(node).is_some_and(|body| body.never_runs(graph));
            let blocks = graph.blocks(node).filter(|&b| !is_skipped && taken.is_none_or(|t| t == b));
            pending.extend(blocks.flat_map(|block| graph.nodes(block)));
        }
        all
    }

    fn callee(&self, graph: &Graph, call: NodeId) -> Option<Arc<Graph>> {
        let unit = self.unit.as_ref()?;
        Some(Arc::clone(&unit.function(callee(graph, call, unit)?)?.graph))
    }

    fn mark_poison(&mut self, value: IValue, causes: &BTreeSet<ErrorId>) {
        for address in addresses(&value) {
            self.poison.entry(address).or_default().extend(causes);
        }
        self.handles.push(value);
    }

    fn facts_about_results(&self, graph: &Graph, node: NodeId, operands: &[IValue]) -> Vec<Fact> {
        poison::results(graph, node, operands, |value| self.contains_poison(value), &self.resized)
    }

    fn end(&mut self, operands: &[IValue]) -> KernelError {
        self.needed.extend(self.causes(operands));
        // No task catches an error of this kind.
        KernelError::new(Fault::Limit, "RuntimeError", "what a removed operator computes is needed")
    }
}

/// Returns the memory that a write of a value changes: the value's identity, and the storage of a tensor unless it is
/// empty (empty storages may all have the same address).
fn addresses(value: &IValue) -> impl Iterator<Item = usize> {
    let storage = value.as_tensor().map(Tensor::storage).filter(|storage| storage.nbytes() > 0);
    value.identity().into_iter().chain(storage.map(|storage| storage.address()))
}

impl ErrorPolicy for ContinuedRun {
    fn skip(
        &mut self,
        graph: &Graph,
        node: NodeId,
        operands: &[IValue],
        defined: &ValueMap<IValue>,
    ) -> PolicyResult {
        self.operands = operands.to_vec();
        if !operands.iter().any(|v| self.contains_poison(v)) {
            return Ok(None);
        }
        match self.usage(graph, node, operands) {
            OperandUse::Moves => Ok(None),
            OperandUse::Computes => {
                let facts = self.facts_about_results(graph, node, operands);
                let answers = facts.iter().enumerate();
                let answers: Vec<Option<IValue>> = answers
                    .map(|(i, fact)| {
                        poison::constant(graph, node, i, fact)
                            .or_else(|| without_condition(graph, node, i, defined))
                    })
                    .collect();
                if answers.iter().all(Option::is_some) {
                    let causes = self.causes(operands);
                    self.poison_writes(graph, node, defined, &causes);
                    return Ok(Some(answers.into_iter().flatten().collect()));
                }
                let poison = self.poison_results(graph, node, &self.causes(operands), defined);
                Ok(Some(
                    answers.into_iter().zip(poison).map(|(known, poison)| known.unwrap_or(poison)).collect(),
                ))
            }
            OperandUse::Ends => {
                let causes = self.causes(&operands[..1]);
                if let Some(owner) = graph.owner(graph.parent(node)) {
                    self.poison_writes(graph, owner, defined, &causes);
                }
                let types = graph.operands(node).skip(1).map(|v| graph.ty(v).erase_shapes());
                let body = graph.parent(node);
                let mut outputs = vec![IValue::Bool(false)];
                for (i, ty) in types.enumerate() {
                    // A value that the body passes through is the same after any number of iterations.
                    let passes = graph.operand(node, i + 1) == graph.result(graph.param(body), i + 1);
                    let value =
                        if passes { operands[i + 1].clone() } else { poison::value(Fact::of_type(ty)) };
                    if !passes {
                        self.mark_poison(value.clone(), &causes);
                    }
                    outputs.push(value);
                }
                Ok(Some(outputs))
            }
            OperandUse::Needs => Err(self.end(operands)),
        }
    }

    fn recover(&mut self, graph: &Graph, node: NodeId, error: &KernelError) -> Option<Vec<IValue>> {
        self.has_unsupported |= error.fault() == Fault::Unsupported;
        if graph.effects(node).has_side_effects() || error.fault() == Fault::Limit {
            return None;
        }
        let index: usize = self.errors.iter().map(|of_node| of_node.1).sum();
        let failing = (std::ptr::from_ref(graph).addr(), node);
        let of_nodes = self.errors.iter().position(|of_node| of_node.0 == failing).unwrap_or_else(|| {
            self.errors.push((failing, 0));
            self.errors.len() - 1
        });
        let error = (failing.0, node, self.errors[of_nodes].1);
        self.errors[of_nodes].1 += 1;
        let is_chosen = |choice: &[bool], index: usize| choice.get(index).copied().unwrap_or(false);
        let is_removed = match &self.removed {
            Removed::These(choice) => is_chosen(choice, index),
            Removed::OfNodes(choice) => is_chosen(choice, of_nodes),
            Removed::AllBut(kept, graphs) => !kept.contains(&error) && !graphs.contains(&failing.0),
            Removed::First(count, graphs) => {
                let others = self.errors.iter().filter(|of_node| !graphs.contains(&of_node.0.0));
                !graphs.contains(&failing.0) && others.map(|of_node| of_node.1).sum::<usize>() <= *count
            }
        };
        is_removed.then(|| {
            self.poison_results(graph, node, &BTreeSet::from([error]), &ValueMap::sparse(IValue::None))
        })
    }
}
