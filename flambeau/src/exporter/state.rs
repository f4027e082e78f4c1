//! The attributes of the module that is exported: parameters, buffers and constants.
//!
//! The program runs on a copy of the module. A tensor of the copy is found by identity, so shared tensors have one name,
//! the first one. The exported program gets the tensors of the module itself, under every name.

use crate::error::Error;
use crate::module::{Module, join};
use flambeau_export::model::{Map, Weight};
use flambeau_ir::IValue;
use flambeau_ir::module::AttributeKind;
use flambeau_ir::value::Object;
use flambeau_tensor::Tensor;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// The copy of the module on which the program runs, the state dict, and the attributes before the run.
pub(super) struct State {
    copy: Module,
    /// Parameters and persistent buffers of the module under all names.
    pub(super) state_dict: Map<Weight>,
    /// Paths and class names of the copy's modules by identity.
    modules: HashMap<usize, (String, String), FxBuildHasher>,
    /// The attributes of the copy before the run.
    before: Vec<Slot>,
}

/// An attribute with its value before the run.
struct Slot {
    module: Module,
    slot: usize,
    path: String,
    kind: AttributeKind,
    value: IValue,
    /// The elements of a container.
    items: Vec<IValue>,
}

/// A tensor of the module.
pub(super) struct StateTensor {
    pub(super) path: String,
    pub(super) tensor: Tensor,
}

/// An attribute that the run has changed.
pub(super) struct Changed {
    pub(super) path: String,
    /// The tensor before and after, if the attribute is a buffer or parameter and still a tensor.
    pub(super) tensors: Option<(Tensor, Tensor)>,
    /// Whether the attribute is a buffer or parameter.
    pub(super) is_state: bool,
}

impl State {
    pub(super) fn new(module: Module) -> Result<State, Error> {
        let copy = module.deep_clone()?;
        let parameters: HashSet<usize, FxBuildHasher> =
            module.named_parameters().iter().map(|(_, tensor)| tensor.id()).collect();
        let mut state_dict = Map::default();
        for (name, tensor) in module.state_dict()? {
            let is_parameter = Some(parameters.contains(&tensor.id()));
            state_dict.insert(name, Weight { tensor, is_parameter });
        }
        let mut modules = HashMap::default();
        let mut before = Vec::new();
        for (path, module) in copy.named_modules() {
            for (slot, (attribute, value)) in module.attributes().into_iter().enumerate() {
                let (path, kind) = (join(&path, attribute.name.as_str()), attribute.kind);
                let items = elements(&value);
                before.push(Slot { module: module.clone(), slot, path, kind, value, items });
            }
            modules.insert(module.object().id(), (path, module.class_name()));
        }
        Ok(State { copy, state_dict, modules, before })
    }

    /// Returns the object on which the program runs.
    pub(super) fn receiver(&self) -> &Object {
        self.copy.object()
    }

    /// Returns the module on which the program runs.
    pub(super) fn copy(&self) -> &Module {
        &self.copy
    }

    /// Returns path and class of a module of the copy.
    pub(super) fn module(&self, object: &Object) -> Option<&(String, String)> {
        self.modules.get(&object.id())
    }

    /// Returns the parameters or the buffers, each tensor once.
    pub(super) fn of_kind(&self, kind: AttributeKind) -> Vec<StateTensor> {
        let named = match kind {
            AttributeKind::Parameter => self.copy.named_parameters(),
            _ => self.copy.named_buffers(),
        };
        named.into_iter().map(|(path, tensor)| StateTensor { path, tensor }).collect()
    }

    /// Returns the tensors in other attributes, also within containers and objects.
    pub(super) fn plain(&self) -> Vec<StateTensor> {
        let mut found = Vec::new();
        for slot in &self.before {
            let is_module = slot.value.as_object().is_some_and(|object| self.module(object).is_some());
            if is_module || slot.kind == AttributeKind::Parameter || slot.kind == AttributeKind::Buffer {
                continue;
            }
            let mut number = 0;
            slot.value.visit_tensors(|tensor| {
                let path = match slot.value {
                    IValue::Tensor(_) => slot.path.clone(),
                    _ => format!("{}.{number}", slot.path),
                };
                number += 1;
                found.push(StateTensor { path, tensor: tensor.clone() });
            });
        }
        found
    }

    /// Returns the attributes that have another value than before the run. Buffers are compared by identity, other
    /// attributes by their contents.
    pub(super) fn changed(&self) -> Vec<Changed> {
        let mut changed = Vec::new();
        for slot in &self.before {
            let now = slot.module.object().get(slot.slot);
            let items = elements(&now);
            let same_items =
                items.len() == slot.items.len() && items.iter().zip(&slot.items).all(|(a, b)| is_same(a, b));
            if is_same(&now, &slot.value) && same_items {
                continue;
            }
            let is_state = matches!(slot.kind, AttributeKind::Parameter | AttributeKind::Buffer);
            if !is_state && has_same_contents(&slot.value, &now, 0) {
                continue;
            }
            let tensors = match (&slot.value, now) {
                (IValue::Tensor(old), IValue::Tensor(new)) if is_state => Some((old.clone(), new)),
                _ => None,
            };
            changed.push(Changed { path: slot.path.clone(), tensors, is_state });
        }
        changed
    }
}

/// Returns whether two values are one object, or equal numbers or strings.
fn is_same(a: &IValue, b: &IValue) -> bool {
    let is_immediate = |v: &IValue| v.as_scalar().is_some() || v.is_none() || v.is_str();
    a.is_same(b) || (is_immediate(a) && is_immediate(b) && a.tag() == b.tag() && a.equals(b).unwrap_or(false))
}

/// Maximum nesting of attributes whose contents are compared.
const MAX_DEPTH: usize = 8;

/// Returns whether two values have equal contents. A container that was changed in place is not compared with its former
/// contents, so it counts as different.
fn has_same_contents(a: &IValue, b: &IValue, depth: usize) -> bool {
    let each = |a: &[IValue], b: &[IValue]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| has_same_contents(a, b, depth + 1))
    };
    match (a, b) {
        (IValue::Tensor(a), IValue::Tensor(b)) => {
            let bytes = |tensor: &Tensor| tensor.to_bytes().ok();
            a.dtype() == b.dtype()
                && a.sizes() == b.sizes()
                && bytes(a).is_some_and(|own| bytes(b) == Some(own))
        }
        (IValue::List(a), IValue::List(b)) if depth < MAX_DEPTH && !a.ptr_eq(b) => {
            each(&a.to_vec(), &b.to_vec())
        }
        (IValue::Tuple(a), IValue::Tuple(b)) if depth < MAX_DEPTH => each(a.items(), b.items()),
        (IValue::Dict(x), IValue::Dict(y)) if depth < MAX_DEPTH && !x.ptr_eq(y) => {
            each(&elements(a), &elements(b))
        }
        _ => is_same(a, b) && !matches!(a, IValue::List(_) | IValue::Dict(_)),
    }
}

/// Returns the elements of a list or dictionary, keys before values.
fn elements(value: &IValue) -> Vec<IValue> {
    match value {
        IValue::List(list) => list.to_vec(),
        IValue::Dict(dict) => dict.to_vec().into_iter().flat_map(|(key, value)| [key, value]).collect(),
        _ => Vec::new(),
    }
}
