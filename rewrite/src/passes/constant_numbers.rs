//! Constant tensors without dimensions that stand for numbers become numbers.
//!
//! A trace has tensors where the program it was made of had numbers, and saving drops the mark that told them apart: a
//! double would count in type promotion as a tensor. PyTorch's executor takes a constant second operand of a sum,
//! difference, product or quotient as a number before anything runs, and what it computes is what programs mean; so this
//! is no optimization, but done to every program before it runs. Operators it concerns say so ([`ByNumber`]).

use crate::facets::ByNumber;
use crate::numbers;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{At, Graph, IValue, NodeId, OpId, Prim};
use flambeau_tensor::{DType, Scalar};

/// See the module's head.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstantNumbers;

impl ConstantNumbers {
    /// Whether a graph has nodes that the pass would change.
    pub fn concerns(graph: &Graph) -> bool {
        graph.nodes_deep().any(|n| plan(graph, n).is_some())
    }
}

impl Pass for ConstantNumbers {
    const NAME: &'static str = "constant_numbers";
    const DOC: &'static str = "makes numbers of constant tensors that traces have in their place";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let found: Vec<Found> = graph.nodes_deep().filter_map(|n| plan(graph, n)).collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for f in found {
            if !fuel.take("to-number", editor.graph(), f.node) {
                break;
            }
            let (loc, constant) = (editor.graph().loc(f.node), editor.graph().operand(f.node, OTHER));
            let value = editor.at(At::before(f.node)).loc(loc).constant(IValue::from(f.number));
            editor.set_operand(f.node, OTHER, value);
            editor.set_op(f.node, f.op);
            if editor.graph().use_count(constant) == 0 {
                let unused = editor.graph().def(constant);
                editor.erase(unused);
            }
        }
        Ok(())
    }
}

/// Which operand.
const OTHER: usize = 1;

struct Found {
    node: NodeId,
    op: OpId,
    number: Scalar,
}

fn plan(g: &Graph, node: NodeId) -> Option<Found> {
    let op = g.op(node).row()?;
    let registry = g.registry();
    registry.facet::<ByNumber>(op)?;
    let other = g.operand(node, OTHER);
    if !g.is_prim(g.def(other), Prim::Constant) {
        return None;
    }
    let constant = g.constant(other)?;
    // PyTorch's executor dies of truth values.
    let tensor = constant.as_tensor().filter(|t| t.rank() == 0 && t.dtype() != DType::Bool)?;
    let number = tensor.item().ok()?;
    let op = numbers::overload(registry, op, OTHER, |ty| matches!(ty.kind(), TypeKind::Number))?;
    Some(Found { node, op, number })
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn a_constant_second_operand_becomes_a_number() {
        assert_passes(
            &toy(),
            "constant_numbers",
            "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %c : Double() = prim::Constant[value={1.5}]()
  %l : Double(1) = prim::Constant[value={1.5}]()
  %a : Tensor = toy::plus(%x, %c, %1)
  %b : Tensor = toy::plus(%c, %x, %1)
  %d : Tensor = toy::plus(%x, %l, %1)
  return (%a, %b, %d)
",
            "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %c : Double() = prim::Constant[value={1.5}]()
  %l : Double(1) = prim::Constant[value={1.5}]()
  %2 : float = prim::Constant[value=1.5]()
  %a : Tensor = toy::plus(%x, %2, %1)
  %b : Tensor = toy::plus(%c, %x, %1)
  %d : Tensor = toy::plus(%x, %l, %1)
  return (%a, %b, %d)
",
        );
    }
}
