//! Tuples, lists, dictionaries, objects.

use super::{current_node, name_of};
use crate::callees::Callees;
use crate::error::KernelError;
use crate::kernel::{KernelCx, KernelResult};
use flambeau_ir::attr::names;
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::{Dict, IValue, List, ListItems, Object, Tuple};
use flambeau_ir::{Symbol, Type};
use flambeau_tensor::{Scalar, Tensor, check_budget};

/// Creates a tuple of a static type, which may be a named tuple.
pub(crate) fn tuple_of(ty: Type, items: impl Iterator<Item = IValue>) -> IValue {
    let named = ty.as_tuple().is_some_and(|t| t.named.is_some());
    IValue::Tuple(if named { Tuple::named(ty, items) } else { Tuple::new(items) })
}

/// Creates a list of a static type.
pub(crate) fn list_of(ty: Type, values: impl ExactSizeIterator<Item = IValue>) -> IValue {
    let elem = ty.list_elem().unwrap_or(Type::ANY);
    let mut items = ListItems::with_capacity(elem, values.len());
    values.for_each(|v| items.push(v));
    IValue::List(List::from_items(elem, items))
}

pub(super) fn tuple_construct(cx: &mut KernelCx<'_>) {
    let ty = cx.result_type(0);
    let value = tuple_of(ty, cx.args().iter_mut().map(std::mem::take));
    cx.ret(value);
}

fn tuple(cx: &KernelCx<'_>) -> Result<Tuple, KernelError> {
    match cx.arg(0)? {
        IValue::Tuple(t) => Ok(t.clone()),
        other => Err(KernelError::input(format!("expected a tuple but found {}", other.tag()))),
    }
}

pub(super) fn tuple_unpack(cx: &mut KernelCx<'_>) -> KernelResult {
    let tuple = tuple(cx)?;
    let (wanted, found) = (cx.n_results(), tuple.items().len());
    if wanted != found {
        return Err(KernelError::input(format!("expected a tuple of {wanted} elements but found {found}")));
    }
    cx.take(0);
    tuple.into_items().into_iter().for_each(|item| cx.ret(item));
    Ok(())
}

pub(super) fn tuple_index(cx: &mut KernelCx<'_>) -> KernelResult {
    let tuple = tuple(cx)?;
    let index = cx.int(1)?;
    let len = tuple.items().len() as i64;
    let at = if index < 0 { index.saturating_add(len) } else { index };
    let item = usize::try_from(at).ok().and_then(|at| tuple.items().get(at)).cloned();
    let item = item.ok_or_else(|| {
        KernelError::new(crate::Fault::Input, "IndexError", "Tuple index out of range".to_owned())
    })?;
    cx.ret(item);
    Ok(())
}

pub(super) fn tuple_slice(cx: &mut KernelCx<'_>) -> KernelResult {
    let tuple = tuple(cx)?;
    let (graph, node) = current_node(cx)?;
    let bound = |name| graph.attr(node, name).and_then(|a| a.as_int()).and_then(|i| usize::try_from(i).ok());
    let range = bound(names::beg()).zip(bound(names::end()));
    let items = range.and_then(|(beg, end)| tuple.items().get(beg..end));
    let items = items.ok_or_else(|| KernelError::misuse("prim::TupleSlice: bounds outside the tuple"))?;
    let value = tuple_of(cx.result_type(0), items.iter().cloned());
    cx.ret(value);
    Ok(())
}

pub(super) fn list_construct(cx: &mut KernelCx<'_>) {
    let ty = cx.result_type(0);
    let value = list_of(ty, cx.args().iter_mut().map(std::mem::take));
    cx.ret(value);
}

/// Checks the length of a list that is unpacked into `wanted` values.
pub(super) fn check_length(found: usize, wanted: usize) -> KernelResult {
    if found != wanted {
        return Err(KernelError::input(format!("Expected {wanted} elements in a list but found {found}")));
    }
    Ok(())
}

pub(super) fn list_unpack(cx: &mut KernelCx<'_>) -> KernelResult {
    let (wanted, found) = (cx.n_results(), cx.list(0)?.len());
    check_length(found, wanted)?;
    // Moves the elements out if this is the last reference to the list.
    if let IValue::List(list) = cx.take(0) {
        match list.into_items() {
            ListItems::Tensors(items) => items.into_iter().for_each(|item| cx.ret(item)),
            items => items.iter().for_each(|item| cx.ret(item)),
        }
    }
    Ok(())
}

pub(super) fn dict_construct(cx: &mut KernelCx<'_>) -> KernelResult {
    let (key, value) = cx.result_type(0).dict_types().unwrap_or((Type::ANY, Type::ANY));
    let dict = Dict::new(key, value);
    {
        let mut map = dict.write();
        for pair in cx.args().chunks_exact_mut(2) {
            map.insert(std::mem::take(&mut pair[0]), std::mem::take(&mut pair[1]))?;
        }
    }
    cx.ret(dict);
    Ok(())
}

fn object(cx: &KernelCx<'_>) -> Result<Object, KernelError> {
    match cx.arg(0)? {
        IValue::Object(o) => Ok(o.clone()),
        other => Err(KernelError::input(format!("expected an object but found {}", other.tag()))),
    }
}

fn slot(callees: &dyn Callees, class: Type, name: Symbol) -> Result<usize, KernelError> {
    callees.slot(class, name).ok_or_else(|| {
        KernelError::new(
            crate::Fault::Input,
            "AttributeError",
            format!("'{class}' has no attribute '{name}'"),
        )
    })
}

pub(super) fn get_attr(cx: &mut KernelCx<'_>, callees: &dyn Callees) -> KernelResult {
    let (graph, node) = current_node(cx)?;
    let object = object(cx)?;
    let name = name_of(graph, node)?;
    let value = object.get(slot(callees, object.class(), name)?);
    if matches!(value, IValue::Uninitialized) {
        let class = object.class();
        return Err(KernelError::new(
            crate::Fault::Input,
            "AttributeError",
            format!("attribute '{name}' of '{class}' was not set"),
        ));
    }
    cx.ret(value);
    Ok(())
}

pub(super) fn set_attr(cx: &mut KernelCx<'_>, callees: &dyn Callees) -> KernelResult {
    let (graph, node) = current_node(cx)?;
    let object = object(cx)?;
    let slot = slot(callees, object.class(), name_of(graph, node)?)?;
    object.set(slot, cx.take(1));
    Ok(())
}

pub(super) fn has_attr(cx: &mut KernelCx<'_>, callees: &dyn Callees) -> KernelResult {
    let (graph, node) = current_node(cx)?;
    let has = callees.slot(object(cx)?.class(), name_of(graph, node)?).is_some();
    cx.ret(has);
    Ok(())
}

pub(super) fn create(cx: &mut KernelCx<'_>, callees: &dyn Callees) -> KernelResult {
    let class = cx.result_type(0);
    let slots = callees.slots(class).ok_or_else(|| KernelError::input(format!("unknown class '{class}'")))?;
    cx.ret(Object::new(class, vec![IValue::Uninitialized; slots]));
    Ok(())
}

pub(super) fn container_index(cx: &mut KernelCx<'_>, callees: &dyn Callees) -> KernelResult {
    let object = object(cx)?;
    let key = match cx.arg(1)? {
        IValue::Str(s) => s.to_text().into_owned(),
        IValue::Int(i) if *i < 0 => {
            let n = callees.slots(object.class()).unwrap_or(0) as i64;
            i.saturating_add(n).to_string()
        }
        other => format!("{other}"),
    };
    let at = callees.slot(object.class(), Symbol::new(&key));
    let at = at.ok_or_else(|| KernelError::new(crate::Fault::Input, "KeyError", key))?;
    cx.ret(object.get(at));
    Ok(())
}

/// `prim::tolist(tensor, rank, element kind)`: element kinds are 0 int, 1 float, 2 bool, 3 complex.
pub(super) fn to_list(cx: &mut KernelCx<'_>) -> KernelResult {
    let (rank, kind) = (cx.int(1)?, cx.int(2)?);
    let tensor = cx.tensor(0)?.clone();
    if rank != tensor.rank() as i64 {
        return Err(KernelError::input(format!(
            "Output annotation list dimension and runtime tensor dimension must match: {rank} and {}",
            tensor.rank()
        )));
    }
    check_budget(tensor.numel().saturating_mul(size_of::<IValue>()))?;
    let value = nested(&tensor, kind, cx.result_type(0))?;
    cx.ret(value);
    Ok(())
}

/// Nests the elements into lists dimension by dimension, innermost first.
fn nested(tensor: &Tensor, kind: i64, ty: Type) -> Result<IValue, KernelError> {
    let fits = match (kind, tensor.dtype()) {
        (0, d) => d.is_integral(false),
        (1, d) => d.is_floating(),
        (2, d) => d == flambeau_tensor::DType::Bool,
        (3, d) => d.is_complex(),
        _ => false,
    };
    if !fits {
        return Err(KernelError::input(
            "Output annotation element type and runtime tensor element type must match for tolist()",
        ));
    }
    let mut level: Vec<IValue> =
        tensor.to_scalars()?.into_iter().map(<IValue as From<Scalar>>::from).collect();
    // The type at each depth, outermost first.
    let mut types = vec![ty];
    for _ in 0..tensor.rank() {
        let outer = *types.last().expect("invariant: never empty");
        types.push(match outer.kind() {
            TypeKind::List(elem) => *elem,
            _ => Type::ANY,
        });
    }
    for depth in (0..tensor.rank()).rev() {
        let size = tensor.sizes()[depth] as usize;
        let groups: i64 = tensor.sizes()[..depth].iter().product();
        let mut items = level.into_iter();
        level = (0..groups)
            .map(|_| list_of(types[depth], items.by_ref().take(size).collect::<Vec<_>>().into_iter()))
            .collect();
    }
    Ok(level.pop().unwrap_or_default())
}
