//! Errors that passes may remove: an operator that fails may be removed together with its error, if its results and
//! writes are not needed.
//!
//! PyTorch's dead code elimination removes operators that may raise, and other passes (tuple lowering, unrolling,
//! inlining) make more operators dead. The set of correct results of a failing program is therefore a property of its
//! run, not of its graph. This module computes the set by runs that continue after failing operators, the first, the
//! first two, …. The results and writes of such an operator are *missing*, as are all values computed from them. The
//! errors may be removed only if no missing value is needed: printed, raised, a condition, a result, or memory visible
//! to the caller.

use crate::case::Case;
use crate::observe::{self, Observation};
use flambeau_analysis::effects::effects_in;
use flambeau_exec::reference::{ErrorPolicy, run_with_policy};
use flambeau_exec::{Fault, KernelError};
use flambeau_ir::{Effects, Graph, IValue, NodeId, OpKind, Prim};
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
        match value {
            IValue::Uninitialized => true,
            other => addresses(other).any(|address| self.unwritten.contains(&address)),
        }
    }

    /// Marks the memory that the node would have written.
    fn leave_unwritten(&mut self, graph: &Graph, node: NodeId) {
        self.is_incomplete = true;
        let Some(id) = graph.op(node).row() else { return };
        let operands = std::mem::take(&mut self.operands);
        for (arg, value) in graph.registry().schema(id).args.iter().zip(operands) {
            if !arg.is_write() {
                continue;
            }
            self.unwritten.extend(addresses(&value));
            self.handles.push(value);
        }
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
        let by_effects = || {
            let effects = effects_in(graph, node);
            let nested_write = graph.block_count(node) > 0 && effects.contains(Effects::WRITES);
            if effects.has_side_effects() || nested_write { Use::Needs } else { Use::Computes }
        };
        match graph.op(node).kind() {
            OpKind::Prim(prim) => match prim {
                Prim::TupleConstruct | Prim::ListConstruct | Prim::CallFunction | Prim::Fork => Use::Moves,
                Prim::TupleUnpack | Prim::TupleIndex | Prim::TupleSlice | Prim::ListUnpack => {
                    let is_itself = operands.first().is_some_and(|v| self.is_unwritten(v));
                    if is_itself { Use::Computes } else { Use::Moves }
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
            },
            // A task's result may be missing if it is not needed.
            _ if graph.effects(node).contains(Effects::WAITS) => {
                let is_itself = operands.iter().any(|v| self.is_unwritten(v));
                if is_itself { Use::Needs } else { Use::Moves }
            }
            _ => by_effects(),
        }
    }
}

impl ErrorPolicy for ContinuedRun {
    fn runs(&mut self, graph: &Graph, node: NodeId, operands: &[IValue]) -> Result<bool, KernelError> {
        self.operands = operands.to_vec();
        if !operands.iter().any(|v| self.is_missing(v)) {
            return Ok(true);
        }
        match self.usage(graph, node, operands) {
            Use::Moves => Ok(true),
            Use::Computes => {
                self.leave_unwritten(graph, node);
                Ok(false)
            }
            Use::Needs => Err(self.end()),
        }
    }

    fn takes(&mut self, graph: &Graph, node: NodeId, error: &KernelError) -> bool {
        if graph.effects(node).has_side_effects() || error.fault() == Fault::Limit {
            return false;
        }
        let is_removed = self.choice.get(self.asked).copied().unwrap_or(self.rest);
        self.asked += 1;
        if !is_removed {
            return false;
        }
        self.leave_unwritten(graph, node);
        true
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
