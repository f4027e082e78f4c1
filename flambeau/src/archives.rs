//! What the feature `archive` adds to sessions, programs and modules: loading, weights, freezing.

use crate::error::Error;
use crate::module::{Module, join};
use crate::program::{Program, Root};
use crate::session::{Session, SessionBuilder};
use flambeau_archive::{
    ArchiveError, LoadError, LoadOptions, LoadedModule, Missing, Weights, call_with_hooks,
};
use flambeau_exec::vm::Arguments;
use flambeau_ir::module::AttributeKind;
use flambeau_ir::value::Object;
use flambeau_ir::{CompilationUnit, Fault, IValue, Symbol};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Entries a state dict may have: modules shared along many paths could ask for more than there is memory.
const STATE_LIMIT: usize = 1 << 20;

/// How a state dict and a module differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateMismatch {
    /// What the module has and the state dict doesn't.
    pub missing: Vec<String>,
    /// What the state dict has and the module doesn't.
    pub unexpected: Vec<String>,
}

impl StateMismatch {
    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty()
    }
}

impl SessionBuilder {
    /// Sets how archives are loaded, and with it the bounds on archives and source.
    pub fn load_options(mut self, options: LoadOptions) -> Self {
        self.settings.load = options;
        self
    }
}

impl Session {
    /// How archives are loaded.
    pub fn load_options(&self) -> &LoadOptions {
        &self.settings.load
    }

    /// The same session with other options for loading archives, the bounds on archives and source among them.
    pub fn with_load_options(&self, load: LoadOptions) -> Session {
        self.with(|settings| settings.load = load)
    }

    /// Loads a `.pt` archive.
    ///
    /// # Errors
    /// `A…` with record and offset, `F…` for its code.
    pub fn load_archive(&self, path: impl AsRef<Path>) -> Result<Program, Error> {
        let module = flambeau_archive::load_file(path.as_ref(), self.registry(), &self.settings.load)?;
        Program::of_module(self, module)
    }

    /// Loads a `.pt` archive from memory.
    ///
    /// # Errors
    /// As [`Session::load_archive`].
    pub fn load_archive_bytes(&self, bytes: &[u8]) -> Result<Program, Error> {
        let module = flambeau_archive::load(bytes, self.registry(), &self.settings.load)?;
        Program::of_module(self, module)
    }

    /// The tensors in a file, by name: a state dict or tensor of `torch.save`, a safetensors file, or the parameters
    /// and buffers of a `.pt` archive's module.
    ///
    /// # Errors
    /// `A…` with record and offset.
    pub fn load_weights(&self, path: impl AsRef<Path>) -> Result<Weights, Error> {
        let (path, limits) = (path.as_ref(), &self.settings.load.limits);
        if !flambeau_archive::has_code_file(path, limits)? {
            return Ok(flambeau_archive::load_weights_file(path, self.settings.load.map, limits)?);
        }
        let mut objects = self.settings.load.clone();
        (objects.code, objects.extra_files) = (false, false);
        let module = flambeau_archive::load_file(path, self.registry(), &objects)?;
        Module::new(&module.unit, module.root).state_dict()
    }
}

impl Program {
    pub(crate) fn of_module(session: &Session, module: LoadedModule) -> Result<Program, Error> {
        let LoadedModule { name, version, unit, root: object, call, missing, extra_files, pending, .. } =
            module;
        let root = Root { object, name, version, call, missing, extra_files };
        let program = Program::with_root(session, unit, root);
        for state in pending {
            program.restore(&state.object, state.state)?;
        }
        Ok(program)
    }

    /// The program with other code, whose module is `object`.
    pub(crate) fn with_unit(&self, unit: CompilationUnit, object: Object) -> Result<Program, Error> {
        let (name, extra_files) = (self.archive_name().to_owned(), self.extra_files().to_vec());
        let version = self.archive_version().unwrap_or_default();
        let call = call_with_hooks(&unit, self.session.registry(), object.class())?.map(Arc::new);
        let root = Root { object, name, version, call, missing: Missing::default(), extra_files };
        Ok(Program::with_root(&self.session, Arc::new(unit), root))
    }

    /// The module with its weights and settings made part of its code: only `forward`, and the methods and attributes
    /// (as dotted paths) in `preserved`, are left. What nothing changes becomes constants. This program stays as it is;
    /// tensors that remain attributes are shared with it.
    ///
    /// # Errors
    /// `X0003` for a module that is training, a program without one, or a name that is not there; `X0006` for modules
    /// that cannot be frozen.
    pub fn freeze(&self, preserved: &[&str]) -> Result<Program, Error> {
        crate::freeze::freeze(self, preserved)
    }

    /// Calls a method of any object of the program; its results as one value.
    pub(crate) fn call_method(
        &self,
        object: &Object,
        name: &str,
        args: Vec<IValue>,
    ) -> Result<IValue, Error> {
        let method = self.unit().method(object.class(), Symbol::new(name));
        let missing = || self.missing_method(object, name).unwrap_or_else(|| no_method(object, name));
        let method = method.ok_or_else(missing)?;
        let receiver = IValue::Object(object.clone());
        let bind = |given: &mut Arguments<'_>| {
            [receiver].into_iter().chain(args).for_each(|arg| given.push(arg));
            Ok(())
        };
        self.engine.run(&method.graph, &OnceLock::new(), &mut self.session.host(), bind)
    }

    /// Runs the `__setstate__` of an object that restores itself.
    fn restore(&self, object: &Object, state: IValue) -> Result<(), Error> {
        self.call_method(object, "__setstate__", vec![state]).map(drop)
    }
}

fn no_method(object: &Object, name: &str) -> Error {
    Error::misuse(format!("{} has no {name}", object.class()))
}

impl Module {
    /// Parameters and buffers by name, as PyTorch's `state_dict` has them. The tensors are the module's own.
    ///
    /// # Errors
    /// `X0005` where shared modules give more than a million entries.
    pub fn state_dict(&self) -> Result<Weights, Error> {
        let mut out = Weights::default();
        let mut visited = 0;
        let mut stack = vec![(String::new(), self.clone())];
        while let Some((prefix, module)) = stack.pop() {
            visited += 1;
            if visited > STATE_LIMIT || out.len() > STATE_LIMIT {
                let message = format!("a state dict of more than {STATE_LIMIT} entries");
                return Err(Error::new(Fault::Limit, "X0005", message));
            }
            for kind in [AttributeKind::Parameter, AttributeKind::Buffer] {
                out.extend(module.own_tensors(kind).map(|(name, t)| (join(&prefix, &name), t)));
            }
            let children = module.children().into_iter().rev();
            stack.extend(children.map(|(child, m)| (join(&prefix, &child), m)));
        }
        Ok(out)
    }

    /// Copies tensors into the parameters and buffers of the same names, which keep their types and places. Nothing is
    /// copied if a size differs.
    ///
    /// # Errors
    /// `X0005` where sizes differ, or, if `strict`, where the names do: all of them are told.
    pub fn load_state_dict(&self, weights: &Weights, strict: bool) -> Result<StateMismatch, Error> {
        let own = self.state_dict()?;
        let refuse = |message: String| Error::new(Fault::Input, "X0005", message);
        let mut mismatch = StateMismatch::default();
        mismatch.missing.extend(own.keys().filter(|name| !weights.contains_key(*name)).cloned());
        mismatch.unexpected.extend(weights.keys().filter(|name| !own.contains_key(*name)).cloned());
        let mut both = Vec::new();
        for (name, tensor) in &own {
            let Some(new) = weights.get(name) else { continue };
            // Before tensors could be without dimensions, numbers were saved as lists of one.
            let first = tensor.rank() == 0 && new.rank() == 1 && new.numel() > 0;
            let new = match first {
                true => new.select(0, 0).map_err(|e| refuse(format!("`{name}`: {e}")))?,
                false => new.clone(),
            };
            both.push((name, tensor, new));
        }
        let mut problems = Vec::new();
        for (what, names) in [("missing", &mismatch.missing), ("unexpected", &mismatch.unexpected)] {
            if strict && !names.is_empty() {
                problems.push(format!("{what}: {}", names.join(", ")));
            }
        }
        let unlike = both.iter().filter(|(_, tensor, new)| tensor.sizes() != new.sizes());
        problems.extend(unlike.map(|(name, tensor, new)| {
            format!("`{name}` has sizes {:?}, the state dict's is {:?}", tensor.sizes(), new.sizes())
        }));
        if !problems.is_empty() {
            let all = problems.join("\n  ");
            return Err(refuse(format!("the state dict does not fit {}\n  {all}", self.class_name())));
        }
        for (name, tensor, new) in &both {
            tensor.copy_(new).map_err(|e| refuse(format!("`{name}`: {e}")))?;
        }
        Ok(mismatch)
    }
}

impl From<LoadError> for Error {
    fn from(e: LoadError) -> Self {
        match e {
            LoadError::Code(d) => Error::from(*d),
            LoadError::Archive(_) => Error::new(e.fault(), e.code(), e.to_string()),
        }
    }
}

impl From<ArchiveError> for Error {
    fn from(e: ArchiveError) -> Self {
        Error::from(LoadError::from(e))
    }
}
