"""Functions with several signatures, defaults that are tensors, and messages of calls. Texts were recorded from PyTorch."""

import warnings
from typing import Tuple

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


def test_one_number_stands_for_a_list_of_fixed_length():
    unit = flambeau.CompilationUnit("def f(x: BroadcastingList3[int], y: BroadcastingList2[float]):\n    return x, y\n")
    assert unit.f(2, 0.5) == ([2, 2, 2], [0.5, 0.5])
    assert unit.f([1, 2, 3], (1.0, 2.0)) == ([1, 2, 3], [1.0, 2.0])


def uses_indented(x: int) -> int:
    def_text = """
  less"""
# a comment
    return x + len(def_text)


def test_lines_with_less_indentation_than_the_definition():
    def local(x: int) -> int:
        text = """
a"""
    # a comment
        return x + len(text)

    assert jit.script(local)(1) == local(1)
    assert jit.script(uses_indented)(1) == uses_indented(1)


class Wrong(ValueError):
    """An exception of the user."""


def fails(x: int) -> int:
    if x < 0:
        raise Wrong("below zero")
    return x


def test_exceptions_of_the_user_are_instances_of_their_class():
    compiled = jit.script(fails)
    assert compiled(1) == 1
    with pytest.raises(Wrong, match="test_overloads.Wrong: below zero") as raised:
        compiled(-1)
    assert isinstance(raised.value, flambeau.RuntimeError) and isinstance(raised.value, ValueError)


class Made:
    def __init__(self, x: int):
        self.x = x

    @classmethod
    def twice(cls, x: int) -> "Made":
        return cls(x * 2)

    @classmethod
    def one(cls) -> "Made":
        return cls(1)


def makes(x: int) -> int:
    return Made.twice(x).x + Made.one().x


def test_methods_of_classes():
    assert jit.script(makes)(3) == 7


@jit._overload
def commented(x):
    # type: (int) -> int
    pass


@jit._overload
def commented(x):
    # type: (str) -> str
    pass


def commented(x):
    return x + x


@jit._overload
def without_types(x): ...


def without_types(x):
    return x


def uses_commented(x: int, y: str):
    return commented(x), commented(y)


def uses_without_types(x: int):
    return without_types(x)


def test_signatures_in_comments():
    assert jit.script(uses_commented)(2, "a") == (4, "aa")
    with pytest.raises(flambeau.UnsupportedError, match="explicitly add type annotations to overloaded functions"):
        jit.script(uses_without_types)


@jit._overload
def with_default(x: int, y: int = 3) -> int: ...


def with_default(x, y):
    return x


def uses_with_default(x: int):
    return with_default(x, 1)


def test_a_default_that_the_implementation_lacks():
    for _ in range(2):
        with pytest.raises(flambeau.UnsupportedError, match="Found on parameter y"):
            jit.script(uses_with_default)


def test_a_failed_attempt_keeps_the_declarations():
    for _ in range(2):
        with pytest.raises(flambeau.UnsupportedError, match='Implementation for the function "declared_only" is missing'):
            jit.script(uses_declared_only)


def test_overloaded_functions_are_compiled_by_their_callers_only():
    with pytest.raises(RuntimeError, match="cannot be directly compiled because it is overloaded"):
        jit.script(twice)


def test_the_declarations_of_pytorch_stay():
    torch = pytest.importorskip("torch")

    def declared(x: int) -> int: ...

    def made(x):
        return x

    made.__qualname__ = made.__name__ = declared.__qualname__ = declared.__name__ = "of_torch"
    torch.jit._overload(declared)
    internal = torch._jit_internal
    from flambeau._overloads import overloads_of

    assert overloads_of(made) == [declared]
    assert internal._get_fn_overloads(internal._qualified_name(made)) == [declared]


class Keyword:
    def __init__(self, x: int):
        self.x = x

    @classmethod
    def only(cls, *, x: int) -> "Keyword":
        return cls(x)

    @classmethod
    def comma(cls,) -> "Keyword":  # fmt: skip
        return cls(1)

    @classmethod
    def lines(
        cls,  # The class, of course.
    ) -> "Keyword":
        return cls(2)

    @classmethod
    def more(cls, /, x: int) -> "Keyword":
        return cls(x)


def makes_keywords(x: int):
    return Keyword.only(x=x).x, Keyword.comma().x, Keyword.lines().x, Keyword.more(x).x


def test_class_methods_without_positional_parameters():
    assert jit.script(makes_keywords)(3) == (3, 1, 2, 3)


class MyBroadcastingList2Like:
    def __init__(self, x: int):
        self.x = x


def takes_similar_name(a: MyBroadcastingList2Like) -> int:
    return a.x


def makes_similar_name(x: int) -> int:
    return takes_similar_name(MyBroadcastingList2Like(x))


def test_names_that_contain_that_of_a_broadcasting_list():
    assert jit.script(makes_similar_name)(4) == 4


def is_scripting() -> bool:
    return False


is_scripting.__module__ = "torchtools"


def asks_other(x: int) -> int:
    if is_scripting():
        return x
    return x + 1


def test_functions_of_modules_whose_names_begin_with_torch():
    assert jit.script(asks_other)(1) == 2


def bare(x: Tuple) -> int:
    return 1


def test_tuples_without_element_types():
    with pytest.raises(flambeau.UnsupportedError) as raised:
        jit.script(bare)
    assert raised.value.message.endswith("without a contained type. Please add a contained type, e.g. Tuple[int]")


def test_defaults_of_the_implementation_hold_for_declarations_of_their_type():
    @jit._overload
    def shown(x, y):
        # type: (float, str) -> float
        pass

    @jit._overload
    def shown(x, y):  # noqa: F811
        # type: (float, float) -> float
        pass

    def shown(x, y=2.0):  # noqa: F811
        if isinstance(y, str):
            return 4.0 - x if y == "hi" else 5.0 - x
        return y + x

    def uses():
        return shown(1.5), shown(1.5, "hi"), shown(1.5, 5.0)

    assert jit.script(uses)() == uses()


def test_declarations_behind_the_implementation_add_signatures():
    @jit._overload
    def same(x: int) -> int: ...

    def same(x):
        return x

    first = same

    @jit.script
    def one():
        return first(1)

    @jit._overload
    def same(x: str) -> str: ...

    @jit.script
    def both():
        return first(1), first("a")

    assert one() == 1 and both() == (1, "a")


def test_parameters_that_a_declaration_omits_have_the_types_of_the_implementation():
    @jit._overload
    def total(x):
        # type: (float) -> float
        pass

    @jit._overload
    def total(x, y):
        # type: (int, int) -> int
        pass

    def total(x, y=2, z=3):
        # type: (Union[float, int], int, int)
        return x + y + z

    def uses():
        return total(1.0), total(1, 2), total(1), total(1, 2, 4)

    assert jit.script(uses)() == (6.0, 6, 6, 7)

    @jit._overload
    def without_types(x):
        # type: (int) -> int
        pass

    def without_types(x, y=2):
        return x + y

    def refused():
        return without_types(1)

    with pytest.raises(flambeau.UnsupportedError, match="must have a type annotation in the .* Did not find type for param y"):
        jit.script(refused)
