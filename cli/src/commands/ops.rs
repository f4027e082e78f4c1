//! `flambeau ops`: lists operators and their properties.

use crate::output::{self, did_you_mean, usage};
use crate::setup::Setup;
use anyhow::Result;
use flambeau::exec::Kernel;
use flambeau::ir::{Doc, Registry};
use flambeau::{Error, Fault};

/// Arguments of `ops`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show operators whose name contains this text; the default is all.
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
            output::line(schema)?;
            if !doc.is_empty() {
                output::line(format_args!("    {doc}"))?;
            }
            if !facets.is_empty() {
                output::line(format_args!("    [{}]", facets.join(", ")))?;
            }
        }
    }
    if args.json {
        output::line(serde_json::Value::Array(rows))?;
    } else if shown == 0 {
        let part = args.name.as_deref().unwrap_or_default();
        let mut error = Error::new(Fault::Misuse, "X0003", format!("no operator has `{part}` in its name"));
        error.help = nearest_operator(registry, part);
        return Err(usage(error));
    }
    Ok(())
}

/// Returns the operator with the most similar name, compared with the whole name or the part without namespace and
/// overload.
pub(crate) fn nearest_operator(registry: &Registry, name: &str) -> Option<String> {
    let names: Vec<String> = registry.ids().map(|id| registry.schema(id).full_name()).collect();
    let known = names.iter().flat_map(|full| {
        let bare = full.rsplit("::").next().unwrap_or(full);
        let plain = |name: &str| name.find('.').unwrap_or(name.len());
        [full.as_str(), &full[..plain(full)], &bare[..plain(bare)]]
    });
    did_you_mean(name, known)
}
