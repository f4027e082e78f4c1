//! Static resolution of the grad mode, and of `requires_grad` queries.
//!
//! A differentiated graph runs without a tape, so the grad mode at each node has to be known when the graph is made. Context
//! managers become calls of their methods ([`expand_contexts`]), which are inlined; the calls of `set_grad_enabled` that remain
//! must have statically known arguments ([`resolve_grad_mode`]). Results of nodes in a region with grad mode off are detached,
//! so that activity ends there. A view of them that is used elsewhere is refused: unlike other results, it requires a gradient if its
//! base does. A tensor requires a gradient if it is active; [`resolve_requires_grad`] folds the query to a
//! constant.

use super::NotDifferentiable;
use super::activity::{Activity, is_cast};
use super::functionalize::target;
use super::input_facts::KnownTypes;
use super::reverse::{FormulaGraphs, Helper, inlined};
use flambeau_exec::tape::RecordingQuery;
use flambeau_ir::attr::names;
use flambeau_ir::{At, Attr, BlockId, Editor, Graph, IValue, NodeId, NodeSet, Prim, Type, ValueId, WalkStep};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Replaces entering and leaving of context managers by calls of their methods. A run that ends with an exception does not
/// leave them.
pub fn expand_contexts(graph: &mut Graph) {
    let is_context = |g: &Graph, n: NodeId| g.is_prim(n, Prim::Enter) || g.is_prim(n, Prim::Exit);
    let found: Vec<NodeId> = graph.nodes_deep().filter(|n| is_context(graph, *n)).collect();
    for node in found {
        let enters = graph.is_prim(node, Prim::Enter);
        let (loc, mut operands) = (graph.loc(node), graph.operands(node).collect::<Vec<_>>());
        let types: Vec<Type> = graph.results(node).map(|v| graph.ty(v)).collect();
        let mut editor = graph.edit();
        editor.at(At::before(node)).loc(loc);
        if !enters {
            let none = editor.constant(IValue::None);
            operands.extend([none; 3]);
        }
        let call = editor.node(Prim::CallMethod, &operands, &types);
        editor.set_attr(call, names::name(), Attr::str(if enters { "__enter__" } else { "__exit__" }));
        let results: Vec<ValueId> = editor.graph().results(call).collect();
        editor.replace_node(node, &results);
    }
}

fn query(graph: &Graph, node: NodeId) -> Option<RecordingQuery> {
    graph.registry().facet::<RecordingQuery>(graph.op(node).row()?).copied()
}

/// Resolves the grad mode statically, given that it is on at the start: folds `is_grad_enabled` queries to constants, erases
/// `set_grad_enabled` nodes, and detaches results computed with grad mode off.
///
/// # Errors
/// If the grad mode depends on a branch or a value, or if a node with grad mode off writes memory of the graph or returns a list
/// of tensors.
pub fn resolve_grad_mode(graph: &mut Graph, formulas: &dyn FormulaGraphs) -> Result<(), NotDifferentiable> {
    let changes = |n: NodeId| {
        matches!(query(graph, n), Some(RecordingQuery::SetGradEnabled | RecordingQuery::GradEnabled))
    };
    if !graph.nodes_deep().any(changes) {
        return Ok(());
    }
    let modes = Modes::of(graph)?;
    if let Some(view) = modes.escaping_view(graph) {
        let reason = "makes a view where gradients are not enabled that is used where they are, or returned";
        return Err(NotDifferentiable::at(graph, view, reason));
    }
    // PyTorch refuses recorded writes to the memory of such views.
    let writes = |n: NodeId| graph.op(n).row().is_some() && graph.effects(n).may_write();
    if let Some(view) = modes.views.first().filter(|_| graph.nodes_deep().any(writes)) {
        return Err(NotDifferentiable::at(graph, *view, "makes a view where gradients are not enabled"));
    }
    let detach = formulas.helper(Helper::Detach)?;
    let mut editor = graph.edit();
    for value in modes.disabled {
        let def = editor.graph().def(value);
        editor.at(At::after(def));
        let detached = inlined(&mut editor, def, &detach, &[value])?;
        let last = editor.graph().def(detached);
        editor.replace_uses_after(last, value, detached);
    }
    for node in modes.writes {
        for i in 1..editor.graph().operand_count(node) {
            let operand = editor.graph().operand(node, i);
            if !editor.graph().ty(operand).is_tensor() {
                continue;
            }
            editor.at(At::before(node));
            let detached = inlined(&mut editor, node, &detach, &[operand])?;
            editor.set_operand(node, i, detached);
        }
    }
    for (node, mode) in modes.queries {
        editor.at(At::before(node));
        let constant = editor.constant(IValue::Bool(mode));
        editor.replace_node(node, &[constant]);
    }
    modes.setters.into_iter().for_each(|node| editor.erase(node));
    Ok(())
}

/// Whether a node writes an input or attribute as a whole. If the tensor requires a gradient, the write is refused later: the
/// tensor would keep its history although its elements change.
fn writes_outside(graph: &Graph, node: NodeId) -> bool {
    let Some(mut written) = target(graph, node) else { return false };
    loop {
        let def = graph.def(written);
        match graph.prim(def) {
            Some(Prim::Param) => return graph.parent(def) == graph.root(),
            Some(Prim::GetAttr) => return true,
            Some(prim) if is_cast(prim) => written = graph.operand(def, 0),
            Some(_) => return false,
            None => match target(graph, def) {
                Some(first) => written = first,
                None => return false,
            },
        }
    }
}

/// The nodes of a graph that depend on the grad mode, or that it concerns.
#[derive(Default)]
struct Modes {
    /// `is_grad_enabled` queries, with the grad mode at each.
    queries: Vec<(NodeId, bool)>,
    /// `set_grad_enabled` nodes.
    setters: Vec<NodeId>,
    /// Tensors that are computed with grad mode off.
    disabled: Vec<ValueId>,
    /// Writes with grad mode off to inputs or attributes.
    writes: Vec<NodeId>,
    /// Operators that return views with grad mode off.
    views: Vec<NodeId>,
    /// All operators with grad mode off, but for queries.
    operators: NodeSet,
}

impl Modes {
    fn of(graph: &Graph) -> Result<Modes, NotDifferentiable> {
        let mut found = Modes::default();
        let mut known: HashMap<ValueId, bool, FxBuildHasher> = HashMap::default();
        let mut entered: Vec<(BlockId, bool)> = Vec::new();
        let mut enabled = true;
        for step in graph.walk(graph.root()) {
            match step {
                WalkStep::Enter(block) => entered.push((block, enabled)),
                WalkStep::Leave(block) => {
                    let before = entered.pop().is_none_or(|(_, before)| before);
                    if before != enabled {
                        let reason = "a block ends in another state of recording than it begins";
                        return Err(NotDifferentiable::at(graph, graph.ret(block), reason));
                    }
                }
                WalkStep::Done(_) => {}
                WalkStep::Node(node) => match query(graph, node) {
                    Some(RecordingQuery::GradEnabled) => {
                        known.insert(graph.result(node, 0), enabled);
                        found.queries.push((node, enabled));
                    }
                    Some(RecordingQuery::SetGradEnabled) => {
                        let to = graph.operand(node, 0);
                        let constant = || graph.constant(to).and_then(|v| v.as_bool());
                        enabled = known.get(&to).copied().or_else(constant).ok_or_else(|| {
                            NotDifferentiable::at(graph, node, "whether gradients are enabled is not known")
                        })?;
                        found.setters.push(node);
                    }
                    _ if enabled => {}
                    _ => found.disable(graph, node)?,
                },
            }
        }
        Ok(found)
    }

    /// Returns a view of which more is observed than its elements by operators with grad mode off: it requires a gradient if its base
    /// does, although no gradient reaches it.
    fn escaping_view(&self, graph: &Graph) -> Option<NodeId> {
        let escapes = |view: &NodeId| {
            graph.results(*view).any(|v| graph.uses(v).any(|used| !self.operators.contains(used.user)))
        };
        self.views.iter().copied().find(escapes)
    }

    /// Adds the tensors that a node computes with grad mode off.
    fn disable(&mut self, graph: &Graph, node: NodeId) -> Result<(), NotDifferentiable> {
        if graph.op(node).row().is_some() && query(graph, node).is_none() {
            self.operators.insert(node);
        }
        if graph.op(node).row().is_some() && graph.effects(node).may_write() {
            let lists = graph.operands(node).any(|v| graph.ty(v).list_elem().is_some_and(Type::is_tensor));
            if writes_outside(graph, node) && !lists {
                self.writes.push(node);
                return Ok(());
            }
            let reason = "writes memory where gradients are not enabled";
            return Err(NotDifferentiable::at(graph, node, reason));
        }
        if graph.is_prim(node, Prim::GetAttr) {
            // The attribute exists, with its history.
            return Ok(());
        }
        for result in graph.results(node).filter(|v| graph.use_count(*v) > 0) {
            let ty = graph.ty(result);
            if ty.is_tensor() {
                self.disabled.push(result);
                if graph.op(node).row().is_some() && graph.effects(node).result_aliases() {
                    self.views.push(node);
                }
            } else if graph.op(node).row().is_some() && ty.list_elem().is_some_and(Type::is_tensor) {
                let reason = "returns a list of tensors where gradients are not enabled";
                return Err(NotDifferentiable::at(graph, node, reason));
            }
        }
        Ok(())
    }
}

/// Folds `requires_grad` queries to constants, given that exactly the tensors `wrt` require gradients at the start. Returns
/// whether the graph had such queries.
///
/// # Errors
/// If no query can be folded, because the activity of its operand depends on the run.
pub fn resolve_requires_grad(
    graph: &mut Graph,
    wrt: &[ValueId],
    formulas: &dyn FormulaGraphs,
) -> Result<bool, NotDifferentiable> {
    let is_query = |g: &Graph, n: NodeId| query(g, n) == Some(RecordingQuery::RequiresGrad);
    let nodes: Vec<NodeId> = graph.nodes_deep().filter(|n| is_query(graph, *n)).collect();
    if nodes.is_empty() {
        return Ok(false);
    }
    let activity = Activity::of(graph, wrt, formulas, &KnownTypes::of(graph))?;
    let folded: Vec<(NodeId, bool)> = nodes
        .iter()
        .map(|&node| (node, graph.operand(node, 0)))
        .filter(|(_, of)| activity.is_certain(*of) || !activity.is_active(*of))
        .map(|(node, of)| (node, activity.is_active(of)))
        .collect();
    if folded.is_empty() {
        return Err(NotDifferentiable::at(
            graph,
            nodes[0],
            "whether the operand requires a gradient depends on the run",
        ));
    }
    let mut editor: Editor<'_> = graph.edit();
    for (node, is_active) in folded {
        editor.at(At::before(node));
        let constant = editor.constant(IValue::Bool(is_active));
        editor.replace_node(node, &[constant]);
    }
    Ok(true)
}
