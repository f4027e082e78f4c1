//! Erases inferred type information.
//!
//! The types of the graph's inputs are checked when it is called, so passes rely on them: a size that an input's type states may have
//! become a constant. Without that type the graph would accept other sizes and compute with the constant. Therefore the types of
//! the inputs, and the ranges of their symbols, are erased only if no earlier pass of the run has rewritten the graph.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{Type, ValueId};

/// Resets the types of tensors to `Tensor`, as declared: no element types, sizes, strides or devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct EraseShapes;

impl Pass for EraseShapes {
    const NAME: &'static str = "erase_shape_information";
    const DOC: &'static str = "Erases inferred element types, sizes, strides and devices from tensor types; those of inputs only \
                               before other passes rewrite the graph.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let keeps_inputs = cx.is_rewritten();
        let graph = cx.graph();
        let inputs = graph.param(graph.root());
        let changed: Vec<(ValueId, Type)> = graph
            .values_in_order()
            .filter(|&v| !(keeps_inputs && graph.def(v) == inputs))
            .map(|v| (v, graph.ty(v).erase_shapes()))
            .filter(|&(v, ty)| ty != graph.ty(v))
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (value, ty) in changed {
            let node = editor.graph().def(value);
            if !fuel.take("erase", editor.graph(), node) {
                return Ok(());
            }
            editor.set_type(value, ty);
        }
        if !keeps_inputs {
            editor.clear_size_ranges();
        }
        Ok(())
    }
}
