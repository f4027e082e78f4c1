//! Tuples, objects and enum members.

use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use super::{IValue, walk};
use crate::symbol::Symbol;
use crate::types::Type;

/// A tuple, perhaps a named one.
#[derive(Clone)]
pub struct Tuple(Arc<TupleData>);

struct TupleData {
    items: SmallVec<[IValue; 3]>,
    named: Option<Type>,
}

impl Drop for TupleData {
    fn drop(&mut self) {
        if walk::any_nested(&self.items) {
            walk::bury(self.items.drain(..).collect());
        }
    }
}

impl Tuple {
    /// Of these items.
    #[must_use]
    pub fn new(items: impl IntoIterator<Item = IValue>) -> Self {
        Self(Arc::new(TupleData { items: items.into_iter().collect(), named: None }))
    }

    /// A named tuple of type `ty`.
    #[must_use]
    pub fn named(ty: Type, items: impl IntoIterator<Item = IValue>) -> Self {
        Self(Arc::new(TupleData { items: items.into_iter().collect(), named: Some(ty) }))
    }

    /// The items.
    #[inline]
    #[must_use]
    pub fn items(&self) -> &[IValue] {
        &self.0.items
    }

    /// The type, if it is a named tuple.
    #[must_use]
    pub fn named_type(&self) -> Option<Type> {
        self.0.named
    }

    /// Whether both are one tuple.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its identity, stable while it lives.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The items by value, without copying if this is the only handle.
    #[must_use]
    pub fn into_items(self) -> Vec<IValue> {
        match Arc::try_unwrap(self.0) {
            Ok(mut data) => data.items.drain(..).collect(),
            Err(shared) => shared.items.to_vec(),
        }
    }

    pub(super) fn dismantle(self, into: &mut Vec<IValue>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            into.extend(data.items.drain(..));
        }
    }
}

/// An instance of a class: its class, and a value per attribute in the class's order.
#[derive(Clone)]
pub struct Object(Arc<ObjectData>);

struct ObjectData {
    class: Type,
    slots: RwLock<Vec<IValue>>,
}

impl Drop for ObjectData {
    fn drop(&mut self) {
        let slots = self.slots.get_mut();
        if walk::any_nested(slots) {
            walk::bury(std::mem::take(slots));
        }
    }
}

impl Object {
    /// An instance with these attributes.
    #[must_use]
    pub fn new(class: Type, slots: Vec<IValue>) -> Self {
        Self(Arc::new(ObjectData { class, slots: RwLock::new(slots) }))
    }

    /// The class.
    #[must_use]
    pub fn class(&self) -> Type {
        self.0.class
    }

    /// Looks at the attributes.
    pub fn read(&self) -> RwLockReadGuard<'_, Vec<IValue>> {
        self.0.slots.read()
    }

    /// Changes the attributes.
    pub fn write(&self) -> RwLockWriteGuard<'_, Vec<IValue>> {
        self.0.slots.write()
    }

    /// The attribute at `slot`; `Uninitialized` if it was never set.
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
        // Dropped outside the lock: the old value may hold this very object.
        drop(old);
    }

    /// Whether both are one instance.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its identity, stable while it lives.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub(super) fn dismantle(self, into: &mut Vec<IValue>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            into.append(data.slots.get_mut());
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
        if walk::is_nested(&self.value) {
            walk::bury(vec![std::mem::take(&mut self.value)]);
        }
    }
}

impl EnumValue {
    /// The member `name` of the enum `ty`.
    #[must_use]
    pub fn new(ty: Type, name: Symbol, value: IValue) -> Self {
        Self(Arc::new(EnumData { ty, name, value }))
    }

    /// The enum.
    #[must_use]
    pub fn ty(&self) -> Type {
        self.0.ty
    }

    /// The member's name.
    #[must_use]
    pub fn name(&self) -> Symbol {
        self.0.name
    }

    /// The member's value.
    #[must_use]
    pub fn value(&self) -> &IValue {
        &self.0.value
    }

    /// The same member of the same enum.
    #[must_use]
    pub fn same_member(&self, other: &Self) -> bool {
        self.0.ty == other.0.ty && self.0.name == other.0.name
    }

    /// Its identity, stable while it lives.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    pub(super) fn dismantle(self, into: &mut Vec<IValue>) {
        if let Some(mut data) = Arc::into_inner(self.0) {
            into.push(std::mem::take(&mut data.value));
        }
    }
}
