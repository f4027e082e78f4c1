//! Lists: shared, lockable, with flat storage of numbers, bools and tensors.

use flambeau_tensor::{Shared, Tensor};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{IValue, ValueError, walk};
use crate::types::{Type, TypeCell, TypeKind};

/// A list. Clones of the handle share the contents; see [`List::copy`] for a new list.
///
/// Locks are not reentrant. A thread that holds a guard of a list must not lock the list again and must not run program
/// code.
#[derive(Clone)]
pub struct List(Shared<Data>);

struct Data {
    elem: TypeCell,
    items: RwLock<ListItems>,
}

/// The elements. The variants differ in storage only; [`ListItems::get`] returns the same values for each.
#[derive(Clone)]
pub enum ListItems {
    /// Elements of `int[]`.
    Ints(Vec<i64>),
    /// Elements of `float[]`.
    Floats(Vec<f64>),
    /// Elements of `bool[]`.
    Bools(Vec<bool>),
    /// Elements of `Tensor[]`.
    Tensors(Vec<Tensor>),
    /// Elements of any other list, and of a flat list after an element of another kind was stored.
    Values(Vec<IValue>),
}

impl ListItems {
    /// Creates empty storage for lists of `elem`.
    #[must_use]
    pub fn for_type(elem: Type) -> Self {
        Self::with_capacity(elem, 0)
    }

    /// Creates empty storage with capacity `n` for lists of `elem`.
    #[must_use]
    pub fn with_capacity(elem: Type, n: usize) -> Self {
        match elem.kind() {
            TypeKind::Int => Self::Ints(Vec::with_capacity(n)),
            TypeKind::Float => Self::Floats(Vec::with_capacity(n)),
            TypeKind::Bool => Self::Bools(Vec::with_capacity(n)),
            TypeKind::Tensor(_) => Self::Tensors(Vec::with_capacity(n)),
            _ => Self::Values(Vec::with_capacity(n)),
        }
    }

    /// Returns the number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Ints(v) => v.len(),
            Self::Floats(v) => v.len(),
            Self::Bools(v) => v.len(),
            Self::Tensors(v) => v.len(),
            Self::Values(v) => v.len(),
        }
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the element at `i`.
    #[inline]
    #[must_use]
    pub fn get(&self, i: usize) -> Option<IValue> {
        match self {
            Self::Ints(v) => v.get(i).map(|&x| IValue::Int(x)),
            Self::Floats(v) => v.get(i).map(|&x| IValue::Float(x)),
            Self::Bools(v) => v.get(i).map(|&x| IValue::Bool(x)),
            Self::Tensors(v) => v.get(i).map(|x| IValue::Tensor(x.clone())),
            Self::Values(v) => v.get(i).cloned(),
        }
    }

    /// Returns the elements if they are stored as values.
    #[must_use]
    pub fn as_values(&self) -> Option<&[IValue]> {
        if let Self::Values(items) = self { Some(items) } else { None }
    }

    /// Returns the elements in order.
    #[expect(clippy::missing_panics_doc, reason = "the indices are in range")]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = IValue> + '_ {
        (0..self.len()).map(|i| self.get(i).expect("invariant: in range"))
    }

    /// Converts flat storage to values, for an element that flat storage cannot hold.
    fn generalize(&mut self) -> &mut Vec<IValue> {
        if !matches!(self, Self::Values(_)) {
            *self = Self::Values(self.iter().collect());
        }
        match self {
            Self::Values(v) => v,
            _ => unreachable!("invariant: generalized above"),
        }
    }

    /// Appends an element.
    #[inline]
    pub fn push(&mut self, value: IValue) {
        match (self, value) {
            (Self::Ints(v), IValue::Int(x)) => v.push(x),
            (Self::Floats(v), IValue::Float(x)) => v.push(x),
            (Self::Bools(v), IValue::Bool(x)) => v.push(x),
            (Self::Tensors(v), IValue::Tensor(x)) => v.push(x),
            (items, value) => items.generalize().push(value),
        }
    }

    /// Inserts an element before `at`.
    ///
    /// # Panics
    /// If `at` is greater than the length.
    pub fn insert(&mut self, at: usize, value: IValue) {
        match (self, value) {
            (Self::Ints(v), IValue::Int(x)) => v.insert(at, x),
            (Self::Floats(v), IValue::Float(x)) => v.insert(at, x),
            (Self::Bools(v), IValue::Bool(x)) => v.insert(at, x),
            (Self::Tensors(v), IValue::Tensor(x)) => v.insert(at, x),
            (items, value) => items.generalize().insert(at, value),
        }
    }

    /// Replaces the element at `i`.
    ///
    /// # Panics
    /// If `i` is out of range.
    pub fn set(&mut self, i: usize, value: IValue) {
        match (self, value) {
            (Self::Ints(v), IValue::Int(x)) => v[i] = x,
            (Self::Floats(v), IValue::Float(x)) => v[i] = x,
            (Self::Bools(v), IValue::Bool(x)) => v[i] = x,
            (Self::Tensors(v), IValue::Tensor(x)) => v[i] = x,
            (items, value) => items.generalize()[i] = value,
        }
    }

    /// Removes and returns the element at `i`.
    ///
    /// # Panics
    /// If `i` is out of range.
    pub fn remove(&mut self, i: usize) -> IValue {
        match self {
            Self::Ints(v) => IValue::Int(v.remove(i)),
            Self::Floats(v) => IValue::Float(v.remove(i)),
            Self::Bools(v) => IValue::Bool(v.remove(i)),
            Self::Tensors(v) => IValue::Tensor(v.remove(i)),
            Self::Values(v) => v.remove(i),
        }
    }

    /// Drops all elements but the first `n`.
    pub fn truncate(&mut self, n: usize) {
        match self {
            Self::Ints(v) => v.truncate(n),
            Self::Floats(v) => v.truncate(n),
            Self::Bools(v) => v.truncate(n),
            Self::Tensors(v) => v.truncate(n),
            Self::Values(v) => v.truncate(n),
        }
    }

    /// Reverses the order of the elements.
    pub fn reverse(&mut self) {
        match self {
            Self::Ints(v) => v.reverse(),
            Self::Floats(v) => v.reverse(),
            Self::Bools(v) => v.reverse(),
            Self::Tensors(v) => v.reverse(),
            Self::Values(v) => v.reverse(),
        }
    }

    /// Returns a copy of a range; the storage variant is kept.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::Ints(v) => Self::Ints(v[range].to_vec()),
            Self::Floats(v) => Self::Floats(v[range].to_vec()),
            Self::Bools(v) => Self::Bools(v[range].to_vec()),
            Self::Tensors(v) => Self::Tensors(v[range].to_vec()),
            Self::Values(v) => Self::Values(v[range].to_vec()),
        }
    }

    /// Returns the elements `n` times over; the storage variant is kept.
    ///
    /// # Panics
    /// If the length overflows.
    #[must_use]
    pub fn repeat(&self, n: usize) -> Self {
        fn repeated<T: Clone>(items: &[T], n: usize) -> Vec<T> {
            let mut all = Vec::with_capacity(items.len() * n);
            (0..n).for_each(|_| all.extend_from_slice(items));
            all
        }
        match self {
            Self::Ints(v) => Self::Ints(v.repeat(n)),
            Self::Floats(v) => Self::Floats(v.repeat(n)),
            Self::Bools(v) => Self::Bools(v.repeat(n)),
            Self::Tensors(v) => Self::Tensors(repeated(v, n)),
            Self::Values(v) => Self::Values(repeated(v, n)),
        }
    }

    /// Appends all elements of another list.
    pub fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Ints(v), Self::Ints(mut w)) => v.append(&mut w),
            (Self::Floats(v), Self::Floats(mut w)) => v.append(&mut w),
            (Self::Bools(v), Self::Bools(mut w)) => v.append(&mut w),
            (Self::Tensors(v), Self::Tensors(mut w)) => v.append(&mut w),
            (items, other) if !other.is_empty() => items.generalize().extend(other.iter()),
            _ => {}
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if let ListItems::Values(v) = self.items.get_mut()
            && walk::any_container(v)
        {
            walk::drop_nested(std::mem::take(v));
        }
    }
}

impl List {
    /// Creates an empty list.
    #[must_use]
    pub fn new(elem: Type) -> Self {
        Self::from_items(elem, ListItems::for_type(elem))
    }

    /// Creates a list with this storage.
    #[must_use]
    pub fn from_items(elem: Type, items: ListItems) -> Self {
        Self(Shared::new(Data { elem: TypeCell::new(elem), items: RwLock::new(items) }))
    }

    /// Creates a list of values.
    #[must_use]
    pub fn from_values(elem: Type, values: Vec<IValue>) -> Self {
        let mut items = ListItems::for_type(elem);
        if let ListItems::Values(v) = &mut items {
            *v = values;
        } else {
            items = ListItems::with_capacity(elem, values.len());
            values.into_iter().for_each(|v| items.push(v));
        }
        Self::from_items(elem, items)
    }

    /// Creates a list of integers.
    #[must_use]
    pub fn from_ints(values: Vec<i64>) -> Self {
        Self::from_items(Type::INT, ListItems::Ints(values))
    }

    /// Creates a list of floats.
    #[must_use]
    pub fn from_floats(values: Vec<f64>) -> Self {
        Self::from_items(Type::FLOAT, ListItems::Floats(values))
    }

    /// Creates a list of bools.
    #[must_use]
    pub fn from_bools(values: Vec<bool>) -> Self {
        Self::from_items(Type::BOOL, ListItems::Bools(values))
    }

    /// Creates a list of tensors.
    #[must_use]
    pub fn from_tensors(values: Vec<Tensor>) -> Self {
        Self::from_items(Type::TENSOR, ListItems::Tensors(values))
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn elem_type(&self) -> Type {
        self.0.elem.get()
    }

    /// Sets the type of the elements; for archive loaders, which read the contents before the type.
    pub fn set_elem_type(&self, elem: Type) {
        self.0.elem.set(elem);
        let mut items = self.write();
        let wanted = ListItems::for_type(elem);
        if items.is_empty() && std::mem::discriminant(&*items) != std::mem::discriminant(&wanted) {
            *items = wanted;
        }
    }

    /// Locks the elements for reading.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, ListItems> {
        self.0.items.read()
    }

    /// Locks the elements for writing.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, ListItems> {
        self.0.items.write()
    }

    /// Returns the elements without locking if this is the only handle.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut ListItems> {
        self.0.get_mut().map(|data| data.items.get_mut())
    }

    /// Returns the elements by value; copies them unless this is the only handle.
    #[must_use]
    pub fn into_items(mut self) -> ListItems {
        match self.get_mut() {
            Some(items) => std::mem::replace(items, ListItems::Ints(Vec::new())),
            None => self.read().clone(),
        }
    }

    /// Returns the number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the element at `i`.
    #[inline]
    #[must_use]
    pub fn get(&self, i: usize) -> Option<IValue> {
        self.read().get(i)
    }

    /// Replaces the element at `i`.
    ///
    /// # Errors
    /// Returns [`ValueError::Index`] if `i` is out of range.
    pub fn set(&self, i: usize, value: IValue) -> Result<(), ValueError> {
        let mut items = self.write();
        if i >= items.len() {
            return Err(ValueError::Index);
        }
        items.set(i, value);
        Ok(())
    }

    /// Appends an element.
    #[inline]
    pub fn push(&self, value: IValue) {
        self.write().push(value);
    }

    /// Returns a snapshot of the elements.
    #[must_use]
    pub fn to_vec(&self) -> Vec<IValue> {
        self.read().iter().collect()
    }

    /// Returns the integers if all elements are integers.
    #[must_use]
    pub fn to_ints(&self) -> Option<Vec<i64>> {
        match &*self.read() {
            ListItems::Ints(v) => Some(v.clone()),
            ListItems::Values(v) => v.iter().map(IValue::as_int).collect(),
            other if other.is_empty() => Some(Vec::new()),
            _ => None,
        }
    }

    /// Returns the floats if all elements are floats.
    #[must_use]
    pub fn to_floats(&self) -> Option<Vec<f64>> {
        match &*self.read() {
            ListItems::Floats(v) => Some(v.clone()),
            ListItems::Values(v) => v.iter().map(IValue::as_float).collect(),
            other if other.is_empty() => Some(Vec::new()),
            _ => None,
        }
    }

    /// Returns the tensors if all elements are tensors.
    #[must_use]
    pub fn to_tensors(&self) -> Option<Vec<Tensor>> {
        match &*self.read() {
            ListItems::Tensors(v) => Some(v.clone()),
            ListItems::Values(v) => v.iter().map(|t| t.as_tensor().cloned()).collect(),
            other if other.is_empty() => Some(Vec::new()),
            _ => None,
        }
    }

    /// Returns a new list with the same elements.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self::from_items(self.elem_type(), self.read().clone())
    }

    /// Returns whether both handles refer to the same list.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }

    /// Returns the identity of the list, unique while the list exists.
    #[must_use]
    pub fn id(&self) -> usize {
        self.0.address()
    }

    /// Returns whether this is the only handle.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.0.is_unique()
    }

    /// Moves nested values to `into` if this is the last handle.
    pub(super) fn take_children(mut self, into: &mut Vec<IValue>) {
        if let Some(ListItems::Values(v)) = self.get_mut() {
            into.append(v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_lists_convert_for_other_elements() {
        let list = List::from_ints(vec![1, 2]);
        list.push(IValue::Int(3));
        assert!(matches!(&*list.read(), ListItems::Ints(v) if v == &[1, 2, 3]));
        list.set(1, IValue::None).unwrap();
        list.write().insert(0, IValue::str("x"));
        assert_eq!(list.to_string_for_test(), "[x, 1, None, 3]");
        assert_eq!(list.set(9, IValue::None), Err(ValueError::Index));
        let other = list.copy();
        let tail = list.read().slice(2..4);
        other.write().append(tail);
        other.write().reverse();
        assert_eq!(other.to_string_for_test(), "[3, None, 3, None, 1, x]");
        assert_eq!(other.write().remove(5).to_string(), "x");
        assert_eq!(list.len(), 4);
    }

    #[test]
    fn element_types_can_be_set_late() {
        let list = List::new(Type::ANY);
        list.set_elem_type(Type::FLOAT);
        list.push(IValue::Float(1.5));
        assert!(matches!(&*list.read(), ListItems::Floats(_)));
        assert_eq!(list.elem_type(), Type::FLOAT);
        assert_eq!(list.to_floats(), Some(vec![1.5]));
        assert_eq!(list.to_ints(), None);
    }

    impl List {
        fn to_string_for_test(&self) -> String {
            IValue::List(self.clone()).to_string()
        }
    }
}
