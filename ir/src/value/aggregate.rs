//! Tuples, objects and enum members.

use std::sync::Arc;

use flambeau_tensor::Shared;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use super::{IValue, walk};
use crate::symbol::Symbol;
use crate::types::Type;

/// A tuple, optionally with a named tuple type.
#[derive(Clone)]
pub struct Tuple(Arc<TupleData>);

struct TupleData {
    items: SmallVec<[IValue; 3]>,
    named: Option<Type>,
}

impl Drop for TupleData {
    fn drop(&mut self) {
        if walk::any_container(&self.items) {
            walk::drop_nested(self.items.drain(..).collect());
        }
    }
}

impl Tuple {
    /// Creates a tuple without a name.
    #[must_use]
    pub fn new(items: impl IntoIterator<Item = IValue>) -> Self {
        Self(Arc::new(TupleData { items: items.into_iter().collect(), named: None }))
    }

    /// Creates a named tuple of type `ty`.
    #[must_use]
    pub fn named(ty: Type, items: impl IntoIterator<Item = IValue>) -> Self {
        Self(Arc::new(TupleData { items: items.into_iter().collect(), named: Some(ty) }))
    }

    /// Returns the items.
    #[inline]
    #[must_use]
    pub fn items(&self) -> &[IValue] {
        &self.0.items
    }

    /// Returns the type if the tuple is a named tuple.
    #[must_use]
    pub fn named_type(&self) -> Option<Type> {
        self.0.named
    }

    /// Returns whether both handles refer to the same tuple.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the identity of the tuple, unique while the tuple exists.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Returns the items by value; copies them unless this is the only handle.
    #[must_use]
    pub fn into_items(self) -> Vec<IValue> {
        match Arc::try_unwrap(self.0) {
            Ok(mut data) => data.items.drain(..).collect(),
            Err(shared) => shared.items.to_vec(),
        }
    }

    pub(super) fn take_children(self, into: &mut Vec<IValue>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            into.extend(data.items.drain(..));
        }
    }
}

/// An instance of a class: the class, and one value per attribute in slot order.
#[derive(Clone)]
pub struct Object(Shared<ObjectData>);

struct ObjectData {
    class: Type,
    slots: RwLock<Vec<IValue>>,
}

impl Drop for ObjectData {
    fn drop(&mut self) {
        let slots = self.slots.get_mut();
        if walk::any_container(slots) {
            walk::drop_nested(std::mem::take(slots));
        }
    }
}

impl Object {
    /// Creates an instance with these attribute values.
    #[must_use]
    pub fn new(class: Type, slots: Vec<IValue>) -> Self {
        Self(Shared::new(ObjectData { class, slots: RwLock::new(slots) }))
    }

    /// Returns the class.
    #[must_use]
    pub fn class(&self) -> Type {
        self.0.class
    }

    /// Returns the attributes without locking if this is the only handle.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut Vec<IValue>> {
        self.0.get_mut().map(|data| data.slots.get_mut())
    }

    /// Locks the attributes for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, Vec<IValue>> {
        self.0.slots.read()
    }

    /// Locks the attributes for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, Vec<IValue>> {
        self.0.slots.write()
    }

    /// Returns the attribute at `slot`; `Uninitialized` if it was never set.
    #[must_use]
    pub fn get(&self, slot: usize) -> IValue {
        self.read().get(slot).cloned().unwrap_or(IValue::Uninitialized)
    }

    /// Sets the attribute at `slot`.
    pub fn set(&self, slot: usize, value: IValue) {
        let old;
        {
            let mut slots = self.write();
            if slots.len() <= slot {
                slots.resize(slot + 1, IValue::Uninitialized);
            }
            old = std::mem::replace(&mut slots[slot], value);
        }
        // Dropped outside the lock, because the old value may refer to this object.
        drop(old);
    }

    /// Returns whether both handles refer to the same instance.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }

    /// Returns the identity of the instance, unique while the instance exists.
    #[must_use]
    pub fn id(&self) -> usize {
        self.0.address()
    }

    pub(super) fn take_children(mut self, into: &mut Vec<IValue>) {
        if let Some(slots) = self.get_mut() {
            into.append(slots);
        }
    }
}

/// A member of an enum.
#[derive(Clone)]
pub struct EnumValue(Arc<EnumData>);

struct EnumData {
    ty: Type,
    name: Symbol,
    value: IValue,
}

impl Drop for EnumData {
    fn drop(&mut self) {
        if walk::is_container(&self.value) {
            walk::drop_nested(vec![std::mem::take(&mut self.value)]);
        }
    }
}

impl EnumValue {
    /// Creates the member `name` of the enum `ty`.
    #[must_use]
    pub fn new(ty: Type, name: Symbol, value: IValue) -> Self {
        Self(Arc::new(EnumData { ty, name, value }))
    }

    /// Returns the enum type.
    #[must_use]
    pub fn ty(&self) -> Type {
        self.0.ty
    }

    /// Returns the member's name.
    #[must_use]
    pub fn name(&self) -> Symbol {
        self.0.name
    }

    /// Returns the member's value.
    #[must_use]
    pub fn value(&self) -> &IValue {
        &self.0.value
    }

    /// Returns whether both are the same member of the same enum.
    #[must_use]
    pub fn same_member(&self, other: &Self) -> bool {
        self.0.ty == other.0.ty && self.0.name == other.0.name
    }

    /// Returns the identity of the handle's data, unique while the data exists.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub(super) fn take_children(self, into: &mut Vec<IValue>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            into.push(std::mem::take(&mut data.value));
        }
    }
}
