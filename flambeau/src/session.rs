//! Sessions: the operators, limits and ways of execution that programs are loaded with.

use crate::error::Error;
use crate::failures::{Failures, OptimizationFailure};
use crate::gradients::Library;
use crate::limits::{Limits, RunLimits};
use crate::program::Program;
use flambeau_analysis::{Analyses, ConstantOwner};
use flambeau_exec::vm::Vm;
use flambeau_exec::{Host, Kernel, panic_message};
use flambeau_frontend::emit::StageText;
use flambeau_ir::text::{PrintOptions, ReadLimits, parse_graph_with};
use flambeau_ir::{CompilationUnit, Facet, Fault, Graph, OpDef, Registry, RegistryBuilder, Source, Symbol};
use flambeau_rewrite::{
    Checks, Control, Manager, PassEntry, PassLibrary, Pipeline, RuleSet, Rulebook, Vocabulary,
};
use flambeau_tensor::{Budget, switches};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// How programs are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Execution {
    /// The plain graph walk that defines what a program means.
    Reference,
    /// Bytecode on the register machine, without optimization.
    Machine,
    /// Optimized, then bytecode.
    #[default]
    Optimized,
}

/// The pipelines that come with every session: name and text.
const PIPELINES: &[(&str, &str)] = &[
    ("simplify", "inline,lower_simple_tuples,constant_propagation,constant_pooling,cse,dce"),
    ("default", "simplify,peephole,cse,dce,fuse,dce"),
];

/// What a session is made from.
pub struct SessionBuilder {
    registry: RegistryBuilder,
    pub(crate) settings: Settings,
    library: PassLibrary,
    book: Rulebook,
    /// Whether there are operators or facts beside the standard ones.
    extended: bool,
}

/// How archives, and their source or other, are loaded.
#[cfg(feature = "archive")]
pub(crate) type Loading = flambeau_archive::LoadOptions;

/// How source is loaded.
#[cfg(not(feature = "archive"))]
#[derive(Clone, Default)]
pub(crate) struct Loading {
    source_limits: flambeau_frontend::Limits,
}

/// What a session is told beside its operators, rules and passes.
#[derive(Clone)]
pub(crate) struct Settings {
    execution: Execution,
    checks: Checks,
    run: RunLimits,
    text: ReadLimits,
    /// Has the limits of source, and of archives.
    pub(crate) load: Loading,
    recycled: usize,
    threads: usize,
    failures: Failures,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            execution: Execution::default(),
            checks: if cfg!(debug_assertions) { Checks::Boundaries } else { Checks::Off },
            run: RunLimits::default(),
            text: ReadLimits::default(),
            load: Loading::default(),
            recycled: Vm::RECYCLED,
            threads: 0,
            failures: Failures::default(),
        }
    }
}

impl Settings {
    fn limits(&self) -> Limits {
        Limits {
            source: self.load.source_limits,
            text: self.text,
            #[cfg(feature = "archive")]
            archive: self.load.limits.clone(),
            run: self.run,
        }
    }

    fn set_limits(&mut self, limits: Limits) {
        (self.load.source_limits, self.text, self.run) = (limits.source, limits.text, limits.run);
        #[cfg(feature = "archive")]
        {
            self.load.limits = limits.archive;
        }
    }
}

impl SessionBuilder {
    /// Adds the standard operators.
    pub fn standard(mut self) -> Self {
        // Some operators hold tensors, whose allocation asks for the switches. [`SessionBuilder::build`] reports a wrong one.
        if switches::check().is_ok() {
            flambeau_ops::standard(&mut self.registry);
        }
        self
    }

    /// Adds operators. A kernel of theirs that panics fails the call and leaves the session usable, unless the program is
    /// compiled with `panic = "abort"`.
    pub fn ops(mut self, defs: impl IntoIterator<Item = OpDef>) -> Self {
        self.registry.add(defs.into_iter().map(|def| def.map(Kernel::catching_panics)));
        self.extended = true;
        self
    }

    /// States a fact about an operator that is defined elsewhere, named `ns::name.overload` or `ns::name`.
    pub fn facet<F: Facet>(mut self, op: &str, facet: F) -> Self {
        let mut facet = Some(facet);
        if let Some(kernel) = (&mut facet as &mut dyn Any).downcast_mut::<Option<Kernel>>() {
            *kernel = kernel.take().map(Kernel::catching_panics);
        }
        if let Some(facet) = facet {
            self.registry.facet(op, facet);
        }
        self.extended = true;
        self
    }

    /// Adds the rewrite rules of a text, which `peephole` and `egraph` apply beside those that operators state about
    /// themselves. `name` is what errors call the text.
    pub fn rules(mut self, name: &str, text: &str) -> Self {
        self.book.add(Source::new(name, text));
        self
    }

    /// Adds conditions and functions that rules may use.
    pub fn rule_words(mut self, add: impl FnOnce(&mut Vocabulary)) -> Self {
        add(self.book.words());
        self
    }

    /// Adds all that an extension brings: `Session::builder().standard().with(acme::extend)`.
    pub fn with(self, extension: impl FnOnce(Self) -> Self) -> Self {
        extension(self)
    }

    /// Adds a pass, or puts it in the place of one of the same name.
    pub fn pass(mut self, entry: PassEntry) -> Self {
        self.library.add(entry);
        self
    }

    /// Names a pipeline. The one named `default` optimizes what is run.
    pub fn pipeline(mut self, name: &str, text: &str) -> Self {
        self.library.name_pipeline(name, text);
        self
    }

    /// Sets how programs are run.
    pub fn execution(mut self, execution: Execution) -> Self {
        self.settings.execution = execution;
        self
    }

    /// Sets how closely passes are watched. Unless they are not watched at all ([`Checks::Off`]), an optimization that fails
    /// is an error of the call; else the program runs unoptimized and the failure is recorded
    /// ([`Session::optimization_failures`]). The default is [`Checks::Boundaries`] in builds with debug assertions and
    /// [`Checks::Off`] in others.
    pub fn checks(mut self, checks: Checks) -> Self {
        self.settings.checks = checks;
        self
    }

    /// Calls `hook` for each optimization that fails, on the thread whose call asked for it.
    pub fn on_optimization_failure(
        mut self,
        hook: impl Fn(&OptimizationFailure) + Send + Sync + 'static,
    ) -> Self {
        self.settings.failures.set_hook(Arc::new(hook));
        self
    }

    /// Sets all bounds on reading, compiling and running.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.set_limits(limits);
        self
    }

    /// Bounds every call: one unit per loop iteration and per call of a function.
    pub fn fuel(mut self, units: u64) -> Self {
        self.settings.run.fuel = units;
        self
    }

    /// Bounds the bytes that a call's tensors and large containers hold at a time.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.settings.run.memory = Some(bytes);
        self
    }

    /// Bounds the bytes of freed tensors that each of a program's machines keeps for its next tensors, and as much again
    /// of dropped results ([`Vm::RECYCLED`] unless set). With 0 all goes back to the system at once, and large tensors
    /// pay for fresh pages at every call.
    pub fn recycled(mut self, bytes: usize) -> Self {
        self.settings.recycled = bytes;
        self
    }

    /// Sets how many threads may work on a large loop of a run: 1 for the calling thread alone, 0 for as many as the
    /// machine has for this process, which is the default. Results are the same bits for any number. Sessions share
    /// the threads there are; none is started before a loop is worth it.
    pub fn threads(mut self, count: usize) -> Self {
        self.settings.threads = count;
        self
    }

    /// Makes the session, or says what does not fit together.
    ///
    /// # Errors
    /// `S0001` for operators whose definitions are wrong or contradict each other, `S0002` for gradients of operators or
    /// arguments that are not there, `F…` for gradients that do not compile, `R…` for rules and pipelines that are wrong or
    /// name what is not there; `S0009` if a switch in the environment cannot be followed.
    pub fn build(mut self) -> Result<Session, Error> {
        check_switches()?;
        let registry = self.registry.build()?;
        if self.extended || !self.book.is_empty() {
            self.book.resolve(&registry)?;
        }
        self.library.rules(self.book.clone());
        for (name, _) in self.library.pipelines() {
            Pipeline::parse(name, &self.library)?;
        }
        let session = Session::new(registry, self.settings, self.library, self.book)?;
        if self.extended {
            crate::gradients::check_extensions(&session)?;
        }
        Ok(session)
    }
}

/// Whether the switches in the environment can be followed.
fn check_switches() -> Result<(), Error> {
    switches::check().map_err(|e| Error::new(e.fault(), "S0009", e.to_string()))
}

/// Where programs are loaded and run. Sessions with different operators live side by side.
#[derive(Clone)]
pub struct Session {
    registry: Arc<Registry>,
    pub(crate) settings: Settings,
    library: Arc<PassLibrary>,
    book: Arc<Rulebook>,
    default: Arc<Pipeline>,
    /// Made when a gradient is first asked for. It holds a session itself, one without it.
    gradients: Arc<OnceLock<Arc<Library>>>,
}

/// The passes and pipelines every session starts with.
fn standard_library() -> PassLibrary {
    let mut library = PassLibrary::standard();
    for (name, text) in PIPELINES {
        library.name_pipeline(name, text);
    }
    library
}

impl Session {
    fn new(
        registry: Arc<Registry>,
        settings: Settings,
        library: PassLibrary,
        book: Rulebook,
    ) -> Result<Session, Error> {
        let default = Arc::new(Pipeline::parse("default", &library)?);
        let (library, book) = (Arc::new(library), Arc::new(book));
        Ok(Session { registry, settings, library, book, default, gradients: Arc::default() })
    }

    /// A session to be configured. Its limits are the default ones.
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            registry: RegistryBuilder::new(),
            settings: Settings::default(),
            library: standard_library(),
            book: Rulebook::new(),
            extended: false,
        }
    }

    /// A session with the standard operators and the default limits.
    ///
    /// # Errors
    /// `S0009` if a switch in the environment cannot be followed.
    pub fn standard() -> Result<Session, Error> {
        check_switches()?;
        Session::new(flambeau_ops::registry(), Settings::default(), standard_library(), Rulebook::new())
    }

    /// The passes and named pipelines.
    pub fn passes(&self) -> &PassLibrary {
        &self.library
    }

    /// Reads a pipeline: passes and named pipelines by name, options in braces.
    ///
    /// # Errors
    /// The place in the text that is wrong, with what may be meant.
    pub fn pipeline(&self, text: &str) -> Result<Pipeline, Error> {
        Ok(Pipeline::parse(text, &self.library)?)
    }

    /// All rewrite rules: those operators state about themselves, then those given to the session.
    ///
    /// # Errors
    /// Never for a session of [`SessionBuilder::build`] over standard operators, which looks at them.
    pub fn rules(&self) -> Result<RuleSet, Error> {
        Ok(self.book.resolve(&self.registry)?)
    }

    /// Whether a pass or pipeline has this name.
    pub fn has_pass(&self, name: &str) -> bool {
        self.library.find(name).is_some() || self.library.pipelines().any(|(n, _)| n == name)
    }

    /// A copy of `graph` after a pipeline.
    ///
    /// # Errors
    /// If the pipeline does not read, or a pass fails.
    pub fn optimize(&self, graph: &Graph, pipeline: &str) -> Result<Arc<Graph>, Error> {
        let pipeline = self.pipeline(pipeline)?;
        self.apply(graph, &CompilationUnit::new(), &pipeline, ConstantOwner::default()).map(Arc::new)
    }

    /// A copy of `graph` after a pipeline that may look into `unit`.
    pub(crate) fn apply_text(
        &self,
        graph: &Graph,
        unit: &CompilationUnit,
        pipeline: &str,
    ) -> Result<Graph, Error> {
        self.apply_owned(graph, unit, pipeline, ConstantOwner::default())
    }

    /// [`Session::apply_text`] where more is known of constants than the graph says.
    pub(crate) fn apply_owned(
        &self,
        graph: &Graph,
        unit: &CompilationUnit,
        pipeline: &str,
        owner: ConstantOwner,
    ) -> Result<Graph, Error> {
        self.apply(graph, unit, &self.pipeline(pipeline)?, owner)
    }

    fn apply(
        &self,
        graph: &Graph,
        unit: &CompilationUnit,
        pipeline: &Pipeline,
        owner: ConstantOwner,
    ) -> Result<Graph, Error> {
        let mut copy = graph.clone();
        let mut manager = Manager::new().unit(unit).checks(self.settings.checks);
        let mut analyses = Analyses::new();
        analyses.set_constant_owner(owner);
        let mut run = || manager.run_with(&mut copy, pipeline, &mut analyses, &mut Control::new());
        // After a panic nothing is used of the copy, the analyses and the manager.
        match catch_unwind(AssertUnwindSafe(&mut run)) {
            Ok(Ok(_)) => Ok(copy),
            Ok(Err(e)) => Err(Error::new(e.error.fault, "P0001", e.to_string())),
            Err(panic) => {
                let text = format!("pipeline `{pipeline}` panicked: {}", panic_message(&*panic));
                Err(Error::new(Fault::Internal, "P0001", text))
            }
        }
    }

    /// Records that the default pipeline failed on a graph.
    pub(crate) fn report(
        &self,
        function: Option<Symbol>,
        graph: &Graph,
        unit: &CompilationUnit,
        error: &Error,
    ) {
        let pipeline = self.default.to_string();
        // IR text has no functions to call: with calls inlined, where that is possible, it stands for itself.
        let whole = self.apply_text(graph, unit, "inline").ok();
        let text =
            whole.as_ref().unwrap_or(graph).to_text(PrintOptions { exact: true, ..Default::default() });
        let message = error.message.lines().next().unwrap_or_default();
        let reproducer =
            format!("# flambeau opt -p '{pipeline}' --checks every-edit THIS_FILE\n# {message}\n{text}");
        self.settings.failures.report(OptimizationFailure {
            function,
            pipeline,
            error: error.clone(),
            reproducer,
        });
    }

    /// Optimizations that failed so far in this session and its variants, the newest 64, oldest first.
    pub fn optimization_failures(&self) -> Vec<Arc<OptimizationFailure>> {
        self.settings.failures.recorded()
    }

    /// How closely passes are watched; see [`SessionBuilder::checks`].
    pub fn checks(&self) -> Checks {
        self.settings.checks
    }

    /// The operators.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// How programs are run.
    pub fn execution(&self) -> Execution {
        self.settings.execution
    }

    /// The bounds on reading, compiling and running.
    pub fn limits(&self) -> Limits {
        self.settings.limits()
    }

    /// How many threads may work on a loop; see [`SessionBuilder::threads`].
    pub fn threads(&self) -> usize {
        self.settings.threads
    }

    /// Bytes of freed tensors that each machine keeps; see [`SessionBuilder::recycled`].
    pub(crate) fn recycled(&self) -> usize {
        self.settings.recycled
    }

    /// The same session with other settings.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Settings)) -> Session {
        let mut session = Session { gradients: Arc::default(), ..self.clone() };
        change(&mut session.settings);
        session
    }

    /// The same session with another way of execution.
    pub fn with_execution(&self, execution: Execution) -> Session {
        self.with(|settings| settings.execution = execution)
    }

    /// The same session with other bounds.
    pub fn with_limits(&self, limits: Limits) -> Session {
        self.with(|settings| settings.set_limits(limits))
    }

    /// The same session with another number of threads; see [`SessionBuilder::threads`].
    pub fn with_threads(&self, count: usize) -> Session {
        self.with(|settings| settings.threads = count)
    }

    /// The same session with a hook for optimizations that fail; see [`SessionBuilder::on_optimization_failure`].
    pub fn with_failure_hook(&self, hook: impl Fn(&OptimizationFailure) + Send + Sync + 'static) -> Session {
        self.with(|settings| settings.failures.set_hook(Arc::new(hook)))
    }

    /// Reads IR text; its graph becomes the entry `forward`.
    ///
    /// # Errors
    /// `T…` with the place in the text, `V…` if the text is a graph that does not verify.
    pub fn parse_ir(&self, text: &str) -> Result<Program, Error> {
        self.parse_ir_named(text, "<ir>")
    }

    /// Reads IR text from a file of this name.
    ///
    /// # Errors
    /// As [`Session::parse_ir`].
    pub fn parse_ir_named(&self, text: &str, name: &str) -> Result<Program, Error> {
        let source = Source::new(name, text);
        let graph = parse_graph_with(&source, &self.registry, self.settings.text)?;
        flambeau_ir::verify::verify(&graph)?;
        Ok(Program::of_graph(self, Arc::new(graph)))
    }

    /// Makes a program of a graph; it becomes the entry `forward`.
    ///
    /// # Errors
    /// `V…` if it does not verify.
    pub fn program_of(&self, graph: Graph) -> Result<Program, Error> {
        flambeau_ir::verify::verify(&graph)?;
        Ok(Program::of_graph(self, Arc::new(graph)))
    }

    /// Makes a program of a graph that calls functions; the graph becomes the entry `forward`.
    ///
    /// # Errors
    /// `V…` if the graph or the body of a function does not verify.
    pub fn program_with(&self, graph: Graph, unit: Arc<CompilationUnit>) -> Result<Program, Error> {
        flambeau_ir::verify::verify_with(&graph, &*unit)?;
        for function in unit.functions() {
            flambeau_ir::verify::verify_with(&function.graph, &*unit)?;
        }
        Ok(Program::with_callees(self, Arc::new(graph), unit))
    }

    /// Compiles TorchScript source: its functions become the entries.
    ///
    /// # Errors
    /// `F…` with the places in the source; all errors found, not only the first.
    pub fn compile_source(&self, text: &str, name: &str) -> Result<Program, Error> {
        self.compile_source_with(text, name, &flambeau_frontend::NativeResolver)
    }

    /// Compiles TorchScript source whose free names mean what `resolver` says: types and values of the embedder's, and
    /// objects that its [`Host`] answers for when the program runs.
    ///
    /// # Errors
    /// As [`Session::compile_source`].
    pub fn compile_source_with(
        &self,
        text: &str,
        name: &str,
        resolver: &dyn flambeau_frontend::Resolver,
    ) -> Result<Program, Error> {
        let source = Source::new(name, text);
        let unit = flambeau_frontend::compile_with(
            &source,
            &self.registry,
            resolver,
            &self.settings.load.source_limits,
        )?;
        Ok(Program::of_unit(self, unit))
    }

    /// The graphs of a source's functions after every stage of their compilation.
    ///
    /// # Errors
    /// As [`Session::compile_source`].
    pub fn compile_stages(&self, text: &str, name: &str) -> Result<Vec<StageText>, Error> {
        let source = Source::new(name, text);
        Ok(flambeau_frontend::compile_stages(&source, &self.registry, &self.settings.load.source_limits)?)
    }

    /// A copy of `graph` after the session's default pipeline.
    pub(crate) fn optimized(&self, graph: &Graph, unit: &CompilationUnit) -> Result<Graph, Error> {
        self.apply(graph, unit, &self.default, ConstantOwner::default())
    }

    /// Limits of source texts.
    pub(crate) fn source_limits(&self) -> flambeau_frontend::Limits {
        self.settings.load.source_limits
    }

    /// The derivatives of the operators.
    pub(crate) fn gradient_library(&self) -> Result<Arc<Library>, Error> {
        if let Some(library) = self.gradients.get() {
            return Ok(Arc::clone(library));
        }
        let library = Arc::new(Library::new(self)?);
        Ok(Arc::clone(self.gradients.get_or_init(|| library)))
    }

    /// A host with this session's limits, printing to standard output.
    pub fn host(&self) -> Host {
        let (mut host, limits) = (Host::new(), &self.settings.run);
        host.set_fuel(limits.fuel).set_max_depth(limits.depth).set_time(limits.time);
        host.set_budget(limits.memory.map(Budget::new));
        host
    }
}
