//! Errors that passes may remove: an operator that fails may be removed together with its error, if its results and
//! writes are not needed.
//!
//! PyTorch's dead code elimination removes operators that may raise, and other passes (tuple lowering, unrolling,
//! inlining) make more operators dead. The set of correct results of a failing program is therefore a property of its
//! run, not of its graph. This module computes the set by runs that continue after failing operators, the first, the
//! first two, …. The results and writes of such an operator are *missing*, as are all values computed from them. The
//! errors may be removed only if no missing value is needed: printed, raised, a condition, a result, or memory visible
//! to the caller. A query of a missing value that types or shape analysis answer does not need it ([`missing`]).

mod missing;

use crate::case::Case;
use crate::observe::{self, Observation};
use flambeau_analysis::Shape;
use flambeau_analysis::shape::Fact;
use flambeau_exec::reference::{ErrorPolicy, PolicyResult, run_with_policy};
use flambeau_exec::{Fault, KernelError};
use flambeau_ir::{CompilationUnit, Effects, Graph, IValue, NodeId, OpKind, Prim, ValueId, ValueMap};
use flambeau_rewrite::Elements;
use flambeau_tensor::Tensor;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Maximum number of runs of one program that try the choices in order of their length.
const RUNS: usize = 24;

/// Maximum nesting of calls whose effects are those of the called functions.
const MAX_CALLS: u32 = 8;

/// Maximum number of runs that search the choice that removes most errors. Each finds one that is needed.
const SEARCH_RUNS: usize = 256;

/// The observations of a failing program that are accepted in place of its own.
pub(crate) struct Allowed {
    pub(crate) observations: Vec<Observation>,
    /// Whether an operator reported that it does not support its operands, perhaps in a task. Without a view that is not
    /// needed, the program may do what was not supported.
    pub(crate) has_unsupported: bool,
}

/// Returns the observations of a failing program that are accepted in place of its own, because passes may remove
/// operators with unneeded results. Each item belongs to one choice of removed errors.
///
/// Usually the first remaining error ends the run, so a choice is a number of errors. A failing task does not end the
/// run, so further errors may follow a remaining one, and the choices are too many to try all. The choice that removes
/// every error with an unneeded result, as dead code elimination does, is found by other means.
///
/// A pass removes a node, and with it the errors of every iteration, or some of the copies of a node that it unrolled. So the
/// choices are tried for nodes, and for single errors.
pub(crate) fn allowed_observations(case: &Case) -> Allowed {
    let mut allowed = Allowed { observations: Vec::new(), has_unsupported: false };
    let by_node = allowed.try_choices(case, Removed::OfNodes);
    let by_error = allowed.try_choices(case, Removed::These);
    if !by_node || !by_error {
        allowed.observations.extend(without_unneeded_errors(case));
    }
    allowed
}

impl Allowed {
    /// Tries choices, the smaller ones first. Returns whether these were all.
    fn try_choices(&mut self, case: &Case, removed: fn(Vec<bool>) -> Removed) -> bool {
        let mut choices = VecDeque::from([Vec::new()]);
        for _ in 0..RUNS {
            let Some(choice) = choices.pop_front() else { return true };
            let end = run_past_errors(case, removed(choice.clone()));
            self.has_unsupported |= end.has_unsupported;
            if !end.needed.is_empty() {
                continue;
            }
            if !choice.is_empty() {
                self.observations.push(end.observation);
            }
            // Each choice is generated once: from the shorter choice without its last removal.
            choices.extend((choice.len()..end.choices).map(|last| {
                let mut more = choice.clone();
                more.resize(last, false);
                more.push(true);
                more
            }));
        }
        choices.is_empty()
    }
}

/// Returns the observation of the run without all errors whose operators have unneeded results: the errors that turn
/// out to be needed remain in the next run.
fn without_unneeded_errors(case: &Case) -> Option<Observation> {
    let mut kept = HashSet::new();
    for _ in 0..SEARCH_RUNS {
        let end = run_past_errors(case, Removed::AllBut(kept.clone()));
        if end.needed.is_empty() {
            return Some(end.observation);
        }
        kept.extend(end.needed);
    }
    None
}

/// The end of a run that continued after errors.
struct ContinuedEnd {
    observation: Observation,
    /// Number of errors or, if they are chosen by node, of nodes with errors.
    choices: usize,
    /// The removed errors of operators with needed results. The observation is accepted if there are none.
    needed: HashSet<ErrorId>,
    has_unsupported: bool,
}

fn run_past_errors(case: &Case, removed: Removed) -> ContinuedEnd {
    let mut run = ContinuedRun { removed, unit: Some(Arc::clone(&case.unit)), ..ContinuedRun::default() };
    let observation = observe::run(case, |inputs, host| {
        let handles = inputs.clone();
        let end = run_with_policy(&case.graph, inputs, &*case.unit, host, &mut run);
        let visible: Vec<IValue> = end.iter().flatten().chain(&handles).cloned().collect();
        run.needed.extend(run.causes(&visible));
        end
    });
    ContinuedEnd {
        observation,
        choices: match run.removed {
            Removed::OfNodes(_) => run.errors.len(),
            Removed::These(_) | Removed::AllBut(_) => run.errors.iter().map(|of_node| of_node.1).sum(),
        },
        needed: run.needed,
        has_unsupported: run.has_unsupported,
    }
}

/// The error of a node, by the number of earlier errors of the same node.
type ErrorId = (GraphAddress, NodeId, usize);
type GraphAddress = usize;

/// The errors that are removed.
enum Removed {
    /// Whether each of the first errors is removed. Later ones remain.
    These(Vec<bool>),
    /// Whether the errors of each of the first nodes that fail are removed. Those of other nodes remain.
    OfNodes(Vec<bool>),
    AllBut(HashSet<ErrorId>),
}

impl Default for Removed {
    fn default() -> Self {
        Self::These(Vec::new())
    }
}

/// A run that continues after errors.
#[derive(Default)]
struct ContinuedRun {
    removed: Removed,
    /// Number of errors so far, of each node, in the order of their first errors.
    errors: Vec<((GraphAddress, NodeId), usize)>,
    unit: Option<Arc<CompilationUnit>>,
    /// Removed errors of operators with needed results.
    needed: HashSet<ErrorId>,
    has_unsupported: bool,
    /// Addresses of missing values, and of storages, tensors and containers with missing writes, with the removed errors
    /// that are the cause. The handles keep the addresses from being reused.
    missing: HashMap<usize, HashSet<ErrorId>>,
    /// Identities of tensors and lists of which the missing writes may have changed the size.
    resized: HashSet<usize>,
    handles: Vec<IValue>,
    /// The operands of the running node.
    operands: Vec<IValue>,
}

impl ContinuedRun {
    /// Returns whether a value is missing, or contains a missing value.
    fn is_missing(&self, value: &IValue) -> bool {
        let look = |value: &IValue| match self.is_unwritten(value) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        !self.missing.is_empty() && value.visit(look).is_break()
    }

    /// Returns whether a value itself is missing, ignoring its contents.
    fn is_unwritten(&self, value: &IValue) -> bool {
        addresses(value).any(|address| self.missing.contains_key(&address))
    }

    /// Returns the removed errors that are the cause of missing parts of some values.
    fn causes(&self, values: &[IValue]) -> HashSet<ErrorId> {
        let mut causes = HashSet::new();
        for value in values.iter().filter(|_| !self.missing.is_empty()) {
            let _ = value.visit(|value| {
                causes.extend(addresses(value).filter_map(|address| self.missing.get(&address)).flatten());
                ControlFlow::<()>::Continue(())
            });
        }
        causes
    }

    /// Returns missing results for a node that does not run because of these errors. Marks the memory that it would have
    /// written.
    fn leave_out(
        &mut self,
        graph: &Graph,
        node: NodeId,
        causes: &HashSet<ErrorId>,
        defined: &ValueMap<IValue>,
    ) -> Vec<IValue> {
        let operands = std::mem::take(&mut self.operands);
        let facts = self.facts_about_results(graph, node, &operands);
        if let Some(id) = graph.op(node).row() {
            let schema = graph.registry().schema(id);
            let kept = graph.registry().facet::<Shape>(id).and_then(|shape| shape.keeps(Some(schema)));
            for (i, (arg, value)) in schema.args.iter().zip(operands).enumerate() {
                if arg.is_write() {
                    self.resized.extend(value.identity().filter(|_| kept != Some(i)));
                    self.mark_missing(value, causes);
                }
            }
        }
        self.leave_out_writes(graph, node, defined, causes);
        let results: Vec<IValue> = facts.into_iter().map(missing::missing).collect();
        for result in &results {
            self.mark_missing(result.clone(), causes);
        }
        results
    }

    /// Marks the memory that nested nodes would have written: any that they can reach, if one of them writes.
    fn leave_out_writes(
        &mut self,
        graph: &Graph,
        node: NodeId,
        defined: &ValueMap<IValue>,
        causes: &HashSet<ErrorId>,
    ) {
        if graph.block_count(node) == 0 || !self.effects(graph, node, MAX_CALLS).contains(Effects::WRITES) {
            return;
        }
        for inner in graph.blocks(node).flat_map(|block| graph.nodes_deep_in(block)) {
            let outside = |v: &ValueId| graph.ty(*v).is_mutable() && graph.is_before(graph.def(*v), node);
            for v in graph.operands(inner).filter(outside) {
                let value = defined[v].clone();
                self.resized.extend(value.identity());
                self.mark_missing(value, causes);
            }
        }
    }

    /// Returns the effects of a node and its nested nodes. A called function of the program has those of its nodes.
    fn effects(&self, graph: &Graph, node: NodeId, calls: u32) -> Effects {
        let nested = graph.blocks(node).flat_map(|block| graph.nodes_deep_in(block));
        std::iter::once(node).chain(nested).fold(Effects::PURE, |all, inner| {
            let callee =
                graph.is_prim(inner, Prim::CallFunction).then(|| self.callee(graph, inner)).flatten();
            match callee.filter(|_| calls > 0) {
                Some(body) => {
                    body.nodes(body.root()).fold(all, |all, n| all | self.effects(&body, n, calls - 1))
                }
                None => all | graph.effects(inner),
            }
        })
    }

    fn callee(&self, graph: &Graph, call: NodeId) -> Option<Arc<Graph>> {
        let IValue::Function(name) = graph.constant(graph.operand(call, 0))? else { return None };
        Some(Arc::clone(&self.unit.as_ref()?.function(name)?.graph))
    }

    fn mark_missing(&mut self, value: IValue, causes: &HashSet<ErrorId>) {
        for address in addresses(&value) {
            self.missing.entry(address).or_default().extend(causes);
        }
        self.handles.push(value);
    }

    fn facts_about_results(&self, graph: &Graph, node: NodeId, operands: &[IValue]) -> Vec<Fact> {
        missing::results(graph, node, operands, |value| self.is_missing(value), &self.resized)
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

/// The effect of missing operands on a node.
enum Use {
    /// The node only moves the operands, or runs a body, which is checked itself.
    Moves,
    /// The node cannot run without the operands, so its results are missing too.
    Computes,
    /// The loop around the end of the block cannot continue, so it ends, and its results are missing.
    Ends,
    /// The node must run, but cannot.
    Needs,
}

impl ContinuedRun {
    /// Returns how a node uses operands of which some are missing or contain missing values.
    fn usage(&self, graph: &Graph, node: NodeId, operands: &[IValue]) -> Use {
        let is_missing = |i: usize| operands.get(i).is_some_and(|v| self.is_missing(v));
        let is_itself = || operands.iter().any(|v| self.is_unwritten(v));
        let is_needed = |node: NodeId| self.effects(graph, node, MAX_CALLS).has_side_effects();
        let by_effects = || if is_needed(node) { Use::Needs } else { Use::Computes };
        match graph.op(node).kind() {
            OpKind::Prim(prim) => {
                match prim {
                    Prim::TupleConstruct | Prim::ListConstruct | Prim::CallFunction | Prim::Fork => {
                        Use::Moves
                    }
                    Prim::TupleUnpack | Prim::TupleIndex | Prim::TupleSlice | Prim::ListUnpack => {
                        if is_itself() { Use::Computes } else { Use::Moves }
                    }
                    Prim::DictConstruct => {
                        let lacks_key = operands.iter().step_by(2).any(|key| self.is_missing(key));
                        if lacks_key { Use::Computes } else { Use::Moves }
                    }
                    Prim::UncheckedCast | Prim::Annotate => Use::Moves,
                    // The first output of a loop's body is the condition. The operands of a loop are the number of
                    // iterations, the condition, and the carried values.
                    Prim::Return => {
                        let owner = graph.owner(graph.parent(node)).filter(|&n| graph.is_prim(n, Prim::Loop));
                        match owner {
                            Some(owner) if is_missing(0) && is_needed(owner) => Use::Needs,
                            Some(_) if is_missing(0) => Use::Ends,
                            _ => Use::Moves,
                        }
                    }
                    Prim::Loop if is_missing(0) || is_missing(1) => by_effects(),
                    Prim::Loop => Use::Moves,
                    prim if prim.runs_subgraph() => Use::Moves,
                    _ => by_effects(),
                }
            }
            // A task's result may be missing if it is not needed.
            _ if graph.effects(node).contains(Effects::WAITS) => {
                if is_itself() {
                    Use::Needs
                } else {
                    Use::Moves
                }
            }
            OpKind::Row(id) if graph.registry().facet::<Elements>(id).is_some_and(only_moves) => {
                if is_itself() { Use::Computes } else { Use::Moves }
            }
            _ => by_effects(),
        }
    }
}

/// Returns the `i`th result of a node if it needs no condition: all branches return the same value or the same constant,
/// or a loop carries the value unchanged.
fn without_condition(graph: &Graph, node: NodeId, i: usize, defined: &ValueMap<IValue>) -> Option<IValue> {
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

/// Whether an operator on a container only counts or moves elements, without a look at them.
fn only_moves(what: &Elements) -> bool {
    match what {
        Elements::Count
        | Elements::Item
        | Elements::Slice
        | Elements::Concat
        | Elements::Copy
        | Elements::Value => true,
        Elements::Append | Elements::Insert | Elements::Replace => false,
    }
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
        if !operands.iter().any(|v| self.is_missing(v)) {
            return Ok(None);
        }
        match self.usage(graph, node, operands) {
            Use::Moves => Ok(None),
            Use::Computes => {
                let facts = self.facts_about_results(graph, node, operands);
                let answers = facts.iter().enumerate();
                let answers: Vec<Option<IValue>> = answers
                    .map(|(i, fact)| {
                        missing::constant(fact).or_else(|| without_condition(graph, node, i, defined))
                    })
                    .collect();
                if answers.iter().all(Option::is_some) {
                    return Ok(Some(answers.into_iter().flatten().collect()));
                }
                let missing = self.leave_out(graph, node, &self.causes(operands), defined);
                Ok(Some(
                    answers
                        .into_iter()
                        .zip(missing)
                        .map(|(known, missing)| known.unwrap_or(missing))
                        .collect(),
                ))
            }
            Use::Ends => {
                let causes = self.causes(&operands[..1]);
                if let Some(owner) = graph.owner(graph.parent(node)) {
                    self.leave_out_writes(graph, owner, defined, &causes);
                }
                let types = graph.operands(node).skip(1).map(|v| graph.ty(v).erase_shapes());
                let body = graph.parent(node);
                let mut outputs = vec![IValue::Bool(false)];
                for (i, ty) in types.enumerate() {
                    // A value that the body passes through is the same after any number of iterations.
                    let passes = graph.operand(node, i + 1) == graph.result(graph.param(body), i + 1);
                    let value =
                        if passes { operands[i + 1].clone() } else { missing::missing(Fact::of_type(ty)) };
                    if !passes {
                        self.mark_missing(value.clone(), &causes);
                    }
                    outputs.push(value);
                }
                Ok(Some(outputs))
            }
            Use::Needs => Err(self.end(operands)),
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
            Removed::AllBut(kept) => !kept.contains(&error),
        };
        is_removed
            .then(|| self.leave_out(graph, node, &HashSet::from([error]), &ValueMap::sparse(IValue::None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::session;
    use flambeau_ir::Source;
    use flambeau_ir::text::parse_graph;

    /// Returns the distinct ways in which a failing program on a vector of two elements may end: messages of errors, `ok`
    /// without an error.
    fn ends(text: &str) -> Vec<String> {
        let session = session();
        let graph = parse_graph(&Source::new("case.ir", text), session.registry()).unwrap();
        let input = IValue::Tensor(Tensor::from_slice(&[1_f32, 2.0], &[2]).unwrap());
        let seen = allowed_observations(&Case::new(graph, vec![input])).observations;
        let end = |seen: Observation| seen.end.err().map_or_else(|| "ok".to_owned(), |e| e.message);
        let mut ends: Vec<String> = Vec::new();
        for end in seen.into_iter().map(end) {
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
        ends
    }

    #[test]
    fn an_unneeded_result_may_lose_its_error() {
        let dead = "graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
  %z : Tensor, %w : Tensor = prim::TupleUnpack(%t)
  %v : Tensor = aten::neg(%w)
  return (%z)
";
        assert_eq!(ends(dead), ["ok"]);
        assert_eq!(ends(&dead.replace("return (%z)", "return (%v)")), [""; 0]);
    }

    #[test]
    fn an_unread_write_may_lose_its_error() {
        let text = "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::neg(%x)
  %v : Tensor = aten::detach(%y)
  %w : Tensor = aten::index_fill_(%v, %1, %x, %x)
  return (%x)
";
        assert_eq!(ends(text), ["ok"]);
        assert_eq!(ends(&text.replace("return (%x)", "return (%y)")), [""; 0], "the memory is a result's");
        assert_eq!(ends(&text.replace("detach(%y)", "detach(%x)")), [""; 0], "the memory is the caller's");
    }

    #[test]
    fn queries_that_facts_answer_need_no_value() {
        let text = "graph(%x : Tensor):
  %k : str = prim::Constant[value=\"k\"]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::mm(%x, %x)
  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %y)
  %g : Tensor = aten::__getitem__(%d, %k)
  %q : bool = aten::__is__(%g, %none)
  return (%q)
";
        assert_eq!(ends(text), ["ok"]);
        for query in ["int = aten::dim(%g)", "int = aten::len(%d)", "bool = aten::is_floating_point(%g)"] {
            assert_eq!(ends(&text.replace("bool = aten::__is__(%g, %none)", query)), ["ok"], "{query}");
        }
        for query in ["bool = aten::is_contiguous(%g)", "bool = aten::is_nonzero(%g)"] {
            assert_eq!(ends(&text.replace("bool = aten::__is__(%g, %none)", query)), [""; 0], "{query}");
        }
    }

    #[test]
    fn sizes_after_a_missing_write_are_known_if_it_keeps_them() {
        let text = "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::unsqueeze(%x, %1)
  %b : Tensor = aten::unsqueeze(%a, %1)
  %y : Tensor = aten::neg(%b)
  %w : Tensor = aten::mul_(%y, %x)
  %q : int = aten::dim(%y)
  return (%q)
";
        assert_eq!(ends(text), ["ok"]);
        assert_eq!(ends(&text.replace("aten::mul_(%y, %x)", "aten::t_(%y)")), [""; 0]);
    }

    #[test]
    fn later_errors_stay_in_order() {
        let text = "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %yes : bool = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=3]()
  %a : Tensor = prim::Loop(%3, %yes, %x)
    block0(%i : int, %c : Tensor):
      %y : Tensor = aten::mm(%x, %x)
      -> (%yes, %y)
  %b : Tensor = aten::select(%x, %3, %1)
  return (%b)
";
        let ends = ends(text);
        // The node with all its errors, or those of the first iterations.
        assert_eq!(ends.len(), 2, "{ends:?}");
        assert!(
            ends[0].contains("Dimension out of range") && ends[1].contains("must be a matrix"),
            "{ends:?}"
        );
    }

    #[test]
    fn a_loop_with_unneeded_results_needs_no_condition() {
        let text = "graph(%x : Tensor):
  %yes : bool = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=3]()
  %y : Tensor = aten::mm(%x, %x)
  %c : bool = aten::is_nonzero(%y)
  %z : Tensor = prim::Loop(%3, %yes, %x)
    block0(%i : int, %w : Tensor):
      -> (%c, %w)
  return (%x)
";
        assert_eq!(ends(text), ["ok"]);
        assert_eq!(
            ends(&text.replace("return (%x)", "return (%z)")),
            ["ok"],
            "every iteration returns its value"
        );
        let other = text.replace("      -> (%c, %w)", "      %v : Tensor = aten::neg(%w)\n      -> (%c, %v)");
        assert_eq!(ends(&other.replace("return (%x)", "return (%z)")), [""; 0]);
        let prints = text.replace("      -> (%c", "       = prim::Print(%i)\n      -> (%c");
        assert_eq!(ends(&prints), [""; 0]);
    }

    #[test]
    fn a_choice_between_equal_values_needs_no_condition() {
        let text = "graph(%x : Tensor):
  %3 : int = prim::Constant[value=3]()
  %4 : int = prim::Constant[value=4]()
  %y : Tensor = aten::mm(%x, %x)
  %c : bool = aten::is_nonzero(%y)
  %z : Tensor, %n : int = prim::If(%c)
    block0():
      %five.1 : int = prim::Constant[value=5]()
      -> (%x, %five.1)
    block1():
      %five : int = prim::Constant[value=5]()
      -> (%x, %five)
  return (%z, %n)
";
        assert_eq!(ends(text), ["ok"]);
        assert_eq!(ends(&text.replace("(%x, %five)", "(%x, %4)")), [""; 0]);
    }

    #[test]
    fn a_gradient_of_an_unneeded_value_is_unneeded() {
        let text = "graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  %n : Tensor = prim::GradOf[name=\"aten::mul\"](%y)
    block0():
      %p : Tensor = aten::mul(%y, %x)
      -> (%p)
  return (%x)
";
        assert_eq!(ends(text), ["ok"]);
        assert_eq!(ends(&text.replace("return (%x)", "return (%n)")), [""; 0]);
    }

    #[test]
    fn unneeded_errors_vanish_beside_a_needed_one_however_many() {
        let dead: String = (0..8).map(|i| format!("  %y{i} : Tensor = aten::mm(%x, %x)\n")).collect();
        let text = format!(
            "graph(%x : Tensor):
  %f : Future(Tensor) = prim::fork_0(%x)
  %g : Future(Tensor) = prim::fork_1(%x)
{dead}  return (%f)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  return (%y)
with prim::fork_1 = graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  return (%y)
"
        );
        let ends = ends(&text);
        assert_eq!(ends.last().map(String::as_str), Some("ok"), "{ends:?}");
    }

    #[test]
    fn errors_of_dead_tasks_may_vanish_and_raised_ones_remain() {
        let text = "graph(%x : Tensor):
  %f : Future(Tensor) = prim::fork_0(%x)
  %r : Tensor = aten::wait(%f)
  return (%x)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  return (%y)
";
        assert_eq!(ends(text), ["ok"]);
        let kept = text.replace("  %r : Tensor = aten::wait(%f)\n", "  %r : Tensor = aten::mm(%x, %x)\n");
        assert_eq!(
            ends(&kept),
            ["self must be a matrix", "ok"],
            "the task fails or not, then the program or not"
        );
        let raising = "graph(%x : Tensor):
  %text : str = prim::Constant[value=\"raised 1\"]()
  %none : NoneType = prim::Constant()
   = prim::RaiseException(%text, %none)
  return (%x)
";
        assert_eq!(ends(raising), [""; 0], "no error may be removed");
    }
}
