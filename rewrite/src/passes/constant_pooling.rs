//! Moves every `prim::Constant` to the start of the graph and merges equal ones.
//!
//! Attribute sets are interned, so equality is one comparison. Numbers and strings are compared by their bits, mutable
//! values (tensors, lists) by identity. Nodes with the same object can merge without a change of aliasing.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{AttrsId, NodeId, Prim, Type};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstantPooling;

impl Pass for ConstantPooling {
    const NAME: &'static str = "constant_pooling";
    const DOC: &'static str = "Moves constants to the top of the graph and merges equal ones.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let constants: Vec<NodeId> =
            graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::Constant)).collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        let root = editor.graph().root();
        let mut pool: HashMap<(AttrsId, Type), NodeId, FxBuildHasher> = HashMap::default();
        let mut last: Option<NodeId> = None;
        for node in constants {
            let g = editor.graph();
            let value = g.result(node, 0);
            let key = (g.attrs_id(node), g.ty(value));
            if let Some(&kept) = pool.get(&key) {
                if !fuel.take("merge", g, node) {
                    break;
                }
                let kept = g.result(kept, 0);
                editor.replace_node(node, &[kept]);
                continue;
            }
            let after = last.unwrap_or_else(|| g.param(root));
            if g.next(after) != Some(node) {
                if !fuel.take("hoist", g, node) {
                    break;
                }
                editor.move_after(node, after);
            }
            pool.insert(key, node);
            last = Some(node);
        }
        Ok(())
    }
}
