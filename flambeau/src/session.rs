//! Sessions: the operators, limits and ways of execution that programs are loaded with.

use crate::error::Error;
use crate::program::Program;
use flambeau_archive::LoadOptions;
use flambeau_exec::Host;
use flambeau_ir::text::parse_graph;
use flambeau_ir::{CompilationUnit, Graph, OpDef, Registry, RegistryBuilder, Source};
use flambeau_tensor::Budget;
use std::path::Path;
use std::sync::Arc;

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

/// Limits of runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLimits {
    pub(crate) fuel: u64,
    pub(crate) memory: Option<usize>,
}

/// What a session is made from.
pub struct SessionBuilder {
    registry: RegistryBuilder,
    execution: Execution,
    limits: RunLimits,
    load: LoadOptions,
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

    /// Sets how archives are loaded.
    pub fn load_options(mut self, options: LoadOptions) -> Self {
        self.load = options;
        self
    }

    /// Makes the session, or says everything that does not fit together.
    ///
    /// # Errors
    /// `S0001` for operators whose definitions are wrong or contradict each other.
    pub fn build(self) -> Result<Session, Error> {
        let registry = self.registry.build()?;
        Ok(Session { registry, execution: self.execution, limits: self.limits, load: self.load })
    }
}

/// Where programs are loaded and run. Sessions with different operators live side by side.
#[derive(Clone)]
pub struct Session {
    registry: Arc<Registry>,
    pub(crate) execution: Execution,
    pub(crate) limits: RunLimits,
    load: LoadOptions,
}

impl Session {
    /// A session to be configured.
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            registry: RegistryBuilder::new(),
            execution: Execution::default(),
            limits: RunLimits { fuel: u64::MAX, memory: None },
            load: LoadOptions::default(),
        }
    }

    /// A session with the standard operators and no limits.
    ///
    /// # Errors
    /// Never in a build whose tests pass; see [`SessionBuilder::build`].
    pub fn standard() -> Result<Session, Error> {
        Ok(Session {
            registry: flambeau_ops::registry(),
            execution: Execution::default(),
            limits: RunLimits { fuel: u64::MAX, memory: None },
            load: LoadOptions::default(),
        })
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
        Session { execution, ..self.clone() }
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
        let source = Source::new(name, text);
        let unit = flambeau_frontend::compile(&source, &self.registry, &self.load.source_limits)?;
        Ok(Program::of_unit(self, unit))
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

    /// A copy of `graph` after the session's optimizations.
    pub(crate) fn optimized(&self, graph: &Graph, _unit: &CompilationUnit) -> Result<Graph, Error> {
        Ok(graph.clone())
    }

    /// A host with this session's limits, printing to standard output.
    pub fn host(&self) -> Host {
        let mut host = Host::new();
        host.set_fuel(self.limits.fuel);
        host.set_budget(self.limits.memory.map(Budget::new));
        host
    }
}
