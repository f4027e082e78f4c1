"""What programs leave to Python."""

import pytest

import flambeau
from flambeau import jit, tensor


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

    with pytest.raises(ValueError, match="cannot cast Python object of type str to TorchScript type int") as caught:
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
