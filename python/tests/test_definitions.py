"""Functions, classes and types as programs take them from Python: signatures, annotations, markers, and names of other modules."""

import abc
import collections
import dataclasses
import enum
import functools
import typing
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import pytest

import flambeau
from flambeau import jit, tensor
from flambeau import torch_names as torch


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Named(enum.Enum):
    A = "a"
    B = "b"


class Level(float, enum.Enum):
    LOW = 0.5


class Point(NamedTuple):
    x: int
    y: float = 0.5


Old = collections.namedtuple("Old", ["first", "second"])


@dataclasses.dataclass(order=True)
class Version:
    major: int
    minor: int = 0


@dataclasses.dataclass
class Sized:
    width: int
    scale: dataclasses.InitVar[int]
    height: int = dataclasses.field(default=3, compare=False)
    area: int = dataclasses.field(init=False)
    name: str = dataclasses.field(default="n", kw_only=True)

    def __post_init__(self, scale: int):
        self.area = self.width * self.height * scale


class Base:
    def __init__(self, x: int):
        self.x = x


def doubled(x: int) -> int:
    return x * 2


class Scale:
    limit: Final[int] = 10

    def __init__(self, factor: int, name: Optional[str] = None):
        self.factor = factor
        self.name = name
        self.table: Dict[str, List[int]] = {}

    def apply(self, x: int, extra: int = 1) -> int:
        self.table["x"] = [x]
        return self.twice() * x + extra

    def twice(self) -> int:
        return doubled(self.factor)

    @property
    def half(self) -> int:
        return self.factor // 2

    @half.setter
    def half(self, value: int):
        self.factor = value * 2

    @staticmethod
    def three(x: int) -> int:
        return 3 * x

    @classmethod
    def made(cls, x: int) -> "Scale":
        return cls(x)

    @jit.unused
    def only_python(self, x: int) -> int:
        return {x, 1}.pop()


# Signatures.


def commented(x, y=2, *, z=None):
    # type: (int, int, Optional[str]) -> Tuple[int, str]
    return x + y, "none" if z is None else z


def commented_by_parameter(
    x,  # type: int
    y=2,  # type: int
    z=None,  # type: Optional[str]
):
    # type: (...) -> Tuple[int, str]
    return x + y, "none" if z is None else z


def test_signatures_in_comments():
    for function in (commented, commented_by_parameter):
        compiled = jit.script(function)
        assert compiled(1) == (3, "none") and compiled(1, 5, z="a") == (6, "a")


def test_types_of_variables_in_comments():
    def f(n: int):
        values = []  # type: List[int]
        table = {}  # type: Dict[str, int]
        values.append(n)
        table["n"] = n
        return values, table

    assert jit.script(f)(2) == ([2], {"n": 2})


def test_parameters_without_annotation_are_tensors():
    def f(x):
        return x + 1

    def g(x):
        return f(x)

    assert "Tensor x" in str(jit.script(g).schema)


    def k(x: str):
        return f(x)

    with pytest.raises(flambeau.CompileError, match=r"Expected a value of type 'Tensor \(inferred\)' for argument 'x' but instead"):
        jit.script(k)


def test_defaults():
    zero = 4

    def f(a: int = zero + 1, b: float = 2, c: str = "c", d: Optional[int] = None, e: Tuple[int, str] = (1, "x"), g: Color = Color.BLUE):
        return a, b, c, d, e, g == Color.BLUE

    assert jit.script(f)() == (5, 2.0, "c", None, (1, "x"), True)
    assert jit.script(f)(1, 1.5, d=3)[:4] == (1, 1.5, "c", 3)


def test_keyword_only_parameters():
    def f(x: int, *, y: int, z: int = 3):
        return x * 100 + y * 10 + z

    def g(x: int):
        return f(x, y=2), f(x, z=1, y=4)

    assert jit.script(f)(1, y=2) == 123 and jit.script(g)(1) == (123, 141)
    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError)):

        def wrong(x: int):
            return f(x, 2)

        jit.script(wrong)


def test_functions_may_be_wrapped():
    def decorated(function):
        @functools.wraps(function)
        def call(*args):
            return function(*args) + 100

        return call

    @decorated
    def f(x: int) -> int:
        return x + 1

    # As in PyTorch, the function below the decorator is compiled.
    assert jit.script(f)(1) == 2


def test_functions_without_result():
    def f(x: List[int]):
        x.append(1)

    def g(x: List[int]) -> None:
        f(x)

    assert jit.script(g)([1]) is None and str(jit.script(f).schema).endswith("-> NoneType")


def test_results_of_several_returns_are_unified():
    def f(x: int):
        if x > 0:
            return None
        return x

    def g(x: int) -> Union[int, str]:
        if x > 0:
            return "a"
        return x

    assert jit.script(f)(1) is None and jit.script(f)(-1) == -1
    assert jit.script(g)(1) == "a" and jit.script(g)(-1) == -1


# Types of annotations.

ALIAS = Dict[str, List[int]]


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "int"),
        (float, "float"),
        (bool, "bool"),
        (str, "str"),
        (complex, "complex"),
        (None, "NoneType"),
        (torch.Tensor, "Tensor"),
        (flambeau.Tensor, "Tensor"),
        (torch.device, "torch.device"),
        (torch.dtype, "int"),
        (List[int], "List[int]"),
        (list[int], "List[int]"),
        (Dict[str, torch.Tensor], "Dict[str, Tensor]"),
        (dict[int, list[str]], "Dict[int, List[str]]"),
        (Tuple[int, str], "Tuple[int, str]"),
        (tuple[int], "Tuple[int]"),
        (Tuple[()], "Tuple[()]"),
        (Optional[int], "Optional[int]"),
        (int | None, "Optional[int]"),
        (Union[int, None], "Optional[int]"),
        (Union[int, str], "Union[int, str]"),
        (str | int | None, "Union[int, NoneType, str]"),
        (Optional[List[Tuple[int, Optional[str]]]], "Optional[List[Tuple[int, Optional[str]]]]"),
        (Any, "Any"),
        ("List[int]", "List[int]"),
        (List["int"], "List[int]"),
        (ALIAS, "Dict[str, List[int]]"),
        (jit.Future[int], "Future[int]"),
    ],
)
def test_types_of_annotations(annotation, text):
    # No closure of the function has the name in the annotation.
    def f(x: annotation) -> int:
        return 1

    same = flambeau.CompilationUnit(f"def f(x: {text}) -> int:\n    return 1\n").f
    assert jit.script(f).schema == same.schema


@pytest.mark.parametrize(
    "annotation",
    [
        typing.Set[int], typing.Sequence[int], typing.Callable[[int], int], typing.Iterable[int], typing.TypeVar("T"), Tuple[int, ...],
        typing.Literal["a"], typing.NewType("Kind", int), Dict[List[int], int], frozenset, object,
    ],
    ids=str,
)  # fmt: skip
def test_annotations_that_are_no_types_of_programs(annotation):
    def f(x: annotation) -> int:
        return 1

    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError)) as caught:
        jit.script(f)
    assert caught.value.file == __file__ and caught.value.line == f.__code__.co_firstlineno


# Classes, enumerations and tuples with names.


def test_classes():
    def f(x: int):
        s = Scale(x)
        before = s.apply(5), s.half, s.table, s.name
        s.half = 10
        t = Scale.made(2)
        u: Optional[Scale] = None
        if x > 0:
            u = t
        assert u is not None
        return before, s.factor, Scale.three(2), t.apply(1, extra=0), u.factor, s.limit, isinstance(s, Scale)

    assert jit.script(f)(4) == f(4)


def test_methods_that_only_python_runs():
    def f(x: int):
        s = Scale(x)
        if x > 2:
            return s.only_python(x)
        return x

    compiled = jit.script(f)
    assert compiled(1) == 1
    with pytest.raises(flambeau.RuntimeError, match="annotated to be ignored"):
        compiled(3)


def test_attributes_are_defined_by_constructors():
    class Bad:
        def __init__(self, x: int):
            self.x = x

        def set(self):
            self.y = 1

    def f(x: int):
        b = Bad(x)
        b.set()
        return b.x

    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match="y"):
        jit.script(f)

    class Changed:
        def __init__(self, x: int):
            self.x = x

    def g(x: int):
        c = Changed(x)
        c.x = "a"
        return c.x

    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match="Wrong type for attribute assignment|type"):
        jit.script(g)


def test_enumerations():
    def g(c: Color, n: Named):
        names = ""
        for member in Color:
            names += member.name
        return c == Color.RED, c != Color.BLUE, c.name, c.value, n.value, names, Level.LOW.value, [Color.RED, c]

    assert jit.script(g)(Color.RED, Named.B) == g(Color.RED, Named.B)


def test_tuples_with_names():
    def f(p: Point, o: Old):
        q = Point(1)
        r = Point(y=2.5, x=3)
        x, y = p
        made = Old(first=o.second, second=o.first)
        return q.x + r.x, q.y + r.y, p.x, p[1], x, y, len(p), made

    one, two = tensor([1.0]), tensor([2.0])
    x, y, px, py, ux, uy, n, made = jit.script(f)(Point(7), Old(one, two))
    assert (x, y, px, py, ux, uy, n) == (4, 3.0, 7, 0.5, 7, 0.5, 2)
    assert made.first.tolist() == [2.0] and made.second.tolist() == [1.0]


def test_data_classes():
    def f(n: int):
        a, b = Version(n), Version(n, minor=1)
        return a == Version(n), a == b, a < b, b > a, a <= a, b >= a, a.major

    assert jit.script(f)(2) == f(2)


def test_fields_of_data_classes():
    def f(n: int):
        a, b = Sized(n, 2), Sized(n, 2, height=5, name="m")
        return a.area, b.area, b.name, a == b, a == Sized(n, 2, 9)

    assert jit.script(f)(4) == f(4)

    @dataclasses.dataclass
    class WithFactory:
        tags: List[str] = dataclasses.field(default_factory=list)

    def g():
        return WithFactory().tags

    with pytest.raises(flambeau.UnsupportedError, match="Default factory initializers are not supported in TorchScript dataclasses"):
        jit.script(g)


def test_class_attributes_are_constants_if_they_are_final():
    class Limits:
        low: Final = 2
        high: Final[int] = 10
        plain: int = 3

        def __init__(self, x: int):
            self.x = x

    def f(x: int):
        limits = Limits(x)
        return limits.low + limits.high + limits.x

    def g(x: int):
        return Limits(x).plain

    assert jit.script(f)(1) == 13
    with pytest.raises(flambeau.CompileError, match="has no attribute or method 'plain'"):
        jit.script(g)


def test_interfaces():
    @jit.interface
    class Step:
        def apply(self, x: int) -> int:
            pass

    class Plus:
        def __init__(self, n: int):
            self.n = n

        def apply(self, x: int) -> int:
            return x + self.n

    class Times:
        def __init__(self, n: int):
            self.n = n

        def apply(self, x: int) -> int:
            return x * self.n

    def run(step: Step, x: int) -> int:
        return step.apply(x)

    def f(x: int):
        steps: List[Step] = [Plus(2), Times(3)]
        for step in steps:
            x = step.apply(x)
        return x, run(Plus(1), x)

    assert jit.script(f)(1) == (9, 10)

    class Wrong:
        def __init__(self):
            self.n = 1

        def apply(self, x: str) -> str:
            return x

    def g(x: int):
        return run(Wrong(), x)

    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match="(?s)interface|Step"):
        jit.script(g)


def test_subclasses_of_abstract_classes():
    class Abstract(abc.ABC):
        pass

    assert Abstract is not None

    class Derived(Base):
        def twice(self) -> int:
            return self.x * 2

    def f(x: int):
        return Derived(x).twice()

    # PyTorch has no inheritance of classes either.
    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match="inherit"):
        jit.script(f)


# Markers and special functions.


def test_ignored_functions_run_in_python():
    calls = []

    @jit.ignore
    def noted(x: int) -> int:
        calls.append(x)
        return x * 3

    @jit.script
    def f(x: int) -> int:
        return noted(x) + 1

    assert f(2) == 7 and calls == [2]


def test_annotated_values():
    def f(n: int):
        a = jit.annotate(List[int], [])
        b = jit.annotate(Optional[int], None)
        c: Dict[str, Optional[int]] = {"a": n, "b": None}
        d = jit.annotate(Dict[str, Tuple[int, float]], {})
        d["x"] = (1, 2.0)
        return a, b, c, d, jit.isinstance(c, Dict[str, Optional[int]])

    assert jit.script(f)(1) == ([], None, {"a": 1, "b": None}, {"x": (1, 2.0)}, True)
    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match="int"):

        def g(n: str):
            return jit.annotate(int, n)

        jit.script(g)


def test_is_scripting_selects_a_branch():
    def f(x: int) -> int:
        if not jit.is_scripting():
            return len({x})
        return -x

    assert jit.script(f)(2) == -2 and f(2) == 1


def test_script_if_tracing():
    @jit.script_if_tracing
    def loop(x, n: int):
        for _ in range(n):
            x = x + 1
        return x

    def f(x):
        return loop(x, 3)

    assert loop(tensor([1.0]), 2).tolist() == [3.0]
    traced = jit.trace(f, tensor([1.0]))
    assert "prim::Loop" in str(traced.inlined_graph) and traced(tensor([2.0])).tolist() == [5.0]


def test_a_function_is_compiled_once():
    def inner(x: int) -> int:
        return x + 1

    def f(x: int):
        return inner(x) * inner(x + 1)

    compiled = jit.script(f)
    assert str(compiled.graph).count("prim::CallFunction") == 2 and compiled.code.count("def inner") <= 1
    assert jit.script(compiled) is compiled


def test_lines_of_the_file_are_those_of_nodes():
    def f(x: int):
        y = x + 1

        return y * 2

    first = f.__code__.co_firstlineno
    text = str(jit.script(f).graph)
    assert f"{__file__}:{first + 1}:" in text and f"{__file__}:{first + 3}:" in text


def test_names_that_nothing_defines_have_suggestions():
    def f(lengths: List[int]):
        return lenghts[0]  # noqa: F821

    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match="undefined value lenghts"):
        jit.script(f)


# The text of graphs.


def test_text_of_graphs():
    def f(x: torch.Tensor, n: int):
        total = x
        for i in range(n):
            if i > 1:
                total = total + i
        return total

    text = str(jit.script(f).graph)
    assert text.startswith("graph(%x.1 : Tensor,\n      %n.1 : int):")
    assert "prim::Loop(%n.1, " in text and "block0(%i.1 : int, " in text and "block1():" in text and " -> (" in text
    assert "aten::add" in text and "prim::If" in text and text.rstrip().splitlines()[-1].startswith("  return (%total")


def test_graphs_in_text_form_return_to_the_same_text():
    def f(x: torch.Tensor, d: Dict[str, List[float]], t: Tuple[int, Optional[str]]):
        print(x)
        if t[0] > 1:
            d["a"] = [float("inf"), 1e16, 0.1]
        return d, x.to(torch.float64), torch.zeros(2), [None, 1], "a\"b\\n\n"

    graph = jit.script(f).inlined_graph
    text = graph.exact() if hasattr(graph, "exact") else str(graph)
    again = flambeau.parse_graph(text)
    assert kinds(again) == kinds(graph)


def kinds(graph):
    return [node.kind for node in graph.nodes(nested=True)]


class Tone(enum.Enum):
    LOW = 1
    HIGH = 2


def test_members_of_enumerations_are_values_of_any_type():
    def is_tone(x: Any) -> bool:
        return isinstance(x, Tone)

    def name(x: Union[Tone, str]) -> str:
        return x.name if isinstance(x, Tone) else x

    is_tone, name = jit.script(is_tone), jit.script(name)
    assert is_tone(Tone.LOW) and not is_tone(1)
    assert name(Tone.HIGH) == "HIGH" and name("text") == "text"


class Counter:
    def __init__(self, count: int):
        self.count = count

    def add(self, n: int):
        self.count += n

    @property
    def half(self) -> int:
        return self.count // 2

    @half.setter
    def half(self, value: int):
        self.count = value * 2


def test_an_instance_becomes_an_object_of_the_program():
    def twice(counter: Counter):
        counter.add(1)
        counter.count *= 2

    counter = jit.script(Counter(3))
    counter.add(2)
    assert counter.count == 5
    jit.script(twice)(counter)
    assert counter.count == 12 and counter.half == 6
    counter.half = 4
    assert counter.count == 8
    with pytest.raises(flambeau.MisuseError, match="not a function, class or module"):
        jit.script(3)


def test_a_returned_instance_has_the_attributes_that_the_program_set():
    def counted(counter: Counter) -> Counter:
        counter.count += 1
        return counter

    given = Counter(3)
    found = jit.script(counted)(given)
    assert (type(found), found.count, given.count) == (Counter, 4, 3)


@dataclasses.dataclass(order=True)
class Labelled:
    major: int
    label: Optional[str] = None


def test_data_classes_are_compared_by_optional_fields():
    def compare(a: int, b: int, label: str):
        first, second, plain = Labelled(a, label), Labelled(b, label), Labelled(a)
        return first == second, first < second, first >= second, first == plain

    def mixed():
        return Labelled(1) < Labelled(1, "a")

    assert jit.script(compare)(1, 2, "a") == (False, True, False, False)
    assert jit.script(compare)(2, 2, "a") == (True, False, True, False)
    with pytest.raises(TypeError, match="Cannot compare Labelled with None"):
        jit.script(mixed)()


def test_comments_of_classes_refer_to_local_names():
    @jit.script
    class Small:
        def __init__(self, n: int):
            self.n = n

    @jit.script
    class Large:
        def __init__(self, n: int):
            self.n = n

        def __eq__(self, other):
            # type: (Small) -> bool
            return self.n == other.n

    def compare():
        return Large(2) == Small(2)

    assert jit.script(compare)()


def test_isinstance_with_nested_tuples():
    def kind(x: Any) -> int:
        return 1 if isinstance(x, (int, (float, bool))) else 2

    assert [jit.script(kind)(x) for x in (1, 2.5, "a")] == [1, 1, 2]


class Settings:
    rate: float
    names: List[str]


def test_a_class_without_methods():
    @jit.script
    def f(settings: Settings) -> float:
        return settings.rate

    assert "settings.rate" in f.code


def two_functions_of_one_name():
    def  helper(x: int) -> int:  # noqa: E271
        return x + 1

    first = helper

    def  helper(x: int) -> int:  # noqa: E271
        return x * 10

    def größe(x: int) -> int:
        return x - 1

    second, third = helper, größe

    def größe(x: int) -> int:
        return x - 2

    return first, second, third, größe


def test_functions_of_one_name_are_renamed():
    a, b, c, d = two_functions_of_one_name()

    @jit.script
    def f(x: int) -> Tuple[int, int, int, int]:
        return a(x), b(x), c(x), d(x)

    assert f(5) == (6, 50, 4, 3)


def test_texts_with_quotes_in_chains_of_comparisons():
    @jit.script
    def f(x: int) -> bool:
        return 0 < len('it\'s # "a"') < x  # a comment

    assert f(12) and not f(10)


class TextsOfSeveralLines:
    def __init__(self):
        self.text = """a
      b"""

    def get(self) -> str:
        """Documentation
    outdented"""
        return self.text + """
c
   d""" + "e\
f"


def test_texts_of_several_lines_keep_their_indentation():
    @jit.script
    def f() -> str:
        return TextsOfSeveralLines().get() + """x
        y"""

    assert f() == "a\n      b\nc\n   def" + "x\n        y"


def test_defaults_that_hold_a_mutable_value():
    def pair(x: tuple[int, list[int]] = (1, [])):  # noqa: B006
        return x

    with pytest.raises(flambeau.UnsupportedError, match="Mutable default parameters"):
        jit.script(pair)


def test_ignored_classes_have_no_instances():
    @jit.ignore
    class Left:
        pass

    def makes():
        return Left()

    with pytest.raises(flambeau.UnsupportedError, match="Cannot instantiate class 'Left'"):
        jit.script(makes)


def test_classes_of_modules_are_no_types():
    def reads(modules: dict[str, jit.ScriptModule]):
        return len(modules)

    with pytest.raises(flambeau.UnsupportedError, match="Unknown type annotation"):
        jit.script(reads)


def test_annotations_of_attributes_outside_of_the_constructor():
    class Point:
        def __init__(self, x: int):
            self.x: int = x

        def move(self, by: int):
            for _ in range(2):
                self.x: int = by

    with pytest.raises(ValueError, match="must be declared in __init__: `self.x`") as raised:
        jit.script(Point)
    assert isinstance(raised.value, flambeau.UnsupportedError) and "^" * len("self.x: int") in str(raised.value)


class Times:
    @jit.ignore
    def __call__(self, x, by: int) -> int:
        return len(x) * by


times = Times()


def test_objects_whose_call_is_ignored_are_called_in_python():
    def counts(x) -> int:
        return times(x, 3) + 1

    assert jit.script(counts)(tensor([1.0, 2.0])) == 7


def test_errors_name_the_calls_on_the_way():
    def inner(x: int) -> int:
        return x + "text"

    def middle(x: int) -> int:
        return inner(x)

    def outer(x: int) -> int:
        return middle(x)

    with pytest.raises(flambeau.CompileError) as raised:
        jit.script(outer)
    shown = str(raised.value)
    assert "'inner' is being compiled since it was called from 'middle'" in shown
    assert "'middle' is being compiled since it was called from 'outer'" in shown


def test_messages_name_the_member_of_a_union_and_parameters_without_annotation():
    def takes(x: Union[int, List[str]]):
        return x

    with pytest.raises(RuntimeError, match=r"Expected a member of Union\[List\[str\], int\] but instead found type List\[float\]"):
        jit.script(takes)([1.5])

    def sums(x, dim):
        return x.sum(dim)

    with pytest.raises(flambeau.CompileError, match="Inferred the value for argument 'dim' to be of type 'Tensor'"):
        jit.script(sums)

    def declared(x, dim):
        # type: (Tensor, Tensor) -> Tensor
        return x.sum(dim)

    with pytest.raises(flambeau.CompileError) as raised:
        jit.script(declared)
    assert "Inferred" not in str(raised.value)


def test_tensors_with_one_element_are_integers():
    def doubled(n: int, more: List[int]):
        return n * 2 + more[0]

    assert jit.script(doubled)(tensor(2.5), [tensor([3])]) == 7
    with pytest.raises(flambeau.MisuseError):
        jit.script(doubled)(tensor([1.0, 2.0]), [1])


class Bad(NamedTuple):
    first: Tuple[int, int]
    second: "NoSuchType"  # noqa: F821


class Good(NamedTuple):
    first: "Tuple[int, int]"
    second: "Optional[Color]" = None


def test_fields_of_named_tuples_have_the_types_of_their_annotations():
    def reads(x: Good) -> int:
        return x.first[0]

    def fails(x: Bad) -> int:
        return x.first[0]

    assert jit.script(reads)(Good((3, 4))) == 3
    with pytest.raises(ValueError, match="the annotation `NoSuchType` in `Bad` cannot be evaluated"):
        jit.script(fails)


class Held:
    def __init__(self, value: int):
        self.value = value


def test_messages_name_the_attribute_or_the_fields_that_do_not_fit():
    def reads(held: Held) -> int:
        return held.value

    assert jit.script(reads)(Held(3)) == 3
    with pytest.raises(flambeau.MisuseError, match="Could not cast attribute 'value' to type int: it is of type str"):
        jit.script(reads)(Held("3"))  # type: ignore[arg-type]

    def first(x: Good) -> int:
        return x.first[0]

    with pytest.raises(flambeau.MisuseError, match=r"found type 'Good \(aka NamedTuple\(first, second\)\)'"):
        jit.script(first)(Good("text"))  # type: ignore[arg-type]


def test_enumerations_have_numbers_or_strings():
    class Tensors(enum.Enum):
        FIRST = tensor([1.0])

    def names(x: Tensors) -> str:
        return x.name

    with pytest.raises(flambeau.UnsupportedError, match="Cannot create Enum with value type 'Tensor'"):
        jit.script(names)


def test_ignored_functions_that_are_dropped_on_export():
    @jit.ignore(drop_on_export=True)
    def of_python(x):
        return x + 1

    def calls(x, really: bool):
        if really:
            return of_python(x)
        return x

    compiled = jit.script(calls)
    assert of_python(1) == 2 and compiled(tensor([1.0]), False).tolist() == [1.0]
    with pytest.raises(flambeau.RuntimeError, match="annotated to be ignored and cannot be run"):
        compiled(tensor([1.0]), True)
    compiled.save_to_buffer()


def test_named_tuples_of_one_name_have_the_same_fields():
    one, other = collections.namedtuple("Pair", ["first", "second"]), collections.namedtuple("Pair", ["only"])

    def annotated(x: one, y: other) -> one:
        return x

    def commented(x, y):
        # type: (one, other) -> one
        return x

    assert (one, other) is not None
    for function in (annotated, commented):
        with pytest.raises(flambeau.UnsupportedError, match="Can't redefine NamedTuple"):
            jit.script(function)
