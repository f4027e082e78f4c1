"""Functions and classes of Python as programs."""

import collections
import dataclasses
import enum
import functools
import math
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import pytest

import flambeau
from flambeau import jit, tensor
from flambeau import torch_names as torch

FACTOR = 3
NAMES = ["a", "b"]
LIMIT: Final = float("inf")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: int
    y: float = 0.5


@dataclasses.dataclass
class Box:
    width: int
    height: int = 2

    def __post_init__(self):
        self.height = self.height + 0

    def area(self) -> int:
        return self.width * self.height * FACTOR


class Counter:
    def __init__(self, start: int) -> None:
        self.count = start
        self.names: List[str] = []

    def add(self, name: str) -> int:
        self.count += 1
        self.names.append(name)
        return self.count

    @property
    def double(self) -> int:
        return self.count * 2

    @staticmethod
    def three() -> int:
        return 3


def helper(x: int) -> int:
    """Is compiled because another function calls it."""
    return x * FACTOR


def test_functions_and_globals():
    @jit.script
    def f(x: int, scale: int = FACTOR) -> int:
        # The helper and the constant are globals.
        return helper(x) + FACTOR * scale

    assert f(2) == 15 and f(2, scale=0) == 6 and f.__name__ == "f"


def test_closures_are_constants():
    def make(k):
        @jit.script
        def f(x: int):
            return x + k

        return f

    assert make(4)(1) == 5 and make(5)(1) == 6


def test_two_functions_of_one_name():
    def make(k):
        def inner(x: int) -> int:
            return x + k

        return inner

    one, two = make(1), make(2)

    @jit.script
    def f(x: int):
        return one(x) * two(x)

    assert f(3) == 20


def test_scripted_functions_call_each_other():
    inner = jit.script(helper)

    @jit.script
    def f(x: int):
        return inner(x) + 1

    assert f(2) == 7


def test_annotations():
    @jit.script
    def f(
        a: "List[int]",
        b: Dict[str, float],
        c: Tuple[int, str],
        d: Optional[int] = None,
        e: int | None = None,
        g: Union[int, str] = 2,
        h: list[int] | None = None,
    ) -> Tuple[List[int], int]:
        n: List[int] = []
        for i in a:
            n.append(i + len(b) + c[0])
        if d is not None and e is not None:
            n.append(d + e)
        if isinstance(g, int):
            n.append(g)
        if h is not None:
            n.extend(h)
        return n, len(n)

    assert f([1], {"k": 2}, (3, "s"), 4, 5, h=[7]) == ([5, 9, 2, 7], 4)


def test_tensors_and_names_of_torch():
    @jit.script
    def f(x, n: int = 2):
        y = torch.relu(x) * n + math.pi
        y = torch.cat([y, torch.zeros(1)], dim=0)
        return y.to(torch.float64), torch.nn.functional.softmax(x, dim=0)

    y, p = f(tensor([-1.0, 1.0]))
    assert y.dtype is flambeau.float64 and y.shape == (3,) and abs(p.sum().item() - 1) < 1e-6


def test_own_operators():
    @jit.script
    def f(x: torch.Tensor, y: flambeau.Tensor):
        return flambeau.ops.aten.add(x, y, alpha=2)

    assert f(tensor([1]), tensor([2])).tolist() == [5]


def test_enums_named_tuples_and_constants():
    @jit.script
    def f(c: Color, p: Point):
        q = Point(p.x + 1, 2.5)
        if c == Color.RED:
            return q, c, LIMIT, len(NAMES)
        return p, Color.RED, 0.0, 0

    q, c, limit, n = f(Color.RED, Point(3))
    assert (q.x, q.y, c.name, limit, n) == (4, 2.5, "RED", math.inf, 2)


def test_classes_and_data_classes():
    @jit.script
    def f(n: int):
        box = Box(n)
        counter = Counter(box.area())
        counter.add("a")
        return counter.add("b"), counter.double, counter.names, Counter.three()

    assert f(2) == (14, 28, ["a", "b"], 3)

    @jit.script
    def same(a: int, b: int):
        return Box(a) == Box(b), Box(a) == Box(b, 3)

    assert same(1, 1) == (True, False)
    assert jit.script(Counter) is Counter


def test_annotate_fork_and_scripting():
    @jit.script
    def f(x: int):
        values = jit.annotate(Dict[str, List[int]], {})
        values["k"] = [x]
        future = jit.fork(helper, x)
        if jit.is_scripting():
            values["s"] = [1]
        return values, jit.wait(future)

    assert f(2) == ({"k": [2], "s": [1]}, 6)


def test_markers():
    @jit.unused
    def slow(x: int) -> int:
        import json

        return json.loads(str(x))

    @jit.script
    def f(x: int) -> int:
        if x > 0:
            return x
        return slow(x)

    assert f(1) == 1
    with pytest.raises(flambeau.RuntimeError, match="annotated to be ignored and cannot be run"):
        f(-1)


def test_errors_name_the_file_and_line():
    def f(x: int):
        return x.absent()

    with pytest.raises(flambeau.CompileError) as caught:
        jit.script(f)
    assert caught.value.file == __file__ and caught.value.line == f.__code__.co_firstlineno + 1

    def g(x: int):
        raise ValueError("no")

    with pytest.raises(ValueError) as raised:
        jit.script(g)(1)
    assert raised.value.line == g.__code__.co_firstlineno + 1 and raised.value.file == __file__


def test_errors_name_the_unsupported_python_object():
    def f(x: str):
        return open(x).read()

    with pytest.raises(flambeau.UnsupportedError, match="open") as caught:
        jit.script(f)
    assert caught.value.line == f.__code__.co_firstlineno + 1 and "open(x)" in str(caught.value)

    value = object()

    def g():
        return value

    with pytest.raises(flambeau.UnsupportedError, match="object"):
        jit.script(g)
    with pytest.raises(flambeau.UnsupportedError):
        jit.script(lambda x: x)
    with pytest.raises(flambeau.UnsupportedError, match="annotation"):

        def h(x: "undefined"):  # noqa: F821
            return x

        jit.script(h)


def test_long_expressions_keep_their_lines():
    @jit.script
    def f(
        x: Dict[
            str,
            List[int],
        ],
    ) -> List[
        int
    ]:
        return x["a"]

    assert f({"a": [1]}) == [1]


def test_control_flow():
    @jit.script
    def f(n: int, flag: bool) -> Any:
        total = 0
        for i in range(n):
            if i % 2 == 0:
                continue
            if i > 7:
                break
            total += i
        while total > 10:
            total -= 1
        squares = [i * i for i in range(3)]
        text = f"{total} of {n}"
        return (total, squares, text) if flag else None

    assert f(20, True) == (10, [0, 1, 4], "10 of 20") and f(1, False) is None


def test_objects_that_stand_for_others_in_programs():
    def plain(x: float) -> float:
        return x + 1

    def decorated(*args):
        return plain(*args)

    decorated.__prepare_scriptable__ = lambda: plain

    def caller(x: float) -> float:
        return decorated(x) * 2

    assert jit.script(decorated)(2.0) == 3 and jit.script(caller)(2.0) == 6


def test_objects_that_are_called():
    @dataclasses.dataclass
    class Adder:
        amount: int

        def __call__(self, x: int) -> int:
            return x + self.amount

    assert jit.script(Adder(3))(4) == 7
    with pytest.raises(flambeau.MisuseError, match="is not a function, class or module"):
        jit.script(functools.partial(int, 1))


def test_defaults_of_fields_without_annotation():
    Pair = collections.namedtuple("Pair", ["x", "y"], defaults=(1, 2))

    def swapped(pair: Pair) -> Pair:
        return Pair(pair.y, pair.x)

    def lacking(x):
        return Pair(x)

    assert [x.item() for x in jit.script(swapped)(Pair(tensor([1]), tensor([2])))] == [2, 1]
    with pytest.raises(flambeau.CompileError):
        jit.script(lacking)
