"""Operators called from Python.

A call of an operator is a program of one line, compiled once for the types of its arguments: ``torch.add(a0, a1, alpha=a2)``.
So overloads, conversions, broadcasting and gradients are those of programs, and there is no second set of rules. A later call
with arguments of the same types is a look-up in a dictionary.
"""

from __future__ import annotations

from . import _dtypes, _native
from ._values import device
from .errors import CompileError, misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_functions: dict[Any, Any] = {}

_MAX_CACHED = 4096


def forget() -> None:
    """Drops the compiled expressions: there are new operators or rules."""
    _functions.clear()
    _known.clear()


_known: dict[str, bool] = {}


def is_known(name: str) -> bool:
    """Returns whether programs have a function, such as ``torch.add``, or a method of tensors, such as ``Tensor.add``."""
    known = _known.get(name)
    if known is None:
        called = name.replace("Tensor.", "a0.", 1)
        try:
            _native.compile(f"def f(a0: Tensor):\n    {called}()\n    return a0\n", f"<{name}>")
            known = True
        except CompileError as error:
            # A call without its arguments has another error.
            known = "has no attribute or method" not in error.message and not error.message.startswith("Unknown builtin op")
        _known[name] = known
    return known


trace: Any = None
"""The trace that records the calls of one thread, if one does (:mod:`flambeau._trace`)."""


class Integer(int):
    """The value of a tensor without dimensions that a trace records as the operand in place of a constant."""

    tensor: Any


def integer(value: Any) -> int:
    """Returns a value as an integer; a number of the trace, such as a size, remains one."""
    if trace is None or not trace.active or not trace.is_number(value):
        return int(value)
    with trace.pause():
        found = Integer(value)
    found.tensor = value
    return found


def type_text(value: Any) -> str | None:
    """Returns the annotation for a value; ``None`` for the value ``None``, which is written as a literal.

    Raises:
        MisuseError: TorchScript has no such values.
    """
    if isinstance(value, _native.Tensor):
        return "Tensor"
    kind = type(value)
    if kind is bool or kind is int or kind is float or kind is str or kind is complex:
        return kind.__name__
    if value is None:
        return None
    if isinstance(value, device) or kind.__name__ == "device":
        return "torch.device"
    if isinstance(value, (list, tuple)):
        return _sequence_text(value)
    if hasattr(value, "__dlpack__"):
        return "Tensor"
    for plain in (bool, int, float, complex, str):
        if isinstance(value, plain):
            return plain.__name__
    if _dtypes.code_of(value) is not None:
        return "int"
    raise misuse(f"a value of type {kind.__name__} cannot be the argument of an operator")


def _sequence_text(value: Sequence[Any]) -> str:
    texts = dict.fromkeys(type_text(item) for item in value)
    if not texts:
        return "List[int]"
    if len(texts) == 1 and None not in texts:
        return f"List[{next(iter(texts))}]"
    if set(texts) <= {"int", "float"}:
        return "List[float]"
    if set(texts) <= {None, "Tensor"}:
        return "List[Optional[Tensor]]"
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(type_text(item) or 'None' for item in value)}]"
    raise misuse(f"a list of values of types {', '.join(str(t) for t in texts)} cannot be an argument")


def _plain(value: Any, text: str | None) -> Any:
    """Converts tuples to the lists that annotations call for."""
    if isinstance(value, tuple) and text is not None and text.startswith("List"):
        return list(value)
    return value


def evaluate(key: Any, expression: Any, values: list[Any], name: str) -> Any:
    """Evaluates an expression over values.

    ``expression`` takes the texts of the values (parameter names or ``None``) and returns the statement of the program.
    """
    if trace is not None and trace.active:
        return _recorded(key, expression, values, name)
    texts = [type_text(value) for value in values]
    found = _function(key, expression, texts, name)
    return found(*[_plain(v, t) for v, t in zip(values, texts, strict=True) if t is not None])


def _recorded(key: Any, expression: Any, values: list[Any], name: str) -> Any:
    """Evaluates an expression and records it. Numbers of the trace, such as sizes, are tensors where the expression takes
    tensors, and integers elsewhere."""
    plain = [_mixed(value) if isinstance(value, (list, tuple)) else value for value in values]
    try:
        texts = [type_text(value) for value in plain]
        found = _function(key, expression, texts, name)
    except CompileError:
        if not any(trace.is_number(value) for value in values):
            raise
        plain = [value.flat()[0] if trace.is_number(value) else value for value in plain]
        texts = [type_text(value) for value in plain]
        found = _function(key, expression, texts, name)
    given = [_plain(v, t) for v, t in zip(plain, texts, strict=True) if t is not None]
    with trace.pause():
        result = found(*given)
    recorded = [_plain(v, t) for v, t in zip(values, texts, strict=True) if t is not None]
    trace.inline(found, recorded, result)
    return result


def _mixed(values: Sequence[Any]) -> Sequence[Any]:
    """Returns a list with numbers of the trace as integers, if it has other integers or only such numbers."""
    if all(trace.is_number(value) or isinstance(value, int) for value in values):
        return type(values)(value.flat()[0] if trace.is_number(value) else value for value in values)
    return values


def _function(key: Any, expression: Any, texts: list[str | None], name: str) -> Any:
    """Returns the compiled program of an expression for the types of its values."""
    full = (key, *texts)
    found = _functions.get(full)
    if found is None:
        names = [None if text is None else f"a{i}" for i, text in enumerate(texts)]
        params = ", ".join(f"{n}: {t}" for n, t in zip(names, texts, strict=True) if n is not None)
        source = f"def f({params}):\n    {expression(['None' if n is None else n for n in names])}\n"
        found = _native.compile(source, f"<{name}>").function("f")
        if len(_functions) >= _MAX_CACHED:
            _functions.clear()
        _functions[full] = found
    return found


def call(target: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a function by its name in programs, such as ``torch.add`` or ``torch.ops.aten.add``."""
    count = len(args)
    names = tuple(kwargs)

    def expression(texts: list[str]) -> str:
        named = [f"{name}={text}" for name, text in zip(names, texts[count:], strict=True)]
        return f"return {target}({', '.join([*texts[:count], *named])})"

    return evaluate((target, count, names), expression, [*args, *kwargs.values()], target)


def method(name: str, self: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a method of a tensor."""
    count = len(args) + 1
    names = tuple(kwargs)

    def expression(texts: list[str]) -> str:
        named = [f"{key}={text}" for key, text in zip(names, texts[count:], strict=True)]
        return f"return {texts[0]}.{name}({', '.join([*texts[1:count], *named])})"

    return evaluate((".", name, count, names), expression, [self, *args, *kwargs.values()], f"Tensor.{name}")


class Operator:
    """An operator by name, with all its overloads."""

    __slots__ = ("_target", "__name__")

    def __init__(self, target: str) -> None:
        self._target = target
        self.__name__ = target.rpartition(".")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call(self._target, args, kwargs)

    def __repr__(self) -> str:
        return f"<operator {self._target.removeprefix('torch.ops.')}>"


def operator_names(namespace: str, only_methods: bool = False) -> list[str]:
    """Returns the names of the operators of a namespace, or of those that are methods of tensors, without internal ones."""
    names = (name.partition("::") for name, is_method in _native.operators().items() if is_method or not only_methods)
    return [name for owner, _, name in names if owner == namespace and name[:1].islower()]


class Namespace:
    """The operators of a namespace: ``flambeau.ops.aten``."""

    def __init__(self, name: str) -> None:
        self._torch_path = f"torch.ops.{name}"

    def __repr__(self) -> str:
        return f"<operators {self._torch_path.removeprefix('torch.ops.')}>"

    def __dir__(self) -> list[str]:
        return operator_names(self._torch_path.removeprefix("torch.ops."))

    def __getattr__(self, name: str) -> Operator:
        if name.startswith("__"):
            raise AttributeError(name)
        qualified = f"{self._torch_path.removeprefix('torch.ops.')}::{name}"
        if qualified not in _native.operators():
            raise AttributeError(f"there is no operator `{qualified}`")
        operator = Operator(f"{self._torch_path}.{name}")
        setattr(self, name, operator)
        return operator


class Namespaces:
    """All namespaces: ``flambeau.ops``."""

    _torch_path = "torch.ops"

    def __repr__(self) -> str:
        return "<operators>"

    def __dir__(self) -> list[str]:
        return sorted({name.partition("::")[0] for name in _native.operators()})

    def __getattr__(self, name: str) -> Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in dir(self):
            raise AttributeError(f"there is no operator `{name}::…`; `flambeau.custom_op` makes one")
        namespace = Namespace(name)
        setattr(self, name, namespace)
        return namespace


ops = Namespaces()
