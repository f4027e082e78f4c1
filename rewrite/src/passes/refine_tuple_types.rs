//! Refines the types of tuples by the types of their elements.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::{NodeId, Prim, Type};
use smallvec::SmallVec;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefineTupleTypes;

impl Pass for RefineTupleTypes {
    const NAME: &'static str = "refine_tuple_types";
    const DOC: &'static str = "Refines tuple types to the types of their elements.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let tuples: Vec<NodeId> =
            graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::TupleConstruct)).collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for node in tuples {
            let g = editor.graph();
            let whole = g.result(node, 0);
            // Only shape information of tensors is refined; otherwise the declared type is kept.
            let parts: SmallVec<[Type; 8]> = g.operands(node).map(|v| g.ty(v)).collect();
            let mut parts = parts.into_iter();
            let refined = g.ty(whole).map_contained(|declared| match parts.next() {
                Some(own) if own.erase_shapes() == declared.erase_shapes() => own,
                _ => declared,
            });
            if refined != g.ty(whole) {
                if !fuel.take("refine", g, node) {
                    break;
                }
                editor.set_type(whole, refined);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{run, toy};
    use flambeau_ir::Type;

    #[test]
    fn tuples_have_the_types_of_their_elements() {
        let graph = run(
            &toy(),
            "refine_tuple_types",
            "graph(%x : Float(2), %n : int):
  %t : (Tensor, int) = prim::TupleConstruct(%x, %n)
  return (%t)
",
        );
        let output = graph.outputs().next().expect("the graph returns a tuple");
        let input = graph.inputs().next().expect("the graph takes a tensor");
        assert_eq!(graph.ty(output), Type::tuple(&[graph.ty(input), Type::INT]));
    }
}
