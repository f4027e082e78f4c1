//! Removes guards that hold anyway.
//!
//! A guard holds if the facts about its operand imply the guarded type. [`Shapes`] derives the facts by the rules of
//! operators from the types of the graph's inputs, which callers must satisfy, and from the other guards. If two inputs
//! of an addition are known to have sizes [2, 3], so does the result, and its guard is removed.
//!
//! All guards that hold are removed at once, although their facts may depend on each other, for instance around a loop.
//! This is sound by induction over the steps of a run: the facts about an operand follow from values that were computed
//! before it, and up to the first step at which a removed guard would fail, all guards hold.

use super::guards;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_analysis::Shapes;
use flambeau_ir::{Graph, NodeId};

/// Removes guards that follow from other guards and from the rules of operators, and guards without uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct EliminateGuards;

impl Pass for EliminateGuards {
    const NAME: &'static str = "eliminate_guards";
    const ALIASES: &'static [&'static str] = &["eliminate_redundant_guards"];
    const DOC: &'static str = "Removes guards that follow from other guards and from shape rules.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let (graph, shapes) = cx.with::<Shapes>();
        let removed: Vec<NodeId> = guards(graph)
            .into_iter()
            .filter(|&guard| graph.use_count(graph.result(guard, 0)) == 0 || holds(graph, shapes, guard))
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for guard in removed {
            if !fuel.take("remove", editor.graph(), guard) {
                break;
            }
            let value = editor.graph().operand(guard, 0);
            editor.replace_node(guard, &[value]);
        }
        Ok(())
    }
}

/// Whether the facts about the operand of a guard imply the guarded type. A tensor that may be undefined satisfies no
/// guard.
fn holds(graph: &Graph, shapes: &Shapes, guard: NodeId) -> bool {
    let wanted = graph.ty(graph.result(guard, 0));
    let known = shapes.tensor(graph.operand(guard, 0));
    match (known, wanted.as_tensor()) {
        (Some(known), Some(wanted)) => !known.admits_undefined() && known.to_type().implies(wanted),
        _ => false,
    }
}
