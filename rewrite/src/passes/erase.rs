//! Erases inferred type information.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{Type, ValueId};

/// Resets the types of tensors to `Tensor`, as declared: no element types, sizes, strides or devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct EraseShapes;

impl Pass for EraseShapes {
    const NAME: &'static str = "erase_shape_information";
    const DOC: &'static str = "Erases inferred element types, sizes, strides and devices from tensor types.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let changed: Vec<(ValueId, Type)> = graph
            .values_in_order()
            .map(|v| (v, graph.ty(v).erase_shapes()))
            .filter(|&(v, ty)| ty != graph.ty(v))
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (value, ty) in changed {
            let node = editor.graph().def(value);
            if !fuel.take("erase", editor.graph(), node) {
                break;
            }
            editor.set_type(value, ty);
        }
        Ok(())
    }
}
