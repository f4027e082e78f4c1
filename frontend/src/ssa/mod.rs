//! Conversion of emitted graphs to SSA.
//!
//! The emitter writes variables as `prim::Store` and `prim::Load`, exits (`break`, `continue`, `return`) as statements,
//! and loop conditions as second blocks of the loops. The result of this module is SSA form: only `prim::If` and
//! `prim::Loop` carry control flow. The conversion runs in [`SsaStage`]s; the graph can be inspected after each. No stage
//! recurses on the nesting of blocks.

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

use flambeau_ir::{Graph, NodeId, Prim, Registry};

pub(crate) use canonical::{count_in_body, has_mixed_loops};
pub(crate) use outputs::inputs_by_first_use;
pub(crate) use scopes::{Defined, Scopes};

/// The stages of the conversion, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum SsaStage {
    /// As emitted: variables, exit statements, loop conditions as second blocks.
    Emitted,
    /// Variables that cross `if` and loop boundaries are stored and loaded there.
    ControlFlow,
    /// `break` and `continue` carry the condition and the variables of the loop.
    Continuations,
    /// Loop conditions are evaluated before the loop and at the end of its body.
    Conditions,
    /// No variables are left.
    Values,
    /// No exit statements are left.
    Exits,
    /// Loops with a trip count and a condition count in their body. Values match the types of block boundaries.
    Canonical,
    /// Redundant tuples, constants and dead values are removed.
    Tidy,
}

impl SsaStage {
    /// All stages, in order.
    pub const ALL: [SsaStage; 8] = [
        SsaStage::Emitted,
        SsaStage::ControlFlow,
        SsaStage::Continuations,
        SsaStage::Conditions,
        SsaStage::Values,
        SsaStage::Exits,
        SsaStage::Canonical,
        SsaStage::Tidy,
    ];

    /// Returns the name of the stage for the command line.
    pub fn name(self) -> &'static str {
        match self {
            SsaStage::Emitted => "emitted",
            SsaStage::ControlFlow => "control-flow",
            SsaStage::Continuations => "continuations",
            SsaStage::Conditions => "conditions",
            SsaStage::Values => "values",
            SsaStage::Exits => "exits",
            SsaStage::Canonical => "canonical",
            SsaStage::Tidy => "tidy",
        }
    }
}

/// Control flow of an emitted graph, collected so that stages without work can be skipped.
#[derive(Debug, Default)]
struct Control {
    /// All loops, in program order.
    loops: Vec<NodeId>,
    /// All branches, in program order.
    branches: Vec<NodeId>,
    /// There is a `break` or `continue`.
    leaves_loops: bool,
    /// There is a `raise` or a failing `assert`.
    raises: bool,
    /// All `return` statements, in program order.
    returns: Vec<NodeId>,
}

impl Control {
    /// Returns true if control leaves blocks only at the end of the function.
    fn is_structured(&self, g: &Graph) -> bool {
        // After a `return`, only the exits of its enclosing `with` statements are emitted. So a return in the root
        // block outside of every `with` is at the end.
        let leaves_with =
            |n| std::iter::successors(g.next(n), |&n| g.next(n)).any(|n| g.is_prim(n, Prim::Exit));
        !self.leaves_loops
            && !self.raises
            && self.returns.len() == 1
            && self.returns.iter().all(|&n| g.parent(n) == g.root() && !leaves_with(n))
    }
}

/// Converts an emitted graph to SSA. `look` is called with the graph after every stage.
///
/// # Errors
///
/// Returns a node that has a result of type `Type::OVERFLOW` (nested too deeply or too large).
pub(crate) fn convert(graph: &mut Graph, look: &mut dyn FnMut(SsaStage, &Graph)) -> Result<(), NodeId> {
    look(SsaStage::Emitted, graph);
    let control = variables::cross_control_flow(graph)?;
    look(SsaStage::ControlFlow, graph);
    if control.leaves_loops {
        loops::carry_continuations(graph);
    }
    look(SsaStage::Continuations, graph);
    loops::inline_conditions(graph, &control);
    look(SsaStage::Conditions, graph);
    variables::erase(graph);
    look(SsaStage::Values, graph);
    let structured = control.is_structured(graph);
    if structured {
        exits::return_at_the_end(graph, &control);
    } else if control.leaves_loops || !control.returns.is_empty() {
        exits::transform(graph);
    }
    look(SsaStage::Exits, graph);
    if structured {
        canonical::count_loops(graph, &control.loops);
    } else {
        count_in_body(graph);
    }
    if !control.loops.is_empty() || !control.branches.is_empty() {
        widen::widen(graph);
    }
    look(SsaStage::Canonical, graph);
    clean::tidy(graph);
    look(SsaStage::Tidy, graph);
    Ok(())
}

/// Returns an operator that the front end emits itself. If the registry does not have it, the result is an opaque name:
/// the graph can be built, and running it reports the missing operator.
pub(crate) fn operator(registry: &Registry, full_name: &str) -> flambeau_ir::Op {
    match registry.lookup(full_name) {
        Some(id) => id.into(),
        None => {
            let name = full_name.split('.').next().unwrap_or(full_name);
            flambeau_ir::Op::unknown(flambeau_ir::Symbol::new(name))
        }
    }
}
