"""Recording of what PyTorch runs.

Two modes of PyTorch are active during a trace. The dispatch mode sees every call of an operator above autograd, before composite
operators are decomposed, with the overload and the arguments of its schema: it records. The function mode sees calls of functions
of Python: it returns sizes as tensors that stand for numbers, and warns if a value leaves the trace. A number of the trace that is
passed on as an integer crosses PyTorch's parser of arguments as a symbolic number (:mod:`flambeau._trace_numbers`), so that the
dispatch mode still knows which value it is.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ._torch_autograd import is_autocast
from ._trace import Trace, leaves, warn
from ._trace_indices import applied, bounded, has_number, parts_of
from ._trace_numbers import Sizes, concrete, passed, traced, tree

_CONVERSIONS = {
    "__bool__": "Python boolean", "__int__": "Python integer", "__float__": "Python float",
    "__complex__": "Python complex", "item": "Python number", "tolist": "Python list", "numpy": "NumPy array",
    "__contains__": "Python boolean", "is_nonzero": "Python boolean",
}  # fmt: skip

_NOT_RECORDED = frozenset({
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_tbc", "convolution",
    "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
})  # fmt: skip
"""Composite operators that PyTorch's tracer does not record: it records what they call."""


_NOT_PARSED = frozenset({"aten::new", *(f"aten::{name}" for name in _NOT_RECORDED)})
"""Functions whose arguments are numbers of Python during PyTorch's traces."""

_CALLED_BY_SCHEMA = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
"""Functions that convert arguments without PyTorch's parser of arguments, in which its tracer sees numbers."""


class _Calls(ProxyTorchDispatchMode):
    """Records calls of operators.

    PyTorch admits few classes of modes above autograd, which this one derives from without their state.
    """

    def __init__(self, trace: Trace) -> None:
        TorchDispatchMode.__init__(self, torch._C.DispatchKey.PreDispatch)
        self._mode_key = torch._C._TorchDispatchModeKey.PROXY
        self.pre_dispatch = True
        self.trace = trace

    def __enter__(self) -> Any:
        return TorchDispatchMode.__enter__(self)

    def __exit__(self, *error: Any) -> Any:
        return TorchDispatchMode.__exit__(self, *error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        plain = [tree(arg, concrete) for arg in args]
        named = {name: tree(arg, concrete) for name, arg in kwargs.items()}
        if not self.trace.active:
            return func(*plain, **named)
        name = func._schema.name.partition("::")[2]
        if name in _NOT_RECORDED and func._can_decompose():
            with self:
                return func.decompose(*args, **kwargs)
        result = func(*plain, **named)
        self._record(func, name, args, kwargs, result)
        return result

    def _record(self, func: Any, name: str, args: Any, kwargs: Any, result: Any) -> None:
        schema = func._schema
        space = schema.name.partition("::")[0]
        traces = any(_has_tensors(ret.type) for ret in schema.returns)
        if space in ("profiler", "prim") or not traces or name in ("lift_fresh", "lift"):
            # PyTorch's tracer does not record these either.
            return
        if name == "detach_" and self.trace.value(args[0]) is None:
            return
        operands = list(args)
        for argument in schema.arguments[len(operands) :]:
            operands.append(kwargs.get(argument.name, argument.default_value))
        # PyTorch's tracer does not see numbers that are floats.
        operands = [
            tree(value, concrete if _is_float(argument) else traced)
            for value, argument in zip(operands, schema.arguments, strict=True)
        ]
        self._restore(schema, operands)
        operator = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        if name == "convolution":
            flags = torch.backends.cudnn
            operator = "aten::_convolution"
            operands += [flags.benchmark, flags.deterministic, flags.enabled, flags.allow_tf32]
        if name == "detach_":
            # PyTorch's tracer records the operator that is not in place. The tensor has no views whose values would change.
            operator = "aten::detach"
        results = list(result) if len(schema.returns) > 1 else [result]
        self.trace.call(operator, operands, results)

    def _restore(self, schema: Any, operands: list[Any]) -> None:
        """Makes operands that PyTorch's parser of arguments took as numbers the numbers of the trace again."""

        def restored(value: Any, parameter: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return [restored(part, (parameter, i)) for i, part in enumerate(value)]
            found = self.trace.taken.get(parameter)
            if found is None or type(value) not in (int, float) or value != found[1]:
                return value
            del self.trace.taken[parameter]
            return found[0]

        for i, argument in enumerate(schema.arguments):
            if not self.trace.taken:
                return
            if _is_float(argument):
                continue
            operands[i] = restored(restored(operands[i], i), argument.name)
            if isinstance(operands[i], list):
                # The integers of a list can be arguments of their own, as in `x.permute(1, 0)`.
                operands[i] = [restored(part, i + k) for k, part in enumerate(operands[i])]


def _is_float(argument: Any) -> bool:
    return str(argument.type) in ("float", "Optional[float]")


def _has_tensors(kind: Any) -> bool:
    return "Tensor" in str(kind)


class _Functions(TorchFunctionMode):
    """Returns sizes as values of the trace, and warns if a value leaves it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __torch_function__(self, func: Any, types_: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        trace = self.trace
        if not trace.active:
            return func(*args, **kwargs)
        if isinstance(func, _ListsOfFloats):
            func = func.original
        name = getattr(func, "__name__", "")
        known = bool(args) and isinstance(args[0], torch.Tensor) and trace.value(args[0]) is not None
        if bool(args) and isinstance(args[0], torch.Tensor):
            # The sizes of constants are recorded, too.
            if getattr(func, "__self__", None) is torch.Tensor.shape or name == "size":
                return self._size(args[0], *args[1:], **kwargs)
            if name in ("numel", "nelement"):
                return trace.numel(args[0], self._number(torch.Tensor.numel(args[0])))
        if known:
            if name == "contiguous" and args[0].is_contiguous(**kwargs):
                # PyTorch returns the tensor without a call of the operator, but a later argument may need the copy.
                trace.call("aten::contiguous", [args[0], kwargs.get("memory_format", torch.contiguous_format)], args[:1])
                return args[0]
            if name in _CONVERSIONS:
                leaves(_CONVERSIONS[name])
                with trace.pause():
                    return func(*args, **kwargs)
        if name in ("__getitem__", "__setitem__") and has_number(trace, parts := parts_of(args[1])):
            view, rest = applied(trace, args[0], parts)
            return view if rest is ... and name == "__getitem__" else func(view, rest, *args[2:])
        if func is torch.tensor or func is torch.as_tensor:
            return self._constant(f"torch.{name}", args[0] if args else None, func, args, kwargs)
        if name == "new_tensor" and args:
            return self._constant(name, args[1] if len(args) > 1 else None, func, args, kwargs)
        outer, trace.taken = trace.taken, {}
        try:
            # Calls of methods of the extension that a function of Python has in `torch.Tensor` are shown as those of the function.
            if isinstance(func, types.FunctionType) and vars(torch.Tensor).get(name) is func:
                func = getattr(torch._C.TensorBase, name, func)
            positions = self._positions(func, name, args)
            operator = _operator_of(func, name)
            named = {key: self._argument(func, operator, value, key) for key, value in kwargs.items()}
            given = dict(trace.taken)
            result = func(*positions, **named)
            for parameter in trace.taken:
                if parameter not in given:
                    leaves("Python integer")
        finally:
            trace.taken = outer
        return self._known(result)

    def _known(self, result: Any) -> Any:
        """Gives the result of a factory, which PyTorch returns as another object than the dispatcher did, its value."""
        trace = self.trace
        if isinstance(result, torch.Tensor) and isinstance(trace.last, torch.Tensor) and trace.value(result) is None:
            with trace.pause():
                same = result.untyped_storage()._cdata == trace.last.untyped_storage()._cdata
                same = same and result.shape == trace.last.shape and result.stride() == trace.last.stride()
            value = trace.value(trace.last)
            if same and value is not None:
                trace.bind(result, value)
        return result

    def _number(self, value: int) -> Any:
        with self.trace.pause():
            return torch.tensor(value)

    def _size(self, tensor: Any, dim: Any = None) -> Any:
        with self.trace.pause():
            found = tensor.shape
        if dim is not None:
            dim = int(dim)
            return self.trace.size(tensor, dim, self._number(found[dim]))
        return Sizes(self.trace.size(tensor, i, self._number(n)) for i, n in enumerate(found))

    def _constant(self, name: str, data: Any, func: Any, args: Any, kwargs: Any) -> Any:
        """A tensor that is made of values of Python."""
        warn(
            f"{name} results are registered as constants in the trace. You can safely ignore this warning if "
            "you use this function to create tensors out of constant variables that would be the same every time you call "
            "this function. In any other case, this might cause the trace to be incorrect."
        )
        if isinstance(data, torch.Tensor):
            return func(*args, **kwargs)
        with self.trace.pause():
            constant = func(*args, **kwargs)
        with self.trace.pause():
            copy, result = constant.to(constant.device, constant.dtype), constant.detach()
        options = [constant, constant.device, constant.dtype, False, False, None]
        self.trace.call("aten::to.device", options, [copy])
        self.trace.bind(copy, self.trace.value(copy))  # type: ignore[arg-type]
        if name == "torch.as_tensor":
            return copy
        self.trace.call("aten::detach", [copy], [result])
        return result

    def _positions(self, func: Any, name: str, args: Any) -> list[Any]:
        """Passes numbers of the trace as integers, except where an overload takes tensors."""
        if isinstance(func, types.FunctionType):
            return list(args)
        if name in ("__getitem__", "__setitem__"):
            return [args[0], bounded(self.trace, args[1]), *args[2:]]
        receiver = 1 if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)) else 0
        operator = _operator_of(func, name)
        return [arg if i < receiver else self._argument(func, operator, arg, i) for i, arg in enumerate(args)]

    def _argument(self, func: Any, operator: str, value: Any, parameter: int | str) -> Any:
        """Returns the argument for a parameter of a function of PyTorch that calls an operator."""
        if not self._has_number(value):
            return value
        is_parsed = not isinstance(func, _CALLED_BY_SCHEMA)
        if operator in _NOT_PARSED or not is_parsed and not _takes(operator, "Tensor", parameter):
            # PyTorch's tracer does not see the numbers either.
            leaves("Python integer")
            return tree(value, lambda part: int(torch.Tensor.item(part)) if self.trace.is_number(part) else part)
        if not _takes(operator, "Tensor", parameter):
            return passed(self.trace, value, parameter)
        if is_parsed and self.trace.is_number(value):
            # The overload for the other arguments may take a number.
            self.trace.taken[parameter] = value, torch.Tensor.item(value)
        return value

    def _has_number(self, value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return any(self._has_number(part) for part in value)
        if isinstance(value, slice):
            return any(self._has_number(part) for part in (value.start, value.stop, value.step))
        return self.trace.is_number(value)


@functools.cache
def _takes(operator: str, kind: str, position: int | str) -> bool:
    """Returns whether an overload of an operator takes values of a type, or containers of them, at a position or by name."""
    for schema in torch._C._jit_get_schemas_for_operator(operator):
        for i, argument in enumerate(schema.arguments):
            is_out = argument.kwarg_only and argument.name == "out"
            if kind in str(argument.type) and not is_out and (position == argument.name or position == i and not argument.kwarg_only):
                return True
    return False


def _operator_of(func: Any, name: str) -> str:
    """Returns the name of the operator that a function of PyTorch calls."""
    if isinstance(func, torch._ops.OpOverload):
        return str(func._schema.name)
    if isinstance(func, torch._ops.OpOverloadPacket):
        return str(func._qualified_op_name)
    base = {"__rsub__": "rsub"}.get(name, name.removeprefix("__i").removeprefix("__").removesuffix("__"))
    return f"aten::{base}"


@contextmanager
def _python_functions() -> Iterator[None]:
    """Lets the bodies of PyTorch's Python functions run: with a function mode they would call the mode instead of their body.
    PyTorch's own code for traces, such as warnings about loops over tensors, runs as well."""
    originals = {
        name: getattr(torch.overrides, name, None)
        for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    }
    plain = (torch.Tensor, torch.nn.Parameter)

    def is_overridden(value: Any) -> bool:
        return isinstance(value, torch.Tensor) and type(value) not in plain

    replacements = {
        "has_torch_function": lambda values: any(map(is_overridden, values)),
        "has_torch_function_unary": is_overridden,
        "has_torch_function_variadic": lambda *values: any(map(is_overridden, values)),
    }
    changed = []
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] != "torch":
            continue
        for name, original in originals.items():
            if original is not None and vars(module).get(name) is original:
                changed.append((module, name, original))
                setattr(module, name, replacements[name])
    states = [(torch._C, "_get_tracing_state"), (torch._C, "_is_tracing"), (torch.jit, "is_tracing")]
    for owner, name, value in [*((owner, name, lambda: True) for owner, name in states), (torch, "Size", Sizes)]:
        changed.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, original in changed:
            setattr(owner, name, original)


class _ListsOfFloats:
    """A function of PyTorch that takes numbers of the trace that are floats in lists of integers."""

    def __init__(self, trace: Trace, original: Any) -> None:
        self.trace = trace
        self.original = original
        self.operator = f"aten::{original.__name__}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.trace.active:
            args = tuple(self._argument(value, i) for i, value in enumerate(args))
            kwargs = {key: self._argument(value, key) for key, value in kwargs.items()}
        return self.original(*args, **kwargs)

    def _argument(self, value: Any, parameter: int | str) -> Any:
        if not isinstance(value, (list, tuple)) or not any(map(self.trace.is_number, value)):
            return value
        return value if _takes(self.operator, "float", parameter) else passed(self.trace, value, parameter)


@contextmanager
def _lists_of_floats(trace: Trace) -> Iterator[None]:
    """Lets operators that resize images take numbers that are floats in lists of integers, as PyTorch's parser of arguments does during
    its own traces: `interpolate` computes such sizes during traces."""
    owner = torch._C._nn
    originals = {
        name: value
        for name, value in vars(owner).items()
        if isinstance(value, types.BuiltinFunctionType) and _takes(f"aten::{name}", "float", "scale_factors")
    }
    for name, original in originals.items():
        setattr(owner, name, _ListsOfFloats(trace, original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(owner, name, original)


@contextmanager
def _functions_of_pytorch(trace: Trace) -> Iterator[None]:
    """Lets calls of functions that PyTorch compiled be recorded as such: this package compiles their source as well. PyTorch's
    interpreter would show the trace the operators of the example's branches only."""
    owner: Any = torch.jit.ScriptFunction
    original = owner.__call__
    own: dict[int, Any] = {}

    def compiled(function: Any) -> Any:
        from . import jit
        from .errors import CompileError, UnsupportedError

        python = getattr(function, "_torchdynamo_inline", None)
        if id(function) not in own:
            own[id(function)] = None
            with suppress(CompileError, UnsupportedError), trace.pause():
                own[id(function)] = jit.script(python) if isinstance(python, types.FunctionType) else None
        return own[id(function)]

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = compiled(self) if trace.active else None
        return original(self, *args, **kwargs) if found is None else found(*args, **kwargs)

    owner.__call__ = call
    try:
        yield
    finally:
        owner.__call__ = original


@contextmanager
def modes(trace: Trace) -> Iterator[None]:
    """Records what PyTorch runs."""
    from torch._dispatch.python import enable_python_dispatcher

    if is_autocast():
        warn("A trace does not record the conversions that `torch.autocast` makes for the CPU")
    with ExitStack() as stack:
        stack.enter_context(_python_functions())
        stack.enter_context(_lists_of_floats(trace))
        stack.enter_context(_functions_of_pytorch(trace))
        stack.enter_context(enable_python_dispatcher())
        stack.enter_context(_Calls(trace))
        stack.enter_context(_Functions(trace))
        yield


@contextmanager
def scopes(trace: Trace, names: dict[int, str]) -> Iterator[None]:
    """Names the modules that are called in the scopes of nodes."""
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

    def enter(module: Any, args: Any) -> None:
        name = names.get(id(module))
        if name not in (None, "__module"):
            trace.scopes.append(str(name))

    def leave(module: Any, args: Any, result: Any) -> None:
        if names.get(id(module)) not in (None, "__module") and trace.scopes:
            trace.scopes.pop()

    first = register_module_forward_pre_hook(enter)
    second = register_module_forward_hook(leave, always_call=True)
    try:
        yield
    finally:
        first.remove()
        second.remove()
