"""Operators and rules of the user.

An operator has a schema, a kernel in Python, and optionally a shape function and gradients. Gradients are compiled, so a backward
pass is a program like any other, and gradients of gradients follow. The compiler checks the results of a kernel against its shape
function in every call.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _native, _ops
from ._dtypes import dtype as dtype_class
from .errors import misuse, unsupported

if TYPE_CHECKING:
    from ._native import Graph

Gradient = Callable[..., Any]


def custom_op(
    schema: str,
    *,
    shapes: Callable[..., Any] | None = None,
    dtype: str | dtype_class | None = None,
    gradient: Gradient | dict[str, Gradient] | None = None,
    has_side_effects: bool = False,
) -> Callable[[Callable[..., Any]], _ops.Operator]:
    """Makes an operator of a function, its kernel: ``@flambeau.custom_op("mylib::scale(Tensor x, float factor) -> Tensor")``.

    The kernel takes the arguments of the schema, tensors as :class:`flambeau.Tensor`, which NumPy and PyTorch take without a copy,
    and returns the results, tensors of any of these libraries. An argument that the schema marks as written, ``Tensor(a!) x``, is
    written in place.

    Args:
        shapes: returns the sizes of the result, or a tuple with those of each result. It takes the arguments of the operator with the
            list of sizes in the place of each tensor.
        dtype: the dtype of the results: the name of the tensor argument that has the same, or a dtype.
        gradient: returns the gradients of the tensor arguments, in order, or that of the only one. Its parameters are
            among ``grad``, the gradient of the result (``grad1`` and so on of further results), ``result`` and the arguments, by
            name. It is compiled. With a dictionary, the keys are the names of arguments (``"x"`` or ``"x, weight"``), and the other
            arguments have no gradient.
        has_side_effects: whether runs of the kernel count. Calls of other operators may be merged, moved or dropped.

    Programs that are compiled later have the operator as ``torch.ops.mylib.scale`` and ``flambeau.ops.mylib.scale``.

    Raises:
        MisuseError: the schema is wrong, or the operator exists.
        CompileError: a gradient does not compile.
    """
    name, overload, args, results = _native.parse_schema(schema)
    if "::" not in name:
        raise misuse(f"the operator `{name}` has no namespace: `namespace::name(...)`")
    position, fixed = _dtype(dtype, args)

    def register(kernel: Callable[..., Any]) -> _ops.Operator:
        import inspect

        gradients = None
        if gradient is not None:
            gradients = _Gradients(name, overload, args, results).text(gradient)
        doc = inspect.cleandoc(kernel.__doc__).split("\n\n")[0] if kernel.__doc__ else None
        _native.register_operator(schema, kernel, shapes, position, fixed, gradients, has_side_effects, doc)
        _ops.forget()
        return _ops.Operator(f"torch.ops.{name.replace('::', '.')}")

    return register


def _dtype(dtype: str | dtype_class | None, args: list[tuple[str, str, bool]]) -> tuple[int | None, bool]:
    """Returns the position of an argument or the number of a dtype, and whether it is a number."""
    if not isinstance(dtype, str):
        from . import _dtypes

        return (None, False) if dtype is None else (_dtypes.code_of(dtype), True)
    for i, (name, _, is_tensor) in enumerate(args):
        if name == dtype and is_tensor:
            return i, False
    raise misuse(f"the operator has no tensor argument `{dtype}` whose dtype the results could have")


class _Gradients:
    """The gradients of one operator as text: entries, and the functions that they call."""

    def __init__(self, name: str, overload: str, args: list[tuple[str, str, bool]], results: int) -> None:
        from ._texts import Texts

        self.name, self.overload, self.results = name, overload, results
        self.names = [arg for arg, _, _ in args]
        self.tensors = [arg for arg, _, is_tensor in args if is_tensor]
        # The functions of all operators are in one program.
        self.texts = Texts(prefix=f"gradient_of_{name.replace('::', '_')}_{overload}_")

    def text(self, gradient: Gradient | dict[str, Gradient]) -> tuple[str, str]:
        stated = gradient if isinstance(gradient, dict) else {", ".join(self.tensors): gradient}
        lines = [f"{self.name}.{self.overload}" if self.overload else self.name]
        rest = list(self.tensors)
        for names, function in stated.items():
            for name in names.split(","):
                if name.strip() not in rest:
                    raise misuse(f"{self.name} has no tensor argument `{name.strip()}` without a gradient")
                rest.remove(name.strip())
            lines.append(f"  {names} = {self._call(function)}")
        lines.extend(f"  {name} = none" for name in rest)
        if self.texts.objects or self.texts.constants or self.texts.exceptions or self.texts.overloads:
            raise unsupported(f"a gradient of {self.name} uses an object that has no text in programs")
        return "\n".join(lines) + "\n", "".join(map(str, self.texts.parts()))

    def _call(self, function: Gradient) -> str:
        if not isinstance(function, types.FunctionType):
            raise misuse(f"a gradient of {self.name} is no function: {function!r}")
        import inspect

        known = [*self.names, *self._numbered("grad"), *self._numbered("result")]
        parameters = list(inspect.signature(function).parameters)
        for parameter in parameters:
            if parameter not in known:
                raise misuse(f"the parameter `{parameter}` of a gradient of {self.name} is none of {', '.join(known)}")
        return f"{self.texts.function(function)}({', '.join(parameters)})"

    def _numbered(self, name: str) -> list[str]:
        return [name if i == 0 else f"{name}{i}" for i in range(self.results)]


class RuleSet:
    """Rewrite rules: a pass that applies them, and no others, until none matches, and removes what is dead then.

    It is called with a graph, which it changes, or with a compiled function, of whose graph it changes a copy.
    """

    def __init__(self, text: str, name: str, accept: str) -> None:
        self._native = _native.RuleText(name, text)
        self._accept = accept
        self.text = text
        self.__name__ = name

    @property
    def names(self) -> list[str]:
        """The names of the rules."""
        return self._native.rules()

    def __call__(self, target: Any) -> Graph:
        graph: Graph = target if isinstance(target, _native.Graph) else target.graph
        self._native.apply(graph, self._accept)
        return graph

    def trials(self) -> list[RuleTrial]:
        """Compares both sides of every rule on generated arguments."""
        return [RuleTrial(*trial) for trial in self._native.trials()]

    def register(self) -> None:
        """Adds the rules to those that programs are optimized with when they run: programs that are compiled later."""
        _native.register_rules(self.__name__, self.text)
        _ops.forget()

    def __repr__(self) -> str:
        return f"<RuleSet {self.__name__}: {', '.join(self.names)}>"


class RuleTrial:
    """The comparison of both sides of a rule."""

    def __init__(self, rule: str, tried: int, failure: str | None, refused: str | None) -> None:
        self.rule = rule
        """The name."""
        self.tried = tried
        """The number of comparisons."""
        self.failure = failure
        """Arguments for which the sides differ, with both results; ``None`` if there are none."""
        self.refused = refused
        """Why the last arguments did not count."""

    def __repr__(self) -> str:
        outcome = "both sides agree" if self.failure is None else f"the sides differ:\n{self.failure}"
        if self.failure is None and self.tried == 0:
            outcome = f"nothing was compared: {self.refused or 'no arguments fit the rule'}"
        return f"<RuleTrial {self.rule}: {self.tried} comparisons, {outcome}>"


def rules(text: str, name: str = "rules", accept: str = "exact") -> RuleSet:
    """Reads rewrite rules. ``accept`` is the least strict class of rules that are applied: ``exact``, ``rounding``, ``finite``
    or ``shape-only``.

    Raises:
        CompileError: the text is wrong.
    """
    return RuleSet(text, name, accept)
