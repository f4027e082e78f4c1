"""Gradients as a function, as ``torch.autograd``.

>>> import flambeau
>>> from flambeau import autograd
>>> x = flambeau.tensor(3.0, requires_grad=True)
>>> (slope,) = autograd.grad(x * x, x, create_graph=True)
>>> autograd.grad(slope, x)
(tensor(2.),)
"""

from __future__ import annotations

from . import _native
from ._modes import enable_grad, no_grad, set_grad_enabled
from .errors import misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._native import Tensor

__all__ = ["enable_grad", "grad", "no_grad", "set_grad_enabled"]


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """Returns the gradients of the sum of the outputs with respect to the inputs.

    Args:
        grad_outputs: The gradients of the outputs; one of a number is 1 by default.
        retain_graph: Whether the history is kept for another backward pass; the default is ``create_graph``.
        create_graph: Whether the gradients have a history themselves.
        allow_unused: Whether the gradient of an input on which no output depends is ``None`` instead of an error.

    Raises:
        MisuseError: An output or an input has no history, or a gradient does not fit its output.
    """
    ends, starts = _listed(outputs), _listed(inputs)
    seeds = [None] * len(ends) if grad_outputs is None else _listed(grad_outputs)
    if len(seeds) != len(ends):
        raise misuse(f"{len(seeds)} gradients were given for {len(ends)} outputs")
    for i, start in enumerate(starts):
        if not start.requires_grad:
            raise misuse(f"input {i} does not require a gradient")
    retain = create_graph if retain_graph is None else retain_graph
    found = _native.gradients(ends, seeds, starts, retain, create_graph)
    for i, one in enumerate(found):
        if one is None and not allow_unused:
            raise misuse(f"no output depends on input {i}; with `allow_unused=True` its gradient is `None`")
    return tuple(found)


def _listed(tensors: Tensor | Sequence[Tensor | None]) -> list[Tensor | None]:
    return [tensors] if isinstance(tensors, _native.Tensor) else list(tensors)
