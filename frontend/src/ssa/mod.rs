//! From variables to values.
//!
//! The emitter writes programs with variables as `prim::Store` and `prim::Load`, with `break`,
//! `continue` and `return` as statements, and with loop conditions in blocks of their own. What
//! leaves this module is plain SSA: only `prim::If` and `prim::Loop` carry control. The stages are
//! [`Stage`]; each can be looked at, and none recurses on the nesting of blocks.

mod canonical;
mod clean;
mod dead;
mod exits;
mod loops;
mod outputs;
mod scopes;
mod variables;
mod widen;
mod withs;

use flambeau_ir::{Graph, NodeId, Registry};

pub(crate) use canonical::{count_in_body, has_mixed_loops};
pub(crate) use scopes::{Defined, Scopes};

/// The stages between the emitted program and SSA, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// As emitted: variables, exit statements, loop conditions in second blocks.
    Emitted,
    /// Variables that cross `if` and loop boundaries are stored and loaded there.
    ControlFlow,
    /// `break` and `continue` carry the loop's condition and variables.
    Continuations,
    /// Loop conditions stand before the loop and at the end of its body.
    Conditions,
    /// No variables are left.
    Values,
    /// No exit statements are left.
    Exits,
    /// Loops with both a trip count and a condition count in their body; what crosses control flow fits its types.
    Canonical,
    /// Nothing is left over: tuples, constants and unread values are tidied up.
    Tidy,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Stage; 8] = [
        Stage::Emitted,
        Stage::ControlFlow,
        Stage::Continuations,
        Stage::Conditions,
        Stage::Values,
        Stage::Exits,
        Stage::Canonical,
        Stage::Tidy,
    ];

    /// The name a stage is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Emitted => "emitted",
            Stage::ControlFlow => "control-flow",
            Stage::Continuations => "continuations",
            Stage::Conditions => "conditions",
            Stage::Values => "values",
            Stage::Exits => "exits",
            Stage::Canonical => "canonical",
            Stage::Tidy => "tidy",
        }
    }
}

/// What an emitted graph has that some stages are about, so that they need not look for it.
#[derive(Debug, Default)]
struct Control {
    /// All loops, in program order.
    loops: Vec<NodeId>,
    /// All branches, in program order.
    branches: Vec<NodeId>,
    /// There is a `break` or `continue`.
    leaves_loops: bool,
    /// Something is raised.
    raises: bool,
    /// All returns, in program order.
    returns: Vec<NodeId>,
}

impl Control {
    /// Does control leave blocks only at the end of the function?
    fn is_structured(&self, g: &Graph) -> bool {
        // Behind a return nothing is emitted, so one in the root block is at the end.
        !self.leaves_loops
            && !self.raises
            && self.returns.len() == 1
            && self.returns.iter().all(|&n| g.parent(n) == g.root())
    }
}

/// Brings an emitted graph to SSA. `look` sees the graph after every stage.
///
/// # Errors
/// A node with a result whose type is too large.
pub(crate) fn convert(graph: &mut Graph, look: &mut dyn FnMut(Stage, &Graph)) -> Result<(), NodeId> {
    look(Stage::Emitted, graph);
    let control = variables::cross_control_flow(graph)?;
    look(Stage::ControlFlow, graph);
    if control.leaves_loops {
        loops::carry_continuations(graph);
    }
    look(Stage::Continuations, graph);
    loops::inline_conditions(graph, &control);
    look(Stage::Conditions, graph);
    variables::erase(graph);
    look(Stage::Values, graph);
    let structured = control.is_structured(graph);
    if structured {
        exits::return_at_the_end(graph, &control);
    } else if control.leaves_loops || !control.returns.is_empty() {
        exits::transform(graph);
    }
    look(Stage::Exits, graph);
    if structured {
        canonical::count_loops(graph, &control.loops);
    } else {
        count_in_body(graph);
    }
    if !control.loops.is_empty() || !control.branches.is_empty() {
        widen::widen(graph);
    }
    look(Stage::Canonical, graph);
    clean::tidy(graph);
    look(Stage::Tidy, graph);
    Ok(())
}

/// An operator the frontend itself needs: the row if the registry has it, else an opaque name, so
/// that a graph can always be made and whoever runs it says what is missing.
pub(crate) fn operator(registry: &Registry, full_name: &str) -> flambeau_ir::Op {
    match registry.lookup(full_name) {
        Some(id) => id.into(),
        None => {
            let name = full_name.split('.').next().unwrap_or(full_name);
            flambeau_ir::Op::unknown(flambeau_ir::Symbol::new(name))
        }
    }
}
