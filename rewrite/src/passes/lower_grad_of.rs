//! Lowers `prim::GradOf` to `prim::If`: the block is computed if any incoming gradient is defined; otherwise the
//! results are undefined gradients.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{At, NodeId, Prim, Type, ValueId};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowerGradOf;

impl Pass for LowerGradOf {
    const NAME: &'static str = "lower_grad_of";
    const DOC: &'static str =
        "Lowers gradient formulas to branches that run if an incoming gradient is defined.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let nodes: Vec<NodeId> = graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::GradOf)).collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for node in nodes {
            let g = editor.graph();
            if !fuel.take("lower", g, node) {
                break;
            }
            let (formula, loc) = (g.block(node, 0), g.loc(node));
            let gradients: Vec<ValueId> = g.operands(node).collect();
            let types: Vec<Type> = g.results(node).map(|v| g.ty(v)).collect();
            let outputs: Vec<ValueId> = g.block_outputs(formula).collect();
            editor.at(At::before(node)).loc(loc);
            let any = editor.value(Prim::AutogradAnyNonZero, &gradients, Type::BOOL);
            let branch = editor.node(Prim::If, &[any], &types);
            let (some, none) = (editor.add_block(branch), editor.add_block(branch));
            let end = editor.graph().ret(some);
            editor.splice_before(formula, end);
            for v in outputs {
                editor.add_block_output(some, v);
            }
            for &ty in &types {
                let zero = editor.at(At::end(none)).loc(loc).value(Prim::AutogradZero, &[], ty);
                editor.add_block_output(none, zero);
            }
            let results: Vec<ValueId> = editor.graph().results(branch).collect();
            editor.replace_node(node, &results);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn a_formula_is_a_branch() {
        assert_passes(
            &toy(),
            "lower_grad_of",
            "graph(%g : Tensor, %x : Tensor):
  %d : Tensor = prim::GradOf(%g)
    block0():
      %e : Tensor = toy::mul(%g, %x)
      -> (%e)
  return (%d)
",
            "graph(%g : Tensor, %x : Tensor):
  %1 : bool = prim::AutogradAnyNonZero(%g)
  %2 : Tensor = prim::If(%1)
    block0():
      %e : Tensor = toy::mul(%g, %x)
      -> (%e)
    block1():
      %3 : Tensor = prim::AutogradZero()
      -> (%3)
  return (%2)
",
        );
    }
}
