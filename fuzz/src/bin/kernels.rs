//! The fuzzer of kernels: `kernels [SECONDS] [SEED] [--op PART] [--work N] [--case NUMBER]`.
//!
//! Cases run in a separate process, which records each case before it runs. If a case ends the process, this program
//! reports it and continues after it. `--case` runs one case of a seed in this process, for a debugger.

use anyhow::{Context, Result, bail};
use flambeau_fuzz::kernels::{CaseVerdict, KernelFuzzer};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Number of failures after which a run stops.
const ENOUGH: usize = 20;

struct Options {
    seconds: u64,
    seed: u64,
    only: String,
    work: usize,
    case: Option<u64>,
    /// Set in the process that runs cases: the file for records, and the first case.
    worker: Option<(PathBuf, u64)>,
}

impl Options {
    fn parse() -> Result<Options> {
        let mut options =
            Options { seconds: 60, seed: 0, only: String::new(), work: 1 << 20, case: None, worker: None };
        let mut args = std::env::args().skip(1);
        let mut plain = 0;
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--op" => options.only = value()?,
                "--work" => options.work = value()?.parse().context("--work takes a number")?,
                "--case" => options.case = Some(value()?.parse().context("--case takes a number")?),
                "--worker" => {
                    let file = PathBuf::from(value()?);
                    options.worker = Some((file, value()?.parse().context("the first case is a number")?));
                }
                number => {
                    let number = number.parse().with_context(|| format!("`{number}` is not a number"))?;
                    *[&mut options.seconds, &mut options.seed]
                        .into_iter()
                        .nth(plain)
                        .context("too many numbers")? = number;
                    plain += 1;
                }
            }
        }
        Ok(options)
    }

    fn fuzzer(&self) -> KernelFuzzer {
        let registry = flambeau_ops::registry();
        KernelFuzzer::new(&registry, self.seed, self.work).only(&self.only)
    }

    /// Returns the command that runs a case again.
    fn again(&self, number: u64) -> String {
        let mut text = String::new();
        for name in ["FLAMBEAU_GUARD", "FLAMBEAU_ISA", "FLAMBEAU_THREADS"] {
            if let Ok(value) = std::env::var(name) {
                text.push_str(&format!("{name}={value} "));
            }
        }
        text.push_str(&format!(
            "cargo xtask fuzz --kernels 0 {} --case {number} --work {}",
            self.seed, self.work
        ));
        if !self.only.is_empty() {
            text.push_str(&format!(" --op {}", self.only));
        }
        text
    }
}

/// State of a run, stored in the worker's file between processes.
#[derive(Clone, Copy, Default)]
struct Counts {
    next: u64,
    checked: u64,
    referred: u64,
    refused: u64,
    failed: u64,
}

impl Counts {
    fn write(self, file: &Path) -> Result<()> {
        let Counts { next, checked, referred, refused, failed } = self;
        Ok(std::fs::write(file, format!("{next} {checked} {referred} {refused} {failed}"))?)
    }

    fn read(file: &Path) -> Result<Counts> {
        let text = std::fs::read_to_string(file)?;
        let numbers: Vec<u64> = text.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [next, checked, referred, refused, failed] = numbers[..] else {
            bail!("the worker's file is cut off")
        };
        Ok(Counts { next, checked, referred, refused, failed })
    }
}

fn main() -> ExitCode {
    match work() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn work() -> Result<bool> {
    let options = Options::parse()?;
    flambeau_tensor::switches::check()?;
    if let Some(number) = options.case {
        let mut fuzzer = options.fuzzer();
        println!("{}", fuzzer.describe(number));
        let verdict = fuzzer.check(number);
        println!("{verdict:?}");
        return Ok(!matches!(verdict, CaseVerdict::Failed(_)));
    }
    match &options.worker {
        Some((file, first)) => cases(&options, file, *first),
        None => supervise(&options),
    }
}

/// Runs cases until the time is over. Returns whether none failed.
fn cases(options: &Options, file: &Path, first: u64) -> Result<bool> {
    std::panic::set_hook(Box::new(|_| {}));
    let start = Instant::now();
    let mut fuzzer = options.fuzzer();
    let mut counts = Counts { next: first, ..Counts::default() };
    while start.elapsed() < Duration::from_secs(options.seconds) && counts.failed < ENOUGH as u64 {
        counts.write(file)?;
        let number = counts.next;
        match fuzzer.check(number) {
            CaseVerdict::Checked { reference } => {
                counts.checked += 1;
                counts.referred += u64::from(reference);
            }
            CaseVerdict::Refused => counts.refused += 1,
            CaseVerdict::Failed(why) => {
                counts.failed += 1;
                println!("FAILED {}\n  {why}\n  {}", fuzzer.describe(number), options.again(number));
            }
        }
        counts.next += 1;
    }
    counts.write(file)?;
    Ok(counts.failed == 0)
}

/// Runs cases in a worker process, and starts the next worker if one dies.
fn supervise(options: &Options) -> Result<bool> {
    let file = std::env::temp_dir().join(format!("flambeau-kernels-{}.txt", std::process::id()));
    let start = Instant::now();
    let (mut all, mut deaths, mut next) = (Counts::default(), 0, 0);
    loop {
        let left = options.seconds.saturating_sub(start.elapsed().as_secs());
        if left == 0 || deaths >= ENOUGH {
            break;
        }
        let status = Command::new(std::env::current_exe()?)
            .args([left.to_string(), options.seed.to_string()])
            .args(["--op", &options.only, "--work", &options.work.to_string()])
            .arg("--worker")
            .arg(&file)
            .arg(next.to_string())
            .status()?;
        let counts = Counts::read(&file)?;
        all.checked += counts.checked;
        all.referred += counts.referred;
        all.refused += counts.refused;
        all.failed += counts.failed;
        if status.code().is_some_and(|code| code < 2) {
            break;
        }
        deaths += 1;
        println!(
            "DIED   {} ({status})\n  {}",
            options.fuzzer().describe(counts.next),
            options.again(counts.next)
        );
        next = counts.next + 1;
    }
    let _ = std::fs::remove_file(&file);
    let seconds = start.elapsed().as_secs_f64();
    let Counts { checked, referred, refused, failed, .. } = all;
    println!(
        "{checked} checked ({referred} against a reference), {refused} refused, {failed} failed, {deaths} died; seed {}, {:.0} cases a second",
        options.seed,
        (checked + refused) as f64 / seconds
    );
    Ok(failed == 0 && deaths == 0)
}
