"""Calls of compiled functions: values of every kind, errors, prints, threads."""

import enum
import pickle
from typing import NamedTuple

import pytest

import flambeau


def unit(text):
    return flambeau.CompilationUnit(text)


def test_scalars():
    u = unit("def f(x: int, y: float, z: bool, s: str):\n    return x + 1, y * 2, not z, s + '!'\n")
    assert u.f(1, 2.5, True, "a") == (2, 5.0, False, "a!")
    assert u.f(y=2, x=1, z=False, s="") == (2, 4.0, True, "!"), "integers are floats where floats are expected"


def test_functions_of_few_numbers():
    """Such functions are called in a shorter way from the second call on, with the same results and errors."""
    u = unit(
        "def f(x: int, y: float, z: bool) -> float:\n    if z:\n        return x / y\n    return float(x // 2)\n"
        "def g(x: int) -> bool:\n    return x > 2\n"
        "def h(x: int) -> None:\n    return None\n"
        "def d(x: int, y: int) -> int:\n    return x // y\n"
        "def k() -> int:\n    return 3\n"
        "def state() -> bool:\n    return torch.is_grad_enabled()\n"
    )
    for _ in range(3):
        assert (u.f(3, 0.5, True), u.f(-3, 0.5, False), u.f(3, 2, True), u.f(y=0.5, x=3, z=True)) == (6.0, -2.0, 1.5, 6.0)
        assert (u.g(3), u.g(2), u.g(True), u.h(1), u.k()) == (True, False, False, None, 3)
        assert u.f(1, 0.0, True) == float("inf")
        assert u.d(-7, 2) == -4
        with pytest.raises(RuntimeError, match=r"(?s)x // y.*division by 0"):
            u.d(1, 0)
        for wrong in ["a", None, 1.5, 2**63, [1]]:
            with pytest.raises((flambeau.MisuseError, TypeError)):
                u.g(wrong)
        with pytest.raises(flambeau.MisuseError, match="missing value for argument 'y'"):
            u.f(1)
        with pytest.raises(flambeau.MisuseError, match="expected at most 0"):
            u.k(1)
        assert u.state()
        with flambeau.no_grad():
            assert not u.state()


def test_pointwise_functions_of_few_elements():
    """Such functions keep the interpreter lock and their host from the second call on, with the same results and errors."""
    u = unit(
        # Each returns one value: functions that make tuples are called in the general way.
        "def f(x, y: Tensor, k: float):\n    return x * y + k\n"
        "def positive(x):\n    return torch.relu(x) > 0.5\n"
        "def same(x):\n    return x\n"
        "def none(x):\n    return None\n"
        "def constant(x):\n    return 2.5\n"
    )
    small, one, large = flambeau.tensor([1.0, -2.0]), flambeau.tensor([[3.0], [4.0]]), flambeau.tensor([1.0] * 5000)
    for _ in range(3):
        total = u.f(small, one, 0.5)
        assert (total.tolist(), u.positive(small).tolist()) == ([[3.5, -5.5], [4.5, -7.5]], [True, False])
        assert u.f(large, one, 0.5).shape == (2, 5000)
        assert u.f(x=small, y=one, k=0.5).tolist() == total.tolist()
        assert u.same(small).is_same(small)
        assert (u.none(small), u.constant(small)) == (None, 2.5)
        with pytest.raises(RuntimeError, match=r"(?s)x \* y.*must match the size"):
            u.f(small, flambeau.tensor([1.0, 2.0, 3.0]), 0.5)
        with pytest.raises(flambeau.MisuseError, match="missing value for argument 'k'"):
            u.f(small, one)
        with pytest.raises(flambeau.MisuseError):
            u.f(small, one, "a")
        leaf = flambeau.tensor([1.0, -2.0], requires_grad=True)
        u.f(leaf, one, 0.5).sum().backward()
        assert leaf.grad.tolist() == [7.0, 7.0]
        with flambeau.no_grad():
            assert not u.f(leaf, one, 0.5).requires_grad


def test_containers():
    text = (
        "from typing import Dict, List, Optional, Tuple\n"
        "def f(a: List[int], d: Dict[str, float], t: Tuple[int, str], o: Optional[int] = None):\n"
        "    a.append(4)\n"
        "    d['k'] = 1.5\n"
        "    return a, d, t, o\n"
    )
    u = unit(text)
    a, d = [1, 2], {"x": 2}
    assert u.f(a, d, (1, "s")) == ([1, 2, 4], {"x": 2.0, "k": 1.5}, (1, "s"), None)
    assert (a, d) == ([1, 2], {"x": 2}), "lists are copied, as PyTorch does"
    assert u.f([], {}, (1, "s"), 3)[3] == 3


def test_any_and_unions():
    u = unit("from typing import Any, List, Union\ndef f(x: Any, y: Union[int, List[float]]):\n    return x, y\n")
    assert u.f([1, [2]], [1]) == ([1, [2]], [1.0])
    assert u.f({"a": (1, None)}, 3) == ({"a": (1, None)}, 3)


def test_named_tuples_come_back_with_names():
    text = (
        "from typing import NamedTuple\n"
        "class P(NamedTuple):\n    a: int\n    b: float\n"
        "def f(x: int):\n    return P(x, 0.5)\n"
    )
    p = unit(text).f(3)
    assert (p.a, p.b, tuple(p)) == (3, 0.5, (3, 0.5))


def test_wrong_arguments_name_the_parameter():
    u = unit("def f(count: int):\n    return count\n")
    with pytest.raises(flambeau.MisuseError, match="Expected a value of type 'int' for argument 'count' but instead found type 'str'"):
        u.f("a")
    with pytest.raises(flambeau.MisuseError, match=r"f\(\) expected at most 1 argument\(s\) but received 2"):
        u.f(1, 2)
    with pytest.raises(flambeau.MisuseError, match="is missing value for argument 'count'"):
        u.f(cuont=1)
    with pytest.raises(flambeau.MisuseError, match="does not fit into 64 bits"):
        u.f(2**63)
    with pytest.raises(TypeError):
        u.f(1.5)
    with pytest.raises(AttributeError):
        u.absent


def test_deep_values_are_refused():
    u = unit("from typing import Any\ndef f(x: Any):\n    return x\n")
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(flambeau.MisuseError, match="nested more than"):
        u.f(deep)


def test_compile_errors_have_code_line_and_caret():
    with pytest.raises(flambeau.CompileError) as caught:
        flambeau.CompilationUnit("def f(x: int):\n    return x.foo()\n", "file.py")
    error = caught.value
    assert error.code.startswith("F") and (error.file, error.line) == ("file.py", 2)
    assert error.column == 12 and "return x.foo()" in str(error) and "^" in str(error)
    assert isinstance(error, RuntimeError)


def test_unsupported_features_have_their_own_class():
    with pytest.raises(flambeau.UnsupportedError) as caught:
        unit("class A(Base):\n    pass\n")
    assert caught.value.line == 1 and caught.value.code == "F0106"


def test_raised_exceptions_have_the_class_of_the_program():
    text = "def g(x: int):\n    if x > 1:\n        raise ValueError('too large')\n    return x\ndef f(x: int):\n    return g(x)\n"
    with pytest.raises(ValueError, match="too large") as caught:
        unit(text).f(2)
    error = caught.value
    assert isinstance(error, flambeau.RuntimeError) and error.line == 3
    assert "f" in error.functions and "raise ValueError" in str(error)


def test_prints_go_to_python(capsys):
    unit("def f(x: int):\n    print('value', x)\n").f(3)
    assert capsys.readouterr().out == "value 3\n"


def test_schema_graph_and_code():
    f = unit("def f(x: int, y: int = 2) -> int:\n    return x + y\n").f
    assert f.schema == "f(int x, int y=2) -> int"
    assert "aten::add" in str(f.graph) and "def f" in f.code and "aten::add" in str(f.optimized_graph())


def test_random_numbers_continue():
    flambeau.manual_seed(3)
    a, b = flambeau.rand([4]), flambeau.rand([4])
    assert a.tolist() != b.tolist()
    flambeau.manual_seed(3)
    assert flambeau.rand([4]).tolist() == a.tolist()


def test_dtypes_pickle():
    assert pickle.loads(pickle.dumps(flambeau.float32)) is flambeau.float32


def test_ranges_are_lists_of_integers():
    unit = flambeau.CompilationUnit("def f(x: List[int]):\n    return x[1:]\n\ndef g(x: List[bool]):\n    return all(x)\n")
    assert unit.f(range(4)) == [1, 2, 3] and unit.g([1, 0]) is False


def test_scalars_of_unions_are_not_converted():
    number = flambeau.CompilationUnit("def f(x: Union[int, float]) -> float:\n    return float(x)\n").f
    assert (number(2), number(2.5)) == (2.0, 2.5)
    for wrong in (True, "a", flambeau.tensor([1])):
        with pytest.raises(flambeau.MisuseError):
            number(wrong)
    several = flambeau.CompilationUnit("def f(x: Union[List[int], str]) -> str:\n    return str(x)\n").f
    assert (several([1, 2]), several("a")) == ("[1, 2]", "a")


def test_the_union_of_numbers_is_the_type_of_numbers():
    u = unit("def f(x: Union[int, complex, float], y: Union[int, float, complex]):\n    return x + y\n")
    assert u.f.schema == "f(Scalar x, Scalar y) -> Scalar"
    assert (u.f(1, 2), u.f(1, 2.5), u.f(1j, 1)) == (3, 3.5, 1 + 1j)
