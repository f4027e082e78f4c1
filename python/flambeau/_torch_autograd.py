"""Calls of programs as nodes of PyTorch's gradient graph.

A call with tensors of PyTorch that require gradients runs on tensors of this package over the same memory, which record the
operators of the program. PyTorch's graph has one node for the call; its backward walks that record. With `create_graph` the
backward is such a node itself, whose inputs are those of the call and the gradients of its results, so that gradients can be
differentiated to any order.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.utils.weak import WeakTensorKeyDictionary

from . import _dtypes, _native, _ops
from ._frames import warn_once
from ._nested import mapped
from .errors import unsupported


def own(tensor: torch.Tensor, requires_grad: bool = False) -> _native.Tensor:
    """Returns a tensor of this package over the memory of one of PyTorch."""
    made = _native.from_dlpack(tensor.detach())
    if requires_grad:
        made.requires_grad = True
    return made


def of_torch(native: _native.Tensor) -> torch.Tensor:
    """Returns a tensor of PyTorch over the memory of one of this package. Its storage begins where that of the latter does, so that
    parts of one storage have storages at one address."""
    with _ops.trace.pause() if _ops.trace is not None else contextlib.nullcontext():
        offset = native.storage_offset()
        if not offset or not native.numel():
            return _native.to_torch(native)
        sizes, strides = native.shape, native.strides
        last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        whole = _native.to_torch(native.detach().as_strided([last + 1], [1], 0))
    return whole.as_strided(sizes, strides, offset)


_known: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
"""Cache: for each tensor of PyTorch, the tensor of this package over its memory, and its `memory_of` when the entry was made."""


def memory_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Returns pointer, dtype, sizes and strides of a tensor: they show whether its memory was exchanged (`p.data = ...`)."""
    return tensor.data_ptr(), tensor.dtype, tensor.size(), tensor.stride()


def follow(tensor: torch.Tensor, native: _native.Tensor) -> None:
    """Notes that the memory of a tensor of PyTorch was exchanged for that of the tensor of this package that it is."""
    _known[tensor] = native, memory_of(tensor)


def shared(tensor: torch.Tensor) -> _native.Tensor:
    """Returns the one tensor of this package for a tensor of PyTorch. All module attributes that hold the latter share it."""
    known = _known.get(tensor)
    memory = memory_of(tensor)
    if known is None or known[1] != memory:
        known = _known[tensor] = own(tensor), memory
    if tensor.is_leaf:
        known[0].requires_grad = tensor.requires_grad
    return known[0]


def check_modes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuses tensors of forward-mode differentiation, and warns of mixed precision: programs follow neither.

    Raises:
        UnsupportedError: an argument has a tangent.
    """
    if is_autocast():
        warn_once(AUTOCAST)
    if forward_ad._current_level >= 0:
        mapped((args, kwargs), _check_tangent)


AUTOCAST = (
    "a compiled program runs in a context of `torch.autocast` for the CPU and does not follow it: its operators have the dtypes of "
    "their operands"
)


def is_autocast() -> bool:
    """Returns whether this thread is in a context of `torch.autocast` for the CPU."""
    try:
        return torch.is_autocast_enabled("cpu")
    except TypeError:  # Before PyTorch 2.4.
        return torch.is_autocast_cpu_enabled()


def _check_tangent(value: Any) -> None:
    if isinstance(value, torch.Tensor) and forward_ad.unpack_dual(value).tangent is not None:
        raise unsupported("programs do not compute tangents: an argument is a dual tensor of `torch.autograd.forward_ad`")


def _as_view(native: _native.Tensor, tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Returns a tensor of this package as a view of the tensor of PyTorch in whose memory it is; ``None`` if it is in that of none."""
    if not native.numel():
        return None
    for tensor in tensors:
        if tensor.layout == torch.strided and _dtypes.code_of(tensor.dtype) == native.dtype_code:
            storage = tensor.untyped_storage()
            offset = native.data_ptr() - storage.data_ptr()
            if 0 <= offset < storage.nbytes():
                return tensor.as_strided(native.shape, native.strides, offset // tensor.element_size())
    return None


class _Node(torch.autograd.Function):
    """A node of PyTorch's graph. ``compute`` returns ``(leaves, outputs, owners)``. The first two are tensors of this package: the
    counterparts of ``inputs``, and the results of the node, which the record on this package's tape connects. Results in the memory of
    ``owners``, tensors of PyTorch, are views of them, so that PyTorch refuses writes to them whose gradient the node does not have."""

    @staticmethod
    def forward(ctx: Any, compute: Callable[[], tuple[Any, Any, Any]], *inputs: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.leaves, ctx.outputs, owners = compute()
        ctx.save_for_backward(*inputs)
        views = [_as_view(output, owners) for output in ctx.outputs]
        results = tuple(
            _native.to_torch(output) if view is None else view for output, view in zip(ctx.outputs, views, strict=True)
        )
        ctx.mark_non_differentiable(
            *(result for output, result in zip(ctx.outputs, results, strict=True) if not output.requires_grad)
        )
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        # Reading `saved_tensors` raises if an input, whose memory the record reads, was written in place since the call, or if the
        # graph was released by an earlier walk.
        saved = ctx.saved_tensors
        leaves = ctx.leaves
        pairs = zip(ctx.outputs, gradients, strict=True)
        given = [(output, gradient) for output, gradient in pairs if gradient is not None and output.requires_grad]
        if not given:
            return (None, *(None for _ in leaves))
        outputs, seeds = [output for output, _ in given], [gradient for _, gradient in given]
        wanted = [i for i, leaf in enumerate(leaves) if leaf.requires_grad]
        held = [leaves[i] for i in wanted]
        result: list[Any] = [None] * len(leaves)
        if not torch.is_grad_enabled():
            found = _native.gradients(outputs, [own(seed.contiguous()) for seed in seeds], held, True, False)
            for i, gradient in zip(wanted, found, strict=True):
                result[i] = None if gradient is None else _native.to_torch(gradient)
            return (None, *result)
        present: list[int] = []

        def compute() -> tuple[Any, Any, Any]:
            own_seeds = [own(seed.contiguous(), seed.requires_grad) for seed in seeds]
            found = _native.gradients(outputs, own_seeds, held, True, True)
            present.extend(i for i, gradient in zip(wanted, found, strict=True) if gradient is not None)
            return [*leaves, *own_seeds], [gradient for gradient in found if gradient is not None], ()

        made = _Node.apply(compute, *saved, *seeds)
        for i, gradient in zip(present, made, strict=True):
            result[i] = gradient
        return (None, *result)


def _lend_gradient(native: _native.Tensor, tensor: torch.Tensor) -> None:
    """Gives the counterpart of a leaf its gradient, over the same memory: programs read gradients, and accumulate them."""
    grad = tensor.grad if tensor.is_leaf else None
    if grad is not None and grad.layout == torch.strided:
        native.grad = own(grad)
    elif native.grad is not None:
        native.grad = None


def _give_gradient(native: _native.Tensor, tensor: torch.Tensor) -> None:
    """Gives a leaf the gradient that a program accumulated in its counterpart, if that is not in the memory of its own."""
    grad = native.grad
    if grad is not None and tensor.is_leaf and (tensor.grad is None or tensor.grad.data_ptr() != grad.data_ptr()):
        tensor.grad = _native.to_torch(grad)


_writing: weakref.WeakKeyDictionary[_native.Function, bool] = weakref.WeakKeyDictionary()
"""Cache: whether a function may write arguments that are tensors."""


def _may_write_arguments(function: _native.Function) -> bool:
    known = _writing.get(function)
    if known is None:
        graph = function.graph("inline")
        aliases = graph.alias_db()
        known = _writing[function] = any(aliases.has_writers(value) for value in graph.inputs() if value.type == "Tensor")
    return known


def call(
    function: _native.Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    parameters: Sequence[tuple[_native.Tensor, torch.Tensor]] = (),
) -> Any:
    """Calls a program whose arguments, or whose module's parameters, require gradients."""
    check_modes(args, kwargs)
    inputs = [tensor for _, tensor in parameters]
    leaves = [native for native, _ in parameters]
    known: dict[int, torch.Tensor] = {id(tensor): tensor for tensor in inputs}
    made = {id(tensor): native for native, tensor in parameters}
    # Tensors that the program may write although they are not leaves, their copies, which are not leaves on the tape of this package
    # either, and the versions of the copies.
    copied: list[tuple[torch.Tensor, _native.Tensor, int]] = []

    def converted(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.requires_grad:
            return value
        if id(value) not in known:
            known[id(value)] = value
            is_copied = not value.is_leaf and _may_write_arguments(function)
            # The graph of PyTorch keeps the input as it was before the call.
            given = value.clone() if is_copied else value
            leaf: Any = own(given, requires_grad=True)
            _lend_gradient(leaf, given)
            inputs.append(given)
            leaves.append(leaf)
            made[id(value)] = leaf.clone() if is_copied else leaf
            if is_copied:
                copied.append((value, made[id(value)], made[id(value)].version))
        return made[id(value)]

    args, kwargs = mapped(args, converted), mapped(kwargs, converted)
    outputs: list[_native.Tensor] = []
    returned: list[Any] = []

    def compute() -> tuple[Any, Any, Any]:
        returned.append(function.call_own(args, kwargs))

        def collect(value: Any) -> Any:
            is_new = isinstance(value, _native.Tensor) and value.requires_grad and not any(value.is_same(o) for o in outputs)
            if is_new and not any(value.is_same(leaf) for leaf in leaves):
                outputs.append(value)
            return value

        mapped(returned[0], collect)
        for _, copy, version in copied:
            if copy.version != version:
                collect(copy)
        return leaves, outputs, inputs

    for native, tensor in parameters:
        _lend_gradient(native, tensor)
    results = _Node.apply(compute, *inputs)
    for leaf, given in zip(leaves, inputs, strict=True):
        _give_gradient(leaf, given)

    for tensor, copy, version in copied:
        if copy.version != version:
            tensor.copy_(next(result for output, result in zip(outputs, results, strict=True) if output.is_same(copy)))

    def back(value: Any) -> Any:
        if not isinstance(value, _native.Tensor):
            return value
        for tensor, copy, _ in copied:
            if value.is_same(copy):
                return tensor
        for output, result in zip(outputs, results, strict=True):
            if value.is_same(output):
                return result
        for leaf, given in zip(leaves, inputs, strict=True):
            if value.is_same(leaf):
                return given
        view = _as_view(value, inputs)
        return _native.to_torch(value) if view is None else view.detach()

    return mapped(returned[0], back)
