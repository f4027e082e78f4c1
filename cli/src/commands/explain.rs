//! `flambeau explain`: what an error code means, what became of a value and by which rules, why two values may share
//! memory.

use crate::program::{ProgramArgs, pipeline, standard};
use anstream::{print, println};
use anyhow::{Result, anyhow, bail};
use flambeau::Graph;
use flambeau::analysis::{AliasDb, Analyses};
use flambeau::archive::Code;
use flambeau::ir::{Symbol, ValueId};
use flambeau::rewrite::{Control, Manager, Story};

/// Arguments of `explain`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A code, such as `V020`; or a program, with one of the options below. All codes if left out.
    what: Option<String>,
    /// Function or method of the program.
    #[arg(long, short)]
    entry: Option<String>,
    /// Tell what a pipeline makes of this value, or what it made it from.
    #[arg(long, value_name = "%NAME")]
    value: Option<String>,
    /// The pipeline that `--value` looks at.
    #[arg(long, short, default_value = "default", requires = "value")]
    passes: String,
    /// Tell why two values may, or cannot, share memory.
    #[arg(long, value_name = "%A,%B", value_delimiter = ',')]
    alias: Vec<String>,
}

/// The pages: `## CODE title` and text below it.
const PAGES: &str = include_str!("../../../docs/errors.md");

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.value.is_none() && args.alias.is_empty() {
        return page(args.what.as_deref());
    }
    let Some(file) = args.what.clone() else { bail!("a program is missing: explain FILE --value %NAME") };
    let session = standard()?;
    let program_args = ProgramArgs { file, entry: args.entry.clone(), copy: false };
    let program = program_args.load(&session)?;
    let entry = program_args.pick(&program)?;
    let before = entry.graph();
    match args.alias.as_slice() {
        [] => {}
        [a, b] => {
            let (a, b) = (named(before, a)?, named(before, b)?);
            print!("{}", Analyses::new().get::<AliasDb>(before).why(before, a, b));
        }
        _ => bail!("`--alias` takes two values: --alias %a,%b"),
    }
    if let Some(value) = &args.value {
        let mut after = (**before).clone();
        let mut control = Control::from_env()?.telling();
        let pipeline = pipeline(&session, &args.passes)?;
        let mut manager = Manager::new().unit(program.unit());
        manager.run_with(&mut after, &pipeline, &mut Analyses::new(), &mut control)?;
        print!("{}", tell(before, &after, control.story(), value)?);
    }
    Ok(())
}

fn page(code: Option<&str>) -> Result<()> {
    let archives = Code::ALL.iter().map(|c| format!("{c} {}", c.title()));
    let mut pages = PAGES.split("\n## ").skip(1).map(|p| p.trim_end().to_owned()).chain(archives);
    let Some(code) = code else {
        pages.for_each(|page| println!("{}", page.lines().next().unwrap_or("")));
        return Ok(());
    };
    let wanted = code.to_ascii_uppercase();
    match pages.find(|p| p.split_whitespace().next() == Some(wanted.as_str())) {
        Some(page) => println!("{page}"),
        None => bail!("there is no page for `{code}`; `flambeau explain` lists all codes"),
    }
    Ok(())
}

/// What a run did to a value, which is named as in the graph after it or, if it is gone, before it.
pub(crate) fn tell(before: &Graph, after: &Graph, story: Option<&Story>, name: &str) -> Result<String> {
    let value = find(after, name).or_else(|| find(before, name));
    let value = value.ok_or_else(|| anyhow!("no value is named `{name}`, before or after"))?;
    let events = story.map(|s| s.of(value)).unwrap_or_default();
    let state = if after.has_value(value) { "stands in the result" } else { "is gone" };
    let mut text = format!("%{} {state}\n", name.trim_start_matches('%'));
    for event in &events {
        text.push_str(&format!("  {}\n", event.to_string().replace('\n', "\n  ")));
    }
    if events.is_empty() {
        text.push_str("  no rewrite concerns it\n");
    }
    Ok(text)
}

fn named(graph: &Graph, name: &str) -> Result<ValueId> {
    find(graph, name).ok_or_else(|| anyhow!("no value is named `{name}`"))
}

/// A value by its printed name, with or without `%`.
fn find(graph: &Graph, name: &str) -> Option<ValueId> {
    let bare = name.strip_prefix('%').unwrap_or(name);
    let printed = |v: &ValueId| graph.name(*v).to_string() == bare;
    graph.value_named(Symbol::new(bare)).or_else(|| graph.values_in_order().find(printed))
}
