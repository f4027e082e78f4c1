//! The `flambeau` command as a library: [`run`] is the whole command over a session of the caller's, so that operators,
//! rules, passes and pipelines of one's own come with every command, `fuzz` included.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     flambeau_cli::run(flambeau::Session::builder().standard().pipeline("mine", "inline,cse,dce"))
//! }
//! ```
//!
//! Exit codes: 0 done; 1 the program, file or call is at fault, or `fuzz` found a fault; 2 the command line or a variable
//! of the environment is; 3 a defect of Flambeau. Errors go to standard error; standard output holds results alone.

mod commands;
mod input_types;
mod inputs;
mod output;
mod program;
mod report;
mod setup;
mod skipped;

use clap::{Parser, Subcommand};
use flambeau::{Fault, SessionBuilder};
use setup::Setup;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Exit codes beside success.
const FAILED: u8 = 1;
const WRONG_COMMAND_LINE: u8 = 2;
const DEFECT: u8 = 3;

/// TorchScript's compiler, made new: run, look at, optimize and fuzz TorchScript programs.
#[derive(Parser)]
#[command(name = "flambeau", version, about, max_term_width = 100)]
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
    /// Check a program and show what is wrong with it.
    Verify(commands::verify::Args),
    /// Optimize a program by a pipeline of passes.
    Opt(commands::opt::Args),
    /// Show what may alias what.
    Alias(commands::alias::Args),
    /// Show what is known about types and shapes.
    Shapes(commands::shapes::Args),
    /// List operators and what is known about them.
    Ops(commands::ops::Args),
    /// Show what a file holds: modules, tensors, methods, and the operators it uses and lacks.
    Info(commands::info::Args),
    /// Write a module or its tensors to another file.
    Convert(commands::convert::Args),
    /// Write a module with its weights and settings made part of its code.
    Freeze(commands::freeze::Args),
    /// Time calls of a function.
    Bench(commands::bench::Args),
    /// Time the compiler's own steps on a graph.
    BenchIr(commands::bench_ir::Args),
    /// Explain an error code, what became of a value, or why two values may share memory.
    Explain(commands::explain::Args),
    /// Search for programs that a pipeline changes the meaning of.
    Fuzz(commands::fuzz::Args),
}

/// Runs the command on the arguments of this process, with sessions of `session`. To be called first in `main`: `fuzz`
/// starts this program again for its workers.
///
/// The command reports failed optimizations on standard error in place of a hook that the builder has
/// ([`SessionBuilder::on_optimization_failure`]).
pub fn run(session: SessionBuilder) -> ExitCode {
    if cfg!(panic = "abort") {
        // Nothing can catch a panic here, so the hook is the last to run.
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            report(panic);
            std::process::exit(i32::from(DEFECT));
        }));
    }
    let command = Cli::parse().command;
    // After a panic nothing is used of what the command held.
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
        Some(Command::Freeze(args)) => commands::freeze::run(&args, setup),
        Some(Command::Bench(args)) => commands::bench::run(&args, setup),
        Some(Command::BenchIr(args)) => commands::bench_ir::run(&args, setup),
        Some(Command::Explain(args)) => commands::explain::run(&args, setup),
        Some(Command::Fuzz(args)) => commands::fuzz::run(&args, setup),
    }
}

/// Writes an error to standard error; the exit code.
fn report_error(error: &anyhow::Error) -> u8 {
    // A program that reads results as JSON reads errors so too.
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
