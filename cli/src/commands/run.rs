//! `flambeau run`: calls a function, a method or an exported program and prints its result.

use crate::exported;
use crate::inputs::{InputArgs, Inputs};
use crate::output::{self, OutputArgs, command_line_error};
use crate::plans::quiet_host;
use crate::profile::{Profile, warm_up};
use crate::program::{ProgramArgs, ThreadArgs};
use crate::setup::{Setup, session};
use anyhow::{Context, Result};
use flambeau::exec::{Host, InstructionCounts, NodeTimes};
use flambeau::{Compilation, Entry, Execution, ExportedProgram, Program, RestoredPlans, Session};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Arguments of `run`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Run with the reference evaluator, which defines the semantics of programs.
    #[arg(long)]
    reference: bool,
    /// Run bytecode without optimization.
    #[arg(long, conflicts_with = "reference")]
    unoptimized: bool,
    /// Stop after this many loop iterations and function calls of the program as it is optimized.
    #[arg(long, value_name = "UNITS")]
    fuel: Option<u64>,
    /// Stop if tensors would hold more than this many megabytes.
    #[arg(long, value_name = "MB")]
    memory: Option<usize>,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Write to standard error where the time of calls goes, by operator and source line, how often each instruction runs in a
    /// call, and the plans of the calls with their guards; with `--json`, as JSON. The entry is called several times; the
    /// printed result is that of the first call.
    #[arg(long, conflicts_with = "reference")]
    profile: bool,
    /// Number of measured calls, after those that compile.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "profile",
          value_parser = clap::value_parser!(u32).range(1..))]
    calls: u32,
    /// Specialize with the profiles of earlier calls, read from this file if it exists, and write those of this call. The call
    /// runs without recording gradients, as under `torch.no_grad()`: plans are for such calls.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reference", "unoptimized"])]
    plans: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let execution = match (args.reference, args.unoptimized) {
        (true, _) => Execution::Reference,
        (_, true) => Execution::Machine,
        _ if args.profile || args.plans.is_some() => Execution::Profiling,
        _ => Execution::Optimized,
    };
    let mut builder = setup.builder.execution(execution);
    if let Some(units) = args.fuel {
        builder = builder.fuel(units);
    }
    if let Some(mb) = args.memory {
        builder = builder.memory(mb.saturating_mul(1 << 20));
    }
    // The command calls the program once. With `--plans`, that call is profiled and its plans are written, so one run
    // must suffice for a plan.
    let builder =
        builder.compilation(Compilation::Synchronous).profiled_runs(if args.plans.is_some() { 1 } else { 2 });
    let session = args.threads.of(&session(builder)?);
    match exported::model(&args.program, &session, true)? {
        Some(model) => {
            let program = ExportedProgram::new(&session, model)?;
            // As the session, the program need not be freed at the end of the process.
            std::mem::forget(program.clone());
            run_exported(args, &program, &session)
        }
        None => run_entry(args, &session),
    }
}

/// Calls an exported program.
fn run_exported(args: &Args, program: &ExportedProgram, session: &Session) -> Result<()> {
    if args.profile || args.plans.is_some() {
        return Err(command_line_error("`--profile` and `--plans` are for functions and methods"));
    }
    if args.program.entry.is_some() {
        return Err(command_line_error("`--entry` is for programs with several functions or methods"));
    }
    let inputs = args.inputs.read_exported(program)?;
    let mut host = host(session, args.output);
    let result = program.call_on(&inputs.positional, &inputs.kwargs(), &mut host);
    let result = result.map_err(|e| args.inputs.with_command_line_code(e))?;
    args.output.value(&result)
}

/// Calls a function or a method.
fn run_entry(args: &Args, session: &Session) -> Result<()> {
    let program = args.program.load(session)?;
    let entry = args.program.pick(&program)?;
    if let Some(file) = &args.plans {
        restore(&program, file)?;
    }
    let inputs = args.inputs.read(&entry)?;
    let mut host = host(session, args.output);
    // Calls that record gradients neither use nor make plans.
    host.set_grad_enabled(args.plans.is_none());
    let profile = args.profile.then(|| inputs.copied()).transpose()?;
    let result = entry.call_on(&inputs.positional, &inputs.kwargs(), &mut host);
    let result = result.map_err(|e| args.inputs.with_command_line_code(e))?;
    if let Some(file) = &args.plans {
        std::fs::write(file, program.save_plans()).with_context(|| format!("writing {}", file.display()))?;
    }
    if let Some(inputs) = profile {
        let profile = measure(args, &entry, &inputs, session)?;
        match args.output.json {
            true => output::error_line(profile.json(&entry)),
            false => output::error_text(profile.text(&entry)),
        }
    }
    args.output.value(&result)
}

/// Returns a host that writes output of the program at once: to standard output, or, if that gets JSON, to standard
/// error. Warnings go to standard error.
fn host(session: &Session, format: OutputArgs) -> Host {
    let mut host = session.host();
    if format.wants_json() {
        host.set_stdout(anstream::stderr());
    } else {
        host.set_stdout(anstream::stdout());
    }
    host.set_warn(|warning| output::error_line(format_args!("warning: {}", warning.message)));
    host
}

/// Uses the plans of a file, unless it does not exist.
fn restore(program: &Program, file: &Path) -> Result<()> {
    let bytes = match std::fs::read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        read => read.with_context(|| format!("reading {}", file.display()))?,
    };
    if let RestoredPlans::Ignored { reason } = program.restore_plans(&bytes)? {
        output::error_line(format_args!("note: the plans of {} are not used: {reason}", file.display()));
    }
    Ok(())
}

/// Calls an entry again, first to compile it, then to measure.
fn measure(args: &Args, entry: &Entry, inputs: &Inputs, session: &Session) -> Result<Profile> {
    let mut host = quiet_host(session);
    let mut time = Duration::ZERO;
    let warm_up = warm_up(session.execution()) as u32;
    let mut nodes = NodeTimes::new();
    // The last call counts instructions, which timing would change.
    for number in 0..=warm_up + args.calls {
        if number == warm_up {
            host.set_timing(Some(NodeTimes::new()));
            time = Duration::ZERO;
        }
        if number == warm_up + args.calls {
            nodes = host.set_timing(None).unwrap_or_default();
            host.set_instruction_counts(Some(InstructionCounts::new()));
        }
        // Calls may write their arguments, so each gets new ones.
        let inputs = inputs.copied()?;
        let kwargs = inputs.kwargs();
        let start = Instant::now();
        let result = entry.call_on(&inputs.positional, &kwargs, &mut host);
        if number < warm_up + args.calls {
            time += start.elapsed();
        }
        result.map_err(|e| args.inputs.with_command_line_code(e))?;
    }
    let instructions = host.set_instruction_counts(None).unwrap_or_default();
    Ok(Profile { calls: args.calls, time, nodes, instructions })
}
