//! `flambeau ops`: list operators and what is known about them.

use crate::setup::Setup;
use anstream::println;
use anyhow::{Result, bail};
use flambeau::exec::Kernel;
use flambeau::ir::{Doc, Symbol};

/// Arguments of `ops`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show operators whose name contains this; all if left out.
    name: Option<String>,
    /// Only operators that can be run.
    #[arg(long)]
    runnable: bool,
    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, setup: Setup) -> Result<()> {
    let session = setup.session()?;
    let registry = session.registry();
    let mut shown = 0;
    let mut rows = Vec::new();
    for id in registry.ids() {
        let schema = registry.schema(id);
        let matches = args.name.as_ref().is_none_or(|n| schema.name.as_str().contains(n.as_str()));
        let kernel = registry.facet::<Kernel>(id).is_some();
        if !matches || (args.runnable && !kernel) {
            continue;
        }
        shown += 1;
        let facets: Vec<&str> = registry.facets_of(id).collect();
        let doc = registry.facet::<Doc>(id).map_or("", |d| d.0);
        if args.json {
            rows.push(serde_json::json!({"schema": schema.to_string(), "doc": doc, "facets": facets}));
        } else {
            println!("{schema}");
            if !doc.is_empty() {
                println!("    {doc}");
            }
            if !facets.is_empty() {
                println!("    [{}]", facets.join(", "));
            }
        }
    }
    if args.json {
        println!("{}", serde_json::Value::Array(rows));
    } else if shown == 0 {
        let name = args.name.clone().unwrap_or_default();
        bail!("no operator has `{}` in its name", Symbol::new(&name));
    }
    Ok(())
}
