//! Attributes of modules as inputs.
//!
//! A function reads its weights from the objects among its arguments. If such an attribute stays the same during a call,
//! the profiled graph has it as one more input, whose value the executor reads before the call. So the metadata of
//! weights are part of the argument spec, of profiles and of preconditions, and no guard within the plan is needed.
//!
//! An attribute is lifted if it holds a tensor and is reached from an argument by attributes, and if no node of the graph
//! may replace it or an object on the way: none sets an attribute of that name, and none has unknown effects on state, as
//! a call that was not inlined. Only the reference to the tensor must stay the same. Writes to its elements or metadata
//! act on the input as they act on the attribute.

use flambeau_exec::Callees;
use flambeau_ir::attr::names;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{Effects, Graph, IValue, NodeId, Prim, Symbol, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// Maximum number of lifted attributes of a function.
const MAX_LIFTED: usize = 256;

/// An attribute that is reached from an argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AttributePath {
    argument: usize,
    /// The slots of the objects on the way, at least one.
    slots: SmallVec<[usize; 4]>,
}

impl AttributePath {
    /// Returns the tensor; `None` if an attribute on the way was not set.
    pub(crate) fn read<'v>(&self, argument: impl FnOnce(usize) -> Option<&'v IValue>) -> Option<IValue> {
        let mut value = argument(self.argument)?.clone();
        for &slot in &self.slots {
            let IValue::Object(object) = &value else { return None };
            let next = object.read().get(slot)?.clone();
            value = next;
        }
        matches!(value, IValue::Tensor(_)).then_some(value)
    }
}

/// Appends the lifted attributes to the arguments of a call. Returns whether all are tensors; otherwise the arguments
/// are as before.
pub(crate) fn append(attributes: &[AttributePath], args: &mut Vec<IValue>) -> bool {
    let own = args.len();
    for path in attributes {
        match path.read(|at| args[..own].get(at)) {
            Some(value) => args.push(value),
            None => {
                args.truncate(own);
                return false;
            }
        }
    }
    true
}

/// Replaces reads of attributes by new inputs, after the present ones; returns their attributes in order.
pub(crate) fn lift(graph: &mut Graph, callees: &dyn Callees) -> Vec<AttributePath> {
    let Some(changed) = changed_names(graph) else { return Vec::new() };
    let mut objects: HashMap<ValueId, AttributePath, FxBuildHasher> = HashMap::default();
    for (argument, input) in graph.inputs().enumerate() {
        objects.insert(input, AttributePath { argument, slots: SmallVec::new() });
    }
    let mut reads: Vec<(NodeId, usize)> = Vec::new();
    let mut lifted: Vec<AttributePath> = Vec::new();
    let mut position: HashMap<AttributePath, usize, FxBuildHasher> = HashMap::default();
    // In program order, so the object of a read has its path already.
    for node in graph.nodes_deep() {
        let Some(path) = path_of(graph, node, &objects, &changed, callees) else { continue };
        let result = graph.result(node, 0);
        if !graph.ty(result).is_tensor() {
            objects.insert(result, path);
            continue;
        }
        let known = position.get(&path).copied();
        if known.is_none() && lifted.len() >= MAX_LIFTED {
            continue;
        }
        let at = known.unwrap_or_else(|| {
            lifted.push(path.clone());
            position.insert(path, lifted.len() - 1);
            lifted.len() - 1
        });
        reads.push((node, at));
    }
    let mut inputs: Vec<ValueId> = Vec::new();
    let mut editor = graph.edit();
    for (node, at) in reads {
        let result = editor.graph().result(node, 0);
        if at == inputs.len() {
            let ty = editor.graph().ty(result);
            inputs.push(editor.add_input(ty));
        }
        editor.replace_all_uses(result, inputs[at]);
        editor.erase(node);
    }
    lifted
}

/// Returns the path of the attribute that a node reads.
fn path_of(
    graph: &Graph,
    node: NodeId,
    objects: &HashMap<ValueId, AttributePath, FxBuildHasher>,
    changed: &HashSet<Symbol, FxBuildHasher>,
    callees: &dyn Callees,
) -> Option<AttributePath> {
    if !graph.is_prim(node, Prim::GetAttr) {
        return None;
    }
    let object = graph.operand(node, 0);
    let path = objects.get(&object)?;
    let name = attribute_name(graph, node).filter(|name| !changed.contains(name))?;
    let class = graph.ty(object);
    let slot = matches!(class.kind(), TypeKind::Class(_)).then(|| callees.slot(class, name))??;
    let mut slots = path.slots.clone();
    slots.push(slot);
    Some(AttributePath { argument: path.argument, slots })
}

fn attribute_name(graph: &Graph, node: NodeId) -> Option<Symbol> {
    graph.attr(node, names::name())?.as_str().map(Symbol::new)
}

/// Returns the names of attributes that the graph may set. `None` if a node may change any state.
fn changed_names(graph: &Graph) -> Option<HashSet<Symbol, FxBuildHasher>> {
    let mut changed = HashSet::default();
    for node in graph.nodes_deep() {
        if graph.is_prim(node, Prim::SetAttr) {
            changed.insert(attribute_name(graph, node)?);
        } else if graph.effects(node).intersects(Effects::WRITES_STATE.union(Effects::HOST)) {
            return None;
        }
    }
    Some(changed)
}
