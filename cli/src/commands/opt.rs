//! `flambeau opt`: a pipeline of passes over a program.

use crate::program::ProgramArgs;
use anstream::{eprint, eprintln, print};
use anyhow::{Result, bail};
use flambeau::Session;
use flambeau::ir::text::PrintOptions;
use flambeau::rewrite::control::Control;
use flambeau::rewrite::log::Log;
use flambeau::rewrite::manager::{Checks, Manager};

/// Arguments of `opt`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// The pipeline: passes by name, options in braces, such as `inline,cse,egraph{accept=rounding}`.
    #[arg(long, short, default_value = "default")]
    passes: String,
    /// Print the graph after each pass that changed it.
    #[arg(long)]
    print_after: bool,
    /// How closely the run is watched.
    #[arg(long, value_enum, default_value_t = CheckLevel::Boundaries)]
    checks: CheckLevel,
    /// Print what each pass did.
    #[arg(long)]
    report: bool,
    /// Write tensors out instead of abbreviating them.
    #[arg(long)]
    exact: bool,
    /// List passes and named pipelines.
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum CheckLevel {
    Off,
    Boundaries,
    EveryPass,
    EveryEdit,
}

impl From<CheckLevel> for Checks {
    fn from(level: CheckLevel) -> Checks {
        match level {
            CheckLevel::Off => Checks::Off,
            CheckLevel::Boundaries => Checks::Boundaries,
            CheckLevel::EveryPass => Checks::EveryPass,
            CheckLevel::EveryEdit => Checks::EveryEdit,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let session = Session::standard()?;
    if args.list {
        for entry in session.passes().passes() {
            anstream::println!("{:<32} {}", entry.name, entry.doc);
        }
        for (name, text) in session.passes().pipelines() {
            anstream::println!("{name:<32} = {text}");
        }
        return Ok(());
    }
    let pipeline = session.pipeline(&args.passes)?;
    let program = args.program.load(&session)?;
    let entry = args.program.pick(&program)?;
    let mut graph = (**entry.graph()).clone();
    let options = PrintOptions { exact: args.exact, ..PrintOptions::default() };
    let mut manager = Manager::new().unit(program.unit()).checks(args.checks.into()).log(Log::from_env());
    if args.print_after {
        manager = manager.on_change(move |capture| {
            let name = if capture.pass.is_empty() { "before" } else { capture.pass };
            anstream::println!("# {name}\n{}", capture.graph.to_text(options));
        });
    }
    let mut control = Control::from_env()?;
    match manager.run_with(&mut graph, &pipeline, &mut flambeau::analysis::Analyses::new(), &mut control) {
        Ok(report) => {
            if args.report {
                eprint!("{report}");
            }
            if !args.print_after {
                print!("{}", graph.to_text(options));
            }
            Ok(())
        }
        Err(error) => {
            if let Some(text) = &error.reproducer {
                eprintln!("{text}");
            }
            bail!("{error}")
        }
    }
}
