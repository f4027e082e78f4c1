//! Forms of a program that is specialized to inputs: the command calls the entry under [`Execution::Profiling`] until
//! it has a plan, and prints the executor's graphs.

use crate::inputs::InputArgs;
use crate::output::graph_text;
use crate::profile::guard_text;
use crate::program::ProgramArgs;
use anyhow::Result;
use flambeau::exec::Host;
use flambeau::ir::attr::names;
use flambeau::ir::text::PrintOptions;
use flambeau::{Compilation, Entry, Execution, Graph, Session};

/// A form of a specialized program.
#[derive(Clone, Copy)]
pub(crate) enum Specialized {
    /// The graph with profiling nodes and the types that they observed.
    Profiled,
    /// The graphs of the plans.
    Optimized,
    /// The bail-outs of the plans.
    Bailouts,
}

/// Number of calls: two are profiled, the third runs the plan.
pub(crate) const CALLS: usize = 3;

/// Calls an entry and returns a form of the specialized program.
///
/// # Errors
/// If the program or the inputs cannot be read, or a call fails.
pub(crate) fn text(
    form: Specialized,
    program: &ProgramArgs,
    inputs: &InputArgs,
    session: &Session,
    options: PrintOptions,
) -> Result<String> {
    let session = session.with_execution(Execution::Profiling).with_compilation(Compilation::Synchronous);
    let entry = program.entry(&session)?;
    // Read once: a file may be a pipe.
    let given = inputs.read(&entry)?;
    for _ in 0..CALLS {
        // Calls may write their arguments, so each gets new ones.
        let values = given.copied()?;
        let mut host = quiet_host(&session);
        let result = entry.call_on(&values.positional, &values.kwargs(), &mut host);
        result.map_err(|e| inputs.with_command_line_code(e))?;
    }
    match form {
        Specialized::Profiled => entry.profiles().iter().map(|graph| graph_text(graph, options)).collect(),
        Specialized::Optimized => {
            entry.plans().iter().map(|plan| graph_text(plan.graph(), options)).collect()
        }
        Specialized::Bailouts => bailouts(&entry, options),
    }
}

/// Returns a host for calls whose results are not used: it discards output of the program, and records no gradients, because
/// calls that record do not use plans.
pub(crate) fn quiet_host(session: &Session) -> Host {
    let mut host = session.host();
    host.set_stdout(std::io::sink());
    host.set_grad_enabled(false);
    host
}

fn bailouts(entry: &Entry, options: PrintOptions) -> Result<String> {
    let mut text = String::new();
    for plan in entry.plans() {
        let graph = plan.graph();
        for (position, state) in plan.code().bailouts().enumerate() {
            let guarded = guard_text(graph, position, &state);
            text += &format!("# {guarded}; failures: {}\n", state.failures);
            if let Some(body) = graph.attr(state.node, names::subgraph()).and_then(|a| a.as_graph()) {
                text += &graph_text(body, options)?;
            }
        }
    }
    if text.is_empty() {
        text.push_str("# no guards remain: the types of the inputs imply all of them\n");
    }
    Ok(text)
}

/// Returns the source line of a node.
pub(crate) fn source_position(graph: &Graph, node: flambeau::ir::NodeId) -> Option<String> {
    let range = graph.locs().range(graph.loc(node))?;
    let (line, _) = range.source.line_column(range.range.start as usize);
    Some(format!("{}:{line}", range.source.name))
}
