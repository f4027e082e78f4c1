//! Replaces activations by their in-place variants if their operand has no other use.
//!
//! The operand must be new memory made in the same block, the activation must be its only use, and the result must have
//! the operand's element type. Then the write is unobservable.

use super::remove_mutation::is_fresh;
use crate::facets::OpRole;
use crate::inplace::{DtypeRules, InplaceVariants};
use crate::pass::{Pass, PassCx, PassError};
use flambeau_analysis::Shapes;
use flambeau_ir::{NodeId, OpId};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct ActivationsInPlace;

impl Pass for ActivationsInPlace {
    const NAME: &'static str = "functional_to_inplace_activation";
    const DOC: &'static str =
        "Replaces activations by in-place variants if the operand is not used afterwards.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let roles = registry.column::<OpRole>();
        let variants = InplaceVariants::new(&registry);
        let (graph, shapes) = cx.with::<Shapes>();
        let dtypes = DtypeRules::new(graph, shapes);
        let found: Vec<(NodeId, OpId)> = graph
            .nodes_deep()
            .filter_map(|node| {
                let op = graph.op(node).row().filter(|&op| roles.get(op) == Some(&OpRole::Activation))?;
                let inplace = variants.inplace(op)?;
                let operand = graph.operand(node, 0);
                let def = graph.def(operand);
                let dying = graph.use_count(operand) == 1
                    && graph.parent(def) == graph.parent(node)
                    && is_fresh(graph, def);
                (dying && variants.fits_operand(&dtypes, node, op)).then_some((node, inplace))
            })
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (node, op) in found {
            if !fuel.take("in-place", editor.graph(), node) {
                break;
            }
            editor.set_op(node, op);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn operands_that_die_are_written() {
        assert_passes(
            &toy(),
            "functional_to_inplace_activation",
            "graph(%x : Float(2)):
  %a : Float(2) = toy::mul(%x, %x)
  %b : Tensor = toy::relu(%a)
  %c : Tensor = toy::relu(%x)
  %d : Float(2) = toy::mul(%x, %x)
  %e : Tensor = toy::relu(%d)
  return (%b, %c, %d, %e)
",
            "graph(%x : Float(2)):
  %a : Float(2) = toy::mul(%x, %x)
  %b : Tensor = toy::relu_(%a)
  %c : Tensor = toy::relu(%x)
  %d : Float(2) = toy::mul(%x, %x)
  %e : Tensor = toy::relu(%d)
  return (%b, %c, %d, %e)
",
        );
    }
}
