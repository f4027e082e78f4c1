"""What programs leave to Python."""

from typing import List

import pytest

import flambeau
from flambeau import jit, tensor
from flambeau import torch_names as torch


class Account:
    def __init__(self, sum):
        self.sum = sum

    def add(self, more, *, twice=False):
        return Account(self.sum + more * (2 if twice else 1))


bank = Account(3)


@jit.ignore
def doubled(x: int) -> int:
    return eval("x * 2")


def test_open_and_read():
    @jit.script(fallback=True)
    def fn(x: str) -> str:
        return open(x).read()

    with open(__file__) as file:
        assert fn(__file__) == file.read()
    assert "^open()(%x" in str(fn.graph) and "prim::CastFromPython" in str(fn.graph)
    (fallback,) = fn.fallbacks()
    assert (fallback.name, fallback.value, fallback.file) == ("open", open, __file__)
    assert "open" in fallback.reason and "open" in repr(fallback)


def test_members_calls_and_keywords():
    @jit.script(fallback=True)
    def f(n: int) -> int:
        account = bank.add(n).add(1, twice=True)
        total: int = account.sum
        return total

    assert f(4) == 9


def test_results_of_the_wrong_type():
    @jit.script(fallback=True)
    def f(x: str) -> int:
        return open(x).read()

    with pytest.raises(ValueError, match="expected value of type int for return value but instead got value of type str") as caught:
        f(__file__)
    assert caught.value.line == f._python.__code__.co_firstlineno + 2


def test_exceptions_of_python_are_the_cause():
    @jit.script(fallback=True)
    def f(x: str) -> str:
        return open(x).read()

    with pytest.raises(flambeau.RuntimeError) as caught:
        f("/absent/file")
    assert isinstance(caught.value.__cause__, FileNotFoundError) and "open" in str(caught.value)


def test_ignored_functions_need_no_option():
    @jit.script
    def f(x: int) -> int:
        return doubled(x) + 1

    assert f(4) == 9 and [fallback.name for fallback in f.fallbacks()] == ["doubled"]


shortened = lambda x: x[:2]  # noqa: E731


def test_functions_that_cannot_be_compiled_are_left_whole():
    @jit.script(fallback=True)
    def f(x: str) -> str:
        return shortened(x)

    assert f("abc") == "ab" and "only functions that `def` defines" in f.fallbacks()[0].reason


def test_tensors_cross():
    def shown(x):
        return repr(x) + str(len(list(x)))

    holder = Account(shown)

    @jit.script(fallback=True)
    def f(x):
        text: str = holder.sum(x * 2)
        return text

    assert f(tensor([1.0, 2.0])) == "tensor([2., 4.])2"


class Vector:
    """Records which of its methods ran."""

    def __init__(self, *items):
        self.items = list(items)

    def __add__(self, other):
        return Vector(*(i + other for i in self.items))

    def __radd__(self, other):
        return Vector(*(other - i for i in self.items))

    def __iadd__(self, other):
        self.items.append(other)
        return self

    def __neg__(self):
        return Vector(*(-i for i in self.items))

    def __getitem__(self, key):
        if isinstance(key, tuple):
            return [self.items[k] for k in key]
        return self.items[key]

    def __setitem__(self, key, value):
        self.items[key] = value

    def __delitem__(self, key):
        del self.items[key]

    def __contains__(self, item):
        return item in self.items

    def __len__(self):
        return len(self.items)

    def __lt__(self, other):
        return len(self.items) < other

    def __call__(self):
        return self


vector = Vector(1, 2, 3)


def test_operators_on_objects_are_pythons():
    @jit.script(fallback=True)
    def f(n: int) -> List[int]:
        v = vector + n
        w = n + vector
        u = -v
        total: List[int] = (v.items + w.items) + u.items
        return total

    assert f(10) == [11, 12, 13, 9, 8, 7, -11, -12, -13]


def test_subscripts_of_objects():
    @jit.script(fallback=True)
    def f(n: int):
        v = Vector(1, 2, 3)
        v[0] = n
        v[1] += n
        v += 7
        del v[2]
        one: int = v[1]
        rest: List[int] = v[1:]
        pair: List[int] = v[0, 1]
        return one, rest, pair, len(v), 7 in v

    assert f(5) == (7, [7, 7], [5, 7], 3, True)


def test_conditions_and_loops_over_objects():
    @jit.script(fallback=True)
    def f(n: int) -> int:
        total = 0
        v = Vector(1, 2, 3)
        for item in v.items:
            total += int(item)
        for i, item in enumerate(v.items):
            total += i * int(item)
        if v < n and not (v < 2):
            total += 100
        a, b = Vector(4, 5).items
        second: int = b
        return total + second if v() is not None else 0

    assert f(4) == 6 + 8 + 100 + 5 and f(3) == 6 + 8 + 5


def test_arguments_are_cast_to_the_types_of_parameters():
    def twice(x: int) -> int:
        return x * 2

    @jit.script(fallback=True)
    def f(x) -> int:
        holder = Account(x)
        return twice(Account(4).sum) + int(torch.neg(holder.sum).sum())

    assert f(tensor([1.0, 2.0])) == 5

    @jit.script(fallback=True)
    def g(n: int) -> int:
        return twice(Account("text").sum)

    with pytest.raises(ValueError, match="expected value of type int for return value but instead got value of type str"):
        g(1)


def test_attributes_of_objects_are_set():
    account = Account(1)

    @jit.script(fallback=True)
    def f(n: int) -> str:
        account.sum = n
        account.sum += 1
        return "sum " + str(account.sum)

    assert f(4) == "sum 5" and account.sum == 5


def test_types_of_objects_are_not_tested():
    with pytest.raises(flambeau.UnsupportedError, match="annotate the object"):

        @jit.script(fallback=True)
        def f(n: int) -> bool:
            return isinstance(vector(), int)


def shared_part(x: int) -> int:
    return x + 1


def with_else_branch(x: int) -> int:
    for i in range(x):
        x = shared_part(x)
    else:
        x = 0
    return x


def test_a_refused_function_leaves_what_it_calls():
    @jit.script(fallback=True)
    def f(x: int) -> int:
        y: int = with_else_branch(x)
        return y + shared_part(x)

    assert f(3) == 4
    assert [fallback.name for fallback in f.fallbacks()] == ["with_else_branch"]


def test_fallbacks_of_modules():
    nn = pytest.importorskip("torch.nn")

    class Reader(nn.Module):
        def forward(self, path: str) -> str:
            return open(path).readline()

    module = jit.script(Reader(), fallback=True)
    assert module(__file__).startswith('"""What') and [fallback.name for fallback in module.fallbacks()] == ["open"]
