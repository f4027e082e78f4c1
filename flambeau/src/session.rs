//! Sessions: the operators, limits and modes of execution with which programs are loaded.

use crate::background::Background;
use crate::error::Error;
use crate::failures::{Failures, OptimizationFailure};
use crate::gradients::FormulaLibrary;
use crate::limits::{Limits, OptimizationLimits, RunLimits};
use crate::program::Program;
use flambeau_analysis::{Analyses, ConstantOwner};
use flambeau_exec::vm::Vm;
use flambeau_exec::{Host, Kernel, panic_message};
use flambeau_executor::{CompileStage, Deopt};
use flambeau_frontend::emit::StageText;
use flambeau_ir::text::{ReadLimits, parse_graph_with};
use flambeau_ir::{CompilationUnit, Facet, Fault, Graph, OpDef, Registry, RegistryBuilder, Source, Symbol};
use flambeau_rewrite::manager::reproducer;
use flambeau_rewrite::{
    Checks, Control, Deadline, Manager, PassEntry, PassLibrary, Pipeline, RuleLibrary, RuleSet, Vocabulary,
};
use flambeau_tensor::{MemoryBudget, switches};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// Mode of execution of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Execution {
    /// The reference evaluator, a plain graph walk that defines the semantics of programs.
    Reference,
    /// Bytecode on the register machine, without optimization.
    Machine,
    /// Optimization, then bytecode.
    #[default]
    Optimized,
    /// The first calls of an entry run with profiling nodes; later calls run bytecode that is specialized to the types, sizes and branches that they
    /// observed, under guards. Results are those of [`Execution::Optimized`].
    Profiling,
}

/// The thread that compiles plans under [`Execution::Profiling`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compilation {
    /// [`Compilation::Background`], unless the session runs loops on the calling thread only
    /// ([`SessionBuilder::threads`]) or checks its passes ([`SessionBuilder::checks`]).
    #[default]
    Automatic,
    /// A background thread. Calls never wait: meanwhile they run the function as it was loaded. A failed stage is
    /// recorded ([`Session::optimization_failures`]) and is not an error of a call.
    Background,
    /// The calling thread, always at the same calls.
    Synchronous,
}

/// The pipelines of every session: name and text.
const PIPELINES: &[(&str, &str)] = &[
    (
        "simplify",
        "inline,scalar_replacement,optional_replacement,lower_simple_tuples,constant_propagation,constant_pooling,cse,dce",
    ),
    ("default", "simplify,peephole,fold_facts,saturate,cse,dce,fuse,write_numbers,dce"),
];

/// Builder of a session.
pub struct SessionBuilder {
    registry: RegistryBuilder,
    pub(crate) settings: Settings,
    library: PassLibrary,
    rules: RuleLibrary,
    /// Whether there are operators or facets in addition to the standard ones.
    extended: bool,
}

/// Options for loading archives and source.
#[cfg(feature = "archive")]
pub(crate) type Loading = flambeau_archive::LoadOptions;

/// Options for loading source.
#[cfg(not(feature = "archive"))]
#[derive(Clone, Default)]
pub(crate) struct Loading {
    source_limits: flambeau_frontend::FrontendLimits,
}

/// Settings of a session other than operators, rules and passes.
#[derive(Clone)]
pub(crate) struct Settings {
    execution: Execution,
    checks: Checks,
    optimization: OptimizationLimits,
    run: RunLimits,
    text: ReadLimits,
    /// Contains the limits of source and of archives.
    pub(crate) load: Loading,
    #[cfg(feature = "export")]
    exported: flambeau_export::container::Limits,
    recycled: usize,
    threads: usize,
    executor: flambeau_executor::ExecutorSettings,
    compilation: Compilation,
    background: Background,
    failures: Failures,
    /// Number of recorded calls of an entry before it runs differentiated graphs.
    differentiated_after: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            execution: Execution::default(),
            checks: if cfg!(debug_assertions) { Checks::Boundaries } else { Checks::Off },
            optimization: OptimizationLimits::default(),
            run: RunLimits::default(),
            text: ReadLimits::default(),
            load: Loading::default(),
            #[cfg(feature = "export")]
            exported: flambeau_export::container::Limits::default(),
            recycled: Vm::RECYCLED,
            threads: 0,
            executor: flambeau_executor::ExecutorSettings::default(),
            compilation: Compilation::default(),
            background: Background::default(),
            failures: Failures::default(),
            differentiated_after: 1,
        }
    }
}

/// The environment variable that makes guards of plans fail.
const DEOPT: &str = "FLAMBEAU_DEOPT";

impl Settings {
    /// Reads the settings that environment variables state.
    fn read_environment(&mut self) -> Result<(), Error> {
        let Some(text) = std::env::var_os(DEOPT).filter(|_| self.executor.deopt.is_none()) else {
            return Ok(());
        };
        let parsed = text.to_string_lossy().parse::<Deopt>();
        let invalid = |e| Error::new(Fault::Misuse, "S0009", format!("{DEOPT}: {e}"));
        self.executor.deopt = Some(parsed.map_err(invalid)?);
        Ok(())
    }

    fn limits(&self) -> Limits {
        Limits {
            source: self.load.source_limits,
            text: self.text,
            #[cfg(feature = "archive")]
            archive: self.load.limits.clone(),
            #[cfg(feature = "export")]
            exported: self.exported.clone(),
            optimization: self.optimization,
            run: self.run,
        }
    }

    fn set_limits(&mut self, limits: Limits) {
        (self.load.source_limits, self.text) = (limits.source, limits.text);
        (self.optimization, self.run) = (limits.optimization, limits.run);
        #[cfg(feature = "archive")]
        {
            self.load.limits = limits.archive;
        }
        #[cfg(feature = "export")]
        {
            self.exported = limits.exported;
        }
    }
}

impl SessionBuilder {
    /// Adds the standard operators.
    pub fn standard(mut self) -> Self {
        flambeau_ops::standard(&mut self.registry);
        self
    }

    /// Adds operators. A panic in one of their kernels fails the call and leaves the session usable, unless the program
    /// is compiled with `panic = "abort"`.
    pub fn ops(mut self, defs: impl IntoIterator<Item = OpDef>) -> Self {
        self.registry.add(defs.into_iter().map(|def| def.map(Kernel::catching_panics)));
        self.extended = true;
        self
    }

    /// Adds a facet to an operator that is defined elsewhere, named `ns::name.overload` or `ns::name`.
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

    /// Adds the rewrite rules of a text, which `peephole` and `egraph` apply in addition to the rules stated by
    /// operators. Error messages use `name` for the text.
    pub fn rules(mut self, name: &str, text: &str) -> Self {
        self.rules.add(Source::new(name, text));
        self
    }

    /// Adds conditions and functions that rules may use.
    pub fn rule_vocabulary(mut self, add: impl FnOnce(&mut Vocabulary)) -> Self {
        add(self.rules.words());
        self
    }

    /// Adds all parts of an extension: `Session::builder().standard().with(acme::extend)`.
    pub fn with(self, extension: impl FnOnce(Self) -> Self) -> Self {
        extension(self)
    }

    /// Adds a pass, or replaces the one of the same name.
    pub fn pass(mut self, entry: PassEntry) -> Self {
        self.library.add(entry);
        self
    }

    /// Adds a named pipeline. The pipeline named `default` optimizes programs before execution.
    pub fn pipeline(mut self, name: &str, text: &str) -> Self {
        self.library.name_pipeline(name, text);
        self
    }

    /// Sets the mode of execution.
    pub fn execution(mut self, execution: Execution) -> Self {
        self.settings.execution = execution;
        self
    }

    /// Sets after how many recorded calls an entry runs differentiated graphs, which are compiled and optimized, instead
    /// of recording each operator; `u32::MAX`: never. The default is 1.
    pub fn differentiated_after(mut self, calls: u32) -> Self {
        self.settings.differentiated_after = calls;
        self
    }

    /// Sets the checks on passes. With any checks except [`Checks::Off`], a failed optimization is an error of the
    /// call. With [`Checks::Off`], the program runs unoptimized and the failure is recorded
    /// ([`Session::optimization_failures`]). The default is [`Checks::Boundaries`] in builds with debug assertions and
    /// [`Checks::Off`] in others.
    pub fn checks(mut self, checks: Checks) -> Self {
        self.settings.checks = checks;
        self
    }

    /// Sets a hook that is called for each failed optimization, on the thread of the call that required it.
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

    /// Bounds every call: one unit per loop iteration and per function call.
    pub fn fuel(mut self, units: u64) -> Self {
        self.settings.run.fuel = units;
        self
    }

    /// Bounds the bytes that a call's tensors and large containers hold at a time.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.settings.run.memory = Some(bytes);
        self
    }

    /// Bounds the bytes of freed tensors that each of a program's machines keeps for reuse, and likewise those of
    /// dropped results ([`Vm::RECYCLED`] by default). With 0, all memory is returned to the system at once, and large
    /// tensors cause page faults at every call.
    pub fn recycled(mut self, bytes: usize) -> Self {
        self.settings.recycled = bytes;
        self
    }

    /// Sets how many threads may work on a large loop of a run: 1 selects only the calling thread, 0, the default, the
    /// number of processors available to this process. Results are bitwise equal for any number. All sessions share one
    /// pool; threads are started by the first loop that is large enough.
    pub fn threads(mut self, count: usize) -> Self {
        self.settings.threads = count;
        self
    }

    /// Sets how many calls of an entry are profiled before its plan is made, for [`Execution::Profiling`]. The default
    /// is 2.
    pub fn profiled_runs(mut self, count: u32) -> Self {
        self.settings.executor.profiled_runs = count;
        self
    }

    /// Sets the thread that compiles plans, for [`Execution::Profiling`].
    pub fn compilation(mut self, compilation: Compilation) -> Self {
        self.settings.compilation = compilation;
        self
    }

    /// Makes guards of plans fail, for tests; results of calls stay the same. The environment variable `FLAMBEAU_DEOPT`
    /// (`all`, `every:N` or `guard:K`) has the same effect in sessions without this setting.
    pub fn deopt(mut self, deopt: Deopt) -> Self {
        self.settings.executor.deopt = Some(deopt);
        self
    }

    /// Builds the session.
    ///
    /// # Errors
    /// `S0001` for invalid or contradicting definitions of operators, `S0002` for gradients of unknown operators or
    /// arguments, `F…` for gradients that do not compile, `R…` for rules and pipelines that are invalid or have unknown
    /// names; `S0009` for an invalid environment variable.
    pub fn build(mut self) -> Result<Session, Error> {
        check_switches()?;
        self.settings.read_environment()?;
        let registry = self.registry.build()?;
        if self.extended || !self.rules.is_empty() {
            self.rules.resolve(&registry)?;
        }
        self.library.rules(self.rules.clone());
        for (name, _) in self.library.pipelines() {
            Pipeline::parse(name, &self.library)?;
        }
        let session = Session::new(registry, self.settings, self.library, self.rules)?;
        if self.extended {
            crate::gradients::check_extensions(&session)?;
        }
        Ok(session)
    }
}

/// Checks the environment variables.
fn check_switches() -> Result<(), Error> {
    switches::check().map_err(|e| Error::new(e.fault(), "S0009", e.to_string()))
}

/// Loads and runs programs. Sessions with different operators can coexist.
#[derive(Clone)]
pub struct Session {
    registry: Arc<Registry>,
    pub(crate) settings: Settings,
    library: Arc<PassLibrary>,
    rules: Arc<RuleLibrary>,
    default: Arc<Pipeline>,
    /// Created when a gradient is first requested. The library contains a session without a library.
    gradients: Arc<OnceLock<Arc<FormulaLibrary>>>,
}

/// Returns the standard passes and pipelines.
fn standard_library() -> PassLibrary {
    let mut library = PassLibrary::standard();
    for (name, text) in PIPELINES.iter().chain(&flambeau_executor::PIPELINES) {
        library.name_pipeline(name, text);
    }
    library
}

impl Session {
    fn new(
        registry: Arc<Registry>,
        settings: Settings,
        library: PassLibrary,
        rules: RuleLibrary,
    ) -> Result<Session, Error> {
        let default = Arc::new(Pipeline::parse("default", &library)?);
        let (library, rules) = (Arc::new(library), Arc::new(rules));
        Ok(Session { registry, settings, library, rules, default, gradients: Arc::default() })
    }

    /// Returns a builder with the default limits.
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            registry: RegistryBuilder::new(),
            settings: Settings::default(),
            library: standard_library(),
            rules: RuleLibrary::new(),
            extended: false,
        }
    }

    /// Creates a session with the standard operators and the default limits.
    ///
    /// # Errors
    /// `S0009` for an invalid environment variable.
    pub fn standard() -> Result<Session, Error> {
        check_switches()?;
        let mut settings = Settings::default();
        settings.read_environment()?;
        Session::new(flambeau_ops::registry(), settings, standard_library(), RuleLibrary::new())
    }

    /// Returns the passes and named pipelines.
    pub fn passes(&self) -> &PassLibrary {
        &self.library
    }

    /// Parses a pipeline: passes and named pipelines by name, options in braces.
    ///
    /// # Errors
    /// `R0101` with the position in the text, and a suggestion.
    pub fn pipeline(&self, text: &str) -> Result<Pipeline, Error> {
        Ok(Pipeline::parse(text, &self.library)?)
    }

    /// Returns all rewrite rules: those stated by operators, then those added to the session.
    ///
    /// # Errors
    /// Never for a session of [`SessionBuilder::build`] with the standard operators, because `build` has parsed them.
    pub fn rules(&self) -> Result<RuleSet, Error> {
        Ok(self.rules.resolve(&self.registry)?)
    }

    /// Returns whether a pass or pipeline has this name.
    pub fn has_pass(&self, name: &str) -> bool {
        self.library.find(name).is_some() || self.library.pipelines().any(|(n, _)| n == name)
    }

    /// Returns a copy of `graph` after a pipeline.
    ///
    /// # Errors
    /// If the pipeline does not parse, or a pass fails.
    pub fn optimize(&self, graph: &Graph, pipeline: &str) -> Result<Arc<Graph>, Error> {
        let pipeline = self.pipeline(pipeline)?;
        self.apply(graph, &CompilationUnit::new(), &pipeline, ConstantOwner::default()).map(Arc::new)
    }

    /// Returns a copy of `graph` after a pipeline; passes may read functions of `unit`.
    pub(crate) fn apply_text(
        &self,
        graph: &Graph,
        unit: &CompilationUnit,
        pipeline: &str,
    ) -> Result<Graph, Error> {
        self.apply_owned(graph, unit, pipeline, ConstantOwner::default())
    }

    /// Like [`Session::apply_text`], with additional facts about constants.
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
        let mut control = Control::new().with_deadline(Deadline::after(self.settings.optimization.time));
        let mut run = || manager.run_with(&mut copy, pipeline, &mut analyses, &mut control);
        // After a panic, the copy, the analyses and the manager are dropped without further use.
        match catch_unwind(AssertUnwindSafe(&mut run)) {
            Ok(Ok(_)) => Ok(copy),
            Ok(Err(e)) => Err(Error::new(e.error.fault, "P0001", e.to_string())),
            Err(panic) => {
                let text = format!("pipeline `{pipeline}` panicked: {}", panic_message(&*panic));
                Err(Error::new(Fault::Internal, "P0001", text))
            }
        }
    }

    /// Records that a pipeline failed on a graph: the one with this name, or the default pipeline.
    pub(crate) fn report(
        &self,
        function: Option<Symbol>,
        stage: Option<CompileStage>,
        graph: &Graph,
        unit: &CompilationUnit,
        error: &Error,
    ) {
        let pipeline = stage.map_or_else(|| self.default.to_string(), |stage| stage.name().to_owned());
        // IR text cannot contain called functions, so the reproducer has the calls inlined, if possible.
        let whole = self.apply_text(graph, unit, "inline").ok();
        let reproducer = reproducer(&pipeline, &error.message, whole.as_ref().unwrap_or(graph));
        self.settings.failures.report(OptimizationFailure {
            function,
            pipeline,
            error: error.clone(),
            reproducer,
        });
    }

    /// Returns the failed optimizations of this session and its variants, the newest 64, oldest first.
    pub fn optimization_failures(&self) -> Vec<Arc<OptimizationFailure>> {
        self.settings.failures.recorded()
    }

    /// Returns the checks on passes; see [`SessionBuilder::checks`].
    pub fn checks(&self) -> Checks {
        self.settings.checks
    }

    /// Returns the operators.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the mode of execution.
    pub fn execution(&self) -> Execution {
        self.settings.execution
    }

    /// Returns the bounds on reading, compiling and running.
    pub fn limits(&self) -> Limits {
        self.settings.limits()
    }

    /// Returns how many threads may work on a loop; see [`SessionBuilder::threads`].
    pub fn threads(&self) -> usize {
        self.settings.threads
    }

    /// Returns the settings of the executors of entries.
    pub(crate) fn executor_settings(&self) -> flambeau_executor::ExecutorSettings {
        self.settings.executor
    }

    /// Returns whether plans are compiled on a background thread; see [`SessionBuilder::compilation`].
    pub(crate) fn compiles_in_background(&self) -> bool {
        match self.settings.compilation {
            Compilation::Automatic => self.settings.threads != 1 && self.settings.checks == Checks::Off,
            chosen => chosen == Compilation::Background,
        }
    }

    /// Returns the queue of compilations, which the variants of a session share.
    pub(crate) fn background(&self) -> &Background {
        &self.settings.background
    }

    /// Waits until the background thread has compiled all plans that calls have requested so far. Returns at once in
    /// sessions that compile on the calling thread.
    pub fn wait_for_compilations(&self) {
        self.settings.background.wait();
    }

    /// Returns the bytes of freed tensors that each machine keeps; see [`SessionBuilder::recycled`].
    pub(crate) fn recycled(&self) -> usize {
        self.settings.recycled
    }

    /// Returns the same session with other settings.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Settings)) -> Session {
        let mut session = Session { gradients: Arc::default(), ..self.clone() };
        change(&mut session.settings);
        session
    }

    /// Returns the same session with another mode of execution.
    pub fn with_execution(&self, execution: Execution) -> Session {
        self.with(|settings| settings.execution = execution)
    }

    /// Returns the same session with another number of calls before differentiated graphs run; see
    /// [`SessionBuilder::differentiated_after`].
    pub fn with_differentiated_after(&self, calls: u32) -> Session {
        self.with(|settings| settings.differentiated_after = calls)
    }

    /// Returns the same session with another thread for compilations; see [`SessionBuilder::compilation`].
    pub fn with_compilation(&self, compilation: Compilation) -> Session {
        self.with(|settings| settings.compilation = compilation)
    }

    /// Returns the same session with guards that are made to fail, or with none; see [`SessionBuilder::deopt`].
    pub fn with_deopt(&self, deopt: Option<Deopt>) -> Session {
        self.with(|settings| settings.executor.deopt = deopt)
    }

    /// Returns the same session with other bounds.
    pub fn with_limits(&self, limits: Limits) -> Session {
        self.with(|settings| settings.set_limits(limits))
    }

    /// Returns the same session with another number of threads; see [`SessionBuilder::threads`].
    pub fn with_threads(&self, count: usize) -> Session {
        self.with(|settings| settings.threads = count)
    }

    /// Returns the same session with a hook for failed optimizations; see [`SessionBuilder::on_optimization_failure`].
    pub fn with_failure_hook(&self, hook: impl Fn(&OptimizationFailure) + Send + Sync + 'static) -> Session {
        self.with(|settings| settings.failures.set_hook(Arc::new(hook)))
    }

    /// Parses IR text; its graph becomes the entry `forward`.
    ///
    /// # Errors
    /// `T…` with the position in the text, `V…` if the graph does not verify.
    pub fn parse_ir(&self, text: &str) -> Result<Program, Error> {
        self.parse_ir_named(text, "<ir>")
    }

    /// Parses IR text; errors use `name` for the text.
    ///
    /// # Errors
    /// As [`Session::parse_ir`].
    pub fn parse_ir_named(&self, text: &str, name: &str) -> Result<Program, Error> {
        let source = Source::new(name, text);
        let graph = parse_graph_with(&source, &self.registry, self.settings.text)?;
        flambeau_ir::verify::verify(&graph).map_err(|errors| Error::from(errors).in_file(name))?;
        Ok(Program::of_graph(self, Arc::new(graph)))
    }

    /// Creates a program from a graph, which becomes the entry `forward`.
    ///
    /// # Errors
    /// `V…` if it does not verify.
    pub fn program_of(&self, graph: Graph) -> Result<Program, Error> {
        flambeau_ir::verify::verify(&graph)?;
        Ok(Program::of_graph(self, Arc::new(graph)))
    }

    /// Creates a program from a graph that calls functions of `unit`; the graph becomes the entry `forward`.
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

    /// Compiles TorchScript source; its functions become the entries.
    ///
    /// # Errors
    /// `F…` with positions in the source; the error has all errors found, not only the first.
    pub fn compile_source(&self, text: &str, name: &str) -> Result<Program, Error> {
        self.compile_source_with(text, name, &flambeau_frontend::NativeResolver)
    }

    /// Compiles TorchScript source whose free names `resolver` resolves: to types and values of the embedder, and to
    /// objects for which the [`Host`] acts when the program runs.
    ///
    /// # Errors
    /// As [`Session::compile_source`].
    pub fn compile_source_with(
        &self,
        text: &str,
        name: &str,
        resolver: &dyn flambeau_frontend::Resolver,
    ) -> Result<Program, Error> {
        self.compile_sources(&[Source::new(name, text)], resolver)
    }

    /// As [`Session::compile_source_with`], for a program in several texts, such as functions from several files. A class
    /// must be defined before annotations of other classes refer to it.
    ///
    /// # Errors
    /// As [`Session::compile_source`].
    pub fn compile_sources(
        &self,
        sources: &[Arc<Source>],
        resolver: &dyn flambeau_frontend::Resolver,
    ) -> Result<Program, Error> {
        let unit = flambeau_frontend::compile_sources(
            sources,
            &self.registry,
            resolver,
            &self.settings.load.source_limits,
        )?;
        Ok(Program::of_unit(self, unit))
    }

    /// Returns the graphs of a source's functions after every stage of compilation.
    ///
    /// # Errors
    /// As [`Session::compile_source`].
    pub fn compile_stages(&self, text: &str, name: &str) -> Result<Vec<StageText>, Error> {
        let source = Source::new(name, text);
        Ok(flambeau_frontend::compile_stages(&source, &self.registry, &self.settings.load.source_limits)?)
    }

    /// Returns a copy of `graph` after the session's default pipeline.
    pub(crate) fn optimized(&self, graph: &Graph, unit: &CompilationUnit) -> Result<Graph, Error> {
        self.apply(graph, unit, &self.default, ConstantOwner::default())
    }

    /// Returns a copy of `graph` after a stage of the executor.
    pub(crate) fn staged(
        &self,
        graph: &Graph,
        unit: &CompilationUnit,
        stage: CompileStage,
    ) -> Result<Graph, Error> {
        self.apply_text(graph, unit, stage.name())
    }

    /// Returns the limits of exported programs.
    #[cfg(feature = "export")]
    pub(crate) fn exported_limits(&self) -> &flambeau_export::container::Limits {
        &self.settings.exported
    }

    /// Returns the limits of source texts.
    pub(crate) fn source_limits(&self) -> flambeau_frontend::FrontendLimits {
        self.settings.load.source_limits
    }

    /// Returns the derivatives of the operators.
    pub(crate) fn gradient_library(&self) -> Result<Arc<FormulaLibrary>, Error> {
        if let Some(library) = self.gradients.get() {
            return Ok(Arc::clone(library));
        }
        let library = Arc::new(FormulaLibrary::new(self)?);
        Ok(Arc::clone(self.gradients.get_or_init(|| library)))
    }

    /// Returns the number of recorded calls of an entry before it runs differentiated graphs.
    pub(crate) fn differentiated_after(&self) -> u32 {
        self.settings.differentiated_after
    }

    /// Returns a host with this session's limits that prints to standard output.
    pub fn host(&self) -> Host {
        let mut host = Host::new();
        self.limit(&mut host);
        host
    }

    /// Sets this session's limits on a host.
    pub fn limit(&self, host: &mut Host) {
        let limits = &self.settings.run;
        host.set_fuel(limits.fuel).set_max_depth(limits.depth).set_time(limits.time);
        host.set_budget(limits.memory.map(MemoryBudget::new));
    }
}
