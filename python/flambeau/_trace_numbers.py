"""Numbers of a trace on their way through PyTorch.

The sizes of a tensor are tensors without dimensions during a trace. Where an operator takes an integer, the number crosses PyTorch's
parser of arguments as a :class:`torch.SymInt`, whose node is a :class:`Number`: the mode that records operators finds the tensor in
it. An operator whose kernel takes plain integers asks the node for its value; the node then notes in the trace which parameter the
integer is for, and the recorded operand is the tensor again.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ._trace import Trace, leaves


class Number:
    """The node of a :class:`torch.SymInt` or :class:`torch.SymFloat` that stands for a number of the trace."""

    def __init__(self, tensor: Any, hint: int | float, trace: Trace | None = None, parameter: Any = None) -> None:
        # `None` for a constant.
        self.tensor = tensor
        self.hint = hint
        self.trace = trace
        # The parameter that the number is the argument of, as in `Trace.taken`.
        self.parameter = parameter

    def is_int(self) -> bool:
        return isinstance(self.hint, int)

    def is_float(self) -> bool:
        return isinstance(self.hint, float)

    def is_bool(self) -> bool:
        return False

    is_nested_int = is_constant = is_bool

    def is_symbolic(self) -> bool:
        return True

    def maybe_as_int(self) -> None:
        return None

    def has_hint(self) -> bool:
        return True

    def guard_int(self, file: str, line: int) -> int:
        if self.tensor is not None and self.trace is not None and self.parameter is not None:
            # The operator that is called next can have it as an operand.
            self.trace.taken[self.parameter] = self.tensor, int(self.hint)
        elif self.tensor is not None:
            leaves("Python integer")
        return int(self.hint)

    def guard_float(self, file: str, line: int) -> float:
        leaves("Python float")
        return float(self.hint)

    def int_(self) -> int:
        return int(self.hint)

    def clone(self) -> Number:
        return self

    def wrap_int(self, value: int) -> Number:
        return Number(None, value)

    def _never_equal(self, other: Number) -> Truth:
        """No number of the trace is equal to another for every argument."""
        return Truth(False)

    def _always_unequal(self, other: Number) -> Truth:
        return Truth(True)

    eq = sym_eq = _never_equal
    ne = sym_ne = _always_unequal

    def lt(self, other: Number) -> Truth:
        return Truth(self.hint < other.hint)

    def le(self, other: Number) -> Truth:
        return Truth(self.hint <= other.hint)

    def gt(self, other: Number) -> Truth:
        return Truth(self.hint > other.hint)

    def ge(self, other: Number) -> Truth:
        return Truth(self.hint >= other.hint)

    def str(self) -> str:
        return str(self.hint)

    _graph_repr = __str__ = str


class Truth(Number):
    """The node of a :class:`torch.SymBool`."""

    def __init__(self, holds: bool) -> None:
        super().__init__(None, holds)

    def is_bool(self) -> bool:
        return True

    def is_int(self) -> bool:
        return False

    def guard_bool(self, file: str, line: int) -> bool:
        return bool(self.hint)

    guard_size_oblivious = expect_true = guard_bool

    def statically_known_true(self, file: str, line: int) -> bool:
        """Nothing about the numbers of a trace holds for every argument, such as that a slice takes all elements."""
        return False

    guard_or_false = statically_known_true

    def guard_or_true(self, file: str, line: int) -> bool:
        return True


def symbolic(number: Number) -> Any:
    """Returns the symbolic number of a node."""
    make: Any = torch.SymFloat if number.is_float() else torch.SymInt
    return make(number)


def passed(trace: Trace, value: Any, parameter: Any = None) -> Any:
    """Returns a value in which numbers of the trace are symbolic numbers; ``parameter`` is the parameter that it is the argument of.
    Elements of lists are integers."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        parts = [
            _integer(trace, part, (parameter, i)) if trace.is_number(part) else passed(trace, part, (parameter, i))
            for i, part in enumerate(value)
        ]
        return type(value)(parts)
    if isinstance(value, slice):
        return slice(*(passed(trace, part) for part in (value.start, value.stop, value.step)))
    if not trace.is_number(value):
        return value
    if value.is_floating_point():
        return symbolic(Number(value, torch.Tensor.item(value)))
    return _integer(trace, value, parameter)


def _integer(trace: Trace, value: Any, parameter: Any) -> Any:
    return symbolic(Number(value, int(torch.Tensor.item(value)), trace, parameter))


def concrete(value: Any) -> Any:
    """Returns the number of the example for a symbolic number."""
    if isinstance(value, (torch.SymInt, torch.SymFloat)) and isinstance(value.node, Number):
        return value.node.hint
    return value


def traced(value: Any) -> Any:
    """Returns the tensor of the trace for a symbolic number, or the constant."""
    if isinstance(value, (torch.SymInt, torch.SymFloat)) and isinstance(value.node, Number):
        return value.node.hint if value.node.tensor is None else value.node.tensor
    return value


class _SizesType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return type.__instancecheck__(cls, value) or isinstance(value, _SIZE)


class Sizes(tuple, metaclass=_SizesType):  # type: ignore[type-arg]
    """The sizes of a tensor during a trace, which are tensors: stands for :class:`torch.Size`, of which Python has no subclasses."""

    def __new__(cls, sizes: Iterable[Any] = ()) -> Sizes:
        return super().__new__(cls, (size if _is_size(size) else operator.index(size) for size in sizes))

    def numel(self) -> int:
        """Returns the number of elements, which is not recorded."""
        return math.prod(map(operator.index, self))

    def __add__(self, other: Any) -> Sizes:
        joined = super().__add__(other)
        return joined if joined is NotImplemented else Sizes(joined)

    def __mul__(self, count: Any) -> Sizes:
        return Sizes(super().__mul__(count))

    def __rmul__(self, count: Any) -> Sizes:
        return Sizes(super().__rmul__(count))

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return Sizes(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(str(operator.index(size)) for size in self)}])"


_SIZE = torch.Size


def _is_size(value: Any) -> bool:
    return isinstance(value, (int, torch.SymInt)) or isinstance(value, torch.Tensor) and value.dim() == 0


def tree(value: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a value with the parts of lists, tuples and slices changed."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(tree(part, change) for part in value)
    if isinstance(value, slice):
        return slice(*(tree(part, change) for part in (value.start, value.stop, value.step)))
    return change(value)
