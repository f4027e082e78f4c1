//! Moves guards to definitions.
//!
//! A guard directly after the definition of its value covers all uses of the value. A guard that leaves a branch or a
//! loop may fail although the program would not have reached it; the program then continues unoptimized, with the same
//! results. Guards have no effects, so moving one changes no observable order.

use super::guards;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{NodeId, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Moves each guard directly after the definition of its value, or after the guards of the value that are there.
#[derive(Clone, Copy, Debug, Default)]
pub struct MoveGuardsToDefinitions;

impl Pass for MoveGuardsToDefinitions {
    const NAME: &'static str = "move_guards_to_definitions";
    const DOC: &'static str = "Moves guards directly after the definitions of the guarded values.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let guards = guards(cx.graph());
        // The last node of the run of guards after a definition.
        let mut last: HashMap<ValueId, NodeId, FxBuildHasher> = HashMap::default();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for guard in guards {
            let g = editor.graph();
            let value = g.operand(guard, 0);
            let after = last.get(&value).copied().unwrap_or_else(|| g.def(value));
            if g.next(after) != Some(guard) {
                if !fuel.take("move", g, guard) {
                    break;
                }
                editor.move_after(guard, after);
            }
            last.insert(value, guard);
        }
        Ok(())
    }
}
