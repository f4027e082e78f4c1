//! Copies of modules with their remaining attributes.
//!
//! Each object is copied once, inner objects first, so sharing is preserved. Each copy gets a class of its own, because
//! two modules of one class may freeze differently.

use super::AttributeSlot;
use flambeau_ir::module::{Class, CompilationUnit};
use flambeau_ir::value::Object;
use flambeau_ir::{IValue, Symbol, Type};
use std::collections::{BTreeMap, BTreeSet};

/// Objects of the frozen module, by the identity of the original objects.
pub(super) struct Copies {
    pub(super) used: BTreeSet<AttributeSlot>,
    pub(super) whole: BTreeSet<usize>,
    pub(super) made: BTreeMap<usize, Object>,
    /// Identity of the module itself: calls from the embedder run its hooks. Hooks of submodules are inlined in the
    /// code of their callers.
    pub(super) root: usize,
    pub(super) names: Names,
}

impl Copies {
    /// Returns a copy of a module with the attributes that are used, inner modules first.
    pub(super) fn object(&mut self, unit: &mut CompilationUnit, root: &Object) -> Object {
        let mut stack = vec![(root.clone(), false)];
        while let Some((object, ready)) = stack.pop() {
            if self.made.contains_key(&object.id()) || self.whole.contains(&object.id()) {
                continue;
            }
            if ready {
                let copy = self.copy(unit, &object);
                self.made.insert(object.id(), copy);
                continue;
            }
            stack.push((object.clone(), true));
            let slots = object.read().clone();
            let inner =
                slots.into_iter().enumerate().filter(|(slot, _)| self.used.contains(&(object.id(), *slot)));
            stack.extend(inner.filter_map(|(_, value)| match value {
                IValue::Object(o) if unit.class(o.class()).is_some_and(|c| c.is_module) => Some((o, false)),
                _ => None,
            }));
        }
        self.made[&root.id()].clone()
    }

    fn copy(&mut self, unit: &mut CompilationUnit, object: &Object) -> Object {
        let Some(old) = unit.class(object.class()).cloned() else { return object.clone() };
        let ty = Type::class(self.names.mangled(unit, &old.ty.annotation_str()), 0);
        let mut class = Class::new(ty, old.is_module);
        class.constants = old.constants.clone();
        if object.id() == self.root {
            (class.pre_hooks, class.hooks) = (old.pre_hooks.clone(), old.hooks.clone());
        }
        let mut values = Vec::new();
        for (slot, attribute) in old.attributes.iter().enumerate() {
            if !self.used.contains(&(object.id(), slot)) {
                continue;
            }
            let (value, ty) = match object.get(slot) {
                IValue::Object(inner) => match self.made.get(&inner.id()) {
                    Some(copy) => (IValue::Object(copy.clone()), copy.class()),
                    None => (IValue::Object(inner), attribute.ty),
                },
                value => (value, attribute.ty),
            };
            class.attributes.push(flambeau_ir::module::Attribute { ty, ..*attribute });
            values.push(value);
        }
        unit.define_class(class);
        Object::new(ty, values)
    }
}

/// Names of classes.
#[derive(Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
    next: usize,
}

impl Names {
    /// Returns a unique name for a class derived from the one named `name`: `__torch__.___torch_mangle_0.Net`.
    fn mangled(&mut self, unit: &CompilationUnit, name: &str) -> Symbol {
        if self.next == 0 {
            self.taken = unit.classes().map(|class| class.ty.annotation_str()).collect();
        }
        let (module, last) = name.rsplit_once('.').unwrap_or(("__torch__", name));
        loop {
            let free = format!("{module}.___torch_mangle_{}.{last}", self.next);
            self.next += 1;
            if !self.taken.contains(&free) {
                return Symbol::new(&free);
            }
        }
    }
}
