"""Functions with several signatures, defaults that are tensors, and messages of calls. Texts were recorded from PyTorch."""

import warnings

import pytest

import flambeau
from flambeau import jit


@jit._overload
def twice(x: int) -> int: ...


@jit._overload
def twice(x: str, end: str = "") -> str: ...


def twice(x, end: str = ""):
    if jit.isinstance(x, str):
        return x + x + end
    return x + x


@jit._overload
def declared_only(x: int) -> int: ...


def uses_both(x: int, y: str):
    return twice(x), twice(y), twice(y, "!")


def uses_wrong(x: float):
    return twice(x)


def uses_declared_only(x: int):
    return declared_only(x)


def test_a_call_selects_the_first_signature_that_the_arguments_fit():
    compiled = jit.script(uses_both)
    assert compiled(2, "a") == (4, "aa", "aa!")
    assert "twice__0" in str(compiled.graph) and "twice__1" in str(compiled.graph)


def test_no_signature_fits():
    with pytest.raises(flambeau.CompileError, match="Arguments for call are not valid"):
        jit.script(uses_wrong)


def test_a_declaration_needs_an_implementation():
    with pytest.raises(flambeau.UnsupportedError, match='Implementation for the function "declared_only" is missing'):
        jit.script(uses_declared_only)


def shifted(x, by=flambeau.tensor([1.0, 2.0])):
    return x + by


def test_tensors_are_defaults():
    compiled = jit.script(shifted)
    assert compiled(flambeau.tensor([1.0, 1.0])).tolist() == [2.0, 3.0]
    assert compiled(flambeau.tensor([1.0, 1.0]), flambeau.tensor([5.0, 5.0])).tolist() == [6.0, 6.0]


def scaled(x: int, y: float = 2.0) -> float:
    return x * y


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        (("a",), {}, "scaled() Expected a value of type 'int' for argument 'x' but instead found type 'str'.\nPosition: 0\nValue: 'a'\n"
                     "Declaration: scaled(int x, float y=2.) -> float"),
        ((), {}, "scaled() is missing value for argument 'x'. Declaration: scaled(int x, float y=2.) -> float"),
        ((1, 2.0, 3), {}, "scaled() expected at most 2 argument(s) but received 3 argument(s). Declaration: "
                          "scaled(int x, float y=2.) -> float"),
        ((1,), {"z": 3}, "Unknown keyword argument 'z' for operator 'scaled'. Schema: scaled(int x, float y=2.) -> float"),
        ((1,), {"x": 3}, "Argument 'x' specified both as positional and keyword argument. Schema: "
                         "scaled(int x, float y=2.) -> float"),
    ],
)  # fmt: skip
def test_messages_of_calls(args, kwargs, text):
    compiled = jit.script(scaled)
    with pytest.raises(RuntimeError) as raised:
        compiled(*args, **kwargs)
    assert text in str(raised.value)
    assert isinstance(raised.value, TypeError)


def warned(x: int) -> int:
    if x < 2:
        warnings.warn("x is less than 2")
    return x


def test_warnings_of_programs_are_warnings_of_python():
    compiled = jit.script(warned)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert compiled(1) == 1
    assert [str(w.message) for w in found] == ["x is less than 2"]
    with warnings.catch_warnings(record=True) as found:
        assert compiled(2) == 2
    assert not found


CLASS = """
class Counter:
    def __init__(self, start: int):
        self.start = start
        self.name = "n"

    def __getstate__(self):
        return (self.start, self.name)

    def __setstate__(self, state):
        self.start = state[0] + 1
        self.name = state[1] + "!"

def copy(start: int) -> Tuple[int, str]:
    old = Counter(start)
    old.__setstate__(old.__getstate__())
    return old.start, old.name
"""


def test_the_state_has_the_type_that_getstate_returns():
    assert flambeau.CompilationUnit(CLASS).copy(3) == (4, "n!")
    without = CLASS.replace("def __getstate__(self):\n        return (self.start, self.name)", "def state(self): pass")
    with pytest.raises(flambeau.CompileError, match="takes the result of `__getstate__`"):
        flambeau.CompilationUnit(without)
