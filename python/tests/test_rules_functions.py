"""Rules of definitions, names and types: signatures, calls of functions, classes, annotations, subtypes and unification.

Results and messages were recorded from PyTorch 2.6.
"""

import collections
import enum
import math
from typing import Any, Callable, Dict, Iterable, List, Literal, NamedTuple, NewType, Optional, Sequence, Set, Tuple, TypeVar, Union

import pytest
from comparison import Rules

import flambeau
from flambeau import jit, tensor
from flambeau import torch_names as torch

RULES = Rules()
gives, differs, refused, raises = RULES.gives, RULES.differs, RULES.refused, RULES.raises


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Other(NamedTuple):
    x: int
    y: float


class Same(NamedTuple):
    a: int
    b: float


class Color(enum.Enum):
    RED = 1


Pair = collections.namedtuple("Pair", ["first", "second"])


# Signatures.


@gives(3, 1, 2)
def a_comment_takes_precedence(x: torch.Tensor, y):
    # type: (int, int) -> int
    return x + y


@gives(tensor(3), tensor(1), tensor(2))
def parameters_without_annotation(x, y):
    return x + y


def takes_two(x, n):
    return x.sum(n)


@refused("Arguments for call are not valid")
def notes_name_parameters_without_annotation(x):
    return takes_two(x, 0)


@refused("Return value was annotated as having type str but is actually of type int")
def results_have_the_declared_type(x: int) -> str:
    return x


@gives(None, 1)
def nothing_is_returned(x: int) -> None:
    x += 1


@refused("Return value was annotated as having type NoneType but is actually of type int")
def a_value_is_returned_where_none_is_declared(x: int) -> None:
    return x


@refused(r"List type annotation `List\[int\]` did not match the types of the given list elements, which were un")
def other_result_than_none(x: int) -> List[int]:
    return [x, None]


def keyword_only(x: int, *, y: int) -> int:
    return x * 10 + y


@gives((12, 34), 1)
def keyword_only_parameters(x: int):
    return keyword_only(x, y=2), keyword_only(x=3, y=4)


@refused(r"Argument y not provided\.")
def keyword_only_parameters_by_position(x: int):
    return keyword_only(x, 2)


def with_defaults(a: int = 1, b: float = 2.5, c: str = "c", d: Optional[int] = None, e: Tuple[int, str] = (1, "e"), f: bool = True) -> str:
    return str(a) + str(b) + c + str(d) + str(e[0]) + e[1] + str(f)


@gives(('12.5cNone1eTrue', '52.5xNone1eTrue', '12.5c31eFalse', '12.y47zFalse'))
def defaults_of_parameters():
    return with_defaults(), with_defaults(5, c="x"), with_defaults(d=3, f=False), with_defaults(1, 2.0, "y", 4, (7, "z"), False)


def recursive_a(x: int) -> int:
    return recursive_b(x)


def recursive_b(x: int) -> int:
    return recursive_a(x)


@refused(
    r"maximum recursion depth exceeded while calling a Python object|"
    r"function 'recursive_a' is called recursively\. Recursive calls are not supported",
)  # fmt: skip
def functions_that_call_each_other(x: int) -> int:
    return recursive_a(x)


def without_annotations(x):
    return x * 2


@refused(r"' for argument 'x' but instead found type 'int'\.")
def calls_with_a_number_for_a_tensor(x: int):
    return without_annotations(x)


@refused(r"' for argument 'x' but instead found type 'str'\.")
def calls_with_a_text_for_a_tensor(x: int):
    return without_annotations("a")


@jit.unused
def is_unused(x: int) -> int:
    return {x}.pop()


@raises("RuntimeError: This Python function is annotated to be ignored and cannot be run", 1)
def unused_functions_raise(x: int):
    return is_unused(x)


@jit.ignore
def is_ignored(x: int) -> int:
    return len({x}) + x


@gives(6, 4)
def ignored_functions_run_in_python(x: int):
    return is_ignored(x) + 1


@jit.script_if_tracing
def if_tracing(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@gives(tensor(2), tensor(1))
def functions_for_traces_are_called(x: torch.Tensor):
    return if_tracing(x)


@gives((tensor([[[4.0, 3.0]]]), tensor([[[4.0, 3.0]]]), tensor([[[1, 3]]])), tensor([[[1.0, 4.0, 2.0, 3.0]]]))
def dispatched_functions(x: torch.Tensor):
    a, b = torch.nn.functional.max_pool1d(x, 2, return_indices=True)
    return torch.nn.functional.max_pool1d(x, 2), a, b


@gives(([1], 3, {}, [1]), [1], None)
def annotated_values(x: List[int], y: Optional[int]):
    a = jit.annotate(List[int], [])
    b = jit.annotate(Optional[int], 3)
    c = jit.annotate(Dict[str, List[int]], {})
    d = jit.annotate(List[int], x)
    a.append(1)
    return a, b, c, d


@refused("expected an expression of type int but found str")
def annotations_are_no_casts(x: str):
    return jit.annotate(int, x)


@refused("expected an expression of type float but found int")
def annotated_integers_are_no_floats(x: int):
    return jit.annotate(float, x)


@gives(4, 3)
def annotated_optionals_are_optionals(x: int):
    return jit.annotate(Optional[int], x) + 1


def shifted(x: int, by: int = 1) -> int:
    return x + by


@gives((4, 8, [4, 8]), 3)
def functions_are_forked(x: int):
    a, b = jit.fork(shifted, x), jit.fork(shifted, x, by=5)
    c: List[jit.Future[int]] = [a, b]
    return jit.wait(a), b.wait(), [jit.wait(f) for f in c]


# Names.


def abs(x: int) -> int:  # noqa: A001
    return 100


@differs(100, -3)
def globals_precede_builtins(x: int):
    # PyTorch calls the builtin.
    return abs(x)


def user_function(x: int) -> int:
    return 5


@gives(-3, -3)
def variables_precede_globals(x: int):
    user_function = x
    return user_function


@refused("undefined value absent_function")
def undefined_functions(x: int):
    return absent_function(x)  # noqa: F821


@refused("object has no attribute absent:|Python builtin <built-in function absent> is currently not supported")
def undefined_members_of_modules(x: float):
    return math.absent(x)


@refused("absent_operator")
def undefined_operators(x: torch.Tensor):
    return torch.absent_operator(x)


COUNT = 3
NUMBERS = (1, 2.5, "a")


@differs((3, (1, 2.5, "a")))
def globals_are_constants():
    # PyTorch refuses values of globals.
    return COUNT, NUMBERS


# Classes.


class Counter:
    def __init__(self, start: int, name: Optional[str] = None):
        self.count = start
        self.name = name
        if start > 5:
            self.count = 5

    def add(self, n: int = 1) -> "Counter":
        self.count += n
        return self

    @staticmethod
    def zero() -> int:
        return 0


@gives((12, 12, 5, 'n', 0, True), 3)
def objects_are_changed_by_methods(x: int):
    c = Counter(x)
    d = c.add().add(2)
    d.count *= 2
    e: List[Counter] = [c, Counter(9, "n")]
    return c.count, d.count, e[1].count, e[1].name, Counter.zero(), c is d


@refused(r"Wrong type for attribute assignment\. Expected int but got str")
def attributes_keep_their_type(x: int):
    c = Counter(x)
    c.count = "a"
    return c.count


@refused(r"Tried to set nonexistent attribute: more\. Did you forget to initialize it in __init__\(\)\?")
def attributes_are_not_added(x: int):
    c = Counter(x)
    c.more = 1
    return c.count


class InBranch:
    def __init__(self, x: int):
        if x > 0:
            self.x = x


@refused(r"First assignment cannot be in a control-flow block\. Initialize the field at the top level first")
def attributes_are_not_defined_in_branches(x: int):
    return InBranch(x).x


@refused(r"' object has no attribute or method 'absent'\. Did you forget to initialize an attribute in __init__")
def methods_that_objects_lack(x: int):
    return Counter(x).absent()


@refused("method cannot be used as a value")
def methods_are_no_values(x: int):
    f = Counter(x).add
    return f


@jit.interface
class Adds:
    def add(self, n: int) -> int:
        pass


class One:
    def __init__(self):
        self.n = 1

    def add(self, n: int) -> int:
        return n + self.n


class Two:
    def __init__(self):
        self.n = 2

    def add(self, n: int) -> int:
        return n + self.n


class OtherNames:
    def __init__(self):
        self.n = 2

    def add(self, m: int) -> int:
        return m


def uses_interface(a: Adds, n: int) -> int:
    return a.add(n)


@gives(([4, 5], 2, 2), 3)
def objects_are_of_interfaces(x: int):
    l: List[Adds] = [One(), Two()]
    a: Adds = One()
    if x > 1:
        a = Two()
    return [uses_interface(b, x) for b in l], uses_interface(One(), 1), a.add(0)


@refused(r"Expected a value of type '[\w.]+Adds' for argument 'a' but instead found type '[\w.]+OtherNames")
def methods_of_interfaces_have_the_names_of_parameters(x: int):
    return uses_interface(OtherNames(), x)


def asks_interface(a: Adds) -> bool:
    return hasattr(a, "add")


@refused("'asks_interface' is being compiled since it was called from 'members_of_interfaces_are_not_asked_for'")
def members_of_interfaces_are_not_asked_for(x: int):
    return asks_interface(One())


@refused(r"'[\w.]+Adds' object has no attribute or method 'n'\.")
def attributes_of_interfaces_are_hidden(x: int):
    a: Adds = One()
    return a.n


@refused(r"but is now being assigned to a value of type [\w.]+Two")
def objects_of_another_class(x: int):
    a = One()
    a = Two()
    b = One()
    if x > 1:
        b = Two()
    return b.n


# Named tuples.


@gives((1, 0.5, 1, 1, 0.5, 2, 1.5, tensor(2), tensor(1), 0.5, 2, 0.5), Point(1), Pair(tensor(1), tensor(2)))
def named_tuples(p: Point, q: Pair):
    a, b = p
    r = Point(y=1.5, x=2)
    s = Pair(q.second, q.first)
    t: Tuple[int, float] = p
    return p.x, p.y, p[0], a, b, r.x, r.y, s.first, s[1], t[1], len(p), Point(7).y


def takes_tuple(t: Tuple[int, float]) -> int:
    return t[0]


def takes_point(p: Point) -> int:
    return p.x


@gives((3, 3), 3)
def named_tuples_are_tuples(x: int):
    return takes_tuple(Point(x)), takes_tuple(Other(x, 1.0))


@refused(r"Expected a value of type '[\w.]+Point' for argument 'p' but instead found type 'Tuple\[int, float\]'\.")
def tuples_are_no_named_tuples(x: int):
    return takes_point((x, 1.0))


@refused(r"Expected a value of type '[\w.]+Point' for argument 'p' but instead found type 'Tuple\[int, float\]'\.")
def named_tuples_of_another_class(x: int):
    return takes_point(Same(x, 1.0))


@refused(r"[\w.]+Point")
def fields_are_not_assigned(x: int):
    p = Point(x)
    p.x = 5
    return p


@refused(r"Argument x not provided\.")
def fields_that_a_named_tuple_needs(x: int):
    return Point()


# Subtypes.


def takes_optional(x: Optional[int]) -> int:
    return 0 if x is None else x


def takes_optional_pair(x: Tuple[Optional[int], Any]) -> int:
    return 1


def takes_any(x: Any) -> int:
    return 2


def takes_list_of_any(x: List[Any]) -> int:
    return 3


def takes_union(x: Union[int, str]) -> int:
    return 4


def takes_wide_union(x: Union[int, str, None, List[int]]) -> int:
    return 5


def takes_list_of_optionals(x: List[Optional[int]]) -> int:
    return 6


def takes_dict(x: Dict[str, Optional[int]]) -> int:
    return 7


def takes_number(x: Union[int, float, complex]) -> int:
    return 8


@gives((3, 0, 0, 1, 2, 2, 2, 4, 4, 5, 5, 8, 8, 8, 6, 6, 7), 3, None, "a")
def values_of_subtypes_are_arguments(x: int, y: Optional[int], s: Union[int, str]):
    return (
        takes_optional(x), takes_optional(None), takes_optional(y), takes_optional_pair((x, "a")), takes_any(x), takes_any(None),
        takes_any([x]), takes_union(x), takes_union("a"), takes_wide_union(s), takes_wide_union(y), takes_number(x), takes_number(2.5),
        takes_number(1j), takes_list_of_optionals([1, None]), takes_list_of_optionals([]), takes_dict({"a": None, "b": 1}),
    )  # fmt: skip


@refused(r"Expected a value of type 'int' for argument 'x' but instead found type 'Optional\[int\]'\.")
def optionals_are_no_integers(x: Optional[int]):
    return shifted(x)


@refused(r"Expected a value of type 'Optional\[int\]' for argument 'x' but instead found type 'Union\[int, str\]'\.")
def members_of_unions_are_no_other(x: Union[int, str]):
    return takes_optional(x)


@refused(r"Expected a value of type 'List\[Optional\[int\]\]' for argument 'x' but instead found type 'List\[in")
def lists_are_invariant(x: List[int]):
    return takes_list_of_optionals(x)


@refused(r"Expected a value of type 'List\[Any\]' for argument 'x' but instead found type 'List\[int\]'\.")
def lists_are_no_lists_of_any(x: List[int]):
    return takes_list_of_any(x)


@refused(r"Expected a value of type 'Dict\[str, Optional\[int\]\]' for argument 'x' but instead found type 'Dic")
def dictionaries_are_invariant(x: Dict[str, int]):
    return takes_dict(x)


@gives(8, True)
def truth_values_are_numbers(x: bool):
    return takes_number(x)


@refused(r"Expected a value of type 'int' for argument 'x' but instead found type 'Any'\.")
def values_of_any_type_are_no_integers(x: Any):
    return shifted(x)


@refused("Expected a value of type 'int' for argument 'x' but instead found type '")
def members_of_enumerations_are_no_numbers(x: Color):
    return shifted(x)


@refused(r"Expected a value of type 'Tuple\[Optional\[int\], Any\]' for argument 'x' but instead found type 'Tu")
def tuples_of_another_length(x: Tuple[int, int]):
    return takes_optional_pair((1, 2, 3))


# Unification.


@gives(([3, None, None], [(1, 'a')], {'a': None, 'b': 3}, 3, 2, [[1], [2]]), 3, None)
def types_are_unified(x: int, y: Optional[int]):
    a = [x, y, None]
    b = [(1, None), (None, 2)] if False else [(1, "a")]
    c = {"a": y, "b": x}
    d = (x if x > 1 else None)
    e = [Point(1), Point(2)]
    f = [[1], [2]]
    return a, b, c, d, len(e), f


@gives((1, None), 3)
def tuples_are_unified(x: int):
    if x > 1:
        t = (1, None)
    else:
        t = (None, 2)
    return t


@refused(r"Type mismatch: t is set to type List\[int\] in the true branch and type List\[str\] in the false branch")
def lists_are_not_unified(x: int):
    if x > 1:
        t = [1]
    else:
        t = ["a"]
    return t


@gives('a', 3)
def declared_unions_are_unified(x: int):
    t: Union[int, str] = 1
    if x > 1:
        t = "a"
    return t


@refused(r"Variable 't' is annotated with type Union\[int, str\] but is being assigned to a value of type float")
def declared_unions_do_not_take_others(x: int):
    t: Union[int, str] = 2.5
    return t


@refused("Type mismatch: y is set to type int in the true branch and type float in the false branch")
def numbers_are_not_unified(x: int):
    if x > 1:
        y = 1
    else:
        y = 2.5
    return y


@gives(1, 3)
def numbers_are_returned_as_declared(x: int) -> Union[int, float]:
    if x > 1:
        return 1
    return 2.5


@pytest.mark.parametrize(("check", "function", "expected", "args"), RULES.cases)
def test_rules(check, function, expected, args):
    check(function, expected, args)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (torch.Generator, "Generator"),
        (torch.Stream, "Stream"),
        (torch.device, "Device"),
        (torch.dtype, "int"),
        (torch.nn.Parameter, "Tensor"),
        (Tuple[()], "()"),
        (Union[int, float, complex], "Scalar"),
        (Union[int, int, str], "Union(int, str)"),
        (Optional[Any], "Any?"),
        (Optional[Union[int, None, str]], "Union(int, NoneType, str)"),
        (Union[int, None], "int?"),
        (Union[List[int], int], "Union(int[], int)"),
        (Union[torch.Tensor, int, None], "Union(Tensor, int, NoneType)"),
        (type(None), "NoneType"),
        (Dict[complex, int], "Dict(complex, int)"),
        (Dict[torch.Tensor, int], "Dict(Tensor, int)"),
        (Dict[bool, int], "Dict(bool, int)"),
        (list[int] | None, "int[]?"),
        (jit.Future[int], "Future(int)"),
        (torch.jit.Future[int], "Future(int)"),
        (torch.futures.Future[List[int]], "Future(int[])"),
        (Tuple[torch.futures.Future[int], int], "(Future(int), int)"),
        (jit._Await[int], "Await(int)"),
        (torch.jit._Await[int], "Await(int)"),
        (jit._Await, "Await(Any)"),
        (list, "list"),
        (tuple, "tuple"),
        (List[list], "list[]"),
        (dict, None),
        (set, None),
        (Optional[list], None),
        (Optional[dict], None),
        (Union[int, list], None),
        (Tuple[list, int], None),
        (Dict[str, list], None),
        (Callable[[int], int], None),
        (Sequence[int], None),
        (Set[int], None),
        (Iterable[int], None),
        (Tuple[int, ...], None),
        (Literal["a"], None),
        (NewType("Kind", int), None),
        (TypeVar("T"), None),
        (List, None),
        (Dict[List[int], int], None),
    ],
    ids=str,
)
def test_types_of_annotations(annotation, text):
    def f(x: annotation) -> int:
        return 1

    if text is None:
        with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError)):
            jit.script(f)
    else:
        assert str(jit.script(f).schema) == f"f({text} x) -> int"


def length_of_any(x: list, y: tuple) -> int:
    return len(str(x)) + len(str(y))


class Declared:
    """The constructor determines the types of these attributes, as in PyTorch."""

    listed: list
    named: dict

    def __init__(self):
        self.listed = [1]
        self.named = {"a": 1.5}


def test_containers_without_element_types():
    def f() -> Tuple[int, int]:
        return length_of_any([1], (1, 2)), length_of_any(["a", "b"], ())

    def g():
        declared = Declared()
        declared.listed.append(2)
        return declared.listed, declared.named["a"]

    def first(x: list):
        return x[0]

    def length(x: list):
        return len(x)

    assert jit.script(f)() == (9, 8)
    assert jit.script(g)() == ([1, 2], 1.5)
    assert jit.script(length_of_any)([1], (1, 2)) == 9
    with pytest.raises(flambeau.CompileError, match="Could not match type list to"):
        jit.script(first)
    with pytest.raises(flambeau.CompileError, match="a value of type 'list' has no length"):
        jit.script(length)


def test_futures_and_awaitables_have_their_names_in_both_modules():
    def f(x: int):
        later: jit._Await[int] = jit._awaitable(shifted, x)
        tasks: List[torch.futures.Future[int]] = [torch.jit.fork(shifted, x)]
        return jit._awaitable_wait(later), jit._awaitable_wait(jit._awaitable_nowait(x)), torch.jit.wait(tasks[0])

    assert jit.script(f)(3) == (4, 3, 4)
    calls = []
    later = jit._awaitable(calls.append, 1)
    assert calls == [] and jit._awaitable_wait(later) is jit._awaitable_wait(later) is None and calls == [1]
    assert jit._awaitable_wait(jit._awaitable_nowait(5)) == 5
    with pytest.raises(TypeError, match="'torch.Tensor' is not subscriptable"):
        torch.Tensor[int]


def test_parameters_of_script_without_effect():
    with pytest.warns(UserWarning, match="`example_inputs` has no effect") as warned:
        assert jit.script(shifted, example_inputs=[(1,)])(3) == 4
    assert warned[0].filename == __file__
    with pytest.warns(FutureWarning, match="`optimize` is deprecated and has no effect"):
        assert jit.script(shifted, optimize=True)(3) == 4
    assert jit.script(shifted, None, 0, None, None)(3) == 4


def test_awaitables_and_generators_of_programs():
    def f(x: int):
        later = torch.jit._awaitable(shifted, x)
        return torch.jit._awaitable_wait(later)

    assert jit.script(f)(3) == 4
