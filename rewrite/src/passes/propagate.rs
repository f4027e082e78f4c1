//! Writes the results of shape analysis into tensor types.

use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use flambeau_analysis::Shapes;
use flambeau_ir::types::TensorType;
use flambeau_ir::{Prim, Type, ValueId};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct PropagateShapes {
    /// Write element types only, no sizes.
    pub dtypes_only: bool,
}

impl Configure for PropagateShapes {
    const OPTIONS: &'static [&'static str] = &["dtypes"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        Ok(PropagateShapes { dtypes_only: options.flag("dtypes") })
    }
}

impl Pass for PropagateShapes {
    const NAME: &'static str = "propagate_shapes";
    const ALIASES: &'static [&'static str] = &["propagate_shapes_on_graph", "propagate_input_shapes"];
    const DOC: &'static str = "Writes the results of shape analysis into tensor types.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let (graph, shapes) = cx.with::<Shapes>();
        let found: Vec<(ValueId, Type)> = graph
            .values_in_order()
            .filter(|&v| graph.ty(v).is_tensor() && !graph.is_prim(graph.def(v), Prim::Param))
            .map(|v| (v, self.refined(graph.ty(v), shapes.refined_type(graph, v))))
            .filter(|&(v, ty)| ty != graph.ty(v))
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (value, ty) in found {
            let node = editor.graph().def(value);
            if !fuel.take("refine", editor.graph(), node) {
                break;
            }
            editor.set_type(value, ty);
        }
        Ok(())
    }
}

impl PropagateShapes {
    fn refined(self, old: Type, new: Type) -> Type {
        if !self.dtypes_only {
            return new;
        }
        match (old.as_tensor(), new.as_tensor()) {
            (Some(old), Some(new)) => Type::tensor(TensorType { dtype: new.dtype, ..old.clone() }),
            _ => old,
        }
    }
}
