//! The conformance runner's command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use flambeau::Execution;
use flambeau::executor::Deopt;

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folders of suites, or folders that contain such folders.
    pub folders: Vec<PathBuf>,
    /// The output file for the counts as JSON.
    pub json: Option<PathBuf>,
    /// The output file with one line per case that did not pass.
    pub failures: Option<PathBuf>,
    /// The variants of replaying.
    pub variants: Variants,
    /// Number of worker processes.
    pub jobs: usize,
    /// If set, replays only cases whose id contains this text.
    pub filter: Option<String>,
    /// The time limit of a case.
    pub limit: Duration,
    /// Number of reasons to print per suite.
    pub reasons: usize,
}

const COMPARE_TEXT: &str = "--compare-text";
const THROUGH_FREEZE: &str = "--through-freeze";
const THROUGH_EXPORT: &str = "--through-export";
const THROUGH_PIPELINE: &str = "--through-pipeline";
const THROUGH_DECOMPOSITIONS: &str = "--through-decompositions";
const THROUGH_MODULES: &str = "--through-modules";
const THROUGH_SAVE: &str = "--through-save";
const EXECUTOR: &str = "--executor";
const DEOPT: &str = "--deopt";
const GRAPHS: &str = "--gradient-graphs";
const THREADS: &str = "--threads";
const INSTRUCTIONS: &str = "--count-instructions";

/// The values of `--executor`, with the modes of execution.
const EXECUTORS: [(&str, Execution); 3] = [
    ("reference", Execution::Reference),
    ("plain", Execution::Optimized),
    ("profiling", Execution::Profiling),
];

/// The variants of replaying.
#[derive(Clone, Debug, Default)]
pub struct Variants {
    /// Whether printed text must equal PyTorch's character by character.
    pub compare_text: bool,
    /// Whether modules in eval mode are frozen before they run.
    pub through_freeze: bool,
    /// Whether calls run exported programs of their entries, made with their arguments.
    pub through_export: bool,
    /// If set, the pipeline that is applied to the graphs of exported programs before they run.
    pub through_pipeline: Option<String>,
    /// Whether exported programs are decomposed to core ATen, written and read before they run.
    pub through_decompositions: bool,
    /// Whether calls of exported programs without an expected error run the TorchScript modules that the programs become.
    pub through_modules: bool,
    /// If set, the folder in which loaded archives are saved; the program is then loaded again from there.
    pub through_save: Option<PathBuf>,
    /// The mode of execution.
    pub execution: Execution,
    /// Whether recorded calls run differentiated graphs from the first call on.
    pub gradient_graphs: bool,
    /// Whether executed instructions are counted.
    pub count_instructions: bool,
    /// The guards of plans that are made to fail, under [`Execution::Profiling`].
    pub deopt: Option<Deopt>,
    /// Number of threads that work on loops; 0 for the number of processors. With several threads, plans are compiled on
    /// a background thread.
    pub threads: usize,
}

fn executor(name: &str) -> anyhow::Result<Execution> {
    let known = EXECUTORS.iter().find(|(n, _)| *n == name).map(|&(_, execution)| execution);
    known.ok_or_else(|| anyhow::anyhow!("`{name}` is not `reference`, `plain` or `profiling`"))
}

impl Variants {
    /// Returns the arguments that pass these variants to a worker.
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        args.extend(self.compare_text.then(|| COMPARE_TEXT.into()));
        args.extend(self.gradient_graphs.then(|| GRAPHS.into()));
        args.extend(self.count_instructions.then(|| INSTRUCTIONS.into()));
        args.extend(self.through_freeze.then(|| THROUGH_FREEZE.into()));
        args.extend(self.through_export.then(|| THROUGH_EXPORT.into()));
        args.extend(self.through_decompositions.then(|| THROUGH_DECOMPOSITIONS.into()));
        args.extend(self.through_modules.then(|| THROUGH_MODULES.into()));
        if let Some(pipeline) = &self.through_pipeline {
            args.extend([THROUGH_PIPELINE.into(), pipeline.into()]);
        }
        if let Some(folder) = &self.through_save {
            args.extend([THROUGH_SAVE.into(), folder.clone().into_os_string()]);
        }
        if let Some((name, _)) = EXECUTORS.iter().find(|(_, execution)| *execution == self.execution) {
            args.extend([EXECUTOR.into(), (*name).into()]);
        }
        if let Some(deopt) = self.deopt {
            args.extend([DEOPT.into(), deopt.to_string().into()]);
        }
        args.extend([THREADS.into(), self.threads.to_string().into()]);
        args
    }

    /// Parses arguments made by [`Variants::to_args`].
    pub fn from_args(args: &[String]) -> Variants {
        let has = |name: &str| args.iter().any(|a| a == name);
        let value = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1));
        Variants {
            compare_text: has(COMPARE_TEXT),
            through_freeze: has(THROUGH_FREEZE),
            gradient_graphs: has(GRAPHS),
            count_instructions: has(INSTRUCTIONS),
            through_export: has(THROUGH_EXPORT),
            through_decompositions: has(THROUGH_DECOMPOSITIONS),
            through_modules: has(THROUGH_MODULES),
            through_pipeline: value(THROUGH_PIPELINE).cloned(),
            through_save: value(THROUGH_SAVE).map(PathBuf::from),
            execution: value(EXECUTOR).and_then(|name| executor(name).ok()).unwrap_or_default(),
            deopt: value(DEOPT).and_then(|text| text.parse().ok()),
            threads: value(THREADS).and_then(|text| text.parse().ok()).unwrap_or_default(),
        }
    }
}

/// The output of `--help`.
pub const USAGE: &str = "cargo xtask conform FOLDER... [OPTIONS]

  FOLDER                 a suite (a folder with cases), or a folder of suites
  --json FILE            write the counts as JSON
  --list-failures FILE   write one line per case that did not pass or whose gradients the tape computed: outcome, id, why
  --compare-text         printed graphs and source must equal PyTorch's, except for meaningless names
  --through-freeze       freeze every module that is in eval mode, and run the frozen module
  --through-export       run exported programs of the called functions and modules, made with the arguments of the call
  --through-decompositions  decompose exported programs to core ATen, write and read them, and run the result
  --through-modules      make modules with submodules of exported programs, save and load them, and run them
  --through-pipeline TEXT  apply a pipeline to the graphs of exported programs
  --through-save FOLDER  save every loaded archive in FOLDER, and run the saved one
  --executor NAME        reference, plain (default) or profiling, with one profiled run
  --deopt MODE           make guards of plans fail: all, every:N (checks) or guard:K (position)
  --gradient-graphs      recorded calls run differentiated graphs from the first call on; prints how many did
  --count-instructions   prints which instructions the programs execute, and which in sequence, with a weight of 1 per case
  --threads N            threads for large loops (default: one per processor); from 2 on, plans are compiled on another thread
  --filter TEXT          only cases whose id contains TEXT
  --jobs N               worker processes (default: one per processor)
  --limit SECONDS        time a case may take (default: 10)
  --reasons N            reasons, and instructions, to print per suite (default: 12)
";

/// Parses the arguments.
///
/// # Errors
/// Returns an error with the usage if the arguments are invalid.
pub fn parse(args: &[String]) -> anyhow::Result<Options> {
    let mut options = Options {
        folders: Vec::new(),
        json: None,
        failures: None,
        variants: Variants::default(),
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        filter: None,
        limit: Duration::from_secs(10),
        reasons: 12,
    };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| anyhow::anyhow!("`{arg}` needs a value\n\n{USAGE}"));
        match arg.as_str() {
            "--json" => options.json = Some(value()?.into()),
            "--list-failures" => options.failures = Some(value()?.into()),
            COMPARE_TEXT => options.variants.compare_text = true,
            INSTRUCTIONS => options.variants.count_instructions = true,
            GRAPHS => options.variants.gradient_graphs = true,
            THROUGH_EXPORT => options.variants.through_export = true,
            THROUGH_PIPELINE => options.variants.through_pipeline = Some(value()?.clone()),
            THROUGH_DECOMPOSITIONS => options.variants.through_decompositions = true,
            THROUGH_MODULES => options.variants.through_modules = true,
            THROUGH_FREEZE => options.variants.through_freeze = true,
            THROUGH_SAVE => options.variants.through_save = Some(value()?.into()),
            EXECUTOR => options.variants.execution = executor(value()?)?,
            THREADS => options.variants.threads = value()?.parse()?,
            DEOPT => options.variants.deopt = Some(value()?.parse()?),
            "--filter" => options.filter = Some(value()?.clone()),
            "--jobs" => options.jobs = value()?.parse::<usize>()?.max(1),
            "--limit" => options.limit = Duration::from_secs(value()?.parse()?),
            "--reasons" => options.reasons = value()?.parse()?,
            other if other.starts_with('-') => anyhow::bail!("unknown option `{other}`\n\n{USAGE}"),
            folder => options.folders.push(folder.into()),
        }
    }
    anyhow::ensure!(!options.folders.is_empty(), "no folder given\n\n{USAGE}");
    Ok(options)
}
