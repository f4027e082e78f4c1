//! The graphs that differentiation needs beside formulas, as TorchScript functions.

use super::library::FormulaLibrary;
use flambeau_exec::tape::Refusals;
use flambeau_ir::{Graph, NodeId, OpId};
use flambeau_rewrite::autodiff::{
    BodyDependence, FormulaGraph, FormulaGraphs, Helper, InputFact, NotDifferentiable, OpDerivative,
};
use std::sync::Arc;

/// The function of each [`Helper`].
const HELPERS: &str = "
def sum(a: Tensor, b: Tensor) -> Tensor:
    return a + b

def fit(grad: Tensor, like: Tensor) -> Tensor:
    return grad.sum_to_size(like.size()).to(like.dtype)

def zeros_like(like: Tensor) -> Tensor:
    return torch.zeros_like(like)

def defined(grad: Optional[Tensor], like: Tensor) -> Tensor:
    return torch.zeros_like(like) if grad is None else grad

def sum_defined(a: Tensor, b: Optional[Tensor]) -> Tensor:
    return a if b is None else a + b

def sum_optional(a: Optional[Tensor], b: Optional[Tensor]) -> Optional[Tensor]:
    if a is None:
        return b
    return a if b is None else a + b

def fit_optional(grad: Optional[Tensor], like: Tensor) -> Optional[Tensor]:
    return None if grad is None else grad.sum_to_size(like.size()).to(like.dtype)

def present(grad: Optional[Tensor]) -> bool:
    return grad is not None

def either(a: bool, b: bool) -> bool:
    return a | b

def if_any(count: int, grad: Tensor) -> Optional[Tensor]:
    return grad if count > 0 else None

def next_index(i: int) -> int:
    return i + 1

def mirror(count: int, i: int) -> int:
    return count - 1 - i

def float_of(i: int) -> float:
    return float(i)

def push(list: List[Tensor], element: Tensor) -> List[Tensor]:
    list.append(element)
    return list

def element(list: List[Tensor], i: int) -> Tensor:
    return list[i]

def element_grad(list: List[Tensor], i: int, grad: Optional[Tensor]) -> List[Optional[Tensor]]:
    at = i if i >= 0 else i + len(list)
    return [grad if j == at else None for j in range(len(list))]

def sum_elements(a: List[Optional[Tensor]], b: List[Optional[Tensor]]) -> List[Optional[Tensor]]:
    return [sum_optional(a[i], b[i]) for i in range(len(a))]

def defined_elements(grads: List[Optional[Tensor]], like: List[Tensor]) -> List[Tensor]:
    return [defined(grads[i], like[i]) for i in range(len(like))]

def written(value: Tensor, before: Tensor) -> Tensor:
    if not torch.can_cast(value.dtype, before.dtype):
        raise RuntimeError('the result of an operator in place cannot be cast to the dtype of the tensor')
    return value.to(before.dtype).expand_as(before)

def copy(x: Tensor) -> Tensor:
    return x.clone()

def ones_like(like: Tensor) -> Tensor:
    return torch.ones_like(like.detach())

def replace(placed: Tensor, mask: Tensor, base: Tensor) -> Tensor:
    return torch.where(mask != 0, placed, base)

def detach(x: Tensor) -> Tensor:
    return x.detach()

def copy_into(to: Tensor, value: Tensor) -> Tensor:
    return to.copy_(value)
";

impl FormulaGraphs for FormulaLibrary {
    fn derivative(&self, op: OpId) -> Result<OpDerivative, NotDifferentiable> {
        self.op_derivative(op)
    }

    fn view(&self, op: OpId) -> Result<Option<FormulaGraph>, NotDifferentiable> {
        self.view_adjoint(op)
    }

    fn refusals(&self, op: OpId) -> Option<Arc<Refusals>> {
        flambeau_exec::tape::Derivatives::refusals(self, op)
    }

    fn body_dependence(&self, op: OpId) -> Arc<BodyDependence> {
        self.dependence_of_body(op)
    }

    fn simplified(&self, graph: &Arc<Graph>, facts: Vec<InputFact>) -> Arc<Graph> {
        self.simplified_graph(graph, facts)
    }

    fn call_dependence(&self, graph: &Graph, node: NodeId) -> BodyDependence {
        self.dependence_of_call(graph, node).unwrap_or_default()
    }

    fn helper(&self, helper: Helper) -> Result<Arc<Graph>, NotDifferentiable> {
        self.helper_graph(helper, HELPERS)
    }
}
