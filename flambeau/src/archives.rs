//! Parts of sessions, programs and modules that the feature `archive` adds: loading, weights, freezing.

use crate::engine::EntryCache;
use crate::error::Error;
use crate::module::{Module, join};
use crate::program::{Program, Root};
use crate::session::{Session, SessionBuilder};
use flambeau_archive::{
    ArchiveError, LoadError, LoadOptions, LoadedModule, UncompiledFunctions, Weights, call_with_hooks,
};
use flambeau_exec::vm::Arguments;
use flambeau_ir::module::{Attribute, AttributeKind, Class, Function};
use flambeau_ir::schema::Argument;
use flambeau_ir::value::Object;
use flambeau_ir::{CompilationUnit, Fault, Graph, IValue, Symbol, Type};
use std::path::Path;
use std::sync::Arc;

/// Limit on the entries of a state dict. Modules shared along many paths could otherwise exhaust memory.
const STATE_LIMIT: usize = 1 << 20;

/// Differences between the names of a state dict and of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateMismatch {
    /// Names in the module but not in the state dict.
    pub missing: Vec<String>,
    /// Names in the state dict but not in the module.
    pub unexpected: Vec<String>,
}

impl StateMismatch {
    /// Returns whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty()
    }
}

impl SessionBuilder {
    /// Sets the options for loading archives, including the bounds on archives and source.
    pub fn load_options(mut self, options: LoadOptions) -> Self {
        self.settings.load = options;
        self
    }
}

impl Session {
    /// Returns the options for loading archives.
    pub fn load_options(&self) -> &LoadOptions {
        &self.settings.load
    }

    /// Returns the same session with other options for loading archives, including the bounds on archives and source.
    pub fn with_load_options(&self, load: LoadOptions) -> Session {
        self.with(|settings| settings.load = load)
    }

    /// Loads a `.pt` archive.
    ///
    /// # Errors
    /// `A…` with record and offset, `F…` for errors in its code, `X…` if a `__setstate__` method of the archive fails.
    pub fn load_archive(&self, path: impl AsRef<Path>) -> Result<Program, Error> {
        let path = path.as_ref();
        let load = || {
            Program::of_module(self, flambeau_archive::load_file(path, self.registry(), &self.settings.load)?)
        };
        load().map_err(|error: Error| error.in_file(path.display()))
    }

    /// Loads a `.pt` archive from memory.
    ///
    /// # Errors
    /// As [`Session::load_archive`].
    pub fn load_archive_bytes(&self, bytes: &[u8]) -> Result<Program, Error> {
        let module = flambeau_archive::load(bytes, self.registry(), &self.settings.load)?;
        Program::of_module(self, module)
    }

    /// Returns the tensors of a file by name. The file is a state dict or tensor of `torch.save`, a safetensors file,
    /// or a `.pt` archive, of which it returns the module's parameters and buffers.
    ///
    /// # Errors
    /// `A…` with record and offset.
    pub fn load_weights(&self, path: impl AsRef<Path>) -> Result<Weights, Error> {
        let path = path.as_ref();
        self.weights_of(path).map_err(|error| error.in_file(path.display()))
    }

    fn weights_of(&self, path: &Path) -> Result<Weights, Error> {
        let limits = &self.settings.load.limits;
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

    /// Returns the program with other code, whose module is `object`.
    pub(crate) fn with_unit(&self, unit: CompilationUnit, object: Object) -> Result<Program, Error> {
        let (name, extra_files) = (self.archive_name().to_owned(), self.extra_files().to_vec());
        let version = self.archive_version().unwrap_or_default();
        let call = call_with_hooks(&unit, self.session.registry(), object.class())?.map(Arc::new);
        let root = Root { object, name, version, call, missing: UncompiledFunctions::default(), extra_files };
        Ok(Program::with_root(&self.session, Arc::new(unit), root))
    }

    /// Returns the function that calls a module of a class with its hooks, `None` for a class without hooks.
    pub(crate) fn call_between_hooks(&self, class: Type) -> Result<Option<Arc<Function>>, Error> {
        Ok(call_with_hooks(self.unit(), self.session.registry(), class)?.map(Arc::new))
    }

    /// Returns a program whose module has one method, `forward`, which is a function of this program, as PyTorch saves
    /// functions.
    ///
    /// # Errors
    /// As [`Program::entry`], and `X0003` for a method.
    pub fn function_as_module(&self, name: &str) -> Result<Program, Error> {
        let entry = self.entry(name)?;
        if self.module().is_some() {
            return Err(Error::misuse(format!("`{name}` is a method, not a function")));
        }
        let ty = Type::class(Symbol::new("__torch__.PlaceholderModule"), 0);
        let (training, forward) = (Symbol::new("training"), Symbol::new("forward"));
        let mut class = Class::new(ty, true);
        class.attributes.push(Attribute { name: training, ty: Type::BOOL, kind: AttributeKind::Plain });
        let qualified = Symbol::new("__torch__.PlaceholderModule.forward");
        class.methods.insert(forward, qualified);
        let mut graph = Graph::clone(entry.graph());
        let root = graph.root();
        let receiver = graph.edit().insert_block_input(root, 0, ty);
        graph.edit().set_name(receiver, "self");
        let mut schema = entry.schema().clone();
        schema.name = qualified;
        schema.args.insert(0, Argument::new(Symbol::new("self"), ty));
        let mut unit = CompilationUnit::clone(self.unit());
        unit.define_class(class);
        unit.define_function(Function { name: qualified, schema: Arc::new(schema), graph: Arc::new(graph) });
        let object = Object::new(ty, vec![IValue::Bool(true)]);
        let root = Root {
            object,
            name: "PlaceholderModule".to_owned(),
            version: 0,
            call: None,
            missing: UncompiledFunctions::default(),
            extra_files: Vec::new(),
        };
        Ok(Program::with_root(&self.session, Arc::new(unit), root))
    }

    /// Returns the module with its weights and settings folded into its code. Only `forward`, and the methods and
    /// attributes (as dotted paths, as those of methods of submodules) in `preserved`, remain. Attributes that no code changes become constants. This
    /// program is not changed; it shares the tensors that remain attributes.
    ///
    /// # Errors
    /// `X0003` for a module in training mode, a program without a module, or an unknown name; `X0006` for modules that
    /// cannot be frozen.
    pub fn freeze(&self, preserved: &[&str]) -> Result<Program, Error> {
        crate::freeze::freeze(self, preserved)
    }

    /// Calls a method of an object of the program and returns its results as one value.
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
            [&receiver].into_iter().chain(&args).for_each(|arg| given.push(arg.clone()));
            Ok(())
        };
        self.engine.run(&method.graph, &EntryCache::default(), &mut self.session.host(), false, bind)
    }

    /// Runs the `__setstate__` method of an object.
    fn restore(&self, object: &Object, state: IValue) -> Result<(), Error> {
        self.call_method(object, "__setstate__", vec![state]).map(drop)
    }
}

fn no_method(object: &Object, name: &str) -> Error {
    Error::misuse(format!("{} has no {name}", object.class()))
}

impl Module {
    /// Returns parameters and buffers by name, like PyTorch's `state_dict`. The tensors are the module's own, not
    /// copies.
    ///
    /// # Errors
    /// `X0005` if there are more than 2^20 entries or paths to submodules, which shared submodules multiply.
    pub fn state_dict(&self) -> Result<Weights, Error> {
        let mut out = Weights::default();
        let mut visited = 0;
        let mut stack = vec![(String::new(), self.clone())];
        while let Some((prefix, module)) = stack.pop() {
            visited += 1;
            if visited > STATE_LIMIT || out.len() > STATE_LIMIT {
                let message = format!(
                    "the state dict has more than {STATE_LIMIT} entries, or the module has more than that many paths to submodules"
                );
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

    /// Copies tensors into the parameters and buffers of the same names, which keep their dtypes and storages. Copies
    /// nothing if a size differs.
    ///
    /// # Errors
    /// `X0005` if sizes differ, or, with `strict`, if names differ. The error lists all differences.
    pub fn load_state_dict(&self, weights: &Weights, strict: bool) -> Result<StateMismatch, Error> {
        let own = self.state_dict()?;
        let refuse = |message: String| Error::new(Fault::Input, "X0005", message);
        let mut mismatch = StateMismatch::default();
        mismatch.missing.extend(own.keys().filter(|name| !weights.contains_key(*name)).cloned());
        mismatch.unexpected.extend(weights.keys().filter(|name| !own.contains_key(*name)).cloned());
        let mut both = Vec::new();
        for (name, tensor) in &own {
            let Some(new) = weights.get(name) else { continue };
            // Old versions of PyTorch had no tensors without dimensions and saved numbers as tensors of one element.
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
            format!(
                "`{name}` has sizes {:?} in the module and {:?} in the state dict",
                tensor.sizes(),
                new.sizes()
            )
        }));
        if !problems.is_empty() {
            let all = problems.join("\n  ");
            return Err(refuse(format!("the state dict does not match {}\n  {all}", self.class_name())));
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
            LoadError::Archive(archive) => {
                Error::new(archive.fault(), archive.code().as_str(), archive.located_message())
            }
        }
    }
}

impl From<ArchiveError> for Error {
    fn from(e: ArchiveError) -> Self {
        Error::from(LoadError::from(e))
    }
}
