//! The `flambeau` command as a library: [`run`] is the whole command with the caller's session, so that every command,
//! including `fuzz`, has the caller's operators, rules, passes and pipelines.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     flambeau_cli::run(flambeau::Session::builder().standard().pipeline("mine", "inline,cse,dce"))
//! }
//! ```
//!
//! Exit codes: 0 success; 1 an error in the program, file or call, or a failure found by `fuzz`; 2 an error in the
//! command line or an environment variable; 3 a defect of Flambeau. Errors are written to standard error; standard
//! output has results, and text that programs print.

mod commands;
mod exported;
mod input_types;
mod inputs;
mod output;
mod output_file;
mod plans;
mod profile;
mod program;
mod report;
mod setup;
mod skipped;

use clap::{Parser, Subcommand};
use flambeau::{Fault, SessionBuilder};
use setup::Setup;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Exit codes other than success.
const FAILED: u8 = 1;
const WRONG_COMMAND_LINE: u8 = 2;
const DEFECT: u8 = 3;

/// A compiler for TorchScript: run, inspect, optimize and fuzz TorchScript programs.
#[derive(Parser)]
#[command(
    name = "flambeau",
    version,
    about = "A compiler for TorchScript: runs, inspects, optimizes and fuzzes programs.",
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run a function or method and print its result.
    Run(commands::run::Args),
    /// Print a program: as graph, code, bytecode or Graphviz.
    Print(commands::print::Args),
    /// Check a program and show its errors.
    Verify(commands::verify::Args),
    /// Optimize a program with a pipeline of passes.
    Opt(commands::opt::Args),
    /// Show which values may alias.
    Alias(commands::alias::Args),
    /// Show inferred types and shapes.
    Shapes(commands::shapes::Args),
    /// List operators and their properties.
    Ops(commands::ops::Args),
    /// Show the contents of a file: modules, tensors, methods, and used and missing operators.
    Info(commands::info::Args),
    /// Write a module or its tensors to another file.
    Convert(commands::convert::Args),
    /// Make an exported program of a function or module.
    Export(commands::export::Args),
    /// Write a module with its weights and settings folded into its code.
    Freeze(commands::freeze::Args),
    /// Time calls of a function.
    Bench(commands::bench::Args),
    /// Time the steps of the compiler on a graph.
    BenchIr(commands::bench_ir::Args),
    /// Explain an error code, the rewrites of a value, why two values may share memory, or which guards failed.
    Explain(commands::explain::Args),
    /// Search for programs whose meaning a pipeline changes.
    Fuzz(commands::fuzz::Args),
}

/// Runs the command on the arguments of this process, with sessions of `session`. Call this first in `main`: `fuzz`
/// starts the same program again for its workers.
///
/// The command reports failed optimizations on standard error. Its hook replaces one that the builder has
/// ([`SessionBuilder::on_optimization_failure`]).
pub fn run(session: SessionBuilder) -> ExitCode {
    if cfg!(panic = "abort") {
        // The panic hook reports the panic, because no code can catch it here.
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            report(panic);
            std::process::exit(i32::from(DEFECT));
        }));
    }
    let command = Cli::parse().command;
    // After a panic, the state of the command is dropped without further use.
    match catch_unwind(AssertUnwindSafe(|| execute(command, session))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => ExitCode::from(report_error(&error)),
        Err(_) => ExitCode::from(DEFECT),
    }
}

fn execute(command: Option<Command>, session: SessionBuilder) -> anyhow::Result<()> {
    let setup = Setup::new(session)?;
    match command {
        None => commands::demo::run(setup),
        Some(Command::Run(args)) => commands::run::run(&args, setup),
        Some(Command::Print(args)) => commands::print::run(&args, setup),
        Some(Command::Verify(args)) => commands::verify::run(&args, setup),
        Some(Command::Opt(args)) => commands::opt::run(&args, setup),
        Some(Command::Alias(args)) => commands::alias::run(&args, setup),
        Some(Command::Shapes(args)) => commands::shapes::run(&args, setup),
        Some(Command::Ops(args)) => commands::ops::run(&args, setup),
        Some(Command::Info(args)) => commands::info::run(&args, setup),
        Some(Command::Convert(args)) => commands::convert::run(&args, setup),
        Some(Command::Export(args)) => commands::export::run(&args, setup),
        Some(Command::Freeze(args)) => commands::freeze::run(&args, setup),
        Some(Command::Bench(args)) => commands::bench::run(&args, setup),
        Some(Command::BenchIr(args)) => commands::bench_ir::run(&args, setup),
        Some(Command::Explain(args)) => commands::explain::run(&args, setup),
        Some(Command::Fuzz(args)) => commands::fuzz::run(&args, setup),
    }
}

/// Writes an error to standard error and returns the exit code.
fn report_error(error: &anyhow::Error) -> u8 {
    if output::is_closed_pipe(error) {
        return 0;
    }
    // A caller that requests JSON results also gets errors as JSON.
    if std::env::args_os().any(|arg| arg == "--json") {
        output::print_error_json(error);
    } else {
        output::print_error(error);
    }
    if error.downcast_ref::<output::CommandLine>().is_some() {
        return WRONG_COMMAND_LINE;
    }
    let fault = error.downcast_ref::<flambeau::Error>().map_or(Fault::Input, |e| e.fault);
    if fault == Fault::Internal { DEFECT } else { FAILED }
}
