//! Sessions: the operators, limits and ways of execution that programs are loaded with.

use crate::error::Error;
use crate::gradients::Library;
use crate::module::Module;
use crate::program::Program;
use flambeau_analysis::Analyses;
use flambeau_archive::{LoadOptions, Weights};
use flambeau_exec::Host;
use flambeau_exec::vm::Vm;
use flambeau_frontend::emit::StageText;
use flambeau_ir::text::parse_graph;
use flambeau_ir::{CompilationUnit, Facet, Graph, OpDef, Registry, RegistryBuilder, Source};
use flambeau_rewrite::{Control, Manager, PassEntry, PassLibrary, Pipeline, RuleSet, Rulebook, Vocabulary};
use flambeau_tensor::Budget;
use std::path::Path;
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

/// What is done to programs before they are optimized or run, so that they mean what they mean: calls first, because who
/// writes a view is seen only with them.
pub(crate) const SETTLE: &str = "inline,constant_numbers,guard_copies";

/// Limits of runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLimits {
    pub(crate) fuel: u64,
    pub(crate) memory: Option<usize>,
    pub(crate) recycled: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        RunLimits { fuel: u64::MAX, memory: None, recycled: Vm::RECYCLED }
    }
}

/// What a session is made from.
pub struct SessionBuilder {
    registry: RegistryBuilder,
    execution: Execution,
    limits: RunLimits,
    threads: usize,
    load: LoadOptions,
    library: PassLibrary,
    book: Rulebook,
}

impl SessionBuilder {
    /// Adds the standard operators.
    pub fn standard(mut self) -> Self {
        flambeau_ops::standard(&mut self.registry);
        self
    }

    /// Adds operators.
    pub fn ops(mut self, defs: impl IntoIterator<Item = OpDef>) -> Self {
        self.registry.add(defs);
        self
    }

    /// States a fact about an operator that is defined elsewhere, named `ns::name.overload` or `ns::name`.
    pub fn facet<F: Facet>(mut self, op: &str, facet: F) -> Self {
        self.registry.facet(op, facet);
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
        self.execution = execution;
        self
    }

    /// Bounds every call: one unit per loop iteration and per call of a function.
    pub fn fuel(mut self, units: u64) -> Self {
        self.limits.fuel = units;
        self
    }

    /// Bounds the bytes that a call's tensors and large containers hold at a time.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.limits.memory = Some(bytes);
        self
    }

    /// Bounds the bytes of freed tensors that each of a program's machines keeps for its next tensors, and as much again
    /// of dropped results ([`Vm::RECYCLED`] unless set). With 0 all goes back to the system at once, and large tensors
    /// pay for fresh pages at every call.
    pub fn recycled(mut self, bytes: usize) -> Self {
        self.limits.recycled = bytes;
        self
    }

    /// Sets how many threads may work on a large loop of a run: 1 for the calling thread alone, 0 for as many as the
    /// machine has for this process, which is the default. Results are the same bits for any number. Sessions share
    /// the threads there are; none is started before a loop is worth it.
    pub fn threads(mut self, count: usize) -> Self {
        self.threads = count;
        self
    }

    /// Sets how archives are loaded.
    pub fn load_options(mut self, options: LoadOptions) -> Self {
        self.load = options;
        self
    }

    /// Makes the session, or says everything that does not fit together.
    ///
    /// # Errors
    /// `S0001` for operators whose definitions are wrong or contradict each other, `R…` for rules that are wrong or
    /// name what is not there.
    pub fn build(mut self) -> Result<Session, Error> {
        let registry = self.registry.build()?;
        if !self.book.is_empty() {
            self.book.resolve(&registry)?;
        }
        self.library.rules(self.book.clone());
        let session =
            Session::new(registry, self.execution, self.limits, self.load, self.library, self.book)?;
        Ok(session.with_threads(self.threads))
    }
}

/// Where programs are loaded and run. Sessions with different operators live side by side.
#[derive(Clone)]
pub struct Session {
    registry: Arc<Registry>,
    pub(crate) execution: Execution,
    pub(crate) limits: RunLimits,
    threads: usize,
    load: LoadOptions,
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
        execution: Execution,
        limits: RunLimits,
        load: LoadOptions,
        library: PassLibrary,
        book: Rulebook,
    ) -> Result<Session, Error> {
        let default = Arc::new(Pipeline::parse(&format!("{SETTLE},default"), &library)?);
        let (library, book) = (Arc::new(library), Arc::new(book));
        let gradients = Arc::default();
        Ok(Session { registry, execution, limits, threads: 0, load, library, book, default, gradients })
    }

    /// A session to be configured.
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            registry: RegistryBuilder::new(),
            execution: Execution::default(),
            limits: RunLimits::default(),
            threads: 0,
            load: LoadOptions::default(),
            library: standard_library(),
            book: Rulebook::new(),
        }
    }

    /// A session with the standard operators and no limits.
    ///
    /// # Errors
    /// Never in a build whose tests pass; see [`SessionBuilder::build`].
    pub fn standard() -> Result<Session, Error> {
        let limits = RunLimits::default();
        let load = LoadOptions::default();
        let (registry, library) = (flambeau_ops::registry(), standard_library());
        Session::new(registry, Execution::default(), limits, load, library, Rulebook::new())
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
        self.apply(graph, &CompilationUnit::new(), &pipeline).map(Arc::new)
    }

    /// A copy of `graph` after a pipeline that may look into `unit`.
    pub(crate) fn apply_text(
        &self,
        graph: &Graph,
        unit: &CompilationUnit,
        pipeline: &str,
    ) -> Result<Graph, Error> {
        self.apply(graph, unit, &self.pipeline(pipeline)?)
    }

    fn apply(&self, graph: &Graph, unit: &CompilationUnit, pipeline: &Pipeline) -> Result<Graph, Error> {
        let mut copy = graph.clone();
        let mut manager = Manager::new().unit(unit);
        let run = manager.run_with(&mut copy, pipeline, &mut Analyses::new(), &mut Control::new());
        run.map_err(|e| Error::new(e.error.fault, "P0001", e.to_string()))?;
        Ok(copy)
    }

    /// The operators.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// How programs are run.
    pub fn execution(&self) -> Execution {
        self.execution
    }

    /// The same session with another way of execution.
    pub fn with_execution(&self, execution: Execution) -> Session {
        Session { execution, gradients: Arc::default(), ..self.clone() }
    }

    /// How many threads may work on a loop; see [`SessionBuilder::threads`].
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The same session with another number of threads; see [`SessionBuilder::threads`].
    pub fn with_threads(&self, count: usize) -> Session {
        Session { threads: count, gradients: Arc::default(), ..self.clone() }
    }

    /// The same session with other options for loading archives.
    pub fn with_load_options(&self, load: LoadOptions) -> Session {
        Session { load, ..self.clone() }
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
        let graph = parse_graph(&source, &self.registry)?;
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
        let unit =
            flambeau_frontend::compile_with(&source, &self.registry, resolver, &self.load.source_limits)?;
        Ok(Program::of_unit(self, unit))
    }

    /// The graphs of a source's functions after every stage of their compilation.
    ///
    /// # Errors
    /// As [`Session::compile_source`].
    pub fn compile_stages(&self, text: &str, name: &str) -> Result<Vec<StageText>, Error> {
        let source = Source::new(name, text);
        Ok(flambeau_frontend::compile_stages(&source, &self.registry, &self.load.source_limits)?)
    }

    /// Loads a `.pt` archive.
    ///
    /// # Errors
    /// `A…` with record and offset, `F…` for its code.
    pub fn load_archive(&self, path: impl AsRef<Path>) -> Result<Program, Error> {
        let module = flambeau_archive::load_file(path.as_ref(), &self.registry, &self.load)?;
        Program::of_module(self, module)
    }

    /// Loads a `.pt` archive from memory.
    ///
    /// # Errors
    /// As [`Session::load_archive`].
    pub fn load_archive_bytes(&self, bytes: &[u8]) -> Result<Program, Error> {
        let module = flambeau_archive::load(bytes, &self.registry, &self.load)?;
        Program::of_module(self, module)
    }

    /// The tensors in a file, by name: a state dict or tensor of `torch.save`, a safetensors file, or the parameters
    /// and buffers of a `.pt` archive's module.
    ///
    /// # Errors
    /// `A…` with record and offset.
    pub fn load_weights(&self, path: impl AsRef<Path>) -> Result<Weights, Error> {
        let (path, limits) = (path.as_ref(), &self.load.limits);
        if !flambeau_archive::has_code_file(path, limits)? {
            return Ok(flambeau_archive::load_weights_file(path, self.load.map, limits)?);
        }
        let mut objects = self.load.clone();
        (objects.code, objects.extra_files) = (false, false);
        let module = flambeau_archive::load_file(path, &self.registry, &objects)?;
        Module::new(&module.unit, module.root).state_dict()
    }

    /// A copy of `graph` after the session's default pipeline.
    pub(crate) fn optimized(&self, graph: &Graph, unit: &CompilationUnit) -> Result<Graph, Error> {
        self.apply(graph, unit, &self.default)
    }

    /// Limits of source texts.
    pub(crate) fn source_limits(&self) -> flambeau_frontend::Limits {
        self.load.source_limits
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
        let mut host = Host::new();
        host.set_fuel(self.limits.fuel);
        host.set_budget(self.limits.memory.map(Budget::new));
        host
    }
}
