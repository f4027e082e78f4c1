//! A compilation: sources in, a compilation unit out.
//!
//! Functions and methods are declared first and compiled when something needs their signature, so
//! order in a source does not matter and what is never called costs nothing until the end. A
//! function that is needed while it is being compiled is recursive, which TorchScript refuses.

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
use super::deep_compile;
use super::fun::{Cx, Res, SourceFile};
use super::known::KnownNames;
use super::overloads::Overloads;
use super::sugar::Sugar;
use crate::Limits;
use crate::deep::{Deep, run};
use crate::ssa::Stage;
use crate::tree::{Kind, TreeId};

/// An overload of an operator that is a function: calls that it fits are put in place.
#[derive(Clone, Debug)]
pub struct Overload {
    /// The registered overload that it stands for. Without, it is tried behind those that are registered.
    pub replaces: Option<Symbol>,
    /// The function, with the schema that calls are held against.
    pub function: Arc<Function>,
}

/// Finds what a program's own source does not define.
pub trait Resolver {
    /// The value of a name that no variable, builtin or function of the unit has.
    fn value(&self, name: &str) -> Option<Sugar> {
        let _ = name;
        None
    }

    /// The type of a (dotted) name in an annotation.
    fn ty(&self, name: &str) -> Option<Type> {
        let _ = name;
        None
    }

    /// What calls of the operator `name` mean in the program in other ways than today: old programs were written when
    /// operators took and meant other things.
    ///
    /// # Errors
    /// If an old meaning needs an operator that `registry` does not have.
    fn overloads(&self, registry: &Arc<Registry>, name: Symbol) -> Result<Vec<Overload>, Box<Diagnostic>> {
        let _ = (registry, name);
        Ok(Vec::new())
    }

    /// Whether `torch.unique` and the like mean PyTorch's Python functions, as in what people write. In printed and
    /// archived code they mean the operators of these names.
    fn knows_python_functions(&self) -> bool {
        true
    }

    /// Called when a class of the unit is about to be looked into, so that the resolver can define it.
    ///
    /// # Errors
    /// If the class's definition is wrong.
    fn complete(&self, session: &Session<'_>, ty: Type) -> Result<(), Box<Diagnostic>> {
        let _ = (session, ty);
        Ok(())
    }
}

/// Knows only the names of the language itself and of `torch`, `math` and the like.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeResolver;

impl Resolver for NativeResolver {}

/// A function that is declared and not compiled yet.
#[derive(Clone, Debug)]
struct Declared {
    file: Arc<SourceFile>,
    def: TreeId,
    self_type: Option<Type>,
    state: State,
    detached: bool,
    /// Why it does not compile: who calls it next is told the same without another try.
    problem: Option<Box<Diagnostic>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Running,
    Done,
}

/// The text of a function's graph after one stage of its compilation.
#[derive(Clone, Debug)]
pub struct StageText {
    /// The function.
    pub function: Symbol,
    /// The stage.
    pub stage: Stage,
    /// The graph.
    pub text: String,
}

/// One compilation.
pub struct Session<'s> {
    registry: Arc<Registry>,
    resolver: &'s dyn Resolver,
    pub(crate) limits: Limits,
    pub(crate) unit: RefCell<CompilationUnit>,
    declared: RefCell<IndexMap<Symbol, Declared, FxBuildHasher>>,
    /// By name; none while they are being compiled.
    script_builtins: RefCell<HashMap<Symbol, Option<Rc<Vec<Overload>>>, FxBuildHasher>>,
    pub(crate) overloads: RefCell<Overloads>,
    pub(crate) known_names: RefCell<KnownNames>,
    stages: Option<RefCell<Vec<StageText>>>,
    /// Everything found wrong so far, each problem once.
    problems: RefCell<Vec<Diagnostic>>,
    types: RefCell<HashMap<Symbol, Type, FxBuildHasher>>,
}

impl<'s> Session<'s> {
    /// A compilation into an empty unit.
    pub fn new(registry: Arc<Registry>, resolver: &'s dyn Resolver, limits: Limits) -> Self {
        Session {
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
        }
    }

    /// Keeps the text of every function after every stage, for [`Session::stages`].
    pub fn keep_stages(&mut self) {
        self.stages = Some(RefCell::default());
    }

    /// What [`Session::keep_stages`] kept so far.
    pub fn stages(&self) -> Vec<StageText> {
        self.stages.as_ref().map(|s| s.borrow().clone()).unwrap_or_default()
    }

    /// The operators known.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(crate) fn resolver(&self) -> &'s dyn Resolver {
        self.resolver
    }

    /// Looks at or changes the unit so far. Must not be called from within itself.
    pub fn with_unit<T>(&self, f: impl FnOnce(&mut CompilationUnit) -> T) -> T {
        f(&mut self.unit.borrow_mut())
    }

    /// Gives a type a name for annotations.
    pub fn name_type(&self, name: Symbol, ty: Type) {
        self.types.borrow_mut().insert(name, ty);
    }

    pub(crate) fn named_type(&self, name: Symbol) -> Option<Type> {
        self.types.borrow().get(&name).copied()
    }

    /// The names that [`Session::name_type`] gave, sorted.
    pub(crate) fn type_names(&self) -> Vec<Symbol> {
        let mut names: Vec<Symbol> = self.types.borrow().keys().copied().collect();
        names.sort();
        names
    }

    /// Declares a function or method under a qualified name.
    pub fn declare(&self, name: Symbol, file: &Arc<SourceFile>, def: TreeId, self_type: Option<Type>) {
        self.declare_as(name, file, def, self_type, false);
    }

    /// As [`Session::declare`]; a detached function does not become part of the unit.
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

    /// Declares a class, a named tuple or an enum with its methods, and gives its qualified name its type.
    ///
    /// # Errors
    /// If a type in it is unknown or it is of a kind that cannot be declared.
    pub fn declare_class(
        &self,
        name: Symbol,
        file: &Arc<SourceFile>,
        class: TreeId,
    ) -> Result<Type, Box<Diagnostic>> {
        super::classes::declare(self, name, file, class)
    }

    /// Declares all functions and classes at the top level of a source under their plain names.
    ///
    /// # Errors
    /// The problems of the source, and what stands in it that is no function.
    pub fn declare_source(&self, file: &Arc<SourceFile>) -> Result<Vec<Symbol>, Vec<Diagnostic>> {
        let problems = file.diagnostics();
        if !problems.is_empty() {
            return Err(problems);
        }
        let ast = &file.parsed.ast;
        let (mut names, mut problems) = (Vec::new(), Vec::new());
        let mut known: HashSet<Symbol, FxBuildHasher> = HashSet::default();
        for &tree in ast.children(file.parsed.root) {
            match ast.kind(tree) {
                Kind::Def => {
                    let name = Symbol::new(ast.name(tree));
                    if !known.insert(name) {
                        let message = format!("method '{name}' already defined");
                        let range = file.range(ast.span(tree));
                        problems.push(Diagnostic::new(Fault::Input, "F0107", message).at(range));
                    }
                    self.declare(name, file, tree, None);
                    names.push(name);
                }
                Kind::ClassDef => {
                    let qualified = Symbol::new(&format!("__torch__.{}", ast.name(tree)));
                    match self.declare_class(qualified, file, tree) {
                        Ok(ty) => self.name_type(Symbol::new(ast.name(tree)), ty),
                        Err(problem) => problems.push(*problem),
                    }
                }
                Kind::Import => {}
                _ => {
                    let message = "only functions and classes may stand at the top level of a source";
                    let range = file.range(ast.span(tree));
                    problems.push(Diagnostic::new(Fault::Unsupported, "F0105", message).at(range));
                }
            }
        }
        if problems.is_empty() { Ok(names) } else { Err(problems) }
    }

    /// Is there a function of this name, compiled or not?
    pub fn has_function(&self, name: Symbol) -> bool {
        self.declared.borrow().contains_key(&name) || self.unit.borrow().function(name).is_some()
    }

    /// Compiles everything declared and not compiled yet; all problems.
    ///
    /// # Errors
    /// What is wrong with each statement of each function, in the order in which it was found.
    pub fn finish(&self) -> Result<(), Vec<Diagnostic>> {
        // Compiling may declare more, behind the last.
        for i in 0.. {
            let next = self.declared.borrow().get_index(i).map(|(name, d)| (*name, d.state));
            let Some((name, state)) = next else { break };
            if state == State::Waiting
                && let Err(problem) = self.compile(name)
            {
                self.tell(name, [*problem]);
            }
        }
        let problems = self.problems.take();
        if cfg!(debug_assertions) && problems.is_empty() {
            self.verify()?;
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Verifies all compiled functions, in builds with debug assertions: a graph that does not verify is a defect here.
    fn verify(&self) -> Result<(), Vec<Diagnostic>> {
        let unit = self.unit.borrow();
        let broken = unit.functions().filter_map(|function| {
            let errors = verify_with(&function.graph, &*unit).err()?;
            let text = format!("`{}` was compiled to a graph that is broken:\n{errors}", function.name);
            Some(Diagnostic::new(Fault::Internal, "F0130", text))
        });
        let broken: Vec<Diagnostic> = broken.collect();
        if broken.is_empty() { Ok(()) } else { Err(broken) }
    }

    /// Keeps problems for [`Session::finish`]. One that several functions run into (it lies in a function they call) is
    /// told once, with the longest chain of calls. Overloads of operators that do not compile are no problem: they are
    /// no overloads where operators that they need are missing.
    pub(crate) fn tell(&self, function: Symbol, problems: impl IntoIterator<Item = Diagnostic>) {
        if self.declared.borrow().get(&function).is_some_and(|d| d.detached) {
            return;
        }
        let mut told = self.problems.borrow_mut();
        for problem in problems {
            let place =
                |d: &Diagnostic| d.primary.as_ref().map(|l| (l.at.source.name.clone(), l.at.range.clone()));
            let same = |d: &Diagnostic| d.message == problem.message && place(d) == place(&problem);
            match told.iter().position(same) {
                Some(i) if told[i].notes.len() < problem.notes.len() => told[i] = problem,
                None if told.len() < self.limits.problems => told.push(problem),
                _ => {}
            }
        }
    }

    /// The functions that were tried and do not compile, in order of declaration, each with the problem that keeps it
    /// from it: its own, or that of a function it calls.
    pub fn failures(&self) -> Vec<(Symbol, Box<Diagnostic>)> {
        let declared = self.declared.borrow();
        let failed = declared.iter().filter(|(_, d)| !d.detached);
        failed.filter_map(|(&name, d)| Some((name, d.problem.clone()?))).collect()
    }

    /// Compiles one function and what it calls.
    ///
    /// # Errors
    /// The first problem.
    pub fn compile(&self, name: Symbol) -> Result<Arc<Function>, Box<Diagnostic>> {
        let deep = Deep::new();
        run(&deep, deep_compile::function(self, &deep, name))
    }

    /// The unit that was compiled.
    pub fn into_unit(self) -> CompilationUnit {
        self.unit.into_inner()
    }

    /// Takes a declared function for compiling.
    pub(crate) fn begin(&self, name: Symbol) -> Res<(Arc<SourceFile>, TreeId, Option<Type>)> {
        let mut declared = self.declared.borrow_mut();
        let Some(d) = declared.get_mut(&name) else {
            return Err(Box::new(Diagnostic::new(
                Fault::Input,
                "F0102",
                format!("there is no function `{name}`"),
            )));
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

    /// Ends the compiling of a function, with what came of it.
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

    /// A class of the library that is written in TorchScript, declared at first use.
    pub(crate) fn library_class(&self, full: &str) -> Option<Type> {
        let (name, file, tree) = builtins::library_class(self, full)?;
        if let Some(ty) = self.named_type(name) {
            return Some(ty);
        }
        self.declare_class(name, &file, tree).ok()
    }

    /// Is the function declared and not begun?
    pub(crate) fn is_waiting(&self, name: Symbol) -> bool {
        self.declared.borrow().get(&name).is_some_and(|d| d.state == State::Waiting)
    }

    /// A function of the library that is written in TorchScript, declared at first use.
    pub(crate) fn library_function(&self, full: &str) -> Option<Symbol> {
        if !self.resolver.knows_python_functions() {
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

    pub(crate) fn look(&self, name: Symbol, stage: Stage, graph: &flambeau_ir::Graph) {
        // Overloads of operators are not the program's functions.
        if let Some(stages) = self.stages.as_ref().filter(|_| name.ns().is_empty()) {
            stages.borrow_mut().push(StageText { function: name, stage, text: graph.to_string() });
        }
    }

    /// Overloads of a builtin that are written in TorchScript, compiled at first use. None are known while they are
    /// being compiled, which ends the recursion.
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

    /// The context of a function to compile.
    pub(crate) fn signature(&self, class: Type, method: Symbol) -> Option<Arc<FunctionSchema>> {
        ClassEnv::method(&*self.unit.borrow(), class, method)
    }
}

impl ClassEnv for Session<'_> {
    fn interface_methods(&self, interface: Type) -> Option<Vec<Symbol>> {
        self.unit.borrow().interface_methods(interface)
    }

    fn method(&self, class: Type, name: Symbol) -> Option<Arc<FunctionSchema>> {
        if let Some(schema) = self.signature(class, name) {
            return Some(schema);
        }
        // A method that is declared only: its signature is what its annotations say.
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

/// What every step of compiling `f` needs, for use by the sibling modules.
pub(crate) fn context<'a>(session: &'a Session<'a>, deep: &'a Deep<'a>, fun: super::fun::Fun) -> Cx<'a> {
    Cx { session, deep, fun: Rc::new(fun) }
}

/// Compiles a source of functions into a unit.
///
/// # Errors
/// All problems of the source's syntax; else those of its statements.
pub fn compile(
    source: &Arc<flambeau_ir::Source>,
    registry: &Arc<Registry>,
    limits: &Limits,
) -> Result<CompilationUnit, Vec<Diagnostic>> {
    compile_with(source, registry, &NativeResolver, limits)
}

/// Compiles a source of functions whose free names mean what `resolver` says.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(
    source: &Arc<flambeau_ir::Source>,
    registry: &Arc<Registry>,
    resolver: &dyn Resolver,
    limits: &Limits,
) -> Result<CompilationUnit, Vec<Diagnostic>> {
    let file = SourceFile::new(Arc::clone(source), limits);
    let session = Session::new(Arc::clone(registry), resolver, *limits);
    session.declare_source(&file)?;
    session.finish()?;
    Ok(session.into_unit())
}

/// Compiles a source of functions and keeps the text of every function after every stage.
///
/// # Errors
/// As [`compile`].
pub fn compile_stages(
    source: &Arc<flambeau_ir::Source>,
    registry: &Arc<Registry>,
    limits: &Limits,
) -> Result<Vec<StageText>, Vec<Diagnostic>> {
    let file = SourceFile::new(Arc::clone(source), limits);
    let mut session = Session::new(Arc::clone(registry), &NativeResolver, *limits);
    session.keep_stages();
    session.declare_source(&file)?;
    session.finish()?;
    Ok(session.stages())
}
