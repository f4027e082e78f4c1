//! Access to the modules of loaded programs and their attributes.
//!
//! A [`Module`] is a reference to an object of the program: methods of the program see attributes that are set through
//! it, and vice versa. Submodules are attributes whose object has a module class; their order is that of the class's
//! slots, as in PyTorch. An object that is reachable by several paths is one module. Lists that follow PyTorch's
//! `named_…` name it once, by the first path; a state dict names it by each path.

use crate::error::Error;
use flambeau_ir::module::{Attribute, AttributeKind, Class, CompilationUnit};
use flambeau_ir::types::is_subtype;
use flambeau_ir::value::{CopyMemo, Object, ValueError};
use flambeau_ir::{Fault, FunctionSchema, IValue, Symbol, Type};
use flambeau_tensor::{DType, Layout, Storage, Tensor};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A module, or an object of any class, of a program.
#[derive(Clone)]
pub struct Module {
    unit: Arc<CompilationUnit>,
    object: Object,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Module({})", self.class_name())
    }
}

impl Module {
    pub(crate) fn new(unit: &Arc<CompilationUnit>, object: Object) -> Module {
        Module { unit: Arc::clone(unit), object }
    }

    /// Returns the object.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Returns the qualified name of its class.
    pub fn class_name(&self) -> String {
        self.object.class().annotation_str()
    }

    fn class(&self) -> Option<&Class> {
        self.unit.class(self.object.class())
    }

    /// Returns its own attributes in the order of slots, with their declarations and values.
    pub fn attributes(&self) -> Vec<(Attribute, IValue)> {
        let attributes = self.class().map_or(&[][..], |class| &class.attributes);
        attributes.iter().enumerate().map(|(slot, a)| (*a, self.object.get(slot))).collect()
    }

    /// Returns its constants: attributes whose values are part of the class.
    pub fn constants(&self) -> &[(Symbol, IValue)] {
        self.class().map_or(&[], |class| &class.constants)
    }

    /// Returns the names of its methods with their signatures, in order of definition. Methods that could not be
    /// compiled have no signature.
    pub fn methods(&self) -> Vec<(String, Option<Arc<FunctionSchema>>)> {
        let Some(class) = self.class() else { return Vec::new() };
        let schema = |function| self.unit.function(function).map(|f| Arc::clone(&f.schema));
        class.methods.iter().map(|(name, &function)| (name.to_string(), schema(function))).collect()
    }

    /// Returns its direct submodules by name.
    pub fn children(&self) -> Vec<(String, Module)> {
        let attributes = self.attributes().into_iter();
        attributes.filter_map(|(a, value)| Some((a.name.to_string(), self.submodule(&value)?))).collect()
    }

    fn submodule(&self, value: &IValue) -> Option<Module> {
        let object = value.as_object()?;
        let is_module = self.unit.class(object.class()).is_some_and(|class| class.is_module);
        is_module.then(|| Module::new(&self.unit, object.clone()))
    }

    /// Returns the module itself, with an empty name, and all modules below it, parents first, each once.
    pub fn named_modules(&self) -> Vec<(String, Module)> {
        let mut seen = BTreeSet::new();
        let mut out = Vec::new();
        let mut stack = vec![(String::new(), self.clone())];
        while let Some((name, module)) = stack.pop() {
            if seen.insert(module.object.id()) {
                let children = module.children().into_iter().rev();
                stack.extend(children.map(|(child, m)| (join(&name, &child), m)));
                out.push((name, module));
            }
        }
        out
    }

    /// Returns all parameters of this module and its submodules, each once.
    pub fn named_parameters(&self) -> Vec<(String, Tensor)> {
        self.named_tensors(AttributeKind::Parameter)
    }

    /// Returns all buffers of this module and its submodules, each once.
    pub fn named_buffers(&self) -> Vec<(String, Tensor)> {
        self.named_tensors(AttributeKind::Buffer)
    }

    fn named_tensors(&self, kind: AttributeKind) -> Vec<(String, Tensor)> {
        let mut seen = BTreeSet::new();
        let mut out = Vec::new();
        for (prefix, module) in self.named_modules() {
            for (name, tensor) in module.own_tensors(kind) {
                if seen.insert(tensor.id()) {
                    out.push((join(&prefix, &name), tensor));
                }
            }
        }
        out
    }

    pub(crate) fn own_tensors(&self, kind: AttributeKind) -> impl Iterator<Item = (String, Tensor)> {
        let of_kind = self.attributes().into_iter().filter(move |(a, _)| a.kind == kind);
        of_kind.filter_map(|(a, value)| Some((a.name.to_string(), value.as_tensor()?.clone())))
    }

    /// Returns the attribute at a dotted path, such as `layer.0.weight`.
    ///
    /// # Errors
    /// `X0003` if there is no such attribute.
    pub fn get(&self, path: &str) -> Result<IValue, Error> {
        let (owner, slot, _) = self.place(path)?;
        Ok(owner.object.get(slot))
    }

    /// Sets the attribute at a dotted path.
    ///
    /// # Errors
    /// `X0003` if there is no such attribute, or the value does not have its type.
    pub fn set(&self, path: &str, value: IValue) -> Result<(), Error> {
        let (owner, slot, ty) = self.place(path)?;
        let fits = match &value {
            IValue::Object(object) => is_subtype(object.class(), ty, &*self.unit),
            _ => value.fits(ty),
        };
        if !fits {
            let message = format!("`{path}` is of type {ty} and cannot be a {}", value.type_of());
            return Err(Error::misuse(message));
        }
        owner.object.set(slot, value);
        Ok(())
    }

    /// Returns the submodule at a dotted path.
    ///
    /// # Errors
    /// `X0003` if there is no such submodule.
    pub fn submodule_at(&self, path: &str) -> Result<Module, Error> {
        self.submodule(&self.get(path)?).ok_or_else(|| Error::misuse(format!("`{path}` is not a module")))
    }

    /// Resolves a path to the object of its last name, the slot and the type of the attribute.
    fn place(&self, path: &str) -> Result<(Module, usize, Type), Error> {
        let mut at = self.clone();
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            let symbol = Symbol::new(name);
            let found = at.class().and_then(|class| Some((class.slot(symbol)?, class.attribute(symbol)?.ty)));
            let Some((slot, ty)) = found else {
                let message = format!("{} has no attribute `{name}`, in the path `{path}`", at.class_name());
                return Err(Error::misuse(message));
            };
            if names.peek().is_none() {
                return Ok((at, slot, ty));
            }
            let IValue::Object(object) = at.object.get(slot) else {
                return Err(Error::misuse(format!("`{name}` in `{path}` is not an object")));
            };
            at = Module::new(&self.unit, object);
        }
        Err(Error::misuse("the path is empty"))
    }

    /// Returns whether the module is in training mode.
    pub fn is_training(&self) -> bool {
        self.get("training").ok().and_then(|v| v.as_bool()).unwrap_or(false)
    }

    /// Sets training mode of this module and its submodules.
    pub fn train(&self, mode: bool) {
        for (_, module) in self.named_modules() {
            // A module without the attribute behaves the same in both modes.
            let _ = module.set("training", IValue::Bool(mode));
        }
    }

    /// Ends training mode of this module and its submodules.
    pub fn eval(&self) {
        self.train(false);
    }

    /// Returns a deep copy, which shares no tensor and no object with this module. Sharing within the module is
    /// preserved, including tensors with a common storage.
    ///
    /// # Errors
    /// `X0002` if memory is exhausted or a value cannot be copied.
    pub fn deep_clone(&self) -> Result<Module, Error> {
        let mut storages = BTreeMap::new();
        let value = IValue::Object(self.object.clone());
        let copy = value.deep_copy(&mut CopyMemo::default(), &mut |t| copy_tensor(t, &mut storages));
        match copy.map_err(|e| Error::new(e.fault(), "X0002", e.to_string()))? {
            IValue::Object(object) => Ok(Module::new(&self.unit, object)),
            _ => Err(Error::new(Fault::Internal, "X0001", "a copy of an object is an object")),
        }
    }
}

/// Copies a tensor with its strides; copies each storage once.
pub(crate) fn copy_tensor(
    tensor: &Tensor,
    storages: &mut BTreeMap<usize, Storage>,
) -> Result<Tensor, ValueError> {
    let storage = match storages.get(&tensor.storage().address()) {
        Some(copy) => copy.clone(),
        None => {
            let layout = Layout::contiguous(&[tensor.storage().nbytes() as i64])?;
            let bytes = Tensor::from_storage(tensor.storage().clone(), DType::U8, layout)?;
            let copy = Storage::from_bytes(&bytes.to_bytes()?)?;
            storages.insert(tensor.storage().address(), copy.clone());
            copy
        }
    };
    let copy = Tensor::from_storage(storage, tensor.dtype(), tensor.layout().clone())?;
    copy.set_requires_grad(tensor.requires_grad());
    Ok(copy)
}

pub(crate) fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}
