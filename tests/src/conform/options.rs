//! The conformance runner's command line.

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
    /// Whether printed text has to be PyTorch's, character for character.
    pub compare_text: bool,
    /// Where to save every archive that loads; what is run is then loaded from there.
    pub through_save: Option<PathBuf>,
    /// Worker processes.
    pub jobs: usize,
    /// Only cases whose id holds this.
    pub filter: Option<String>,
    /// How long a case may take.
    pub limit: Duration,
    /// How many reasons to print per suite.
    pub reasons: usize,
}

/// What `--help` prints.
pub const USAGE: &str = "cargo xtask conform FOLDER... [OPTIONS]

  FOLDER                 a suite (a folder with cases), or a folder of suites
  --json FILE            write the counts as JSON
  --list-failures FILE   write one line per case that did not pass: outcome, id, why
  --compare-text         printed programs must be PyTorch's: graphs and source, names without meaning aside
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
        compare_text: false,
        through_save: None,
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
            "--compare-text" => options.compare_text = true,
            "--through-save" => options.through_save = Some(value()?.into()),
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
