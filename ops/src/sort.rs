//! Ordering of values for sorting.
//!
//! Numbers, strings (by bytes), one-element tensors and tuples of these are ordered. Sorting is stable and the order
//! total: NaN is last.

use flambeau_exec::KernelError;
use flambeau_ir::Type;
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::{IValue, List, ListItems};
use flambeau_tensor::Scalar;
use std::cmp::Ordering;

/// `a < b` for numbers, strings and booleans; false for other types.
pub(crate) fn less(a: &IValue, b: &IValue) -> bool {
    match (a, b) {
        (IValue::Int(a), IValue::Int(b)) => a < b,
        (IValue::Float(a), IValue::Float(b)) => a < b,
        (IValue::Bool(a), IValue::Bool(b)) => a < b,
        (IValue::Str(a), IValue::Str(b)) => a < b,
        _ => false,
    }
}

/// Returns the sorted elements; in reverse order, equal elements still keep their order.
pub(crate) fn sorted(list: &List, reverse: bool) -> Result<ListItems, KernelError> {
    // A single element is never compared, so its type need not be sortable.
    if list.len() > 1 {
        check_sortable(list.elem_type())?;
    }
    let mut items = list.read().clone();
    let flip = |order: Ordering| if reverse { order.reverse() } else { order };
    match &mut items {
        ListItems::Ints(v) => v.sort_by(|a, b| flip(a.cmp(b))),
        ListItems::Floats(v) => v.sort_by(|a, b| float_order(*a, *b, reverse)),
        ListItems::Bools(v) => v.sort_by(|a, b| flip(a.cmp(b))),
        ListItems::Tensors(v) => {
            let keys: Vec<Key> = v.iter().map(tensor_key).collect::<Result<_, _>>()?;
            *v = by_keys(v, &keys, reverse);
        }
        ListItems::Values(v) => {
            let keys: Vec<Key> = v.iter().map(key).collect::<Result<_, _>>()?;
            *v = by_keys(v, &keys, reverse);
        }
    }
    Ok(items)
}

/// Sorts items by their keys.
fn by_keys<T: Clone>(items: &[T], keys: &[Key], reverse: bool) -> Vec<T> {
    let mut at: Vec<usize> = (0..items.len()).collect();
    at.sort_by(|&i, &j| order(&keys[i], &keys[j], reverse));
    at.into_iter().map(|i| items[i].clone()).collect()
}

/// The sort key of a value: the leaves of nested tuples, left to right.
type Key = Vec<Leaf>;

#[derive(Clone)]
enum Leaf {
    Number(f64),
    Int(i64),
    Text(flambeau_ir::value::Str),
}

fn tensor_key(t: &flambeau_tensor::Tensor) -> Result<Key, KernelError> {
    if t.numel() != 1 {
        let n = if t.numel() == 0 { "no values" } else { "more than one value" };
        return Err(KernelError::input(format!("Boolean value of Tensor with {n} is ambiguous")));
    }
    Ok(vec![match t.item()? {
        Scalar::Int(i) => Leaf::Int(i),
        Scalar::Bool(b) => Leaf::Int(i64::from(b)),
        Scalar::Float(x) => Leaf::Number(x),
        Scalar::Complex(_) => return Err(KernelError::input("complex numbers have no order")),
    }])
}

fn key(value: &IValue) -> Result<Key, KernelError> {
    let mut leaves = Vec::new();
    let mut todo = vec![value.clone()];
    while let Some(value) = todo.pop() {
        match &value {
            IValue::Int(i) => leaves.push(Leaf::Int(*i)),
            IValue::Bool(b) => leaves.push(Leaf::Int(i64::from(*b))),
            IValue::Float(x) => leaves.push(Leaf::Number(*x)),
            IValue::Str(s) => leaves.push(Leaf::Text(s.clone())),
            IValue::Tensor(t) => leaves.extend(tensor_key(t)?),
            IValue::Tuple(t) => todo.extend(t.items().iter().rev().cloned()),
            other => return Err(unsortable(other.type_of())),
        }
    }
    Ok(leaves)
}

fn order(a: &[Leaf], b: &[Leaf], reverse: bool) -> Ordering {
    let pairs = a.iter().zip(b).map(|(x, y)| leaf_order(x, y, reverse));
    pairs.fold(Ordering::Equal, Ordering::then)
}

fn leaf_order(a: &Leaf, b: &Leaf, reverse: bool) -> Ordering {
    let flip = |order: Ordering| if reverse { order.reverse() } else { order };
    match (a, b) {
        (Leaf::Int(a), Leaf::Int(b)) => flip(a.cmp(b)),
        (Leaf::Text(a), Leaf::Text(b)) => flip(a.cmp(b)),
        (Leaf::Number(a), Leaf::Number(b)) => float_order(*a, *b, reverse),
        (Leaf::Number(a), Leaf::Int(b)) => float_order(*a, *b as f64, reverse),
        (Leaf::Int(a), Leaf::Number(b)) => float_order(*a as f64, *b, reverse),
        (Leaf::Text(_), _) => Ordering::Greater,
        (_, Leaf::Text(_)) => Ordering::Less,
    }
}

fn float_order(a: f64, b: f64, reverse: bool) -> Ordering {
    match a.partial_cmp(&b) {
        Some(order) if reverse => order.reverse(),
        Some(order) => order,
        None => a.is_nan().cmp(&b.is_nan()),
    }
}

/// Returns an error if values of a type are not ordered.
fn check_sortable(elem: Type) -> Result<(), KernelError> {
    let mut todo = vec![elem];
    while let Some(ty) = todo.pop() {
        match ty.kind() {
            TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Str | TypeKind::Tensor(_) => {}
            TypeKind::Tuple(t) => todo.extend(t.elems.iter().copied()),
            TypeKind::Optional(inner) => todo.push(*inner),
            TypeKind::Class(_) => {
                return Err(KernelError::unsupported(format!(
                    "sorting a list of {elem}: calls of the class's `__lt__` from inside an operator"
                )));
            }
            _ => return Err(unsortable(elem)),
        }
    }
    Ok(())
}

#[cold]
fn unsortable(ty: Type) -> KernelError {
    KernelError::input(format!(
        "Only list of Tensors, ints, floats, bools, strs, a User Defined Class that defines the __lt__ compare method \
         or Tuples of aforementioned types can be sorted, got list of {}",
        ty.annotation_str()
    ))
}
