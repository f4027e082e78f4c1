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
use flambeau_analysis::effects::effects_in;
use flambeau_analysis::shape::Fact;
use flambeau_exec::reference::{ErrorPolicy, PolicyResult, run_with_policy};
use flambeau_exec::{Fault, KernelError};
use flambeau_ir::{Effects, Graph, IValue, NodeId, OpKind, Prim};
use flambeau_rewrite::Elements;
use flambeau_tensor::Tensor;
use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;

/// Maximum number of runs of one program before the run that continues after every error.
const RUNS: usize = 24;

/// Returns the observations of a failing program that are accepted in place of its own, because passes may remove
/// operators with unneeded results. Each item belongs to one choice of removed errors.
///
/// Usually the first remaining error ends the run, so a choice is a number of errors. A failing task does not end the
/// run, so further errors may follow a remaining one.
pub(crate) fn allowed_observations(case: &Case) -> Vec<Observation> {
    let mut all = Vec::new();
    let mut choices = VecDeque::from([Vec::new()]);
    let mut runs = 0;
    while let Some(choice) = choices.pop_front() {
        let rest = runs >= RUNS;
        let choice = if rest { Vec::new() } else { choice };
        let (seen, asked) =
            run_past_errors(case, ContinuedRun { choice: choice.clone(), rest, ..ContinuedRun::default() });
        runs += 1;
        let Some(seen) = seen else { continue };
        if !choice.is_empty() || rest {
            all.push(seen);
        }
        if rest {
            break;
        }
        // Each choice is generated once: from the shorter choice without its last removal.
        choices.extend((choice.len()..asked).map(|last| {
            let mut more = choice.clone();
            more.resize(last, false);
            more.push(true);
            more
        }));
    }
    all
}

/// Returns the observation of a run, or `None` if a missing value was needed; and the number of errors.
fn run_past_errors(case: &Case, mut run: ContinuedRun) -> (Option<Observation>, usize) {
    let seen = observe::run(case, |inputs, host| {
        let handles = inputs.clone();
        let end = run_with_policy(&case.graph, inputs, &*case.unit, host, &mut run);
        run.is_needed |= end.iter().flatten().chain(&handles).any(|value| run.is_missing(value));
        end
    });
    ((!run.is_needed).then_some(seen), run.asked)
}

/// A run that continues after errors.
#[derive(Default)]
struct ContinuedRun {
    /// Whether each error is removed. Later errors are removed if `rest` is set.
    choice: Vec<bool>,
    rest: bool,
    /// Number of errors so far.
    asked: usize,
    /// Whether a missing value was needed.
    is_needed: bool,
    /// Whether an error was removed.
    is_incomplete: bool,
    /// Addresses of storages, tensors and containers with missing writes. The handles keep the addresses from being
    /// reused.
    unwritten: HashSet<usize>,
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
        self.is_incomplete && value.visit(look).is_break()
    }

    /// Returns whether a value itself is missing, ignoring its contents.
    fn is_unwritten(&self, value: &IValue) -> bool {
        missing::is_missing(value) || addresses(value).any(|address| self.unwritten.contains(&address))
    }

    /// Returns missing results for a node that does not run. Marks the memory that it would have written.
    fn leave_out(&mut self, graph: &Graph, node: NodeId) -> Vec<IValue> {
        let operands = std::mem::take(&mut self.operands);
        let facts = self.facts_about_results(graph, node, &operands);
        self.is_incomplete = true;
        if let Some(id) = graph.op(node).row() {
            let schema = graph.registry().schema(id);
            let kept = graph.registry().facet::<Shape>(id).and_then(|shape| shape.keeps(Some(schema)));
            for (i, (arg, value)) in schema.args.iter().zip(operands).enumerate() {
                if !arg.is_write() {
                    continue;
                }
                self.unwritten.extend(addresses(&value));
                self.resized.extend(value.identity().filter(|_| kept != Some(i)));
                self.handles.push(value);
            }
        }
        facts.into_iter().map(missing::missing).collect()
    }

    fn facts_about_results(&self, graph: &Graph, node: NodeId, operands: &[IValue]) -> Vec<Fact> {
        missing::results(graph, node, operands, |value| self.is_missing(value), &self.resized)
    }

    fn end(&mut self) -> KernelError {
        self.is_needed = true;
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
    /// The node must run, but cannot.
    Needs,
}

impl ContinuedRun {
    /// Returns how a node uses operands of which some are missing or contain missing values.
    fn usage(&self, graph: &Graph, node: NodeId, operands: &[IValue]) -> Use {
        let is_missing = |i: usize| operands.get(i).is_some_and(|v| self.is_missing(v));
        let is_itself = || operands.iter().any(|v| self.is_unwritten(v));
        let by_effects = || {
            let effects = effects_in(graph, node);
            let nested_write = graph.block_count(node) > 0 && effects.contains(Effects::WRITES);
            if effects.has_side_effects() || nested_write { Use::Needs } else { Use::Computes }
        };
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
                        let is_loop =
                            graph.owner(graph.parent(node)).is_some_and(|n| graph.is_prim(n, Prim::Loop));
                        if is_loop && is_missing(0) { Use::Needs } else { Use::Moves }
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
    fn skip(&mut self, graph: &Graph, node: NodeId, operands: &[IValue]) -> PolicyResult {
        self.operands = operands.to_vec();
        if !operands.iter().any(|v| self.is_missing(v)) {
            return Ok(None);
        }
        match self.usage(graph, node, operands) {
            Use::Moves => Ok(None),
            Use::Computes => {
                let facts = self.facts_about_results(graph, node, operands);
                let answers: Option<Vec<IValue>> = facts.iter().map(missing::constant).collect();
                Ok(Some(answers.unwrap_or_else(|| self.leave_out(graph, node))))
            }
            Use::Needs => Err(self.end()),
        }
    }

    fn recover(&mut self, graph: &Graph, node: NodeId, error: &KernelError) -> Option<Vec<IValue>> {
        if graph.effects(node).has_side_effects() || error.fault() == Fault::Limit {
            return None;
        }
        let is_removed = self.choice.get(self.asked).copied().unwrap_or(self.rest);
        self.asked += 1;
        is_removed.then(|| self.leave_out(graph, node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::session;
    use flambeau_ir::Source;
    use flambeau_ir::text::parse_graph;

    /// Returns how a failing program on a vector of two elements may end: messages of errors, `ok` without an error.
    fn ends(text: &str) -> Vec<String> {
        let session = session();
        let graph = parse_graph(&Source::new("case.ir", text), session.registry()).unwrap();
        let input = IValue::Tensor(Tensor::from_slice(&[1_f32, 2.0], &[2]).unwrap());
        let seen = allowed_observations(&Case::new(graph, vec![input]));
        let end = |seen: Observation| seen.end.err().map_or_else(|| "ok".to_owned(), |e| e.message);
        seen.into_iter().map(end).collect()
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
        assert_eq!(ends.len(), 3, "{ends:?}");
        assert!(ends[..2].iter().all(|e| e.contains("must be a matrix")), "{ends:?}");
        assert!(ends[2].contains("Dimension out of range"), "{ends:?}");
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
            ["self must be a matrix", "ok", "ok"],
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
