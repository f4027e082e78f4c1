//! The `flambeau` command: run, print, verify, optimize, ask, time and fuzz TorchScript programs.
//!
//! Without arguments it shows one program from source to result. Exit codes: 0 done, 1 the program, file or call is
//! at fault, 2 the command line is, 3 a defect of Flambeau. Errors go to standard error; standard output holds results
//! alone.

mod commands;
mod inputs;
mod output;
mod program;
mod report;

use clap::{Parser, Subcommand};
use flambeau::Fault;
use std::process::ExitCode;

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

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        None => commands::demo::run(),
        Some(Command::Run(args)) => commands::run::run(&args),
        Some(Command::Print(args)) => commands::print::run(&args),
        Some(Command::Verify(args)) => commands::verify::run(&args),
        Some(Command::Opt(args)) => commands::opt::run(&args),
        Some(Command::Alias(args)) => commands::alias::run(&args),
        Some(Command::Shapes(args)) => commands::shapes::run(&args),
        Some(Command::Ops(args)) => commands::ops::run(&args),
        Some(Command::Info(args)) => commands::info::run(&args),
        Some(Command::Convert(args)) => commands::convert::run(&args),
        Some(Command::Freeze(args)) => commands::freeze::run(&args),
        Some(Command::Bench(args)) => commands::bench::run(&args),
        Some(Command::BenchIr(args)) => commands::bench_ir::run(&args),
        Some(Command::Explain(args)) => commands::explain::run(&args),
        Some(Command::Fuzz(args)) => commands::fuzz::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever reads results as JSON reads errors so too.
            if std::env::args_os().any(|arg| arg == "--json") {
                output::print_error_json(&error);
            } else {
                output::print_error(&error);
            }
            if error.downcast_ref::<output::CommandLine>().is_some() {
                return ExitCode::from(2);
            }
            let fault = error.downcast_ref::<flambeau::Error>().map_or(Fault::Input, |e| e.fault);
            ExitCode::from(if fault == Fault::Internal { 3 } else { 1 })
        }
    }
}
