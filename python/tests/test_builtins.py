"""Builtins, methods, operators and subscripts of programs, compared with what Python computes."""

import cmath
import copy
import math
from typing import Any, Dict, List, Optional, Tuple

import pytest
from comparison import assert_same, marker

import flambeau
from flambeau import jit, tensor
from flambeau import torch_names as torch

SAME = []
same = marker(SAME)


@pytest.mark.parametrize(("function", "args"), SAME)
def test_programs_compute_what_python_computes(function, args):
    assert_same(function, args)


@same([3, 1, 2], [0.5, -1.5], [True, False], "b")
def functions_of_containers(l: List[int], x: List[float], f: List[bool], s: str):
    return (
        len(l), min(l), max(x), sum(l), sum(x), all(f), any(f), sorted(l), sorted(x), sorted(["b", "a"]), sorted(f),
        list("abc"), list(range(3)), list(range(1, 9, 3)), len(s), min(1, 2), max(2.5, 1.0), list(l), list(zip(l, x)),
        list(enumerate(l)),
    )  # fmt: skip


@same(65, 2.75, "12", True)
def conversions(i: int, x: float, s: str, b: bool):
    return (
        int(x), float(i), str(i), int(s), float(s), bool(i), int(b), float(b), complex(i, x), ord("A"), chr(i), bin(i), hex(i),
        oct(i), str(b), str(s), str(None), bool(s), bool(0.0), abs(-i), divmod(i, 7), divmod(x, 2.0), pow(x, 2.0),
        hash(i), float("inf"), float("1e3"),
    )  # fmt: skip


@same(" Hello, World ", "ab1")
def texts_are_changed(s: str, t: str):
    return (
        s.strip(), s.lstrip(), s.rstrip(), s.upper(), s.lower(), s.swapcase(), s.title(), t.capitalize(), t.center(7), t.center(7, "*"),
        t.ljust(5), t.rjust(5, "."), t.zfill(6), s.replace("l", "L"), s.expandtabs(), "a\tb".expandtabs(4), t * 1 if False else t,
        "-".join(["a", "b"]), s.strip().split(", "), "a b c".split(), "a,b,c".rsplit(",", 1), "a\nb".splitlines(),
        "k=v".partition("="), "a.b.c".rpartition("."), t + s, t[::-1], t % (), "x".strip("x"),
    )  # fmt: skip


@same("ab1", "")
def texts_are_asked(s: str, e: str):
    return (
        s.count("a"), s.startswith("a"), s.endswith("1"), s.find("b"), s.rfind("z"), s.index("b"), s.rindex("1"), s.isalnum(),
        s.isalpha(), s.isdecimal(), s.isdigit(), s.isidentifier(), s.islower(), s.isnumeric(), s.isprintable(), s.isspace(),
        s.istitle(), s.isupper(), "b" in s, "z" not in s, s < "b", s >= "ab", s == "ab1", s != e, len(e), s.startswith("b", 1),
        s.find("b", 1, 2),
    )  # fmt: skip


@same([3, 1, 2], ["b", "a"])
def methods_of_lists(l: List[int], s: List[str]):
    l.append(4)
    l.extend([5, 6])
    l.insert(1, 9)
    popped, first = l.pop(), l.pop(0)
    l.remove(9)
    copy_ = l.copy()
    l.sort()
    up = l.copy()
    l.sort(reverse=True)
    l.reverse()
    s.sort()
    s.clear()
    return l, popped, first, copy_, up, l.count(1), l.index(2), s, l + [1], l * 2, 2 * l, l == up, l != up, 1 in l, 7 not in l


@same({"a": 1, "b": 2})
def methods_of_dictionaries(d: Dict[str, int]):
    keys, values, items = list(d.keys()), list(d.values()), list(d.items())
    got = d.get("a"), d.get("z", 7), d.get("z")
    popped, default = d.pop("a"), d.pop("z", 8)
    d["c"] = 3
    set_, found = d.setdefault("d", 4), d.setdefault("c", 9)
    d.update({"b": 20})
    copy_ = d.copy()
    made, empty = dict(a=1, b=2), d.copy()
    empty.clear()
    pairs = dict([("x", 1), ("y", 2)])
    size = len(d)
    del d["b"]
    return d, keys, values, items, got, popped, default, set_, found, copy_, made, empty, pairs, size, "c" in d, "z" not in d


@same(1, 2.5)
def dictionaries_by_key(i: int, x: float):
    a: Dict[int, str] = {i: "a"}
    b: Dict[float, str] = {x: "b", 1.5: "c"}
    c: Dict[bool, int] = {True: 1, False: 0}
    a[5] = "f"
    return a, b, c, a[i], b[1.5], c[False], [k for k in a.keys()]


@same((1, 2.5, "a"), (4, 5))
def operations_of_tuples(t: Tuple[int, float, str], p: Tuple[int, int]):
    a, b, c = t
    x, *rest = p
    return t[0], t[-1], t[1:], len(t), p == (4, 5), p != (4, 5), t + p, a, b, c, x


@same(0.5, 2.0, 12)
def functions_of_math(x: float, y: float, n: int):
    return (
        math.acos(x), math.asin(x), math.atan(x), math.atan2(x, y), math.ceil(x), math.copysign(x, -y), math.cos(x), math.degrees(x),
        math.exp(x), math.expm1(x), math.fabs(-x), math.factorial(5), math.floor(x), math.fmod(y, x), math.frexp(y), math.gcd(n, 8),
        math.isinf(x), math.isnan(x), math.isfinite(x), math.ldexp(x, 3), math.log(y), math.log10(y), math.log1p(x),
        math.modf(2.5), math.pow(x, y), math.radians(x), math.sin(x), math.sqrt(y), math.tan(x), math.tanh(x), math.sinh(x),
        math.cosh(x), math.asinh(x), math.acosh(y), math.atanh(x), math.tau, math.log(y, 3.0),
    )  # fmt: skip


@same(tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), 1)
def subscripts_of_tensors(x: torch.Tensor, i: int):
    rows = torch.tensor([1, 0])
    return (
        x[0], x[-1], x[i], x[0, 1], x[:, 1], x[1:], x[:, ::2], x[..., 0], x[None], x[:, None, 1:], x[0, ..., None], x[rows],
        x[rows, rows], x[x > 2.0], x[:, [0, 2]], x[i:, :i], x[..., -1:], x[:2], x[rows, :2], x[:, rows],
        x[i - 1 : i + 1],
    )  # fmt: skip


@same(tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
def subscripts_are_assigned(x: torch.Tensor):
    x[0] = 7
    x[1, 1:] = torch.tensor([8.0, 9.0])
    x[:, 0] += 1
    x[..., 2] *= 2.0
    y = x.clone()
    y[y > 9.0] = 0.5
    z = x.clone()
    z[torch.tensor([1])] = z[0].clone()
    z[0, 0] = z[1, 1]
    z[-1:] -= 1
    return x, y, z


@same(tensor([7, 5]), tensor([2.0, 0.5]), True)
def tensors_and_numbers(i: torch.Tensor, x: torch.Tensor, b: bool):
    return (
        i + 1, 1 + i, i * 2.5, 2.5 - x, 1 / x, x / 2, x // 2, x % 2, x**2, 2.0**x, -x, +x, abs(-x), i & 3, i | 8, i ^ 1, i << 1,
        i >> 1, ~i, x < 1, x >= i, 1 < x, x == 2.0, x != 2.0, i // 2, i % 3, i + b, x @ x, i.float() @ x,
    )  # fmt: skip


@same(tensor([1.0, 2.0]), tensor([1, 2]))
def tensors_are_changed_in_place(x: torch.Tensor, i: torch.Tensor):
    a = b = c = d = x
    a += 1
    b -= 2
    c *= 3
    d /= 2
    h = i
    h <<= 1
    return x, i, h, a, d


@same(tensor([[1.0, 2.0]]))
def attributes_of_tensors(x: torch.Tensor):
    n, m = x.shape
    return (
        x.dtype == torch.float32, x.ndim, x.shape[0], x.T, x.mT, x.requires_grad, x.is_leaf, x.size(1), n * m, x.numel(), x.dim(),
        x.itemsize, x.nbytes, x.is_cuda, x.long(), x.int(), x.double(), x.float(), x.short(), x.char(), x.byte(),
        x.real, x.is_floating_point(), len(x), x.data,
    )  # fmt: skip


@same(1.5, 2)
def complex_numbers(x: float, n: int):
    z = complex(x, n)
    return z + 1, z * z, z - 1j, abs(z), z == complex(1.5, 2.0), -z, z * 2.0


@same(1.5, 2)
def functions_of_cmath(x: float, n: int):
    z = complex(x, n)
    return cmath.log(z) == cmath.log(z), cmath.isnan(z), cmath.isinf(z)


class Number:
    """A class with operators."""

    def __init__(self, x: int):
        self.x = x

    def __add__(self, other: int) -> int:
        return self.x + other

    def __sub__(self, other: int) -> int:
        return self.x - other

    def __mul__(self, other: int) -> int:
        return self.x * other

    def __truediv__(self, other: float) -> float:
        return self.x / other

    def __mod__(self, other: int) -> int:
        return self.x % other

    def __pow__(self, other: int) -> int:
        return self.x * 100 + other

    def __neg__(self) -> int:
        return -self.x

    def __invert__(self) -> int:
        return self.x + 1000

    def __eq__(self, other: int) -> bool:
        return self.x == other

    def __ne__(self, other: int) -> bool:
        return self.x != other

    def __lt__(self, other: "Number") -> bool:
        return self.x < other.x

    def __gt__(self, other: int) -> bool:
        return self.x > other

    def __le__(self, other: int) -> bool:
        return self.x <= other

    def __ge__(self, other: int) -> bool:
        return self.x >= other

    def __and__(self, other: int) -> int:
        return self.x & other

    def __or__(self, other: int) -> int:
        return self.x | other

    def __xor__(self, other: int) -> int:
        return self.x ^ other

    def __lshift__(self, other: int) -> int:
        return self.x << other

    def __rshift__(self, other: int) -> int:
        return self.x >> other

    def __contains__(self, other: int) -> bool:
        return self.x == other

    def __getitem__(self, i: int) -> int:
        return self.x + i

    def __setitem__(self, i: int, value: int) -> None:
        self.x = i + value

    def __delitem__(self, i: int) -> None:
        self.x = i

    def __len__(self) -> int:
        return self.x

    def __call__(self, y: int) -> int:
        return self.x * y

    def __bool__(self) -> bool:
        return self.x > 0

    def __int__(self) -> int:
        return self.x

    def __float__(self) -> float:
        return float(self.x)

    def __str__(self) -> str:
        return "Number " + str(self.x)

    def __hash__(self) -> int:
        return self.x

    def __abs__(self) -> int:
        return abs(self.x)

    def __iadd__(self, other: int) -> "Number":
        self.x += other
        return self


@same(3)
def operators_of_classes(x: int):
    n = Number(x)
    found = (
        n + 1, n - 1, n * 2, n / 2.0, n % 2, n**2, -n, ~n, n == 3, n != 3, n < Number(4), n > 2, n <= 3, n >= 4, n & 1, n | 4, n ^ 1,
        n << 1, n >> 1, 3 in n, n[4], len(n), n(5), bool(n), int(n), float(n), str(n), hash(n), abs(n),
    )  # fmt: skip
    n[1] = 6
    after = n.x
    del n[9]
    n += 5
    ordered = sorted([Number(2), Number(1)])
    return found, after, n.x, [o.x for o in ordered], 1 if n else 0


@same([1, 2])
def containers_are_shared(l: List[int]):
    other = l
    other.append(3)
    table = {"a": l}
    table["a"].append(4)
    nested = [l, [0]]
    nested[0].append(5)
    return l, table, nested, l is other


def test_numbers_of_tensors():
    @jit.script
    def f(x: torch.Tensor, y: torch.Tensor):
        values: List[List[float]] = x.tolist()
        return values, int(y), float(y), bool(y), y.item(), torch.tensor(values), torch.tensor([1, 2]).dtype == torch.int64

    values, i, x, b, item, made, is_long = f(tensor([[1.0, 2.0]]), tensor(3))
    assert (values, i, x, b, item, is_long) == ([[1.0, 2.0]], 3, 3.0, True, 3, True)
    assert made.tolist() == values


def refuse_map(x: List[int]):
    return map(abs, x)


def refuse_type(x: int):
    return type(x)


def refuse_set(x: List[int]):
    return set(x)


def refuse_open(x: str):
    return open(x)


def refuse_input(x: str):
    return input(x)


def refuse_next(x: List[int]):
    return next(x)


def refuse_hypot(x: float):
    return math.hypot(x, x)


def refuse_missing_method(x: List[int]):
    return x.absent()


def refuse_missing_attribute(x: int):
    return x.absent


def refuse_index_of_tuple(x: Tuple[int, str], i: int):
    return x[i]


def refuse_wrong_key(x: Dict[str, int]):
    return x[1]


def refuse_wrong_element(x: List[int]):
    x.append("a")


def refuse_unpack(x: Tuple[int, int]):
    a, b, c = x
    return a


def refuse_hasattr_name(x: int, name: str):
    return getattr(x, name)


REFUSED = {
    refuse_map: "map", refuse_type: "type", refuse_set: "set", refuse_open: "open", refuse_input: "input", refuse_next: "next",
    refuse_hypot: "hypot", refuse_missing_method: "absent", refuse_missing_attribute: "absent",
    refuse_index_of_tuple: "index|constant", refuse_wrong_key: "__getitem__|key|valid", refuse_wrong_element: "append",
    refuse_unpack: "3|unpack", refuse_hasattr_name: "getattr's second argument must be a string literal",
}  # fmt: skip


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__.removeprefix("refuse_"))
def test_what_programs_do_not_have(function):
    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match=REFUSED[function]) as caught:
        jit.script(function)
    assert caught.value.file == __file__ and caught.value.line > function.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("text", "args", "kind"),
    [
        ("def f(x: int):\n    return 1 // x\n", (0,), RuntimeError),
        ("def f(x: int):\n    return 1 % x\n", (0,), RuntimeError),
        ("def f(x: List[int]):\n    return x[3]\n", ([1],), IndexError),
        ("def f(x: Dict[str, int]):\n    return x['b']\n", ({"a": 1},), RuntimeError),
        ("def f(x: List[int]):\n    return x.index(3)\n", ([1],), RuntimeError),
        ("def f(x: List[int]):\n    a, b = x\n    return a\n", ([1],), RuntimeError),
        ("def f(x: str):\n    return int(x)\n", ("a",), RuntimeError),
        ("def f(x: Optional[int]):\n    assert x is not None\n    return x\n", (None,), RuntimeError),
        ("def f(x):\n    if x > 0:\n        return 1\n    return 2\n", (tensor([1.0, 2.0]),), RuntimeError),
    ],
)  # fmt: skip
def test_errors_of_runs_have_their_line(text, args, kind):
    with pytest.raises(kind) as caught:
        flambeau.CompilationUnit(text, "program.py").f(*args)
    assert isinstance(caught.value, flambeau.RuntimeError) and caught.value.line >= 2


def test_bitwise_operators_assign_new_tensors():
    # As in PyTorch: `x |= y` of Python writes into the tensor.
    def f(x: torch.Tensor):
        a = b = c = x
        a |= 4
        b &= 6
        c ^= 1
        return x, a, b, c

    assert [t.tolist() for t in jit.script(f)(tensor([1, 2]))] == [[1, 2], [5, 6], [0, 2], [0, 3]]


def test_getattr_and_hasattr_are_static():
    class Pair:
        def __init__(self, x: int):
            self.x = x

    def f(n: int):
        p = Pair(n)
        return getattr(p, "x"), hasattr(p, "x"), hasattr(p, "y")  # noqa: B009

    assert jit.script(f)(2) == (2, True, False)


def test_parallel_tasks():
    def work(x: int, y: int = 1) -> int:
        return x + y

    def f(n: int):
        tasks = [jit.fork(work, i, y=2) for i in range(n)]
        return [jit.wait(task) for task in tasks]

    assert jit.script(f)(3) == [2, 3, 4]


def test_values_that_any_takes():
    def f(x: Any, y: Optional[List[int]]) -> Any:
        if isinstance(x, int):
            return x + 1
        if isinstance(x, str):
            return x + "!"
        return y

    compiled = jit.script(f)
    assert compiled(1, None) == 2 and compiled("a", None) == "a!" and compiled(2.5, [1]) == [1]


def test_dictionaries_of_iterables():
    def made(names: List[str], values: List[int]):
        return dict(zip(names, values)), dict(enumerate(names))

    assert jit.script(made)(["a", "b"], [1, 2]) == ({"a": 1, "b": 2}, {0: "a", 1: "b"})


def test_cmath():
    def made(z: complex):
        return cmath.phase(z), cmath.rect(2.0, 0.5), cmath.infj, cmath.pi

    assert jit.script(made)(1 + 2j) == pytest.approx((cmath.phase(1 + 2j), cmath.rect(2.0, 0.5), cmath.infj, cmath.pi))


def test_items_of_tensors_by_method():
    def item(x: flambeau.Tensor):
        return x.__getitem__(1)

    assert jit.script(item)(flambeau.tensor([1, 2])).item() == 2


def test_methods_are_those_of_the_type():
    with pytest.raises(flambeau.CompileError, match="'int' object has no attribute or method 'add'"):
        flambeau.CompilationUnit("def f(n: int):\n    return n.add(1)\n")


def test_the_method_type_converts():
    def converted(x: flambeau.Tensor):
        return x.type(torch.float64)

    assert jit.script(converted)(tensor([1, 2])).dtype is flambeau.float64


def test_constructors_of_one_dtype_without_arguments():
    def empty():
        return torch.DoubleTensor()

    made = jit.script(empty)()
    assert made.shape == (0,) and made.dtype == flambeau.float64

    def mixed():
        return torch.LongTensor(1, [2])

    with pytest.raises(flambeau.CompileError, match="multiple positional arguments that were not all integers"):
        jit.script(mixed)


def test_unknown_operators_have_a_suggestion_or_none():
    def near(x):
        return torch.sigmiod(x)

    def far(x):
        return torch.set_anomaly_enabled(x)

    with pytest.raises(flambeau.CompileError, match="did you mean `sigmoid`"):
        jit.script(near)
    with pytest.raises(flambeau.CompileError, match="may not be currently supported in TorchScript"):
        jit.script(far)
