//! A compilation: translates sources into a compilation unit.
//!
//! Functions and methods are declared first and compiled when their signature is needed, or at the end by
//! [`CompileSession::finish`]. The order of definitions in a source therefore does not matter. A function whose signature is
//! needed during its own compilation is recursive, which TorchScript does not support.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use flambeau_ir::diag::{Diagnostic, Fault};
use flambeau_ir::module::Function;
use flambeau_ir::types::ClassEnv;
use flambeau_ir::verify::verify_with;
use flambeau_ir::{CompilationUnit, FunctionSchema, Registry, Symbol, Type};

use super::builtins;
use super::classes;
use super::deep_compile;
use super::fun::{Cx, Res, SourceFile};
use super::known::KnownNames;
use super::overloads::Overloads;
use super::sugar::Sugar;
use crate::FrontendLimits;
use crate::ssa::SsaStage;
use crate::trampoline::{Trampoline, run};
use crate::tree::{TreeId, TreeKind};
use crate::view;

/// An operator overload that is a function: calls that match its schema are replaced by its graph.
#[derive(Clone, Debug)]
pub struct Overload {
    /// The registered overload that it replaces. `None` adds it after the registered overloads.
    pub replaces: Option<Symbol>,
    /// The function; calls are matched against its schema.
    pub function: Arc<Function>,
}

/// Resolves names that the sources of a program do not define.
pub trait Resolver {
    /// Resolves a name that is not a variable. Takes precedence over functions of the unit and builtins.
    fn value(&self, name: &str) -> Option<Sugar> {
        let _ = name;
        None
    }

    /// Returns the qualified name of the type of a class at the top level of a source.
    fn type_name(&self, class: &str) -> Symbol {
        Symbol::new(&format!("__torch__.{class}"))
    }

    /// Returns true for a function that is compiled only if another one calls it, by its qualified name. One that is not called
    /// is not part of the unit.
    fn is_optional(&self, function: Symbol) -> bool {
        let _ = function;
        false
    }

    /// Resolves a (dotted) type name of an annotation that is neither declared in the session nor builtin.
    fn ty(&self, name: &str) -> Option<Type> {
        let _ = name;
        None
    }

    /// Returns overloads of operator `name` for programs of older versions, in which operators had other schemas or
    /// semantics.
    ///
    /// # Errors
    ///
    /// Returns a diagnostic if an old overload needs an operator that `registry` does not have.
    fn overloads(&self, registry: &Arc<Registry>, name: Symbol) -> Result<Vec<Overload>, Box<Diagnostic>> {
        let _ = (registry, name);
        Ok(Vec::new())
    }

    /// Returns true if `torch.unique` and similar names denote PyTorch's Python functions, as in handwritten source. In
    /// printed and archived code they denote the operators of the same names.
    fn supports_python_functions(&self) -> bool {
        true
    }

    /// Called before a class of the unit is inspected, so that the resolver can define it.
    ///
    /// # Errors
    ///
    /// Returns a diagnostic if the definition of the class is invalid.
    fn complete(&self, session: &CompileSession<'_>, ty: Type) -> Result<(), Box<Diagnostic>> {
        let _ = (session, ty);
        Ok(())
    }
}

/// Resolves only builtins: the names of the language and of `torch`, `math` and similar modules.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeResolver;

impl Resolver for NativeResolver {}

/// A declared function or method.
#[derive(Clone, Debug)]
struct Declared {
    file: Arc<SourceFile>,
    def: TreeId,
    self_type: Option<Type>,
    state: State,
    detached: bool,
    /// The first problem of its compilation. Later uses of the function return it without compiling again.
    problem: Option<Box<Diagnostic>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Running,
    Done,
}

/// The text of the graph of a function after one stage of compilation.
#[derive(Clone, Debug)]
pub struct StageText {
    /// The name of the function.
    pub function: Symbol,
    /// The stage.
    pub stage: SsaStage,
    /// The text of the graph.
    pub text: String,
}

/// One compilation.
pub struct CompileSession<'s> {
    registry: Arc<Registry>,
    resolver: &'s dyn Resolver,
    pub(crate) limits: FrontendLimits,
    pub(crate) unit: RefCell<CompilationUnit>,
    declared: RefCell<IndexMap<Symbol, Declared, FxBuildHasher>>,
    /// Overloads written in TorchScript, by operator name; `None` while they are being compiled.
    script_builtins: RefCell<HashMap<Symbol, Option<Rc<Vec<Overload>>>, FxBuildHasher>>,
    pub(crate) overloads: RefCell<Overloads>,
    pub(crate) known_names: RefCell<KnownNames>,
    stages: Option<RefCell<Vec<StageText>>>,
    /// The problems found so far, without duplicates.
    problems: RefCell<Vec<Diagnostic>>,
    types: RefCell<HashMap<Symbol, Type, FxBuildHasher>>,
    /// Names of the attributes that iteration over a module of a class visits, for containers of modules.
    elements: RefCell<HashMap<Type, Rc<[Symbol]>, FxBuildHasher>>,
}

impl<'s> CompileSession<'s> {
    /// Creates a session with an empty unit.
    pub fn new(registry: Arc<Registry>, resolver: &'s dyn Resolver, limits: FrontendLimits) -> Self {
        CompileSession {
            registry,
            resolver,
            limits,
            unit: RefCell::default(),
            declared: RefCell::default(),
            script_builtins: RefCell::default(),
            overloads: RefCell::default(),
            known_names: RefCell::default(),
            stages: None,
            problems: RefCell::default(),
            types: RefCell::default(),
            elements: RefCell::default(),
        }
    }

    /// Enables recording of the graph text after each stage, for [`CompileSession::stages`].
    pub fn keep_stages(&mut self) {
        self.stages = Some(RefCell::default());
    }

    /// Returns the texts recorded since [`CompileSession::keep_stages`].
    pub fn stages(&self) -> Vec<StageText> {
        self.stages.as_ref().map(|s| s.borrow().clone()).unwrap_or_default()
    }

    /// Returns the operator registry.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(crate) fn resolver(&self) -> &'s dyn Resolver {
        self.resolver
    }

    /// Passes the unit to `f`, which may change it.
    ///
    /// # Panics
    ///
    /// Panics if `f` calls a method of the session that borrows the unit.
    pub fn with_unit<T>(&self, f: impl FnOnce(&mut CompilationUnit) -> T) -> T {
        f(&mut self.unit.borrow_mut())
    }

    /// Makes `ty` available in annotations under `name`.
    pub fn name_type(&self, name: Symbol, ty: Type) {
        self.types.borrow_mut().insert(name, ty);
    }

    pub(crate) fn named_type(&self, name: Symbol) -> Option<Type> {
        self.types.borrow().get(&name).copied()
    }

    pub(super) fn set_elements(&self, container: Type, names: Vec<Symbol>) {
        self.elements.borrow_mut().insert(container, names.into());
    }

    /// Returns the names of the attributes that iteration over a module of class `ty` visits; `None` if it is not a container.
    pub(super) fn elements(&self, ty: Type) -> Option<Rc<[Symbol]>> {
        self.elements.borrow().get(&ty).cloned()
    }

    /// Returns the names set with [`CompileSession::name_type`], sorted.
    pub(crate) fn type_names(&self) -> Vec<Symbol> {
        let mut names: Vec<Symbol> = self.types.borrow().keys().copied().collect();
        names.sort();
        names
    }

    /// Declares a function or method under a qualified name.
    pub fn declare(&self, name: Symbol, file: &Arc<SourceFile>, def: TreeId, self_type: Option<Type>) {
        self.declare_as(name, file, def, self_type, false);
    }

    /// Like [`CompileSession::declare`]; a detached function is not added to the unit.
    pub(crate) fn declare_as(
        &self,
        name: Symbol,
        file: &Arc<SourceFile>,
        def: TreeId,
        self_type: Option<Type>,
        detached: bool,
    ) {
        let file = Arc::clone(file);
        let declared = Declared { file, def, self_type, state: State::Waiting, detached, problem: None };
        self.declared.borrow_mut().insert(name, declared);
    }

    /// Declares a class, named tuple or enum with its methods, and registers its type under the qualified name.
    ///
    /// # Errors
    ///
    /// Returns a diagnostic if the class refers to an unknown type or is of a kind that cannot be declared.
    pub fn declare_class(
        &self,
        name: Symbol,
        file: &Arc<SourceFile>,
        class: TreeId,
    ) -> Result<Type, Box<Diagnostic>> {
        classes::declare(self, name, file, class)
    }

    /// Declares all functions and classes at the top level of a source under their unqualified names. Returns the names
    /// of the functions.
    ///
    /// # Errors
    ///
    /// Returns the syntax problems of the source, or a diagnostic for each invalid or unsupported top-level statement.
    pub fn declare_source(&self, file: &Arc<SourceFile>) -> Result<Vec<Symbol>, Vec<Diagnostic>> {
        let problems = file.diagnostics();
        if !problems.is_empty() {
            return self.declare_broken(file, problems);
        }
        let ast = &file.parsed.ast;
        let (mut names, mut problems) = (Vec::new(), Vec::new());
        let mut known: HashSet<Symbol, FxBuildHasher> = HashSet::default();
        for &tree in ast.children(file.parsed.root) {
            match ast.kind(tree) {
                TreeKind::Def => {
                    let name = Symbol::new(ast.name(tree));
                    if !known.insert(name) {
                        let message = format!("method '{name}' already defined");
                        let range = file.range(ast.span(tree));
                        problems.push(Diagnostic::new(Fault::Input, "F0107", message).at(range));
                    }
                    let decorators = view::Def::of(ast, tree).map_or(&[][..], |def| def.decorators());
                    if let Err(problem) =
                        classes::check_decorators(self, file, decorators, classes::DecoratedKind::Function)
                    {
                        problems.push(*problem);
                    }
                    self.declare(name, file, tree, None);
                    names.push(name);
                }
                TreeKind::ClassDef => {
                    let qualified = self.resolver.type_name(ast.name(tree));
                    match self.declare_class(qualified, file, tree) {
                        Ok(ty) => self.name_type(Symbol::new(ast.name(tree)), ty),
                        Err(problem) => problems.push(*problem),
                    }
                }
                TreeKind::Import => {}
                _ => {
                    let message = "only functions and classes are allowed at the top level of a source";
                    let range = file.range(ast.span(tree));
                    problems.push(Diagnostic::new(Fault::Unsupported, "F0105", message).at(range));
                }
            }
        }
        if problems.is_empty() { Ok(names) } else { Err(problems) }
    }

    /// Declares the only definition of a source with syntax problems if it is an optional function: calls of it report the
    /// first problem.
    fn declare_broken(
        &self,
        file: &Arc<SourceFile>,
        problems: Vec<Diagnostic>,
    ) -> Result<Vec<Symbol>, Vec<Diagnostic>> {
        let ast = &file.parsed.ast;
        let [def] = *ast.children(file.parsed.root) else { return Err(problems) };
        if ast.kind(def) != TreeKind::Def {
            return Err(problems);
        }
        let name = Symbol::new(ast.name(def));
        if !self.resolver.is_optional(name) {
            return Err(problems);
        }
        self.declare(name, file, def, None);
        if let Some(declared) = self.declared.borrow_mut().get_mut(&name) {
            declared.problem = problems.into_iter().next().map(Box::new);
        }
        Ok(vec![name])
    }

    /// Returns true if there is a function of this name, compiled or not.
    pub fn has_function(&self, name: Symbol) -> bool {
        self.declared.borrow().contains_key(&name) || self.unit.borrow().function(name).is_some()
    }

    /// Compiles all declared functions that are not compiled yet.
    ///
    /// # Errors
    ///
    /// Returns the problems of all statements of all functions, in the order in which they were found.
    pub fn finish(&self) -> Result<(), Vec<Diagnostic>> {
        // Compilation may append further declarations.
        for i in 0.. {
            let next = self.declared.borrow().get_index(i).map(|(name, d)| (*name, d.state));
            let Some((name, state)) = next else { break };
            if state == State::Waiting
                && !self.resolver.is_optional(name)
                && let Err(problem) = self.compile(name)
            {
                self.report(name, [*problem]);
            }
        }
        self.remove_unused();
        let problems = self.problems.take();
        if cfg!(debug_assertions) && problems.is_empty() {
            self.verify()?;
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Removes optional methods that were not called from their classes.
    fn remove_unused(&self) {
        let declared = self.declared.borrow();
        let unused = declared.iter().filter(|(_, d)| d.state == State::Waiting);
        let mut unit = self.unit.borrow_mut();
        for (function, class) in unused.filter_map(|(name, d)| Some((*name, d.self_type?))) {
            if let Some(class) = unit.class_mut(class) {
                class.methods.retain(|_, method| *method != function);
                class.properties.retain(|property| class.methods.contains_key(&property.getter));
            }
        }
    }

    /// Verifies the graphs of all compiled functions. Runs only with debug assertions: an invalid graph is a defect of
    /// the emitter.
    fn verify(&self) -> Result<(), Vec<Diagnostic>> {
        let unit = self.unit.borrow();
        let broken = unit.functions().filter_map(|function| {
            let errors = verify_with(&function.graph, &*unit).err()?;
            let text = format!("the graph compiled for `{}` is invalid:\n{errors}", function.name);
            Some(Diagnostic::new(Fault::Internal, "F0130", text))
        });
        let broken: Vec<Diagnostic> = broken.collect();
        if broken.is_empty() { Ok(()) } else { Err(broken) }
    }

    /// Records problems of `function` for [`CompileSession::finish`]. A problem of a common callee can reach several
    /// functions; it is recorded once, with the longest chain of calls. Problems of detached functions are dropped: an
    /// operator overload that does not compile, because an operator it needs is missing, is not an overload.
    pub(crate) fn report(&self, function: Symbol, problems: impl IntoIterator<Item = Diagnostic>) {
        if self.declared.borrow().get(&function).is_some_and(|d| d.detached) {
            return;
        }
        let mut reported = self.problems.borrow_mut();
        for problem in problems {
            let place =
                |d: &Diagnostic| d.primary.as_ref().map(|l| (l.at.source.name.clone(), l.at.range.clone()));
            let same = |d: &Diagnostic| d.message == problem.message && place(d) == place(&problem);
            match reported.iter().position(same) {
                Some(i) if reported[i].secondary.len() < problem.secondary.len() => reported[i] = problem,
                None if reported.len() < self.limits.max_problems() => reported.push(problem),
                _ => {}
            }
        }
    }

    /// Returns the functions that failed to compile, in order of declaration, each with the first problem: its own or
    /// that of a callee.
    pub fn failures(&self) -> Vec<(Symbol, Box<Diagnostic>)> {
        let declared = self.declared.borrow();
        let failed = declared.iter().filter(|(_, d)| !d.detached);
        failed.filter_map(|(&name, d)| Some((name, d.problem.clone()?))).collect()
    }

    /// Compiles one function and its callees.
    ///
    /// # Errors
    ///
    /// Returns the first problem of the function or of a callee.
    pub fn compile(&self, name: Symbol) -> Result<Arc<Function>, Box<Diagnostic>> {
        let trampoline = Trampoline::new();
        run(&trampoline, deep_compile::function(self, &trampoline, name))
    }

    /// Returns the compilation unit.
    pub fn into_unit(self) -> CompilationUnit {
        self.unit.into_inner()
    }

    /// Returns the signature of a declared function, which is not compiled.
    pub(crate) fn declaration(&self, name: Symbol) -> Res<FunctionSchema> {
        let declared = self.declared.borrow().get(&name).map(|d| (Arc::clone(&d.file), d.def, d.self_type));
        let (file, def, self_type) = declared.ok_or_else(|| undeclared(name))?;
        deep_compile::declared_schema(self, name, &file, def, self_type)
    }

    /// Marks a declared function as being compiled and returns its source, definition and `self` type.
    pub(crate) fn begin(&self, name: Symbol) -> Res<(Arc<SourceFile>, TreeId, Option<Type>)> {
        let mut declared = self.declared.borrow_mut();
        let Some(d) = declared.get_mut(&name) else {
            return Err(undeclared(name));
        };
        if let Some(problem) = &d.problem {
            return Err(problem.clone());
        }
        if d.state == State::Running {
            let range = d.file.range(d.file.parsed.ast.span(d.def));
            let message =
                format!("function '{name}' is called recursively. Recursive calls are not supported");
            return Err(Box::new(Diagnostic::new(Fault::Input, "F0103", message).at(range)));
        }
        d.state = State::Running;
        Ok((Arc::clone(&d.file), d.def, d.self_type))
    }

    /// Records the result of the compilation of a function.
    pub(crate) fn end(&self, name: Symbol, result: Result<&Function, Box<Diagnostic>>) {
        let mut detached = false;
        if let Some(d) = self.declared.borrow_mut().get_mut(&name) {
            d.state = State::Done;
            d.problem = result.clone().err();
            detached = d.detached;
        }
        if let Some(function) = result.ok().filter(|_| !detached) {
            self.unit.borrow_mut().define_function(function.clone());
        }
    }

    /// Returns the type of a library class that is written in TorchScript; declares the class at first use.
    pub(crate) fn library_class(&self, full: &str) -> Option<Type> {
        let (name, file, tree) = builtins::library_class(self, full)?;
        if let Some(ty) = self.named_type(name) {
            return Some(ty);
        }
        self.declare_class(name, &file, tree).ok()
    }

    /// Returns true if the function is declared and its compilation has not begun.
    pub(crate) fn is_waiting(&self, name: Symbol) -> bool {
        self.declared.borrow().get(&name).is_some_and(|d| d.state == State::Waiting)
    }

    /// Returns the name of a library function that is written in TorchScript; declares the function at first use.
    pub(crate) fn library_function(&self, full: &str) -> Option<Symbol> {
        if !self.resolver.supports_python_functions() {
            return None;
        }
        let name = Symbol::new(&format!("__torch__.{full}"));
        if self.has_function(name) {
            return Some(name);
        }
        let (file, def) = builtins::library(self, full)?;
        self.declare(name, &file, def, None);
        Some(name)
    }

    pub(crate) fn compiled(&self, name: Symbol) -> Option<Arc<Function>> {
        self.unit.borrow().function(name).cloned()
    }

    pub(crate) fn look(&self, name: Symbol, stage: SsaStage, graph: &flambeau_ir::Graph) {
        // Operator overloads are not functions of the program.
        if let Some(stages) = self.stages.as_ref().filter(|_| name.ns().is_empty()) {
            stages.borrow_mut().push(StageText { function: name, stage, text: graph.to_string() });
        }
    }

    /// Returns the overloads of an operator that are written in TorchScript or come from the resolver; compiles them at
    /// first use. Returns `None` while they are being compiled, which ends the recursion.
    pub(crate) fn script_builtins(&self, name: Symbol) -> Res<Option<Rc<Vec<Overload>>>> {
        if let Some(found) = self.script_builtins.borrow().get(&name) {
            return Ok(found.clone());
        }
        let former = self.resolver.overloads(&self.registry, name)?;
        self.script_builtins.borrow_mut().insert(name, None);
        let mut compiled = builtins::compile(self, name);
        compiled.extend(former);
        let compiled = Rc::new(compiled);
        self.script_builtins.borrow_mut().insert(name, Some(Rc::clone(&compiled)));
        Ok(Some(compiled))
    }

    /// Returns the schema of a compiled method of `class`.
    pub(crate) fn signature(&self, class: Type, method: Symbol) -> Option<Arc<FunctionSchema>> {
        ClassEnv::method(&*self.unit.borrow(), class, method)
    }
}

impl ClassEnv for CompileSession<'_> {
    fn interface_methods(&self, interface: Type) -> Option<Vec<Symbol>> {
        self.unit.borrow().interface_methods(interface)
    }

    fn method(&self, class: Type, name: Symbol) -> Option<Arc<FunctionSchema>> {
        if let Some(schema) = self.signature(class, name) {
            return Some(schema);
        }
        // The method is declared but not compiled: derive the schema from its annotations.
        let function = *self.unit.borrow().class(class)?.methods.get(&name)?;
        let declared = self.declared.borrow().get(&function).cloned()?;
        deep_compile::declared_schema(self, function, &declared.file, declared.def, declared.self_type)
            .ok()
            .map(Arc::new)
    }

    fn is_module(&self, class: Type) -> bool {
        self.unit.borrow().is_module(class)
    }
}

fn undeclared(name: Symbol) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Fault::Input, "F0102", format!("there is no function `{name}`")))
}

/// Creates the context for compiling `fun`.
pub(crate) fn context<'a>(
    session: &'a CompileSession<'a>,
    trampoline: &'a Trampoline<'a>,
    fun: super::fun::Fun,
) -> Cx<'a> {
    Cx { session, trampoline, fun: Rc::new(fun) }
}

/// Compiles a source of functions and classes into a unit.
///
/// # Errors
///
/// Returns the syntax problems of the source or, if there are none, the problems of its statements.
pub fn compile(
    source: &Arc<flambeau_ir::Source>,
    registry: &Arc<Registry>,
    limits: &FrontendLimits,
) -> Result<CompilationUnit, Vec<Diagnostic>> {
    compile_with(source, registry, &NativeResolver, limits)
}

/// Like [`compile`], but resolves free names with `resolver`.
///
/// # Errors
///
/// Returns the same diagnostics as [`compile`].
pub fn compile_with(
    source: &Arc<flambeau_ir::Source>,
    registry: &Arc<Registry>,
    resolver: &dyn Resolver,
    limits: &FrontendLimits,
) -> Result<CompilationUnit, Vec<Diagnostic>> {
    compile_sources(std::slice::from_ref(source), registry, resolver, limits)
}

/// Like [`compile_with`], for a program in several texts, such as functions from several files. A class must be defined
/// before annotations of other classes refer to it.
///
/// # Errors
///
/// Returns the diagnostics of the first text that cannot be declared, or else those of all functions.
pub fn compile_sources(
    sources: &[Arc<flambeau_ir::Source>],
    registry: &Arc<Registry>,
    resolver: &dyn Resolver,
    limits: &FrontendLimits,
) -> Result<CompilationUnit, Vec<Diagnostic>> {
    let session = CompileSession::new(Arc::clone(registry), resolver, *limits);
    for source in sources {
        session.declare_source(&SourceFile::new(Arc::clone(source), limits))?;
    }
    session.finish()?;
    Ok(session.into_unit())
}

/// Compiles a source and returns the text of each function's graph after each stage.
///
/// # Errors
///
/// Returns the same diagnostics as [`compile`].
pub fn compile_stages(
    source: &Arc<flambeau_ir::Source>,
    registry: &Arc<Registry>,
    limits: &FrontendLimits,
) -> Result<Vec<StageText>, Vec<Diagnostic>> {
    let file = SourceFile::new(Arc::clone(source), limits);
    let mut session = CompileSession::new(Arc::clone(registry), &NativeResolver, *limits);
    session.keep_stages();
    session.declare_source(&file)?;
    session.finish()?;
    Ok(session.stages())
}
