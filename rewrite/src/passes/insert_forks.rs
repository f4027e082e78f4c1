//! Turns calls of functions that are independent of each other into tasks, so that they may run concurrently.
//!
//! A group is a sequence of calls in one block. None uses the result of another, and the nodes between them may be
//! speculated. The called functions have no effects but errors and reads of memory, and they are expensive: they have
//! loops, or several operators on tensors. Each call becomes a fork; the waits follow the last fork, in the order of the
//! calls, so the error of the first call that fails is raised first, as before. Only the traceback changes: it names the
//! wait.
//!
//! This pass must run before calls are inlined. It is in no standard pipeline, since it does not know the number of
//! threads.

use super::inline::checks_arguments;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_analysis::CallGraph;
use flambeau_ir::attr::{Attr, names};
use flambeau_ir::{
    AliasRule, At, BlockId, CompilationUnit, Effects, Graph, NodeId, OpId, OpKind, Prim, Registry, Symbol,
    Type,
};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// Number of operators on tensors that make a function without loops expensive.
const EXPENSIVE: usize = 4;

/// Maximal number of calls of a group, which bounds the search for operands.
const LONGEST: usize = 64;

/// Effects that a function of a task cannot have.
const ORDERED: Effects = Effects::WRITES
    .union(Effects::WRITES_STATE)
    .union(Effects::READS_STATE)
    .union(Effects::RANDOM)
    .union(Effects::IO)
    .union(Effects::HOST)
    .union(Effects::WAITS)
    .union(Effects::CONSERVATIVE);

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertForks;

impl Pass for InsertForks {
    const NAME: &'static str = "insert_forks";
    const DOC: &'static str = "Turns independent calls of expensive functions into tasks.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let (Some(unit), Some(wait)) = (cx.unit(), wait_operator(&cx.registry())) else { return Ok(()) };
        let graph = cx.graph();
        let calls = calls_of_tasks(graph, unit);
        let mut groups = Vec::new();
        let blocks = graph.nodes_deep().flat_map(|n| graph.blocks(n));
        for block in std::iter::once(graph.root()).chain(blocks) {
            find_groups(graph, block, &calls, &mut groups);
        }
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for group in groups {
            let Some(&last) = group.last() else { continue };
            if !fuel.take("fork", editor.graph(), last) {
                return Ok(());
            }
            let mut at = last;
            for call in group {
                let g = editor.graph();
                let (loc, ty) = (g.loc(call), g.ty(g.result(call, 0)));
                let args: Vec<_> = g.operands(call).skip(1).collect();
                let attrs = editor.attrs(vec![(names::subgraph(), Attr::Graph(Arc::clone(&calls[&call])))]);
                let place = editor.at(At::before(call)).loc(loc);
                let fork = place.insert(Prim::Fork, &args, attrs, &[Type::future(ty)]);
                let future = editor.graph().result(fork, 0);
                let value = editor.at(At::after(at)).loc(loc).value(wait, &[future], ty);
                at = editor.graph().def(value);
                editor.replace_all_uses(editor.graph().result(call, 0), value);
                if call != last {
                    editor.erase(call);
                }
            }
            editor.erase(last);
        }
        Ok(())
    }
}

/// The operator that waits for a task.
fn wait_operator(registry: &Registry) -> Option<OpId> {
    registry.ids().find(|&id| registry.facet::<AliasRule>(id) == Some(&AliasRule::Waits))
}

type Calls = HashMap<NodeId, Arc<Graph>, FxBuildHasher>;

/// Returns the calls of functions that may be tasks, with the functions' bodies.
fn calls_of_tasks(graph: &Graph, unit: &CompilationUnit) -> Calls {
    let mut known: HashMap<Symbol, Option<Arc<Graph>>, FxBuildHasher> = HashMap::default();
    let reached = CallGraph::reached_from(graph, unit);
    let mut calls = Calls::default();
    for &(node, callee) in reached.calls() {
        let body = known.entry(callee).or_insert_with(|| {
            let body = &unit.function(callee)?.graph;
            may_be_task(body).then(|| Arc::clone(body))
        });
        let fits = graph.is_prim(node, Prim::CallFunction) && graph.result_count(node) == 1;
        if let Some(body) = body
            && fits
            && !checks_arguments(graph, graph.operands(node).skip(1), body)
        {
            calls.insert(node, Arc::clone(body));
        }
    }
    calls
}

/// Whether a function has no ordered effects and is expensive.
fn may_be_task(body: &Graph) -> bool {
    let effects = body.all_effects();
    if effects.intersects(ORDERED) || body.outputs().len() != 1 {
        return false;
    }
    let computes = |n: &NodeId| {
        matches!(body.op(*n).kind(), OpKind::Row(_)) && body.results(*n).any(|v| body.ty(v).is_tensor())
    };
    effects.contains(Effects::DIVERGES)
        || body.nodes_deep().filter(computes).take(EXPENSIVE).count() == EXPENSIVE
}

/// Finds the groups of a block.
fn find_groups(graph: &Graph, block: BlockId, calls: &Calls, groups: &mut Vec<Vec<NodeId>>) {
    let mut group: Vec<NodeId> = Vec::new();
    let mut end = |group: &mut Vec<NodeId>| {
        let ended = std::mem::take(group);
        if ended.len() > 1 {
            groups.push(ended);
        }
    };
    for node in graph.nodes(block) {
        let is_call = calls.contains_key(&node);
        // A nested node counts as its enclosing node of this block: those with blocks end a group.
        let uses = graph.operands(node).any(|v| group.last().is_some() && group.contains(&graph.def(v)));
        if uses || !is_call && (graph.block_count(node) > 0 || !graph.may_speculate(node)) {
            end(&mut group);
        }
        if is_call {
            group.push(node);
        }
        if group.len() == LONGEST {
            end(&mut group);
        }
    }
    end(&mut group);
}
