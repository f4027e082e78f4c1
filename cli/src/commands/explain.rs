//! `flambeau explain`: explains an error code, the rewrites of a value, why two values may share memory, or which guards
//! of a specialized program failed.

use crate::input_types::InputTypeArgs;
use crate::inputs::InputArgs;
use crate::output::{self, command_line_error, did_you_mean, usage};
use crate::plans::{CALLS, quiet_host};
use crate::profile::{deoptimizations_text, plans_text};
use crate::program::{ProgramArgs, pipeline};
use crate::setup::{Setup, control};
use crate::skipped::{Run, UnacceptedRules};
use anyhow::Result;
use flambeau::analysis::{AliasDb, Analyses};
use flambeau::archive::ArchiveCode;
use flambeau::ir::{Symbol, ValueId, nearest};
use flambeau::rewrite::{Manager, RewriteTrace, TraceEvent};
use flambeau::{Compilation, Error, Execution, Fault, Graph};
use std::path::Path;

/// Arguments of `explain`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A code, such as `V020`; or a program, with one of the options below. Without an argument, all codes are listed.
    code_or_file: Option<String>,
    /// Function or method of the program.
    #[arg(long, short)]
    entry: Option<String>,
    /// Show the rewrites of a pipeline that created, replaced or removed this value.
    #[arg(long, value_name = "%NAME")]
    value: Option<String>,
    /// The pipeline for `--value`.
    #[arg(long, short, default_value = "default", requires = "value")]
    passes: String,
    #[command(flatten)]
    inputs: InputTypeArgs,
    /// Explain why two values may, or cannot, share memory.
    #[arg(long, value_name = "%A,%B", value_delimiter = ',')]
    alias: Vec<String>,
    /// Call the program on the given inputs until it is specialized to them, then on the inputs of `--then`, and show
    /// the plans with their guards, and which guards failed: the expected and found types, and what was compiled instead.
    #[arg(long, conflicts_with_all = ["value", "alias"])]
    deopt: bool,
    /// Inputs of a further call for `--deopt`, in the format of `--inputs`. May be given several times.
    #[arg(long, value_name = "FILE", requires = "deopt")]
    then: Vec<String>,
}

/// The sections: `## CODE title` followed by text.
const SECTIONS: &str = include_str!("../../../docs/errors.md");

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    if args.deopt {
        return deopt(args, setup);
    }
    if args.value.is_none() && args.alias.is_empty() {
        if !args.inputs.is_empty() {
            return Err(command_line_error(
                "types of inputs require a program and `--value %NAME` or `--alias %A,%B`",
            ));
        }
        return print_section(args.code_or_file.as_deref());
    }
    let Some(file) = args.code_or_file.clone() else {
        return Err(command_line_error("FILE is missing: explain FILE --value %NAME"));
    };
    let session = setup.session()?;
    let program_args = ProgramArgs { file, entry: args.entry.clone(), copy: false };
    let program = program_args.load(&session)?;
    let entry = program_args.pick(&program)?;
    let mut before = (**entry.graph()).clone();
    args.inputs.apply(&entry, &mut before)?;
    let before = &before;
    match args.alias.as_slice() {
        [] => {}
        [a, b] => {
            let (a, b) = (named(before, a)?, named(before, b)?);
            output::text(Analyses::new().get::<AliasDb>(before).why(before, a, b))?;
        }
        _ => return Err(command_line_error("`--alias` takes two values: --alias %a,%b")),
    }
    if let Some(value) = &args.value {
        let mut after = before.clone();
        let mut control = control()?.with_trace();
        let pipeline = pipeline(&session, &args.passes)?;
        let mut manager = Manager::new().unit(program.unit());
        let report = manager.run_with(&mut after, &pipeline, &mut Analyses::new(), &mut control)?;
        output::text(describe_rewrites(before, &after, control.trace(), value)?)?;
        let run = Run { unit: program.unit(), pipeline: &pipeline, before, after: &after, report: &report };
        let left_out = UnacceptedRules::find(&session, &run)?;
        if let Some(value) = find(&left_out.graph, value) {
            output::text(left_out.text_of(value))?;
        }
    }
    Ok(())
}

/// Shows the guards that fail in calls on the given inputs.
fn deopt(args: &Args, setup: Setup) -> Result<()> {
    let Some(file) = args.code_or_file.clone() else {
        return Err(command_line_error("FILE is missing: explain FILE --deopt"));
    };
    let session = setup.session()?.with_execution(Execution::Profiling);
    let session = session.with_compilation(Compilation::Synchronous);
    let program = ProgramArgs { file, entry: args.entry.clone(), copy: false };
    let entry = program.entry(&session)?;
    let first = InputArgs { inputs: args.inputs.inputs.clone(), args: args.inputs.args.clone() };
    let others = args.then.iter().map(|file| InputArgs { inputs: Some(file.clone()), args: Vec::new() });
    let mut runs = vec![(first.read(&entry)?, first, CALLS)];
    for inputs in others {
        runs.push((inputs.read(&entry)?, inputs, 1));
    }
    for (given, options, times) in runs {
        for _ in 0..times {
            // Calls may write their arguments, so each gets new ones.
            let inputs = given.copied()?;
            let mut host = quiet_host(&session);
            let result = entry.call_on(&inputs.positional, &inputs.kwargs(), &mut host);
            result.map_err(|e| options.with_command_line_code(e))?;
        }
    }
    let failed = deoptimizations_text(&entry);
    let failed = if failed.is_empty() { "no guard failed\n" } else { &failed };
    output::text(&(plans_text(&entry) + failed))?;
    Ok(())
}

/// Returns all sections.
fn sections() -> impl Iterator<Item = String> {
    let archives = ArchiveCode::ALL.iter().map(|c| format!("{c} {}", c.title()));
    SECTIONS.split("\n## ").skip(1).map(|p| p.trim_end().to_owned()).chain(archives)
}

/// Returns the code of a section.
fn code_of(page: &str) -> &str {
    page.split_whitespace().next().unwrap_or("")
}

fn print_section(code: Option<&str>) -> Result<()> {
    let Some(code) = code else {
        return sections().try_for_each(|page| output::line(page.lines().next().unwrap_or("")));
    };
    let wanted = code.to_ascii_uppercase();
    match sections().find(|page| code_of(page) == wanted) {
        Some(page) => output::line(page),
        None => Err(unknown_code(code, &wanted)),
    }
}

fn unknown_code(code: &str, wanted: &str) -> anyhow::Error {
    if is_program(code) {
        return command_line_error(format!(
            "`{code}` is a program, not an error code; state what to explain: `--value %NAME`, `--alias %A,%B` or `--deopt`"
        ));
    }
    let text = format!("there is no error code `{code}`; `flambeau explain` lists all codes");
    let mut error = Error::new(Fault::Misuse, "X0003", text);
    let known: Vec<String> = sections().map(|page| code_of(&page).to_owned()).collect();
    error.help = did_you_mean(wanted, known.iter().map(String::as_str));
    usage(error)
}

/// Whether an argument looks like a program: it is the name of a file, or has an extension.
fn is_program(code_or_file: &str) -> bool {
    let path = Path::new(code_or_file);
    path.extension().is_some() || path.is_file()
}

/// Returns the rewrites of a value in a run. The value is named as in the graph after the run or, if it was removed,
/// before it.
pub(crate) fn describe_rewrites(
    before: &Graph,
    after: &Graph,
    trace: Option<&RewriteTrace>,
    name: &str,
) -> Result<String> {
    let value = find(after, name).or_else(|| find(before, name));
    let value = value.ok_or_else(|| no_value(&[before, after], name))?;
    let events = trace.map(|s| s.of(value)).unwrap_or_default();
    let is_outlined =
        |event: &&TraceEvent| matches!(event, TraceEvent::Outlined { value: v, .. } if *v == value);
    let (state, no_events) = if after.has_value(value) {
        ("is in the resulting graph", "no rewrite affects it")
    } else if events.iter().any(is_outlined) {
        ("was moved into a subgraph", "")
    } else {
        ("is not in the resulting graph", "no rewrite replaces it")
    };
    let mut text = format!("%{} {state}\n", name.trim_start_matches('%'));
    for event in &events {
        text.push_str(&format!("  {}\n", event.to_string().replace('\n', "\n  ")));
    }
    if events.is_empty() {
        text.push_str(&format!("  {no_events}\n"));
    }
    Ok(text)
}

fn named(graph: &Graph, name: &str) -> Result<ValueId> {
    find(graph, name).ok_or_else(|| no_value(&[graph], name))
}

/// Creates the error for a name that no value of these graphs has.
fn no_value(graphs: &[&Graph], name: &str) -> anyhow::Error {
    let bare = name.strip_prefix('%').unwrap_or(name);
    let known: Vec<String> =
        graphs.iter().flat_map(|g| g.values_in_order().map(|v| g.name(v).to_string())).collect();
    let mut error = Error::new(Fault::Misuse, "X0003", format!("no value is named `{name}`"));
    error.help =
        nearest(bare, known.iter().map(String::as_str)).map(|near| format!("did you mean `%{near}`?"));
    usage(error)
}

/// Finds a value by its printed name, with or without `%`.
fn find(graph: &Graph, name: &str) -> Option<ValueId> {
    let bare = name.strip_prefix('%').unwrap_or(name);
    let printed = |v: &ValueId| graph.name(*v).to_string() == bare;
    graph.value_named(Symbol::new(bare)).or_else(|| graph.values_in_order().find(printed))
}
