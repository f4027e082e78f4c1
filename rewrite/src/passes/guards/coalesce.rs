//! Combines guards of one value.
//!
//! A later guard of a value is merged into an earlier one that dominates it: the earlier guard checks the types of both.
//! If they contradict each other, the later one is dropped, since it fails whenever it is reached. Uses of the value
//! that the guard dominates become uses of its result, so that passes find the guarded type at the use.

use super::guards;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::attr::names;
use flambeau_ir::types::{NoClasses, is_subtype};
use flambeau_ir::{Editor, Graph, NodeId, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Merges guards of the same value, and makes the uses that a guard dominates use its result.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoalesceGuards;

impl Pass for CoalesceGuards {
    const NAME: &'static str = "coalesce_guards";
    const DOC: &'static str =
        "Merges guards of the same value and makes dominated uses use the guard's result.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let guards = guards(cx.graph());
        let mut first: HashMap<ValueId, NodeId, FxBuildHasher> = HashMap::default();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for guard in guards {
            let value = editor.graph().operand(guard, 0);
            match first.get(&value) {
                Some(&earlier) if dominates(editor.graph(), earlier, guard) => {
                    if !fuel.take("merge", editor.graph(), guard) {
                        return Ok(());
                    }
                    merge(&mut editor, earlier, guard);
                }
                _ => {
                    first.insert(value, guard);
                }
            }
        }
        let kept = super::guards(editor.graph());
        for guard in kept {
            cover(&mut editor, guard);
        }
        Ok(())
    }
}

/// Whether every path to `b` runs `a` first.
fn dominates(g: &Graph, a: NodeId, b: NodeId) -> bool {
    g.is_nested_in(g.parent(b), g.parent(a)) && g.is_before(a, b)
}

/// Merges `later` into `earlier`, which dominates it and guards the same value.
fn merge(editor: &mut Editor<'_>, earlier: NodeId, later: NodeId) {
    let g = editor.graph();
    let (result, other) = (g.result(earlier, 0), g.result(later, 0));
    let (own, further) = (g.ty(result), g.ty(other));
    let both = match (own.as_tensor(), further.as_tensor()) {
        (Some(a), Some(b)) => a.meet(b).map(Type::tensor),
        _ if is_subtype(further, own, &NoClasses) => Some(further),
        _ => None,
    };
    let length =
        g.attr(later, names::length()).filter(|_| g.attr(earlier, names::length()).is_none()).cloned();
    if let Some(both) = both {
        editor.set_type(result, both);
    }
    if let Some(length) = length {
        editor.set_attr(earlier, names::length(), length);
    }
    editor.replace_node(later, &[result]);
}

/// Makes the uses of a guarded value that the guard dominates use the guard's result.
fn cover(editor: &mut Editor<'_>, guard: NodeId) {
    let g = editor.graph();
    let (value, result) = (g.operand(guard, 0), g.result(guard, 0));
    let covered: Vec<_> = g.uses(value).filter(|u| dominates(g, guard, u.user)).collect();
    for u in covered {
        editor.set_operand(u.user, u.index as usize, result);
    }
}
