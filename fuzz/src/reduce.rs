//! Shrinks a failing case: drops outputs, nodes, blocks and arguments, and inlines calls, as long as it still fails the
//! same oracle.

use crate::case::Case;
use crate::oracle::{CheckOutcome, Oracle};
use flambeau_ir::attr::names;
use flambeau_ir::verify::verify;
use flambeau_ir::{Graph, NodeId, Prim, ValueId};
use flambeau_rewrite::passes::inline::Inline;
use flambeau_rewrite::{Manager, Pipeline};
use std::sync::Arc;

/// Statistics of a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReductionStats {
    /// Candidates tried.
    pub tried: usize,
    /// Candidates that still failed.
    pub kept: usize,
}

/// Returns the smallest case found that still fails, within `budget` tries.
pub fn reduce(case: &Case, oracle: &dyn Oracle, budget: usize) -> (Case, ReductionStats) {
    let mut best = case.clone();
    let mut stats = ReductionStats::default();
    // Sweeps over the candidates until no candidate of a whole sweep fails. After a smaller case is found, the sweep
    // continues at its next candidate, because the candidates before it have just been tried on the larger case.
    let (mut start, mut smaller) = (0, false);
    while stats.tried < budget {
        let base = best.clone();
        let mut next = candidates(&base).enumerate().skip(start);
        let found = next.by_ref().take(budget - stats.tried).find(|(_, case)| {
            stats.tried += 1;
            matches!(oracle.check(case), CheckOutcome::Failed(_))
        });
        match found {
            Some((at, case)) => {
                (best, start, smaller) = (case, at, true);
                stats.kept += 1;
            }
            None if smaller => (start, smaller) = (0, false),
            None => break,
        }
    }
    (best, stats)
}

/// Returns smaller cases that verify, in a fixed order: calls inlined, one output less, one node less, one argument
/// less.
pub(crate) fn candidates(case: &Case) -> impl Iterator<Item = Case> + '_ {
    let g = &case.graph;
    let outputs = g.outputs().len();
    let without_output = (0..outputs).filter(move |_| outputs > 1).map(|i| {
        let mut copy: Graph = (**g).clone();
        let root = copy.root();
        copy.edit().remove_block_output(root, i);
        copy
    });
    // Last nodes first, because they have the fewest users.
    let nodes: Vec<NodeId> = g.nodes_deep().collect();
    let without_node = nodes.into_iter().rev().filter_map(|n| without(g, n));
    let smaller = without_output.chain(without_node).map(|graph| case.with_graph(graph));
    let inputs = (0..g.inputs().len()).filter_map(|i| without_input(case, i));
    inlined(case).into_iter().chain(smaller).chain(inputs).filter(|case| verify(&case.graph).is_ok())
}

/// Returns the program with its calls inlined, without its functions unless calls that check their arguments or the
/// bodies of tasks remain. Calls in these are not inlined. `None` if nothing changes.
fn inlined(case: &Case) -> Option<Case> {
    let calls = |g: &Graph| {
        g.nodes_deep().filter(|&n| matches!(g.prim(n), Some(Prim::CallFunction | Prim::CallMethod))).count()
    };
    let has_tasks = |g: &Graph| g.nodes_deep().any(|n| g.attr(n, names::subgraph()).is_some());
    let before = calls(&case.graph);
    if case.unit.functions().next().is_none() || (before == 0 && has_tasks(&case.graph)) {
        return None;
    }
    let mut graph: Graph = (*case.graph).clone();
    let pipeline = Pipeline::new().then(Inline::default());
    Manager::new().unit(&case.unit).run(&mut graph, &pipeline).ok()?;
    match calls(&graph) {
        0 if !has_tasks(&graph) => Some(Case::new(graph, case.inputs.clone())),
        left if left < before => Some(case.with_graph(graph)),
        _ => None,
    }
}

/// Returns the graph without a node: each used result is replaced by an earlier value of the same type.
fn without(g: &Graph, node: NodeId) -> Option<Graph> {
    let mut copy = g.clone();
    let results: Vec<ValueId> = copy.results(node).collect();
    for v in results {
        if copy.use_count(v) == 0 {
            continue;
        }
        let ty = copy.ty(v);
        let fits = |g: &Graph, o: ValueId| g.ty(o) == ty || (g.ty(o).is_tensor() && ty.is_tensor());
        let stand_in = copy.operands(node).find(|&o| fits(&copy, o)).or_else(|| {
            let g = &copy;
            g.inputs().find(|&i| fits(g, i))
        })?;
        copy.edit().replace_all_uses(v, stand_in);
    }
    copy.edit().erase(node);
    Some(copy)
}

/// Returns the case without an argument that has no uses.
fn without_input(case: &Case, i: usize) -> Option<Case> {
    let input = case.graph.inputs().nth(i)?;
    if case.graph.use_count(input) > 0 {
        return None;
    }
    let mut graph: Graph = (*case.graph).clone();
    let root = graph.root();
    graph.edit().remove_block_input(root, i);
    let mut inputs = case.inputs.clone();
    inputs.remove(i);
    Some(Case { graph: Arc::new(graph), inputs, ..case.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::session;
    use flambeau_ir::module::Function;
    use flambeau_ir::text::parse_graph;
    use flambeau_ir::{CompilationUnit, Source, Symbol};

    #[test]
    fn functions_called_in_tasks_remain() {
        let session = session();
        let read = |text: &str| parse_graph(&Source::new("case.ir", text), session.registry()).unwrap();
        let mut unit = CompilationUnit::new();
        let helper = read("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n");
        unit.define_function(Function::of_graph(Symbol::new("__torch__.helper"), Arc::new(helper)));
        let graph = read(
            "graph(%x : Tensor):
  %h : Function = prim::Constant[name=\"__torch__.helper\"]()
  %y : Tensor = prim::CallFunction(%h, %x)
  %f : Future(Tensor) = prim::fork_0(%y)
  return (%f)
with prim::fork_0 = graph(%x : Tensor):
  %h : Function = prim::Constant[name=\"__torch__.helper\"]()
  %y : Tensor = prim::CallFunction(%h, %x)
  return (%y)
",
        );
        let case = Case { unit: Arc::new(unit), ..Case::new(graph, Vec::new()) };
        let once = inlined(&case).unwrap();
        assert!(once.graph.nodes_deep().all(|n| !once.graph.is_prim(n, Prim::CallFunction)));
        assert_eq!(once.unit.functions().count(), 1, "the task calls it");
        assert!(inlined(&once).is_none(), "nothing to inline remains");
    }
}
