//! Loaded programs and their entries.

use crate::engine::{Engine, EntryCache};
use crate::error::Error;
use crate::module::Module;
use crate::recording::requires_grad;
use crate::session::Session;
use flambeau_exec::Host;
use flambeau_exec::vm::Arguments;
use flambeau_executor::{Deoptimization, ExecutionPlan};
use flambeau_frontend::print::{self, ReceiverForm};
use flambeau_ir::module::Function;
use flambeau_ir::schema::Argument;
use flambeau_ir::value::Object;
use flambeau_ir::{CompilationUnit, Diagnostic, FunctionSchema, Graph, IValue, Symbol, nearest};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// A loaded program.
#[derive(Clone)]
pub struct Program {
    pub(crate) session: Session,
    pub(crate) engine: Arc<Engine>,
    unit: Arc<CompilationUnit>,
    /// The graph of a program that was read from IR text.
    graph: Option<Arc<Graph>>,
    /// The module of an archive.
    module: Option<Arc<Root>>,
}

/// Data of the archive from which a program was loaded, in addition to its unit.
#[derive(Clone)]
pub(crate) struct Root {
    pub(crate) object: Object,
    /// The archive's own name.
    pub(crate) name: String,
    pub(crate) version: u64,
    /// The function that runs `forward` with its hooks, if the module has hooks.
    pub(crate) call: Option<Arc<Function>>,
    /// Functions that could not be compiled, with the reasons.
    pub(crate) missing: IndexMap<Symbol, Box<Diagnostic>, FxBuildHasher>,
    pub(crate) extra_files: Vec<(String, Vec<u8>)>,
}

/// Name of the entry that calls a module: `forward` with the hooks of its class before and after it.
const CALL: &str = "__call__";

/// A function or method of a program that can be called.
#[derive(Clone)]
pub struct Entry {
    session: Session,
    engine: Arc<Engine>,
    name: String,
    schema: Arc<FunctionSchema>,
    graph: Arc<Graph>,
    receiver: Option<Object>,
    /// Number of parameters that may be passed by position. Keyword-only parameters come last.
    positional: usize,
    /// Set by the first call.
    cache: EntryCache,
}

impl Program {
    pub(crate) fn of_graph(session: &Session, graph: Arc<Graph>) -> Program {
        Program::new(session, Arc::new(CompilationUnit::new()), Some(graph), None)
    }

    pub(crate) fn with_callees(session: &Session, graph: Arc<Graph>, unit: Arc<CompilationUnit>) -> Program {
        Program::new(session, unit, Some(graph), None)
    }

    pub(crate) fn of_unit(session: &Session, unit: CompilationUnit) -> Program {
        Program::new(session, Arc::new(unit), None, None)
    }

    #[cfg(feature = "archive")]
    pub(crate) fn with_root(session: &Session, unit: Arc<CompilationUnit>, root: Root) -> Program {
        Program::new(session, unit, None, Some(Arc::new(root)))
    }

    fn new(
        session: &Session,
        unit: Arc<CompilationUnit>,
        graph: Option<Arc<Graph>>,
        module: Option<Arc<Root>>,
    ) -> Program {
        let engine = Engine::new(session, &unit);
        Program { session: session.clone(), engine, unit, graph, module }
    }

    /// Returns the session that the program was made with.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the same code with another object of the root's class.
    fn with_object(&self, object: Object) -> Program {
        let root = self.module.as_ref().map(|root| Arc::new(Root { object, ..(**root).clone() }));
        Program { module: root, ..self.clone() }
    }

    /// Returns the program with an object of one of its module classes as its module, under the given archive name.
    ///
    /// # Errors
    /// `X0003` if the class of the object is not a module class of the program, or the object has another number of slots;
    /// `A0045` if the hooks of the class do not match `forward`.
    pub fn with_module(&self, object: Object, name: &str) -> Result<Program, Error> {
        let class = self.unit.class(object.class()).filter(|class| class.is_module);
        if class.is_none_or(|class| class.attributes.len() != object.read().len()) {
            return Err(Error::misuse("the object is not a module of the program"));
        }
        let (missing, extra_files) = (IndexMap::default(), Vec::new());
        #[cfg(feature = "archive")]
        let call = self.call_between_hooks(object.class())?;
        #[cfg(not(feature = "archive"))]
        let call = None;
        let root = Root { object, name: name.to_owned(), version: 0, call, missing, extra_files };
        Ok(Program { module: Some(Arc::new(root)), ..self.clone() })
    }

    /// Returns a copy whose module shares nothing with this one's: a call or assignment in one does not affect the
    /// other.
    ///
    /// # Errors
    /// `X0002` if memory is exhausted or a value cannot be copied.
    pub fn deep_clone(&self) -> Result<Program, Error> {
        match self.module() {
            Some(module) => Ok(self.with_object(module.deep_clone()?.object().clone())),
            None => Ok(self.clone()),
        }
    }

    /// Returns why a declared method could not be compiled.
    pub(crate) fn missing_method(&self, object: &Object, name: &str) -> Option<Error> {
        let function = self.unit.class(object.class())?.methods.get(&Symbol::new(name))?;
        let problem = self.module.as_ref()?.missing.get(function)?;
        Some(self.with_affected_modules(problem))
    }

    /// Adds to a compilation error the modules that it affects.
    fn with_affected_modules(&self, problem: &Diagnostic) -> Error {
        // Callers inherit the errors of their callees; the function that caused the error has the fewest notes.
        let place = |d: &Diagnostic| {
            d.primary.as_ref().map(|label| (label.at.source.name.clone(), label.at.range.clone()))
        };
        let here = place(problem);
        let all = self.module.iter().flat_map(|root| &root.missing);
        let own = all.filter(|(_, d)| place(d) == here).min_by_key(|(_, d)| d.notes.len());
        let mut problem = problem.clone();
        let modules = own.map(|(&function, _)| self.modules_with(function)).unwrap_or_default();
        if !modules.is_empty() {
            problem.notes.push(format!("it is used by {}", modules.join(", ")));
        }
        Error::from(problem)
    }

    /// Returns the paths of the modules whose class has a function as a method, `(root)` for the module itself.
    pub fn modules_with(&self, function: Symbol) -> Vec<String> {
        let Some(root) = self.module() else { return Vec::new() };
        let has = |module: &Module| {
            let class = self.unit.class(module.object().class());
            class.is_some_and(|class| class.methods.values().any(|&f| f == function))
        };
        let named = root.named_modules().into_iter().filter(|(_, module)| has(module));
        named.map(|(path, _)| if path.is_empty() { "(root)".to_owned() } else { path }).collect()
    }

    /// Returns the functions that could not be compiled, in order of definition, with the errors. A call of such a
    /// function, or of one that calls it, fails with that error.
    pub fn missing(&self) -> impl Iterator<Item = (Symbol, Error)> + '_ {
        let all = self.module.iter().flat_map(|root| &root.missing);
        all.map(|(&name, problem)| (name, self.with_affected_modules(problem)))
    }

    /// Returns the extra files of an archive, by name, if the session's `LoadOptions` request them.
    pub fn extra_files(&self) -> &[(String, Vec<u8>)] {
        self.module.as_ref().map_or(&[], |root| &root.extra_files)
    }

    /// Returns the same program with other extra files. A program without a module has none.
    #[must_use]
    pub fn with_extra_files(&self, extra_files: Vec<(String, Vec<u8>)>) -> Program {
        let root = self.module.as_ref().map(|root| Arc::new(Root { extra_files, ..(**root).clone() }));
        Program { module: root, ..self.clone() }
    }

    /// Returns the archive's own name; empty for other programs.
    pub fn archive_name(&self) -> &str {
        self.module.as_ref().map_or("", |root| &root.name)
    }

    /// Returns the functions and classes.
    pub fn unit(&self) -> &Arc<CompilationUnit> {
        &self.unit
    }

    /// Returns the module of an archive.
    pub fn module(&self) -> Option<Module> {
        self.module.as_ref().map(|root| Module::new(&self.unit, root.object.clone()))
    }

    /// Returns the format version of the archive from which the program was loaded.
    pub fn archive_version(&self) -> Option<u64> {
        self.module.as_ref().map(|root| root.version)
    }

    /// Returns whether the module's class has hooks, which the entry `__call__` runs in addition to `forward`.
    pub fn has_hooks(&self) -> bool {
        self.module.as_ref().is_some_and(|root| root.call.is_some())
    }

    /// Returns the names that [`Program::entry`] accepts, in order of definition.
    pub fn entries(&self) -> Vec<String> {
        if self.graph.is_some() {
            return vec!["forward".to_owned()];
        }
        match &self.module {
            Some(root) => self
                .unit
                .class(root.object.class())
                .map(|c| c.methods.keys().map(ToString::to_string).collect())
                .unwrap_or_default(),
            None => self.unit.functions().map(|f| f.name.to_string()).filter(|n| !n.contains("__")).collect(),
        }
    }

    /// Returns an entry by name: a function of a source, a method of a module. A program read from IR text has one
    /// entry, `forward`. `__call__` calls the module as PyTorch does, with the hooks of its class before and after
    /// `forward`.
    ///
    /// # Errors
    /// `X0003` if there is no such entry; the compilation error of a method that could not be compiled.
    pub fn entry(&self, name: &str) -> Result<Entry, Error> {
        if let Some(graph) = self.graph.as_ref().filter(|_| name == "forward") {
            let function = Function::of_graph(Symbol::new(name), Arc::clone(graph));
            return Ok(self.make_entry(name, function.schema, function.graph, None));
        }
        let function = match &self.module {
            Some(root) => self.method_of(root, name),
            None => self.unit.function(Symbol::new(name)),
        };
        let Some(function) = function else {
            let reached = if name == CALL { "forward" } else { name };
            let missing = self.module.as_ref().and_then(|root| self.missing_method(&root.object, reached));
            return Err(missing.unwrap_or_else(|| self.no_entry(name)));
        };
        let receiver = self.module.as_ref().map(|root| root.object.clone());
        Ok(self.make_entry(name, Arc::clone(&function.schema), Arc::clone(&function.graph), receiver))
    }

    /// Returns a method of an object of the program, such as a submodule, as an entry.
    ///
    /// # Errors
    /// `X0003` if its class has no such method; the compilation error of a method that could not be compiled.
    pub fn method(&self, object: &Object, name: &str) -> Result<Entry, Error> {
        if let Some(function) = self.unit.method(object.class(), Symbol::new(name)) {
            let (schema, graph) = (Arc::clone(&function.schema), Arc::clone(&function.graph));
            return Ok(self.make_entry(name, schema, graph, Some(object.clone())));
        }
        let class = object.class().annotation_str();
        let missing = self.missing_method(object, name);
        Err(missing.unwrap_or_else(|| Error::misuse(format!("{class} has no method `{name}`"))))
    }

    /// Returns access to an object of the program.
    pub fn object(&self, object: Object) -> Module {
        Module::new(&self.unit, object)
    }

    fn no_entry(&self, name: &str) -> Error {
        let known = self.entries();
        let error = Error::misuse(format!("the program has no entry `{name}`; it has: {}", known.join(", ")));
        Error { help: did_you_mean(name, known.iter().map(String::as_str)), ..error }
    }

    fn method_of<'a>(&'a self, root: &'a Root, name: &str) -> Option<&'a Arc<Function>> {
        let method = |name| self.unit.method(root.object.class(), Symbol::new(name));
        method(name).or_else(|| match name {
            CALL => root.call.as_ref().or_else(|| method("forward")),
            _ => None,
        })
    }

    fn make_entry(
        &self,
        name: &str,
        schema: Arc<FunctionSchema>,
        graph: Arc<Graph>,
        receiver: Option<Object>,
    ) -> Entry {
        let params = &schema.args[usize::from(receiver.is_some())..];
        let positional = params.len() - params.iter().rev().take_while(|p| p.kwarg_only).count();
        Entry {
            session: self.session.clone(),
            engine: Arc::clone(&self.engine),
            name: name.to_owned(),
            schema,
            graph,
            receiver,
            positional,
            cache: EntryCache::default(),
        }
    }
}

impl Entry {
    /// Returns the session in which the program was loaded.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn unit(&self) -> &Arc<CompilationUnit> {
        self.engine.unit()
    }

    pub(crate) fn is_method(&self) -> bool {
        self.receiver.is_some()
    }

    /// Returns the same entry, on the same receiver, with the settings of another session.
    pub(crate) fn on(&self, session: &Session) -> Entry {
        Entry {
            session: session.clone(),
            engine: Engine::new(session, self.engine.unit()),
            cache: EntryCache::default(),
            ..self.clone()
        }
    }

    /// Returns the name by which the entry was found.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns parameters (a method's receiver first) and return types.
    pub fn schema(&self) -> &FunctionSchema {
        &self.schema
    }

    /// Returns the receiver of a method.
    #[cfg(feature = "export")]
    pub(crate) fn receiver(&self) -> Option<&Object> {
        self.receiver.as_ref()
    }

    /// Returns the values of all inputs of the graph but the receiver, with defaults.
    ///
    /// # Errors
    /// `X0003` for arguments that do not match the schema.
    #[cfg(feature = "export")]
    pub(crate) fn bound(&self, args: &[IValue], kwargs: &[(&str, IValue)]) -> Result<Vec<IValue>, Error> {
        if args.len() > self.positional {
            return Err(self.too_many(args.len()));
        }
        self.check_names(kwargs)?;
        let values = self.params().iter().enumerate().map(|(i, param)| {
            let value = named(param, args.get(i), kwargs)?;
            if value.fits(param.ty) { Ok(value.clone()) } else { Err(type_mismatch(param, value)) }
        });
        values.collect()
    }

    /// Returns the parameters that a caller passes, without a method's receiver.
    pub fn params(&self) -> &[Argument] {
        &self.schema.args[usize::from(self.receiver.is_some())..]
    }

    /// Returns the body as loaded.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Calls the entry. Several results are returned as a tuple. If an argument or a parameter of the module requires a
    /// gradient, the call is recorded as in PyTorch: results that depend on it require gradients, and
    /// [`Session::gradients`] computes them. [`Host::set_grad_enabled`] turns recording off.
    ///
    /// # Errors
    /// `X0003` for arguments that do not match the schema, `X0002` for exceptions of the program and exceeded limits.
    pub fn call(&self, args: &[IValue], kwargs: &[(&str, IValue)]) -> Result<IValue, Error> {
        self.call_on(args, kwargs, &mut self.session.host())
    }

    /// Calls the entry on a given host: with the caller's output, generator and cancellation token.
    ///
    /// # Errors
    /// As [`Entry::call`].
    pub fn call_on(
        &self,
        args: &[IValue],
        kwargs: &[(&str, IValue)],
        host: &mut Host,
    ) -> Result<IValue, Error> {
        let bind = |bound: &mut Arguments<'_>| self.bind(args, kwargs, bound);
        let records = host.grad_enabled() && self.requires_grad(args, kwargs);
        self.engine.run(&self.graph, &self.cache, host, records, bind).map_err(|mut error| {
            // The executed graph does not have a name.
            if let Some(outermost) = error.trace.first_mut().filter(|t| t.function == Symbol::EMPTY) {
                outermost.function = self.schema.name;
            }
            error
        })
    }

    /// Whether an argument or an attribute of the receiver requires a gradient.
    #[inline]
    fn requires_grad(&self, args: &[IValue], kwargs: &[(&str, IValue)]) -> bool {
        args.iter().any(requires_grad)
            || kwargs.iter().any(|(_, value)| requires_grad(value))
            || self.receiver.as_ref().is_some_and(|receiver| requires_grad(&IValue::Object(receiver.clone())))
    }

    /// Returns the body as TorchScript source, like PyTorch's `.code`.
    ///
    /// # Errors
    /// `F0120` if the graph has nodes without a source form.
    pub fn code(&self) -> Result<String, Error> {
        Ok(self.code_with_constants()?.0)
    }

    /// Returns the body as TorchScript source with the values of the constants that it names, `CONSTANTS.c0` first.
    ///
    /// # Errors
    /// As [`Entry::code`].
    pub fn code_with_constants(&self) -> Result<(String, Vec<IValue>), Error> {
        let function = Function {
            name: Symbol::new(&self.name),
            schema: self.schema.clone(),
            graph: self.graph.clone(),
        };
        let receiver = if self.receiver.is_some() { ReceiverForm::Bare } else { ReceiverForm::Typed };
        let source = print::code(self.engine.unit(), &function, receiver)?;
        Ok((source.text, source.constants))
    }

    /// Returns a copy of the body after a pipeline, whose passes may read the functions of the program.
    ///
    /// # Errors
    /// If the pipeline does not parse, or a pass fails.
    pub fn optimized(&self, pipeline: &str) -> Result<Graph, Error> {
        self.session.apply_text(&self.graph, self.engine.unit(), pipeline)
    }

    /// Returns the instructions that a call runs, as text.
    ///
    /// # Errors
    /// `X0002` if the graph cannot be compiled.
    pub fn bytecode(&self) -> Result<String, Error> {
        Ok(self.engine.code(&self.graph)?.to_string())
    }

    /// Returns the plans that calls of this graph run under [`crate::Execution::Profiling`], the most specific ones first.
    pub fn plans(&self) -> Vec<Arc<ExecutionPlan>> {
        self.engine.plans(&self.graph)
    }

    /// Returns the differentiated graphs that recorded calls run: forward and backward, optimized.
    pub fn gradient_graphs(&self) -> Vec<(Arc<Graph>, Arc<Graph>)> {
        self.cache.gradient_graphs()
    }

    /// Returns the reasons why recorded calls do not run differentiated graphs, one for each kind of arguments. Those that
    /// concern gradients of gradients begin with `second derivative: `.
    pub fn gradient_refusals(&self) -> Vec<String> {
        self.cache.gradient_refusals()
    }

    /// Returns the graph with its profiling nodes and the types that calls observed under
    /// [`crate::Execution::Profiling`], one for each combination of dtypes, ranks and present optionals.
    pub fn profiles(&self) -> Vec<Graph> {
        self.engine.profiles(&self.graph)
    }

    /// Returns the guards that failed in calls of this graph under [`crate::Execution::Profiling`]: the value, the
    /// guarded type, the type that it had, and the recompiled continuation, if any. Guards of older plans come first.
    pub fn deoptimizations(&self) -> Vec<Deoptimization> {
        self.engine.deoptimizations(&self.graph)
    }

    #[cold]
    fn too_many(&self, given: usize) -> Error {
        let (name, positional) = (&self.name, self.positional);
        let plural = if positional == 1 { "" } else { "s" };
        Error::misuse(format!("{name} takes {positional} argument{plural}, but {given} were given"))
    }

    /// Reports a name in `kwargs` that is not a parameter. This error precedes one about a missing argument, because a
    /// misspelled name causes both.
    fn check_names(&self, kwargs: &[(&str, IValue)]) -> Result<(), Error> {
        let params = self.params();
        let unknown = kwargs.iter().find(|(name, _)| !params.iter().any(|p| p.name.as_str() == *name));
        let Some((unknown, _)) = unknown else { return Ok(()) };
        let names: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
        let (name, all) = (&self.name, names.join("`, `"));
        let error = Error::misuse(format!("{name} has no parameter `{unknown}`; its parameters are `{all}`"));
        Err(Error { help: did_you_mean(unknown, names.iter().copied()), ..error })
    }

    /// Appends the arguments to `bound` in order of the parameters, with the receiver and defaults filled in.
    fn bind(
        &self,
        args: &[IValue],
        kwargs: &[(&str, IValue)],
        bound: &mut Arguments<'_>,
    ) -> Result<(), Error> {
        let params = self.params();
        if args.len() > self.positional {
            return Err(self.too_many(args.len()));
        }
        if let Some(receiver) = &self.receiver {
            bound.push(IValue::Object(receiver.clone()));
        }
        if kwargs.is_empty() && args.len() == params.len() {
            return bind_plain(params, args, bound);
        }
        self.check_names(kwargs)?;
        for (i, param) in params.iter().enumerate() {
            let value = match args.get(i) {
                Some(value) if kwargs.is_empty() => value,
                given => named(param, given, kwargs)?,
            };
            if !value.fits(param.ty) {
                return Err(type_mismatch(param, value));
            }
            bound.push(value.clone());
        }
        Ok(())
    }
}

/// Fast path for calls without named arguments and defaults.
fn bind_plain(params: &[Argument], args: &[IValue], bound: &mut Arguments<'_>) -> Result<(), Error> {
    for (value, param) in args.iter().zip(params) {
        if !value.fits(param.ty) {
            return Err(type_mismatch(param, value));
        }
        bound.push_copy(value);
    }
    Ok(())
}

/// Returns the argument of a parameter that may be passed by name or omitted.
fn named<'a>(
    param: &'a Argument,
    given: Option<&'a IValue>,
    kwargs: &'a [(&str, IValue)],
) -> Result<&'a IValue, Error> {
    let by_name = kwargs.iter().find(|(n, _)| *n == param.name.as_str()).map(|(_, v)| v);
    match (given, by_name) {
        (Some(_), Some(_)) => Err(Error::misuse(format!("argument `{}` is given twice", param.name))),
        (Some(value), None) | (None, Some(value)) => Ok(value),
        (None, None) => {
            let missing = || Error::misuse(format!("argument `{}` is missing", param.name));
            param.default.as_ref().ok_or_else(missing)
        }
    }
}

/// Returns a help text with the most similar known name.
fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
    nearest(name, known).map(|near| format!("did you mean `{near}`?"))
}

fn type_mismatch(param: &Argument, value: &IValue) -> Error {
    let (name, ty) = (&param.name, param.ty);
    Error::misuse(format!("argument `{name}` must be of type {ty} but is of type {}", value.type_of()))
}
