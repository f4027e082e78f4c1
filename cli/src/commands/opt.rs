//! `flambeau opt`: runs a pipeline of passes on a program.

use crate::commands::explain::describe_rewrites;
use crate::input_types::InputTypeArgs;
use crate::output::{self, graph_text};
use crate::program::{ProgramArgs, pipeline};
use crate::setup::{Setup, control};
use crate::skipped::{Run, UnacceptedRules};
use anyhow::{Context, Result};
use flambeau::analysis::Analyses;
use flambeau::ir::text::PrintOptions;
use flambeau::rewrite::log::Log;
use flambeau::rewrite::manager::{Checks, Manager, PipelineReport};
use flambeau::{Error, Session};
use serde_json::{Value, json};

/// Arguments of `opt`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A `.py`, `.ir` or `.pt` file; `-` for standard input.
    #[arg(required_unless_present = "list")]
    file: Option<String>,
    /// Function or method; the default is `forward`, or the only one.
    #[arg(long, short)]
    entry: Option<String>,
    #[command(flatten)]
    inputs: InputTypeArgs,
    /// Copy tensors from an archive's file instead of mapping the file.
    #[arg(long)]
    copy: bool,
    /// The pipeline: passes by name, options in braces, such as `inline,cse,egraph{accept=rounding}`.
    #[arg(long, short, default_value = "default")]
    passes: String,
    /// A file of rewrite rules that `peephole` and `egraph` apply in addition to their own.
    #[arg(long, value_name = "FILE")]
    rules: Vec<String>,
    /// Print the graph after each pass that changed it.
    #[arg(long)]
    print_after: bool,
    /// Level of checks on passes.
    #[arg(long, value_enum, default_value_t = CheckLevel::Boundaries)]
    checks: CheckLevel,
    /// Report the changes of each pass: as text on standard error, or as JSON on standard output instead of the graph.
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "text", require_equals = false)]
    report: Option<ReportForm>,
    /// Show the rewrites of this value on standard error.
    #[arg(long, value_name = "%NAME")]
    explain: Vec<String>,
    /// Write tensors in full.
    #[arg(long)]
    exact: bool,
    /// List passes and named pipelines.
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ReportForm {
    Text,
    Json,
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

/// Builds the session, with the rules of the files.
fn with_rules(mut setup: Setup, rules: &[String]) -> Result<Session> {
    for file in rules {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
        setup.builder = setup.builder.rules(file, &text);
    }
    setup.session()
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let options = PrintOptions { exact: args.exact, ..setup.print };
    let session = with_rules(setup, &args.rules)?;
    if args.list {
        return list(&session);
    }
    let pipeline = pipeline(&session, &args.passes)?;
    let Some(file) = args.file.clone() else { return list(&session) };
    let chosen = ProgramArgs { file, entry: args.entry.clone(), copy: args.copy };
    let program = chosen.load(&session)?;
    let entry = chosen.pick(&program)?;
    let mut graph = (**entry.graph()).clone();
    args.inputs.apply(&entry, &mut graph)?;
    let before = graph.clone();
    let mut written = Ok(());
    let mut manager = Manager::new().unit(program.unit()).checks(args.checks.into()).log(Log::from_env());
    let as_json = args.report == Some(ReportForm::Json);
    if args.print_after && !as_json {
        manager = manager.on_change(|capture| {
            let name = if capture.pass.is_empty() { "before" } else { capture.pass };
            if written.is_ok() {
                written = output::line(format_args!("# {name}\n{}", capture.graph.to_text(options)));
            }
        });
    }
    let mut control = control()?;
    if !args.explain.is_empty() {
        control = control.with_trace();
    }
    let report =
        manager.run_with(&mut graph, &pipeline, &mut Analyses::new(), &mut control).map_err(|error| {
            if let Some(text) = &error.reproducer {
                output::error_line(text);
            }
            Error::new(error.error.fault, "P0001", error.to_string())
        })?;
    drop(manager);
    written?;
    for name in &args.explain {
        output::error_text(describe_rewrites(&before, &graph, control.trace(), name)?);
    }
    let run =
        Run { unit: program.unit(), pipeline: &pipeline, before: &before, after: &graph, report: &report };
    let left_out = UnacceptedRules::find(&session, &run)?;
    match args.report {
        Some(ReportForm::Text) => output::error_text(format_args!("{report}{}", left_out.text())),
        Some(ReportForm::Json) => {}
        None => output::error_text(left_out.note()),
    }
    if as_json {
        let graph = graph_text(&graph, options)?;
        output::line(json!({"passes": passes(&report), "skipped": left_out.json(), "graph": graph}))?;
    } else if !args.print_after {
        output::text(graph_text(&graph, options)?)?;
    }
    Ok(())
}

fn list(session: &Session) -> Result<()> {
    for entry in session.passes().passes() {
        output::line(format_args!("{:<32} {}", entry.name, entry.doc))?;
    }
    for (name, text) in session.passes().pipelines() {
        output::line(format_args!("{name:<32} = {text}"))?;
    }
    Ok(())
}

/// Returns the report of each pass as JSON.
fn passes(report: &PipelineReport) -> Vec<Value> {
    let one = |p: &flambeau::rewrite::manager::PassReport| {
        let edits = p.edits.map(|e| {
            json!({
                "inserted": e.inserted, "erased": e.erased, "moved": e.moved,
                "operands": e.operands, "types": e.types, "other": e.other,
            })
        });
        let rules: serde_json::Map<String, Value> =
            p.counts.iter().map(|(rule, n)| (rule.clone(), json!(n))).collect();
        json!({
            "pass": p.pass,
            "options": p.options,
            "changed": p.changed,
            "nodes": {"before": p.nodes.0, "after": p.nodes.1},
            "edits": edits,
            "rules": rules,
            "analyses": {"kept": p.analyses.0, "made": p.analyses.1},
            "ns": p.time.as_nanos() as u64,
        })
    };
    report.passes.iter().map(one).collect()
}
