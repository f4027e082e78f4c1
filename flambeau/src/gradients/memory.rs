//! Memory that a call of a differentiated graph shares with its surroundings: containers and attributes that hold its sources,
//! results that are views of arguments, and tensors from outside that the function writes.

use crate::error::Error;
use flambeau_exec::ExecError;
use flambeau_exec::tape::ArgSources;
use flambeau_ir::attr::names;
use flambeau_ir::value::Object;
use flambeau_ir::{At, CompilationUnit, Graph, IValue, NodeId, OpId, Prim, Symbol, Type, ValueId};
use flambeau_rewrite::ContainerOp;
use flambeau_rewrite::autodiff::NotDifferentiable;
use flambeau_tensor::{Tensor, TensorError};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// How a result of a call gets its history.
pub(crate) enum Role {
    /// From the differentiated graph.
    Own,
    /// From the layout: it is a view of a tensor that existed before the call.
    View(Tensor),
    /// It has its history already, or none: it is an argument, another result, or not differentiable.
    Known,
}

impl Role {
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Role::Own)
    }
}

/// The tensors that results may share memory with.
pub(crate) struct Memory {
    before: Vec<Tensor>,
    made: Vec<Tensor>,
}

impl Memory {
    pub(crate) fn new(args: &[IValue], sources: &[Tensor]) -> Memory {
        let mut before = sources.to_vec();
        for arg in args.iter().filter(|arg| !matches!(arg, IValue::Object(_))) {
            arg.visit_tensors(|t| before.push(t.clone()));
        }
        Memory { before, made: Vec::new() }
    }

    /// Returns the role of the next result, or the reason why its history is not known from its memory: writes to a view of
    /// another result would not be seen, and tensors from before that share memory with each other have histories of their
    /// own.
    pub(crate) fn role(&mut self, result: &Tensor) -> Result<Role, &'static str> {
        let floating = result.dtype().is_floating() || result.dtype().is_complex();
        if !floating || self.before.iter().chain(&self.made).any(|t| t.ptr_eq(result)) {
            return Ok(Role::Known);
        }
        let has_memory = result.numel() > 0;
        let shared = |t: &&Tensor| has_memory && t.shares_storage(result);
        let mut before = self.before.iter().filter(shared);
        if let Some(of) = before.next() {
            return match before.all(|other| other.ptr_eq(of)) {
                true => Ok(Role::View(of.clone())),
                false => Err("a result shares memory with two tensors from before the call"),
            };
        }
        if self.made.iter().any(|t| shared(&t)) {
            return Err("two results share memory");
        }
        self.made.push(result.clone());
        Ok(Role::Own)
    }
}

/// A tensor from outside of a function that the function writes.
pub(crate) enum Outside {
    Argument(usize),
    /// The path of an attribute from the receiver.
    Attribute(Vec<Symbol>),
}

impl Outside {
    pub(crate) fn of(graph: &Graph, value: ValueId) -> Option<Outside> {
        match graph.inputs().position(|input| input == value) {
            Some(input) => Some(Outside::Argument(input)),
            None => Some(Outside::Attribute(path_of(graph, value)?)),
        }
    }

    /// Replaces the tensor in the arguments. The objects that lead to an attribute are copied: others may use them.
    pub(crate) fn replace(&self, unit: &CompilationUnit, args: &mut [IValue], by: Tensor) {
        match self {
            Outside::Argument(i) => args[*i] = IValue::Tensor(by),
            Outside::Attribute(path) => {
                let copy = args.first().and_then(|receiver| with_attribute(unit, receiver, path, by));
                copy.into_iter().for_each(|receiver| args[0] = receiver);
            }
        }
    }

    pub(crate) fn tensor(&self, unit: &CompilationUnit, args: &[IValue]) -> Option<Tensor> {
        match self {
            Outside::Argument(i) => args.get(*i)?.as_tensor().cloned(),
            Outside::Attribute(path) => attribute(unit, args.first()?, path)?.as_tensor().cloned(),
        }
    }
}

/// Writes new elements to tensors.
pub(crate) fn write_all(tensors: &[Tensor], elements: impl Iterator<Item = Tensor>) -> Result<(), Error> {
    for (tensor, elements) in tensors.iter().zip(elements) {
        tensor.copy_(&elements).map_err(of_tensor)?;
    }
    Ok(())
}

pub(crate) fn of_tensor(error: TensorError) -> Error {
    ExecError::of(&flambeau_exec::KernelError::from(error)).into()
}

/// Returns the names of the attributes that lead from the first input to a value.
pub(crate) fn path_of(graph: &Graph, value: ValueId) -> Option<Vec<Symbol>> {
    let mut path = Vec::new();
    let mut value = value;
    while graph.is_prim(graph.def(value), Prim::GetAttr) {
        let node = graph.def(value);
        path.push(Symbol::new(graph.attr(node, names::name())?.as_str()?));
        value = graph.operand(node, 0);
    }
    path.reverse();
    (graph.inputs().next() == Some(value)).then_some(path)
}

pub(crate) fn attribute(unit: &CompilationUnit, receiver: &IValue, path: &[Symbol]) -> Option<IValue> {
    let mut value = receiver.clone();
    for name in path {
        let object: &Object = value.as_object()?;
        let class = unit.class(object.class())?;
        let slot = class.attributes.iter().position(|a| a.name == *name)?;
        value = object.get(slot);
    }
    Some(value)
}

/// Returns a copy of an object in which the attribute at a path is another tensor; the other attributes are shared.
fn with_attribute(unit: &CompilationUnit, of: &IValue, path: &[Symbol], tensor: Tensor) -> Option<IValue> {
    let Some((name, rest)) = path.split_first() else { return Some(IValue::Tensor(tensor)) };
    let object = of.as_object()?;
    let slot = unit.class(object.class())?.attributes.iter().position(|a| a.name == *name)?;
    let mut slots = object.read().clone();
    slots[slot] = with_attribute(unit, slots.get(slot)?, rest, tensor)?;
    Some(IValue::Object(Object::new(object.class(), slots)))
}

/// Whether the memory of each of some tensors is reached on one way only from arguments: as an argument or element, in
/// containers and objects that are reached by one path. Linear in the number of values that the arguments contain.
pub(crate) fn reached_once(tensors: &[Tensor], args: &[IValue]) -> bool {
    let mut reached: HashMap<usize, u32, FxBuildHasher> =
        tensors.iter().map(|t| (t.storage().address(), 0)).collect();
    let (mut seen, mut shared) = (HashSet::<usize, FxBuildHasher>::default(), Vec::new());
    let mut open = args.to_vec();
    while let Some(value) = open.pop() {
        if let IValue::Tensor(t) = &value {
            reached.entry(t.storage().address()).and_modify(|times| *times += 1);
        } else if value.identity().is_some_and(|id| !seen.insert(id)) {
            shared.push(value);
        } else if !matches!(&value, IValue::List(list) if is_number(list.elem_type())) {
            open.extend(value.sub_values());
        }
    }
    for container in shared {
        container.visit_tensors(|t| {
            reached.entry(t.storage().address()).and_modify(|times| *times += 1);
        });
    }
    reached.len() == tensors.len() && reached.values().all(|times| *times == 1)
}

fn is_number(ty: Type) -> bool {
    matches!(ty, Type::INT | Type::FLOAT | Type::BOOL | Type::COMPLEX)
}

/// Lets a graph read a list, an argument or attribute, as a list of its elements, which are then sources if they require gradients;
/// returns the source that each element is.
pub(crate) fn unpacked(
    graph: &mut Graph,
    list: ValueId,
    items: &[IValue],
    wrt: &mut Vec<ValueId>,
) -> Result<ArgSources, NotDifferentiable> {
    let ty = graph.ty(list);
    let elem = ty.list_elem().unwrap_or(Type::TENSOR);
    let def = graph.def(list);
    let start = if graph.is_prim(def, Prim::Param) { At::start(graph.root()) } else { At::after(def) };
    let mut editor = graph.edit();
    editor.at(start);
    let types = vec![elem; items.len()];
    let node = editor.node(Prim::ListUnpack, &[list], &types);
    let values: Vec<ValueId> = editor.graph().results(node).collect();
    let made = editor.value(Prim::ListConstruct, &values, ty);
    let def = editor.graph().def(made);
    editor.replace_uses_after(def, list, made);
    check_unwritten(editor.graph(), made)?;
    let mut sources = Vec::new();
    for (item, value) in items.iter().zip(values) {
        let source = item.as_tensor().filter(|t| t.requires_grad());
        if source.is_some() && !elem.is_tensor() {
            return Err(NotDifferentiable::at(graph, node, "a list of optional tensors is not followed"));
        }
        sources.push(source.map(|_| wrt.len()));
        wrt.extend(source.map(|_| value));
    }
    Ok(sources)
}

/// Lets a graph read a dictionary argument as a dictionary of its entries, as [`unpacked`] does for lists.
pub(crate) fn unpacked_entries(
    graph: &mut Graph,
    dict: ValueId,
    entries: &[(IValue, IValue)],
    wrt: &mut Vec<ValueId>,
) -> Result<ArgSources, NotDifferentiable> {
    let registry = Arc::clone(graph.registry());
    let (ty, root) = (graph.ty(dict), graph.root());
    let refused = |graph: &Graph, reason: &str| Err(NotDifferentiable::at(graph, graph.param(root), reason));
    let Some((key, elem)) = ty.dict_types().filter(|(_, elem)| elem.is_tensor()) else {
        return refused(graph, "an argument is a dictionary of other values than tensors");
    };
    let column = registry.column::<ContainerOp>();
    let takes = |op: &OpId| {
        let args = &registry.schema(*op).args;
        column.get(*op) == Some(&ContainerOp::Value) && args.get(1).is_some_and(|arg| arg.ty == key)
    };
    let Some(read) = registry.ids().find(takes) else {
        return refused(graph, "an argument is a dictionary with keys of an unknown type");
    };
    let mut editor = graph.edit();
    editor.at(At::start(root));
    let (mut operands, mut sources) = (Vec::new(), Vec::new());
    for (key, value) in entries {
        let key = editor.constant(key.clone());
        let element = editor.value(read, &[dict, key], elem);
        operands.extend([key, element]);
        let source = value.as_tensor().filter(|t| t.requires_grad());
        sources.push(source.map(|_| wrt.len()));
        wrt.extend(source.map(|_| element));
    }
    let made = editor.value(Prim::DictConstruct, &operands, ty);
    let def = editor.graph().def(made);
    editor.replace_uses_after(def, dict, made);
    check_unwritten(graph, made)?;
    Ok(sources)
}

/// Refuses writes to an argument's container, which the caller would not see.
fn check_unwritten(graph: &Graph, container: ValueId) -> Result<(), NotDifferentiable> {
    let writes =
        |n: &NodeId| match graph.op(*n).row().and_then(|row| graph.registry().facet::<ContainerOp>(row)) {
            Some(what) => what.writes(),
            None => graph.effects(*n).may_write(),
        };
    match graph.uses(container).map(|u| u.user).find(writes) {
        Some(node) => {
            Err(NotDifferentiable::at(graph, node, "writes a container that is an argument or attribute"))
        }
        None => Ok(()),
    }
}
