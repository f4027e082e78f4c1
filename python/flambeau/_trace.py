"""Traces: graphs of the operators that a run calls.

:class:`Trace` knows which tensors of the run are which values of the graph, for tensors of every library; the extension's
recorder builds the graph. Calls on tensors of this package are recorded by :mod:`flambeau._ops`, those of PyTorch by
:mod:`flambeau._trace_torch`. A tensor that no recorded call made is a constant.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import _dtypes, _native, _ops
from ._frames import position, user_frame
from ._nested import mapped
from .errors import misuse, unsupported, wrong


class TracerWarning(Warning):
    """A trace may not hold for other arguments."""


class TracingCheckError(AssertionError):
    """A second run of a traced function recorded another graph."""


_LEAVES = (
    "might cause the trace to be incorrect. We can't record the data flow of Python values, so this value will be treated as "
    "a constant in the future. This means that the trace might not generalize to other inputs!"
)

_STRICT = (
    "at the output of the tracer might cause the trace to be incorrect, this is only valid if the container structure does "
    "not change based on the module's inputs. Consider using a constant container instead (e.g. for `list`, use a `tuple` "
    "instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass "
    "strict=False to trace() to allow this behavior."
)

_NAME = re.compile(r"[A-Za-z]\w*")


def is_tensor(value: Any) -> bool:
    """Returns whether a value is a tensor of this package or of PyTorch."""
    if isinstance(value, _native.Tensor):
        return True
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def warn(text: str) -> None:
    """Warns at the line of the user that is traced."""
    file, line = position(user_frame())
    warnings.warn_explicit(text, TracerWarning, file, line)


def leaves(kind: str) -> None:
    """Warns that a value leaves the trace as a value of Python."""
    warn(f"Converting a tensor to a {kind} {_LEAVES}")


class Trace:
    """One recorded run."""

    def __init__(
        self,
        program: _native.Program | None = None,
        class_name: str | None = None,
        of_torch: bool = False,
        name: str = "forward",
    ) -> None:
        self.program = program
        self.recorder = _native.Recorder(program, class_name, of_torch, name)
        self.thread = threading.get_ident()
        self.paused = 0
        self.scopes: list[str] = []
        # The paths of attributes of the module, by the identity of their tensors.
        self.paths: dict[Any, list[str]] = {}
        # The paths and classes of the compiled modules in the module that is traced, by identity.
        self.modules: dict[int, tuple[list[str], str]] = {}
        self._values: dict[Any, _native.TracedValue] = {}
        # Results, by the identity of their tensors, that have no name yet.
        self._unnamed: dict[int, _native.TracedValue] = {}
        # Numbers of the trace that the function that is called takes as such, with their values, by the position or the name of the
        # parameter; an element of a list by that of the list and its index.
        self.taken: dict[Any, tuple[Any, int | float]] = {}
        # The tensor that the last recorded call returned.
        self.last: Any = None
        # Tensors whose identity is a key stay alive.
        self._alive: list[Any] = []

    @staticmethod
    def key(tensor: Any) -> Any:
        """Identifies a tensor."""
        return ("own", tensor.identity) if isinstance(tensor, _native.Tensor) else id(tensor)

    @property
    def active(self) -> bool:
        return not self.paused and self.thread == threading.get_ident()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Records nothing for a while."""
        self.paused += 1
        try:
            yield
        finally:
            self.paused -= 1

    def bind(self, tensor: Any, value: _native.TracedValue) -> None:
        """Makes a value of the graph that of a tensor."""
        key = self.key(tensor)
        if key not in self._values:
            self._alive.append(tensor)
        self._values[key] = value

    def value(self, tensor: Any) -> _native.TracedValue | None:
        """Returns the value of a tensor, ``None`` for a constant."""
        key = self.key(tensor)
        found = self._values.get(key)
        if found is None and key in self.paths:
            found = self.recorder.attribute(self.paths[key])
            self.bind(tensor, found)
        return found

    def is_number(self, value: Any) -> bool:
        """Returns whether a value may stand for a number of Python, as sizes do: a traced tensor of rank 0."""
        return is_tensor(value) and self.value(value) is not None and value.dim() == 0

    def operand(self, value: Any) -> Any:
        """Returns what the recorder takes for a value: values of the graph, containers of them, constants."""
        if is_tensor(value):
            found = self.value(value)
            if found is not None:
                return found
            if value.requires_grad:
                # Operators of PyTorch take a `TypeError`, which `MisuseError` is, as an unsupported operand.
                raise wrong(
                    "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or "
                    "detaching the gradient"
                )
            return value
        if isinstance(value, _ops.Integer):
            return self.operand(value.tensor)
        if isinstance(value, (list, tuple)):
            parts = [self.operand(part) for part in value]
            return parts if isinstance(value, list) else tuple(parts)
        if isinstance(value, dict):
            return {self.operand(key) if is_tensor(key) else key: self.operand(part) for key, part in value.items()}
        code = _dtypes.code_of(value)
        return value if code is None or isinstance(value, (builtins.bool, int)) else code

    def bind_result(self, value: _native.TracedValue, result: Any) -> None:
        """Makes a value of the graph that of all tensors in a result or an input."""
        if is_tensor(result):
            self.bind(result, value)
        elif isinstance(result, (list, tuple)) and any(is_tensor(part) or isinstance(part, (list, tuple, dict)) for part in result):
            for part, element in zip(result, self.recorder.unpack(value, len(result)), strict=True):
                self.bind_result(element, part)
        elif isinstance(result, dict):
            for key, part in result.items():
                (element,) = self.recorder.call(f"aten::__getitem__.Dict_{type(key).__name__}", [value, key])
                self.bind_result(element, part)

    def call(self, operator: str, args: Sequence[Any], results: Sequence[Any]) -> None:
        """Records a call of an operator that was made, with the arguments of its schema in order."""
        self.locate()
        # The conversion of constants is not part of the run.
        with self.pause():
            values = self.recorder.call(operator, [self.operand(arg) for arg in args])
            for value, result in zip(values, results, strict=True):
                self.bind_result(value, result)
                if is_tensor(result):
                    self._unnamed[id(result)] = value
        self.last = results[-1]

    def locate(self) -> None:
        frame = user_frame()
        file, line = position(frame)
        self.recorder.locate(file, line, "/".join(self.scopes))
        if frame is not None and self._unnamed:
            self.name(frame)

    def name(self, frame: Any) -> None:
        """Names the results that are variables of a frame after them."""
        for name, held in frame.f_locals.items():
            value = self._unnamed.get(id(held))
            if value is not None and is_tensor(held) and _NAME.fullmatch(name):
                del self._unnamed[id(held)]
                self.recorder.set_name(value, name)

    def inline(self, function: _native.Function, args: Sequence[Any], result: Any) -> None:
        """Records the operators of a call of a compiled function that was made."""
        self.locate()
        with self.pause():
            self.bind_result(self.recorder.inline(function, [self.operand(arg) for arg in args]), result)

    def call_compiled(
        self, name: str, function: _native.Function, args: list[Any], named: dict[str, Any], result: Any
    ) -> None:
        """Records a call of a compiled function that was made."""
        self.locate()
        with self.pause():
            self.bind_result(self.recorder.call_function(name, function, args, named), result)

    def call_method(
        self, path: list[str], name: str, method: _native.Function, args: list[Any], named: dict[str, Any], result: Any
    ) -> None:
        """Records a call of a method of a compiled module, which is part of the module that is traced."""
        self.locate()
        with self.pause():
            self.bind_result(self.recorder.call_method(path, name, method, args, named), result)

    def size(self, tensor: Any, dim: int, number: Any) -> Any:
        """Records a size; ``number`` is a tensor with its value, which stands for it."""
        self.locate()
        self.bind(number, self.recorder.size(self.operand(tensor), dim))
        return number

    def numel(self, tensor: Any, number: Any) -> Any:
        """Records the number of elements of a tensor."""
        self.locate()
        (count,) = self.recorder.call("aten::numel", [self.operand(tensor)])
        self.bind(number, self.recorder.number(count))
        return number

    def input(self, name: str, example: Any) -> Any:
        """Adds an input and makes it the value of the tensors in the example. Returns the example, with views in place of
        tensors that are inputs already."""
        seen: set[int] = set()

        def distinct(tensor: Any) -> Any:
            if self.value(tensor) is not None or id(tensor) in seen:
                return tensor.view_as(tensor)
            seen.add(id(tensor))
            return tensor

        example = _tensors_mapped(example, distinct)
        with self.pause():
            value = self.recorder.input(name, _detached(example))
        self.bind_result(value, example)
        return example


def _check_inputs(inputs: Sequence[Any]) -> None:
    text = _type_of_example(tuple(inputs))
    if not all(map(_is_traceable, inputs)):
        raise misuse(
            f"Type '{text}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors can be traced"
        )


def _is_traceable(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return all(map(_is_traceable, value.values() if isinstance(value, dict) else value))
    return is_tensor(value)


def _type_of_example(value: Any) -> str:
    """Returns the type of an argument as text. Values that programs do not have are named by their class in Python."""
    if is_tensor(value):
        return "Tensor"
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(map(_type_of_example, value)) or '()'}]"
    if isinstance(value, list):
        return f"List[{_common_type(map(_type_of_example, value), 'List', 'element type')}]"
    if isinstance(value, dict):
        key = _common_type((type(key).__name__ for key in value), "Dictionary", "type")
        return f"Dict[{key}, {_common_type(map(_type_of_example, value.values()), 'Dictionary', 'type')}]"
    return type(value).__name__


def _common_type(types: Iterable[str], container: str, what: str) -> str:
    found = list(dict.fromkeys(types))
    if not found:
        raise misuse(f"{container} trace inputs must have elements, by which their type is known")
    if len(found) > 1:
        raise misuse(
            f"{container} inputs to traced functions must have consistent {what}. Found {found[0]} and {found[1]}"
        )
    return found[0]


def _tensors_mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a value with every tensor changed."""
    return mapped(value, lambda part: change(part) if is_tensor(part) else part)


def _detached(value: Any) -> Any:
    return _tensors_mapped(value, lambda tensor: tensor.detach() if tensor.requires_grad else tensor)


def _check_output(value: Any, strict: bool) -> None:
    if is_tensor(value):
        return
    if isinstance(value, dict):
        if strict:
            raise misuse(f"Encountering a dict {_STRICT}")
        keys = {"Tensor" if is_tensor(key) else type(key).__name__ for key in value}
        if len(keys) > 1 or keys - {"str", "Tensor"} or not all(map(_is_tensor_or_tuple, value.values())):
            raise misuse(
                "A dictionary in the result cannot be understood by the tracer, only outputs matching dict[Union[str, Tensor], "
                "Union[Tensor, Tuple[Tensor, ...]]] can be a dictionary output of a traced function"
            )
        return
    if isinstance(value, list) and all(map(is_tensor, value)):
        if not value:
            raise misuse("A list in the result of a traced function must have elements, by which its type is known")
        if strict:
            # The elements are those of the example, which PyTorch allows.
            warn(f"Encountering a list {_STRICT}")
        return
    if isinstance(value, tuple):
        for part in value:
            _check_output(part, strict)
        return
    if value is None:
        raise misuse(
            "The traced function didn't return any values! Side-effects are not captured in traces, so it would be a no-op."
        )
    raise misuse(
        "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions, not a value of "
        f"type '{_shown_type(value)}'"
    )


def _is_tensor_or_tuple(value: Any) -> bool:
    return is_tensor(value) or isinstance(value, tuple) and all(map(_is_tensor_or_tuple, value))


def _shown_type(value: Any) -> str:
    if isinstance(value, list):
        odd = next((part for part in value if not is_tensor(part)), None)
        return f"List[{_shown_type(odd)}]"
    return type(value).__name__


def _names_of(function: Any, inputs: Sequence[Any]) -> list[str]:
    """Returns the names of the parameters of a function that take the arguments of a call."""
    if isinstance(inputs, ByName):
        return list(inputs.names)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [plain[i] if i < len(plain) else f"args_{i}" for i in range(len(inputs))]


@contextmanager
def recording(trace: Trace) -> Iterator[None]:
    """Records the calls of this thread."""
    if _ops.trace is not None:
        raise misuse("a trace within a trace")
    with _own_numbers(trace):
        _ops.trace = trace
        _native.set_tracing(True)
        try:
            if "torch" in sys.modules:
                from ._trace_torch import modes

                with modes(trace):
                    yield
            else:
                yield
        finally:
            _native.set_tracing(False)
            _ops.trace = None


@contextmanager
def _own_numbers(trace: Trace) -> Iterator[None]:
    """Lets sizes of tensors of this package be recorded, and conversions to values of Python warn."""
    kept = {name: vars(_native.Tensor).get(name) for name in ("shape", "size", "numel", *_CONVERSIONS)}
    shape, size, numel = kept["shape"], kept["size"], kept["numel"]

    def number(value: int) -> Any:
        from ._tensor import tensor

        with trace.pause():
            return tensor(value)

    def sizes(self: Any, dim: int | None = None) -> Any:
        if not trace.active or trace.value(self) is None:
            return shape.__get__(self) if dim is None else size(self, dim)
        found = shape.__get__(self)
        if dim is not None:
            return trace.size(self, dim, number(found[dim]))
        return tuple(trace.size(self, i, number(n)) for i, n in enumerate(found))

    def count(self: Any) -> Any:
        if not trace.active or trace.value(self) is None:
            return numel(self)
        return trace.numel(self, number(numel(self)))

    def converted(name: str, kind: str) -> Any:
        def convert(self: Any, *args: Any) -> Any:
            if not trace.active:
                return kept[name](self, *args)
            if trace.value(self) is not None:
                leaves(kind)
            with trace.pause():
                return kept[name](self, *args)

        return convert

    owner: Any = _native.Tensor
    owner.shape = property(sizes)
    owner.size = sizes
    owner.numel = count
    for name, kind in _CONVERSIONS.items():
        setattr(owner, name, converted(name, kind))
    try:
        yield
    finally:
        for name, member in kept.items():
            setattr(owner, name, member)


_CONVERSIONS = {
    "__bool__": "Python boolean", "__int__": "Python integer", "__float__": "Python float",
    "__complex__": "Python complex", "item": "Python number", "tolist": "Python list", "numpy": "NumPy array",
}  # fmt: skip


def record(
    trace: Trace, function: Callable[..., Any], names: Sequence[str], inputs: Sequence[Any], strict: bool
) -> Any:
    """Runs a function and records it; returns the operand of its result."""
    _check_inputs(inputs)
    inputs = _with_values(inputs, [trace.input(name, example) for name, example in zip(names, inputs, strict=True)])
    with recording(trace):
        result = _call(function, inputs)
        _check_output(result, strict)
        with trace.pause():
            return trace.operand(result)


class Checked:
    """What a trace is compared with: the function, how it is traced, and what it was traced with."""

    def __init__(self, run: Callable[..., Any], trace: Callable[[Sequence[Any]], _native.Graph]) -> None:
        self.run = run
        self.trace = trace


def _lines(graph: _native.Graph) -> list[str]:
    return [line.partition(" # ")[0].rstrip() for line in str(graph).splitlines()]


def _difference(first: _native.Graph, second: _native.Graph) -> str | None:
    """Names the first node in which two graphs differ."""
    ours, theirs = _lines(first), _lines(second)
    for i in range(max(len(ours), len(theirs))):
        mine = ours[i].strip() if i < len(ours) else "(end of the graph)"
        other = theirs[i].strip() if i < len(theirs) else "(end of the graph)"
        if mine != other:
            return f"Graphs differed across invocations!\n\tFirst diverging operator:\n\t- {mine}\n\t+ {other}"
    return None


def _close(found: Any, wanted: Any, tolerance: float) -> bool:
    if is_tensor(wanted):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(wanted, torch.Tensor):
            found = found if isinstance(found, torch.Tensor) else torch.from_dlpack(found.detach())
            same = found.shape == wanted.shape and found.dtype == wanted.dtype
            return bool(same and torch.allclose(found.detach(), wanted.detach(), tolerance, tolerance, equal_nan=True))
        same = found.shape == wanted.shape and found.dtype == wanted.dtype
        return bool(same and _ops.call("torch.allclose", [found, wanted, tolerance, tolerance, True], {}))
    if isinstance(wanted, dict):
        # Keys can be tensors, of which Python compares the elements. The order is that of insertion.
        ours, theirs = [*found, *found.values()], [*wanted, *wanted.values()]
        return _close(ours, theirs, tolerance)
    if isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(_close(f, w, tolerance) for f, w in zip(found, wanted, strict=True))
    return bool(found == wanted)


def check(
    compiled: Callable[..., Any],
    graph: _native.Graph,
    checked: Checked,
    inputs: Sequence[Sequence[Any]],
    tolerance: float,
) -> None:
    """Traces again and compares the graphs, and compares the results of the trace with those of the function."""
    for example in inputs:

        def fresh(example: Sequence[Any] = example) -> Sequence[Any]:
            return _with_values(example, [_tensors_mapped(part, lambda tensor: tensor.detach().clone()) for part in example])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TracerWarning)
            torch = sys.modules.get("torch")
            if torch is not None:
                warnings.simplefilter("ignore", torch.jit.TracerWarning)
                # Stated before.
                warnings.filterwarnings("ignore", "a compiled program runs in a context of `torch.autocast`")
            again = checked.trace(fresh())
            wanted, found = _call(checked.run, fresh()), _call(compiled, fresh())
        difference = _difference(graph, again)
        if difference is not None:
            raise TracingCheckError(f"Tracing failed sanity checks!\nERROR: {difference}")
        outputs = [(found, wanted)] if not isinstance(wanted, tuple) else list(zip(found, wanted, strict=True))
        for number, (ours, theirs) in enumerate(outputs, 1):
            if not _close(ours, theirs, tolerance):
                _warn_random(graph)
                warn(
                    f"Output nr {number}. of the traced function does not match the corresponding output of the Python "
                    "function."
                )


def _warn_random(graph: _native.Graph) -> None:
    names = ("dropout", "rand", "bernoulli", "normal", "multinomial", "uniform", "poisson", "exponential")
    random = [node for node in graph.nodes(nested=True) if any(part in node.kind for part in names)]
    if random:
        shown = "\n\t".join(repr(node) for node in random[:20])
        warn(
            "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n\t"
            f"{shown}\nThis may cause errors in trace checking. To disable trace checking, pass check_trace=False to trace()"
        )


def call_in_trace(
    trace: Trace,
    function: _native.Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    owner: Any = None,
    name: str | None = None,
) -> Any:
    """Calls a compiled function, or a method of a module, and records it; ``name`` is the name of the function in the trace."""
    operands = [trace.operand(arg) for arg in args]
    named = {name: trace.operand(arg) for name, arg in kwargs.items()}
    with trace.pause():
        result = function(*_detached(args), **_detached(kwargs))
    if owner is None:
        name = (name or "").rpartition(".")[2]
        trace.call_compiled(name if name.isidentifier() else "function", function, operands, named, result)
        return result
    found = trace.modules.get(id(owner))
    if found is None or trace.program is None:
        raise misuse(
            f"the trace calls the compiled module {owner.original_name!r}, which is not part of the module that is traced"
        )
    # The method in the program of the trace, in which the class of the module has another name.
    path, class_name = found
    name = function.name.rpartition(".")[2]
    if name == "__call__":
        origin = vars(owner)["_origin"]
        if origin is not None and (origin._forward_hooks or origin._forward_pre_hooks):
            raise unsupported(f"the trace calls the compiled module {owner.original_name!r}, which has hooks")
        name = "forward"
    own = trace.program.function(f"{class_name}.{name}")
    trace.call_method(path, name, own, operands, named, result)
    return result


class ByName(tuple):  # type: ignore[type-arg]
    """Arguments that a call gives by name."""

    names: tuple[str, ...]


def by_name(function: Callable[..., Any], named: Any) -> ByName:
    """Returns arguments that are given by name, in the order of the parameters of a function.

    Raises:
        TypeError: the function cannot be called with them.
    """
    if not isinstance(named, dict):
        raise misuse("example_kwarg_inputs should be a dict")
    inspect.signature(function).bind(**named)
    order = [name for name in inspect.signature(function).parameters if name in named]
    names = (*order, *(name for name in named if name not in order))
    return _with_names(names, [named[name] for name in names])


def _with_names(names: tuple[str, ...], values: Iterable[Any]) -> ByName:
    made = ByName(values)
    made.names = names
    return made


def _with_values(given: Sequence[Any], values: Iterable[Any]) -> Sequence[Any]:
    """Returns other arguments that a call gives like the given ones."""
    return _with_names(given.names, values) if isinstance(given, ByName) else tuple(values)


def _call(function: Callable[..., Any], given: Sequence[Any]) -> Any:
    if isinstance(given, ByName):
        return function(**dict(zip(given.names, given, strict=True)))
    return function(*given)


def as_tuple(inputs: Any) -> tuple[Any, ...]:
    """Returns example inputs as the arguments of a call."""
    if isinstance(inputs, ByName):
        return inputs
    if is_tensor(inputs) or isinstance(inputs, dict):
        return (inputs,)
    return tuple(inputs)


def trace_function(function: Callable[..., Any], inputs: Sequence[Any], strict: bool) -> _native.Function:
    """Traces a function."""
    # A trace without tensors of this package returns tensors of PyTorch, also of calls without tensors, where it is imported.
    of_torch = "torch" in sys.modules and not any(isinstance(given, _native.Tensor) for given in inputs)
    name = getattr(function, "__name__", type(function).__name__)
    # As in PyTorch.
    name = "_lambda" if name == "<lambda>" else name
    name = name if name.isidentifier() and not keyword.iskeyword(name) else "traced"
    trace = Trace(of_torch=of_torch, name=name)
    result = record(trace, function, _names_of(function, inputs), inputs, strict)
    return trace.recorder.finish(result).function(name)


class TracedModules:
    """The class and the object of a traced module, and the traces of its methods."""

    def __init__(self, module: Any) -> None:
        from ._texts import Texts
        from ._modules import Modules

        for part in module.modules():
            if "_native" not in vars(part) and part._backward_hooks:
                raise misuse(f"Modules that have backward hooks assigned can't be compiled: {part!r}")
        self.module = module
        texts = Texts()
        self._modules = Modules(texts, traced=True)
        self.class_name = self._modules.type_name(module)
        self.program = self._modules.compile()
        self.paths: dict[Any, list[str]] = {}
        for path, tensor in self._modules.tensors(module):
            self.paths.setdefault(Trace.key(tensor), path)
        self.compiled = {
            id(part): (path.split("."), self._modules.type_name(part))
            for path, part in module.named_modules()
            if path and "_native" in vars(part)
        }
        self.scopes = {id(part): f"__module.{path}" if path else "__module" for path, part in module.named_modules()}

    def trace(self, name: str, inputs: Sequence[Any], strict: bool) -> tuple[_native.Program, _native.Graph]:
        """Traces a method."""
        from ._trace_torch import scopes

        trace = Trace(self.program, self.class_name)
        trace.paths, trace.modules = self.paths, self.compiled
        method = self.module if name == "forward" else getattr(self.module, name)
        names = _names_of(getattr(self.module, name), inputs)
        with scopes(trace, self.scopes):
            result = record(trace, method, names, inputs, strict)
        program = trace.recorder.finish_method(name, result)
        return program, program.function(f"{self.class_name}.{name}").graph()

    def add(self, name: str, inputs: Sequence[Any], strict: bool) -> _native.Graph:
        """Traces a method and adds it to the class."""
        self.program, graph = self.trace(name, inputs, strict)
        return graph

    def checked(self, name: str, strict: bool) -> Checked:
        """Returns what a method is compared with."""
        method = self.module if name == "forward" else getattr(self.module, name)
        return Checked(method, lambda given: self.trace(name, given, strict)[1])

    def build(self) -> Any:
        """Returns the compiled module."""
        return self._modules.adopt(self.program, self.module, traced=True)

