//! The conformance runner's command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What the runner is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folders of suites, or folders that hold such folders.
    pub folders: Vec<PathBuf>,
    /// Where to write the counts as JSON.
    pub json: Option<PathBuf>,
    /// Where to write one line per case that did not pass.
    pub failures: Option<PathBuf>,
    /// How cases are replayed.
    pub ways: Ways,
    /// Worker processes.
    pub jobs: usize,
    /// Only cases whose id holds this.
    pub filter: Option<String>,
    /// How long a case may take.
    pub limit: Duration,
    /// How many reasons to print per suite.
    pub reasons: usize,
}

const COMPARE_TEXT: &str = "--compare-text";
const THROUGH_FREEZE: &str = "--through-freeze";
const THROUGH_SAVE: &str = "--through-save";

/// How cases are replayed.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// Whether printed text has to be PyTorch's, character for character.
    pub compare_text: bool,
    /// Whether modules in eval mode are frozen first.
    pub through_freeze: bool,
    /// Where to save every archive that loads; what is run is then loaded from there.
    pub through_save: Option<PathBuf>,
}

impl Ways {
    /// The arguments that say so to a worker.
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        args.extend(self.compare_text.then(|| COMPARE_TEXT.into()));
        args.extend(self.through_freeze.then(|| THROUGH_FREEZE.into()));
        if let Some(folder) = &self.through_save {
            args.extend([THROUGH_SAVE.into(), folder.clone().into_os_string()]);
        }
        args
    }

    /// What arguments of [`Ways::to_args`] say.
    pub fn from_args(args: &[String]) -> Ways {
        let has = |name: &str| args.iter().any(|a| a == name);
        let folder = args.iter().position(|a| a == THROUGH_SAVE).and_then(|i| args.get(i + 1));
        Ways {
            compare_text: has(COMPARE_TEXT),
            through_freeze: has(THROUGH_FREEZE),
            through_save: folder.map(PathBuf::from),
        }
    }
}

/// What `--help` prints.
pub const USAGE: &str = "cargo xtask conform FOLDER... [OPTIONS]

  FOLDER                 a suite (a folder with cases), or a folder of suites
  --json FILE            write the counts as JSON
  --list-failures FILE   write one line per case that did not pass: outcome, id, why
  --compare-text         printed programs must be PyTorch's: graphs and source, names without meaning aside
  --through-freeze       freeze every module that is in eval mode, and run what is left
  --through-save FOLDER  save every archive that loads in FOLDER, and run what is loaded from there
  --filter TEXT          only cases whose id holds TEXT
  --jobs N               worker processes (default: one per processor)
  --limit SECONDS        time a case may take (default: 10)
  --reasons N            reasons to print per suite (default: 12)
";

/// Reads the arguments.
///
/// # Errors
/// With the usage, if they make no sense.
pub fn parse(args: &[String]) -> anyhow::Result<Options> {
    let mut options = Options {
        folders: Vec::new(),
        json: None,
        failures: None,
        ways: Ways::default(),
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
            COMPARE_TEXT => options.ways.compare_text = true,
            THROUGH_FREEZE => options.ways.through_freeze = true,
            THROUGH_SAVE => options.ways.through_save = Some(value()?.into()),
            "--filter" => options.filter = Some(value()?.clone()),
            "--jobs" => options.jobs = value()?.parse::<usize>()?.max(1),
            "--limit" => options.limit = Duration::from_secs(value()?.parse()?),
            "--reasons" => options.reasons = value()?.parse()?,
            other if other.starts_with('-') => anyhow::bail!("there is no option `{other}`\n\n{USAGE}"),
            folder => options.folders.push(folder.into()),
        }
    }
    anyhow::ensure!(!options.folders.is_empty(), "no folder given\n\n{USAGE}");
    Ok(options)
}
