//! Traversals of nested values without recursion: dropping, visiting, copying, and computing types of tuples.

use std::ops::ControlFlow;

use flambeau_tensor::Tensor;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::{Dict, EnumValue, IValue, List, ListItems, Object, Tuple, ValueError};
use crate::types::Type;

/// Returns whether the value may contain others, so that dropping it may drop further values.
pub(super) fn is_container(value: &IValue) -> bool {
    matches!(
        value,
        IValue::Tuple(_)
            | IValue::List(_)
            | IValue::Dict(_)
            | IValue::Object(_)
            | IValue::Enum(_)
            | IValue::Future(_)
    )
}

pub(super) fn any_container(values: &[IValue]) -> bool {
    values.iter().any(is_container)
}

/// Drops values without recursion: the contents of a value that is freed are added to the worklist.
pub(super) fn drop_nested(mut dying: Vec<IValue>) {
    while let Some(value) = dying.pop() {
        match value {
            IValue::Tuple(t) => t.take_children(&mut dying),
            IValue::List(l) => l.take_children(&mut dying),
            IValue::Dict(d) => d.take_children(&mut dying),
            IValue::Object(o) => o.take_children(&mut dying),
            IValue::Enum(e) => e.take_children(&mut dying),
            IValue::Future(f) => f.take_children(&mut dying),
            _ => {}
        }
    }
}

impl IValue {
    /// Returns the directly contained values, in order. A dictionary has keys and values in turn, a complete future its
    /// value, and an awaitable with a pending task the task's arguments.
    #[must_use]
    pub fn sub_values(&self) -> Vec<Self> {
        match self {
            Self::Tuple(t) => t.items().to_vec(),
            Self::List(l) => l.to_vec(),
            Self::Dict(d) => d.to_vec().into_iter().flat_map(|(k, v)| [k, v]).collect(),
            Self::Object(o) => o.read().clone(),
            Self::Enum(e) => vec![e.value().clone()],
            Self::Future(f) => f.parts(),
            _ => Vec::new(),
        }
    }

    /// Calls `f` for this value and every value inside, parents first, shared containers once. A break of `f` ends the
    /// traversal.
    pub fn visit<B>(&self, mut f: impl FnMut(&Self) -> ControlFlow<B>) -> ControlFlow<B> {
        let mut seen: HashSet<usize, FxBuildHasher> = HashSet::default();
        let mut todo = vec![self.clone()];
        while let Some(value) = todo.pop() {
            if is_container(&value) && value.identity().is_some_and(|id| !seen.insert(id)) {
                continue;
            }
            f(&value)?;
            match &value {
                // A flat list of numbers contains no values to visit.
                Self::List(l) if !matches!(&*l.read(), ListItems::Values(_) | ListItems::Tensors(_)) => {}
                _ => todo.extend(value.sub_values().into_iter().rev()),
            }
        }
        ControlFlow::Continue(())
    }

    /// Calls `f` for every tensor in the value, in order: once for each occurrence in a container, and shared containers are
    /// visited once.
    pub fn visit_tensors(&self, mut f: impl FnMut(&Tensor)) {
        let _: ControlFlow<()> = self.visit(|value| {
            if let Self::Tensor(t) = value {
                f(t);
            }
            ControlFlow::Continue(())
        });
    }

    /// Returns a copy whose containers and objects are new. Parts that the original shares are shared in the copy, and with
    /// earlier copies made with the same `memo`. `tensor` copies tensors. Futures, generators and host objects are not
    /// copied: the copy has those of the original.
    ///
    /// # Errors
    /// Returns the errors of `tensor`.
    pub fn deep_copy(
        &self,
        memo: &mut CopyMemo,
        tensor: &mut dyn FnMut(&Tensor) -> Result<Tensor, ValueError>,
    ) -> Result<Self, ValueError> {
        copy(self, memo, tensor)
    }
}

impl IValue {
    /// As [`IValue::deep_copy`] with a new memo. Tensors are copied with their data and the order of their strides.
    ///
    /// # Errors
    /// Returns [`ValueError::Tensor`] if a tensor cannot be copied.
    pub fn deep_copied(&self) -> Result<Self, ValueError> {
        self.deep_copy(&mut CopyMemo::default(), &mut |t| Ok(t.clone_data()?))
    }
}

/// The copies made so far, by identity of the original.
#[derive(Default)]
pub struct CopyMemo {
    copies: HashMap<usize, IValue, FxBuildHasher>,
    /// Keeps the originals alive, so their identities are not reused.
    originals: Vec<IValue>,
}

impl CopyMemo {
    fn keep(&mut self, original: &IValue, copy: &IValue) {
        let id = original.identity().expect("invariant: only shared values are remembered");
        self.copies.insert(id, copy.clone());
        self.originals.push(original.clone());
    }
}

enum Step {
    Copy(IValue),
    Tuple(IValue, usize),
    Enum(IValue),
    List(List, usize),
    Dict(Dict, usize),
    Object(Object, usize),
}

/// Copies a value with an explicit stack. Mutable containers are created and recorded before their contents are copied,
/// so a cycle ends there. Tuples and enum members are created after their contents.
fn copy(
    root: &IValue,
    memo: &mut CopyMemo,
    tensor: &mut dyn FnMut(&Tensor) -> Result<Tensor, ValueError>,
) -> Result<IValue, ValueError> {
    let mut steps = vec![Step::Copy(root.clone())];
    let mut done: Vec<IValue> = Vec::new();
    while let Some(step) = steps.pop() {
        match step {
            Step::Copy(value) => {
                if let Some(copy) = value.identity().and_then(|id| memo.copies.get(&id)) {
                    done.push(copy.clone());
                } else {
                    begin(value, memo, tensor, &mut steps, &mut done)?;
                }
            }
            Step::Tuple(original, n) => {
                let items = done.split_off(done.len() - n);
                // A tuple within its own contents, through a list for example, was copied with them.
                if let Some(copy) = original.identity().and_then(|id| memo.copies.get(&id)) {
                    done.push(copy.clone());
                    continue;
                }
                let named = original.as_tuple().and_then(Tuple::named_type);
                let made = IValue::Tuple(match named {
                    Some(ty) => Tuple::named(ty, items),
                    None => Tuple::new(items),
                });
                memo.keep(&original, &made);
                done.push(made);
            }
            Step::Enum(original) => {
                let value = done.pop().expect("invariant: the enum's value was copied");
                let member = original.as_enum().expect("invariant: an enum member");
                let made = IValue::Enum(EnumValue::new(member.ty(), member.name(), value));
                memo.keep(&original, &made);
                done.push(made);
            }
            Step::List(list, n) => {
                let items = done.split_off(done.len() - n);
                items.into_iter().for_each(|v| list.push(v));
                done.push(IValue::List(list));
            }
            Step::Dict(dict, n) => {
                let items = done.split_off(done.len() - n);
                let mut items = items.into_iter();
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    dict.insert(key, value)?;
                }
                done.push(IValue::Dict(dict));
            }
            Step::Object(object, n) => {
                let slots = done.split_off(done.len() - n);
                *object.write() = slots;
                done.push(IValue::Object(object));
            }
        }
    }
    Ok(done.pop().expect("invariant: one value in, one copy out"))
}

fn begin(
    value: IValue,
    memo: &mut CopyMemo,
    tensor: &mut dyn FnMut(&Tensor) -> Result<Tensor, ValueError>,
    steps: &mut Vec<Step>,
    done: &mut Vec<IValue>,
) -> Result<(), ValueError> {
    let parts = match &value {
        IValue::Tensor(t) => {
            let made = IValue::Tensor(tensor(t)?);
            memo.keep(&value, &made);
            done.push(made);
            return Ok(());
        }
        IValue::List(l) if !matches!(&*l.read(), ListItems::Values(_) | ListItems::Tensors(_)) => {
            let made = IValue::List(l.copy());
            memo.keep(&value, &made);
            done.push(made);
            return Ok(());
        }
        IValue::Tuple(_) | IValue::List(_) | IValue::Dict(_) | IValue::Object(_) | IValue::Enum(_) => {
            value.sub_values()
        }
        // Strings, futures, generators, devices, functions and host objects are shared.
        _ => {
            done.push(value);
            return Ok(());
        }
    };
    let n = parts.len();
    match &value {
        IValue::List(l) => {
            let made = List::new(l.elem_type());
            memo.keep(&value, &IValue::List(made.clone()));
            steps.push(Step::List(made, n));
        }
        IValue::Dict(d) => {
            let made = Dict::new(d.key_type(), d.value_type());
            memo.keep(&value, &IValue::Dict(made.clone()));
            steps.push(Step::Dict(made, n));
        }
        IValue::Object(o) => {
            let made = Object::new(o.class(), Vec::new());
            memo.keep(&value, &IValue::Object(made.clone()));
            steps.push(Step::Object(made, n));
        }
        IValue::Enum(_) => steps.push(Step::Enum(value)),
        _ => steps.push(Step::Tuple(value, n)),
    }
    steps.extend(parts.into_iter().rev().map(Step::Copy));
    Ok(())
}

/// Returns the type of a tuple, computed from the inside out. A shared tuple is computed once.
pub(super) fn tuple_type(root: &Tuple) -> Type {
    if let Some(ty) = root.named_type() {
        return ty;
    }
    let mut known: HashMap<usize, Type, FxBuildHasher> = HashMap::default();
    let mut open = vec![(root.clone(), 0, Vec::new())];
    loop {
        let (tuple, next, types) = open.last_mut().expect("invariant: the root closes last");
        let Some(item) = tuple.items().get(*next) else {
            let ty = Type::tuple(types);
            known.insert(tuple.id(), ty);
            open.pop();
            let Some((_, _, outer)) = open.last_mut() else { return ty };
            outer.push(ty);
            continue;
        };
        *next += 1;
        match item {
            IValue::Tuple(inner) => match inner.named_type().or_else(|| known.get(&inner.id()).copied()) {
                Some(ty) => types.push(ty),
                None => {
                    let inner = inner.clone();
                    open.push((inner, 0, Vec::new()));
                }
            },
            other => types.push(other.type_of()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> (IValue, IValue) {
        let (mut tuple, mut list) = (IValue::Int(1), IValue::Int(1));
        for _ in 0..depth {
            tuple = IValue::tuple(vec![tuple]);
            list = IValue::list(Type::ANY, vec![list]);
        }
        (tuple, list)
    }

    #[test]
    fn a_million_levels_drop() {
        drop(nested(1_000_000));
    }

    #[test]
    fn deep_values_are_walked_without_recursion() {
        const DEEP: usize = 100_000;
        let (tuple, list) = nested(DEEP);
        assert_eq!(tuple.type_of(), Type::OVERFLOW);
        assert_eq!(tuple.equals(&tuple.deep_copied().unwrap()), Ok(true));
        assert_eq!(list.to_string().len(), 2 * DEEP + 1);
        let mut count = 0;
        let _: ControlFlow<()> = list.visit(|_| {
            count += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(count, DEEP + 1);
    }

    #[test]
    fn copies_keep_sharing_and_cycles() {
        let shared = IValue::ints(vec![1]);
        let ring = List::new(Type::ANY);
        ring.push(IValue::List(ring.clone()));
        let root = IValue::tuple(vec![shared.clone(), shared, IValue::List(ring.clone())]);
        let copy = root.deep_copy(&mut CopyMemo::default(), &mut |t| Ok(t.clone())).unwrap();
        let items = copy.as_tuple().unwrap().items().to_vec();
        assert!(items[0].is_same(&items[1]));
        let inner = items[2].as_list().unwrap();
        assert!(!inner.ptr_eq(&ring));
        assert!(inner.get(0).unwrap().is_same(&items[2]));
        assert_eq!(root.to_string(), "([1], [1], [[...]])");
        inner.write().truncate(0);
        ring.write().truncate(0);

        let list = List::new(Type::ANY);
        let tuple = IValue::tuple(vec![IValue::List(list.clone())]);
        list.push(tuple.clone());
        let copy = tuple.deep_copy(&mut CopyMemo::default(), &mut |t| Ok(t.clone())).unwrap();
        let inner = copy.as_tuple().unwrap().items()[0].as_list().unwrap().clone();
        assert!(inner.get(0).unwrap().is_same(&copy), "a tuple in its own contents is copied once");
        inner.write().truncate(0);
        list.write().truncate(0);
    }
}
