"""Rules of builtins: functions, methods of texts, lists, dictionaries and tuples, `math`, attributes of tensors, and their traps.

Results and messages were recorded from PyTorch 2.6.
"""

import enum
import math
import warnings
from typing import Dict, List, NamedTuple, Optional, Tuple

import pytest
from comparison import Rules

from flambeau import tensor
from flambeau import torch_names as torch

RULES = Rules()
gives, differs, refused, raises = RULES.gives, RULES.differs, RULES.refused, RULES.raises


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: int
    y: float = 0.5


# Functions.


@gives(
    (
        3, 2, 1, 2, 2, 1, 0.5, 6, -1.0, False, True, [1, 2, 3], ['a', 'b'], [3, 1, 2], ['a', 'b'], ['a'], {'a': 1}, [('a', 1)],
        1, 1.5, 2, [1, 2],
    ),
    [3, 1, 2], [0.5, -1.5], "ab", {"a": 1}, (1, 2), tensor([1, 2]),
)  # fmt: skip
def functions_of_containers(l: List[int], x: List[float], s: str, d: Dict[str, int], t: Tuple[int, int], y: torch.Tensor):
    return (
        len(l), len(s), len(d), len(t), len(y), min(l), max(x), sum(l), sum(x), all([True, False]), any([0, 1]), sorted(l), sorted(["b", "a"]),
        list(l), list("ab"), list(d), dict(d), list(d.items()), min(3, 1), max(1.5, 0.5), sum([True, True]), list((1, 2)),
    )  # fmt: skip


@gives((1.0, 2.5, 1.0, 3.0), 1, 2.5)
def smallest_of_numbers(i: int, x: float):
    return min(i, x), max(i, x), min(i, 2.0), max(3, 2.5)


@gives(
    (
        2, 12, 1, -7.0, 12.0, 1.0, '-7', 'True', '12', True, (-7+2.75j), (2.75+0j), 7, 2.75, 2.23606797749979, 97, 'a', '0b101',
        '0xff', '0o10', (-3, 2), (5.0, 0.25), 7.5625, 0.0078125, True, math.nan, -math.inf,
    ),
    -7, 2.75, "12", True, 1 + 2j,
)  # fmt: skip
def conversions(i: int, x: float, s: str, b: bool, z: complex):
    return (
        int(x), int(s), int(b), float(i), float(s), float(b), str(i), str(b), str(s), bool(i), complex(i, x), complex(x), abs(i), abs(-x), abs(z),
        ord("a"), chr(97), bin(5), hex(255), oct(8), divmod(i, 3), divmod(x, 0.5), pow(x, 2), pow(2.0, i), hash(i) == i, float("nan"),
        float("-inf"),
    )  # fmt: skip


@gives((2.0, -2.0, 4.0, 4.0, -3, 3), 2.5, -2.5, 3.5, 4)
def rounding(a: float, b: float, c: float, i: int):
    return round(a), round(b), round(c), round(i), math.floor(b), math.ceil(a)


@refused("Arguments for call are not valid")
def rounding_to_digits(x: float):
    return round(x, 2)


@refused("Arguments for call are not valid")
def bases_of_integers(s: str):
    return int(s, 16)


@raises(r"RuntimeError: invalid literal for int\(\) with base 10: '1x'", "1x")
def texts_that_are_no_integers(s: str):
    return int(s)


@refused("Arguments for call are not valid")
def sums_with_a_start(l: List[int]):
    return sum(l, 5)


@refused("builtin cannot be used as a value")
def keys_of_sorting(l: List[int]):
    return sorted(l, key=abs)


@refused("Arguments for call are not valid")
def reversed_sorting(l: List[int]):
    return sorted(l, reverse=True)


@refused("cannot statically infer the expected size of a list in this context")
def lists_become_no_tuples(l: List[int]):
    return tuple(l)


@gives(((1, 'a'), (1, 2)), (1, "a"))
def tuples_become_tuples(t: Tuple[int, str]):
    return tuple(t), tuple((1, 2))


@raises(r"RuntimeError: min\(\) arg is an empty sequence", [])
def the_smallest_of_nothing(l: List[int]):
    return min(l)


@refused("builtin cannot be used as a value:|Python builtin <class 'filter'> is currently not supported in TorchScript")
def filters(l: List[int]):
    return filter(abs, l)


@refused(r"frozenset\(Tensor 0\) -> Tensor 0:|Python builtin <class 'frozenset'> is currently not supported in TorchScript")
def frozen_sets(l: List[int]):
    return frozenset(l)


@refused("Python builtin <built-in function iter> is currently not supported in Torch")
def iterators(l: List[int]):
    return iter(l)


@refused("Python builtin <built-in function callable> is currently not supported in Torch")
def calls_of_callable(x: int):
    return callable(x)


@refused("Python builtin <built-in function repr> is currently not supported in Torch")
def representations(x: int):
    return repr(x)


@refused("Python builtin <built-in function format> is currently not supported in Torch")
def formatting_functions(x: int):
    return format(x)


@refused("reversed")
def reversed_lists(l: List[int]):
    return reversed(l)


@gives(([1, 2], [1, 2, 3], {1: 'a'}, {'a': 1}, {'a': 1, 'b': 2}, {'a': 1, 'b': 2}, [], {}, {1: 'a'}), [1, 2], [(1, "a")], {"a": 1})
def constructors_of_containers(l: List[int], pairs: List[Tuple[int, str]], d: Dict[str, int]):
    copied, made, table = list(l), dict(pairs), dict(d)
    copied.append(3)
    table["b"] = 2
    a: List[int] = list()
    b: Dict[str, int] = dict()
    return l, copied, made, d, table, dict(a=1, b=2), a, b, {k: v for k, v in pairs}


@gives((3, 7, True, False), 3)
def names_of_attributes_are_constant(x: int):
    p = Point(x)
    return getattr(p, "x"), getattr(p, "absent", 7), hasattr(p, "y"), hasattr(p, "z")  # noqa: B009


@gives(('BLUE', 2, True, True, [1, 2], {'RED': 2}), Color.BLUE)
def members_of_enumerations(c: Color):
    return c.name, c.value, c == Color.BLUE, c != Color.RED, [Color.RED.value, c.value], {Color.RED.name: c.value}


@differs(True, Color.BLUE)
def members_of_enumerations_are_identical(c: Color):
    return c is Color.BLUE


@refused("cannot call a EnumClass:|cannot call a enum class")
def members_by_value(x: int):
    return Color(x)


@refused("cannot be used as a value")
def printed_values_are_no_results(x: int):
    y = print(x)
    return y


@refused(r"'float' object has no attribute or method 'is_integer'\.")
def methods_that_floats_lack(x: float):
    return x.is_integer()


# Texts.


@gives(
    (
        ' ab\tc1 ', ' Ab\tC1 ', '** Ab\tc1 **', 1, True, True, ' Ab c1 ', 4, -1, 4, 4, False, False, False, False, False, False,
        False, False, False, False, False, 'x-y', ' Ab\tc1 ..', '.. Ab\tc1 ', ' ab\tc1 ', ' AB\tC1 ', ' aB\tC1 ', 'Ab\tc1 ',
        ' Ab\tc1', 'Ab\tc1', ('a', ',', 'b,,c'), ('a,b,', ',', 'c'), 'a;b;,c', ['a', 'b', '', 'c'], ['a,b,', 'c'],
        ['a', 'b', ',c'], ['a', 'b', 'c'], ['a', 'b'], '007', '00-7', 'a',
    ),
    " Ab\tc1 ", "a,b,,c",
)  # fmt: skip
def methods_of_texts(s: str, t: str):
    return (
        s.capitalize(), s.title(), s.center(11, "*"), s.count("b"), s.endswith(" "), s.startswith(" A"), s.expandtabs(4), s.find("c"),
        s.rfind("z"), s.index("c"), s.rindex("c"), s.isalnum(), s.isalpha(), s.isdecimal(), s.isdigit(), s.isidentifier(), s.islower(),
        s.isnumeric(), s.isprintable(), s.isspace(), s.istitle(), s.isupper(), "-".join(["x", "y"]), s.ljust(9, "."), s.rjust(9, "."),
        s.lower(), s.upper(), s.swapcase(), s.lstrip(), s.rstrip(), s.strip(), t.partition(","), t.rpartition(","), t.replace(",", ";", 2),
        t.split(","), t.rsplit(",", 1), t.split(",", 2), "a b  c".split(), "a\nb".splitlines(), "7".zfill(3), "-7".zfill(4), "xax".strip("x"),
    )  # fmt: skip


@gives(('3 s', '[3](2.5, s)', '3 {1} {name} {:.2f}', '2.5', 'True'), 3, 2.5, "s")
def placeholders(i: int, x: float, s: str):
    return "{} {}".format(i, s), "{}{}".format([i], (x, s)), "{} {1} {name} {:.2f}".format(i), "{}".format(x), "{}".format(True)


@gives(('3 s', '2.5', '3%', '2.500000', '2.500000e+00', '[1] (1, a)'), 3, 2.5, "s")
def percents(i: int, x: float, s: str):
    return "%d %s" % (i, s), "%s" % x, "%i%%" % i, "%f" % x, "%e" % x, "%s %s" % ([1], (1, "a"))


@raises("RuntimeError: The specifier %x is not supported in TorchScript format strings", 3)
def hexadecimal_percents(i: int):
    return "%x" % i


@raises(r"RuntimeError: The specifier %\. is not supported in TorchScript format strings", 3.5)
def percents_with_a_precision(x: float):
    return "%.2f" % x


@gives((6, 'HéLLO', 'h', 'hélloé', True, True), "héllo")
def texts_are_bytes(s: str):
    return len(s), s.upper(), s[0], s + "é", s == "héllo", s < "i"


@gives(('1.', '0.10000000000000001', '1e+20', '12345678.', '9.9999999999999995e-08', 'inf', '0.', '1.'), 1.0, 0.1, 1e20, 12345678.0)
def texts_of_floats(a: float, b: float, c: float, d: float):
    return str(a), str(b), str(c), str(d), str(1e-7), str(float("inf")), str(-0.0), f"{a}"


@gives(('[a, b]', '(1, a, None)', '[1.]', '(1,)', '[True]', 'None', '[[1]]'), ["a", "b"], {"k": 1}, (1, "a", None))
def texts_of_containers(l: List[str], d: Dict[str, int], t: Tuple[int, str, Optional[int]]):
    return str(l), str(t), str([1.0]), str((1,)), str([True]), str(None), str([[1]])


# Lists and dictionaries.


@gives(([4, 2, 3], 5, 9, [4, 3, 2], [0.5, 1.5], ['b', 'a'], [], 1, 1, True, [1, 2], 3), [3, 1, 2], [1.5, 0.5], ["b", "a"], [True, False])
def methods_of_lists(l: List[int], x: List[float], s: List[str], b: List[bool]):
    l.append(4)
    l.extend([5])
    l.insert(0, 9)
    a, c = l.pop(), l.pop(0)
    l.remove(1)
    d = l.copy()
    l.reverse()
    d.sort(reverse=True)
    x.sort()
    s.sort(reverse=True)
    e = [0]
    e.clear()
    return l, a, c, d, x, s, e, l.count(3), l.index(2), 3 in l, [1] + [2], len(l)


@raises(r"RuntimeError: list\.remove\(x\): x not in list", [1])
def a_missing_element_is_removed(l: List[int]):
    l.remove(5)
    return l


@raises("RuntimeError: '5' is not in list", [1])
def a_missing_element_has_no_index(l: List[int]):
    return l.index(5)


@refused("Could not match type str to t in argument 'el': Type variable 't' previously matched to type int is ")
def elements_of_another_type_are_not_appended(l: List[int]):
    l.append("a")
    return l


@raises("Error: pop from empty list", [])
def nothing_is_popped(l: List[int]):
    return l.pop()


@gives(
    (
        ['a', 'b', 'c'], [1, 2, 3], [('a', 1), ('b', 2), ('c', 3)], ('a', 1), 2, None, 9, 2, 8, 3, 6, {'c': 3, 'd': 6, 'x': 1},
        {'d': 6, 'e': 1}, 2, {}, True, True,
    ),
    {"a": 1, "b": 2, "c": 3},
)  # fmt: skip
def methods_of_dictionaries(d: Dict[str, int]):
    keys, values, items = d.keys(), d.values(), d.items()
    first = d.popitem()
    a, b, c = d.get("b"), d.get("z"), d.get("z", 9)
    e, f = d.pop("b"), d.pop("z", 8)
    g, h = d.setdefault("c", 5), d.setdefault("d", 6)
    copied = d.copy()
    copied.update({"x": 1})
    d["e"] = 1
    del d["c"]
    size = len(d)
    other = d.copy()
    other.clear()
    return keys, values, items, first, a, b, c, e, f, g, h, copied, d, size, other, "d" in d, "q" not in d


@raises("RuntimeError: KeyError: z", {"a": 1})
def a_missing_key_is_popped(d: Dict[str, int]):
    return d.pop("z")


@gives(('a', 'b', 'c', 'd', 'e', True, False, 1), {1: "a"}, {1.5: "b"}, {True: "c"}, {1j: "d"}, tensor(1))
def keys_of_dictionaries(a: Dict[int, str], b: Dict[float, str], c: Dict[bool, str], d: Dict[complex, str], t: torch.Tensor):
    e = {t: "e"}
    return a[1], b[1.5], c[True], d[1j], e[t], t in e, torch.tensor(1) in e, len(e)


@gives((['a'], 1, 'a'), {"a": 1})
def keys_are_a_list(d: Dict[str, int]):
    keys = d.keys()
    d["b"] = 2
    return keys, len(keys), keys[0]


@refused("Arguments for call are not valid")
def tensors_in_lists(l: List[torch.Tensor], t: torch.Tensor):
    return t in l


@gives((2, 1, ('a',), (1, 'a', 1, 2), True, 1, 'a', True), (1, "a"), (1, 2))
def operations_of_tuples(t: Tuple[int, str], u: Tuple[int, int]):
    a, b = t
    return len(t), t[0], t[1:], t + u, u == (1, 2), a, b, 2 in u


# `math`.


@gives(
    [
        1.0471975511965979, 1.3169578969248166, 0.5235987755982989, 0.48121182505960347, 0.4636476090008061, 0.24497866312686414,
        0.5493061443340548, -0.5, 0.8775825618903728, 1.1276259652063807, 28.64788975654116, 0.5204998778130465,
        0.4795001221869535, 1.6487212707001282, 0.6487212707001282, 0.5, 0.5, 2.0, 4.0, 0.5723649429247001, 0.6931471805599453,
        0.3010299956639812, 0.4054651081081644, 0.25, 0.008726646259971648, -0.25, 0.479425538604203, 0.5210953054937474,
        1.4142135623730951, 0.5463024898437905, 0.46211715726000974, 3.141592653589793, 2.718281828459045, math.inf, math.nan,
        6.283185307179586, 0.6309297535714574, 3.4641016151377544, 2.718281828459045,
    ],
    0.5, 2.0, 12,
)  # fmt: skip
def functions_of_math(x: float, y: float, n: int):
    return [
        math.acos(x), math.acosh(y), math.asin(x), math.asinh(x), math.atan(x), math.atan2(x, y), math.atanh(x), math.copysign(x, -1.0),
        math.cos(x), math.cosh(x), math.degrees(x), math.erf(x), math.erfc(x), math.exp(x), math.expm1(x), math.fabs(-x), math.fmod(y, 0.75),
        math.gamma(3.0), math.ldexp(x, 3), math.lgamma(x), math.log(y), math.log10(y), math.log1p(x), math.pow(x, y),
        math.radians(x), math.remainder(y, 0.75), math.sin(x), math.sinh(x), math.sqrt(y), math.tan(x), math.tanh(x), math.pi, math.e, math.inf,
        math.nan, math.tau, math.log(y, 3.0), math.sqrt(n), math.exp(1),
    ]  # fmt: skip


@gives((3, -3, 120, 6, (0.625, 2), (0.5, 2.0)), 2.5, 12)
def functions_of_math_with_integers(x: float, n: int):
    return math.ceil(x), math.floor(-x), math.factorial(5), math.gcd(n, 18), math.frexp(x), math.modf(x)


@differs((False, 2), 2.5)
def predicates_of_math_are_truth_values(x: float):
    # PyTorch returns 0, and fails in the condition.
    return math.isnan(x), 1 if math.isnan(x) else 2


@refused(
    r"'complex' object has no attribute or method 'real'\.:|"
    r"Expected a value of type 'Tensor' for argument 'self' but instead found type 'complex'\.",
)  # fmt: skip
def parts_of_complex_numbers(x: float):
    return complex(x, 1).real


@refused("Python builtin <built-in function log2> is currently not supported")
def binary_logarithms(x: float):
    return math.log2(x)


@refused("Python builtin <built-in function isclose> is currently not supported")
def closeness(x: float):
    return math.isclose(x, x)


@refused("Python builtin <built-in function isqrt> is currently not supported")
def integer_roots(n: int):
    return math.isqrt(n)


@refused("Python builtin <built-in function comb> is currently not supported")
def combinations(n: int):
    return math.comb(n, 2)


@refused("Python builtin <built-in function perm> is currently not supported")
def permutations(n: int):
    return math.perm(n, 2)


@refused("Python builtin <built-in function prod> is currently not supported")
def products(l: List[float]):
    return math.prod(l)


@refused("Python builtin <built-in function dist> is currently not supported")
def distances(x: float):
    return math.dist([x], [x])


@refused("Python builtin <built-in function trunc> is currently not supported")
def truncation(x: float):
    return math.trunc(x)


# Tensors.


@gives(
    (
        True, True, 'cpu', None, False, tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [3, 2], False, True, False, False, False,
        False, False, False, False, False, False, False, False, False, True, False, False, True,
        tensor([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]), tensor([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]),
        tensor([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]), tensor([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]), 4, 24, 2,
        tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), False, True,
    ),
    tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
)  # fmt: skip
def attributes_of_tensors(x: torch.Tensor):
    return (
        x.dtype == torch.float32, x.device == torch.device("cpu"), x.device.type, x.device.index, x.grad is None, x.data, x.shape, x.is_cuda,
        x.is_cpu, x.is_xla, x.is_xpu, x.is_sparse, x.is_sparse_csr, x.is_mkldnn, x.is_mps, x.is_mtia, x.is_quantized, x.is_vulkan, x.is_ipu,
        x.is_meta, x.is_maia, x.is_leaf, x.is_nested, x.requires_grad, x.layout == torch.strided, x.T, x.H, x.mT, x.mH, x.itemsize, x.nbytes,
        x.ndim, x.real, x.retains_grad, x.name is None,
    )  # fmt: skip


@gives(
    (
        tensor([1, 2], dtype=torch.uint8), tensor([1, 2], dtype=torch.int8), tensor([1.5, 2.0], dtype=torch.float64),
        tensor([1.5, 2.0]), tensor([(1.5+0j), (2+0j)], dtype=torch.complex128), tensor([(1.5+0j), (2+0j)]),
        tensor([1, 2], dtype=torch.int32), tensor([1, 2]), tensor([1, 2], dtype=torch.int16),
        tensor([1.5, 2.0], dtype=torch.float16),
    ),
    tensor([1.5, 2.0]),
)  # fmt: skip
def casts_of_tensors(x: torch.Tensor):
    return x.byte(), x.char(), x.double(), x.float(), x.cdouble(), x.cfloat(), x.int(), x.long(), x.short(), x.half()


@gives((2, 2, 2, 2, 2, 2, 2, [2, 2, 7], [2, 2], True, 2, 4), tensor([[1, 2], [3, 4]]))
def sizes_are_lists(x: torch.Tensor):
    n, m = x.shape
    a, b = x.size()
    sizes = x.shape
    sizes.append(7)
    return n, m, a, b, x.shape[0], x.size(1), len(x.shape), sizes, x.shape, x.shape == [2, 2], x.dim(), x.numel()


@raises("RuntimeError: Expected 2 elements in a list but found 1", tensor([1, 2]))
def sizes_of_another_number(x: torch.Tensor):
    n, m = x.shape
    return n


@gives(([[1.5, 2.0]], 3, 3, 3.0, True, 1), tensor([[1.5, 2.0]]), tensor(3))
def tensors_become_lists_and_numbers(x: torch.Tensor, n: torch.Tensor):
    a: List[List[float]] = x.tolist()
    b: int = n.tolist()
    return a, b, int(n), float(n), bool(n), int(x[0, 0])


@refused(r"Expected type hint for result of tolist\(\)")
def lists_of_tensors_need_a_type(x: torch.Tensor):
    a = x.tolist()
    return a


@raises("RuntimeError: Output annotation list dimension and runtime tensor dimension must match", tensor([1.5]))
def lists_of_tensors_have_the_declared_type(x: torch.Tensor):
    a: List[List[float]] = x.tolist()
    return a


@raises(r"RuntimeError: Output annotation element type and runtime tensor element type must match for tolist\(\)", tensor([1.5]))
def lists_of_tensors_have_the_declared_element(x: torch.Tensor):
    a: List[int] = x.tolist()
    return a


@raises("RuntimeError: a Tensor with 2 elements cannot be converted to Scalar", tensor([1, 2]))
def numbers_of_several_elements(x: torch.Tensor):
    return int(x)


@gives(
    (
        tensor(2), tensor(1.5), tensor([2, 1]), tensor([[1.5]]), tensor(True), tensor([1.0], dtype=torch.float64),
        tensor([[0.0, 0.0], [0.0, 0.0]]), tensor([1.0, 1.0]), tensor([7, 7]), tensor([0, 1]), tensor([0.0, 0.5]),
        tensor([], dtype=torch.float32), tensor([[1.0, 0.0], [0.0, 1.0]]), tensor([0, 0], dtype=torch.int32),
        tensor([0.0, 0.5, 1.0]), tensor([1.0, 2.0]), tensor(2.0),
    ),
    2, 1.5,
)  # fmt: skip
def tensors_are_made(n: int, x: float):
    return (
        torch.tensor(n), torch.tensor(x), torch.tensor([n, 1]), torch.tensor([[x]]), torch.tensor(True), torch.tensor([1], dtype=torch.float64),
        torch.zeros(2, n), torch.ones([n]), torch.full([2], 7), torch.arange(n), torch.arange(0, 1, 0.5), torch.empty(0), torch.eye(n),
        torch.zeros(n, dtype=torch.int32), torch.linspace(0, 1, 3), torch.tensor([1, 2]).to(torch.float32), torch.scalar_tensor(n),
    )  # fmt: skip


@gives((2, 2, 1.0), tensor([1, 2, 3]))
def items_of_tensors_are_scalars(x: torch.Tensor):
    n = x[0].item()
    return n + 1, int(n) + 1, float(n)


@gives(5, tensor([1, 2, 3]), [4, 5])
def items_are_indices(x: torch.Tensor, l: List[int]):
    return l[x[0].item()]


@gives((3, 0.75), tensor(2), tensor(1.5))
def tensors_are_arguments_for_numbers(n: torch.Tensor, x: torch.Tensor):
    return takes_integer(n), takes_float(x)


def takes_integer(n: int) -> int:
    return n + 1


def takes_float(x: float) -> float:
    return x / 2


def takes_sizes(sizes: List[int]) -> int:
    return len(sizes)


@raises("RuntimeError: Cannot input a tensor of dimension other than 0 as a scalar argument", tensor([2, 3]))
def tensors_of_several_elements_are_no_numbers(n: torch.Tensor):
    return takes_integer(n)


@raises("RuntimeError: Cannot input a tensor that requires grad as a scalar argument", tensor(2.0, requires_grad=True))
def tensors_with_gradients_are_no_numbers(x: torch.Tensor):
    return takes_float(x)


@refused(r"Expected a value of type 'float' for argument 'x' but instead found type 'int'\.")
def integers_are_no_floats(n: int):
    return takes_float(n)


@refused(r"Expected a value of type 'int' for argument 'n' but instead found type 'float'\.")
def floats_are_no_integers(x: float):
    return takes_integer(x)


@gives(2, True)
def truth_values_are_integers(b: bool):
    return takes_integer(b)


@gives(0.5, True)
def truth_values_are_floats(b: bool):
    return takes_float(b)


@gives((tensor(0.0), tensor([3.0]), tensor([1.0, 2.0]), tensor([[2.0, 1.0]]), tensor([0.0, 0.0, 0.0])), 3, tensor([[1.0, 2.0]]))
def integers_are_lists_of_one(n: int, x: torch.Tensor):
    return torch.zeros(2).sum(0), x.sum(1), x.reshape(2), x.flip(1), torch.zeros(n)


@gives(1, 3)
def integers_are_lists_of_one_element(n: int):
    return takes_sizes(n)


@gives((-4, 2, -2, -4, 1.6666666666666667, 2.0, 4.0, 125.0, 0.5, -9223372036854775808, 4611686018427387904, -2), 5, 3)
def arithmetic_of_integers(a: int, b: int):
    return 7 // -2, -7 % 3, 7 % -3, -7 // 2, a / b, 4 / 2, 2 ** 2, a ** b, 2 ** -1, 9223372036854775807 + 1, 1 << 62, -a // b


@raises("RuntimeError: division by 0", 0)
def quotients_by_zero(x: int):
    return 1 // x


@gives((math.inf, -math.inf, math.nan, math.inf, 1.5), 0)
def true_quotients_by_zero(x: int):
    return 1 / x, -1 / x, 0.0 / x, 1.5 // x, 1.5 % 2


@raises("INTERNAL ASSERT|division of a complex and another number is not defined", 1 + 2j)
def quotients_of_complex_numbers(z: complex):
    return z / 2.0


@gives(((3+2j), (-3+4j), (1+1j), (-1-2j), True, True, 2.23606797749979, (2.5+2j), [(1+2j), 1j]), 1 + 2j, 2.0)
def complex_numbers(z: complex, x: float):
    return z + x, z * z, z - 1j, -z, z == 1 + 2j, z != 1j, abs(z), complex(1, 2) + 1.5, [z, 1j]


@gives((tensor([1.0]), tensor([0.0]), tensor([0.0]), tensor([0.5]), tensor([1.0, 1.0]), tensor([1.0]), tensor([-1.0])), tensor([1.0]))
def synonyms_of_operators(x: torch.Tensor):
    return torch.absolute(x), torch.arccos(x), x.subtract(1), torch.true_divide(x, 2), torch.concat([x, x]), x.swapaxes(0, 0), torch.negative(x)


@gives(([1, 2, 3, 4, 5], True), [1])
def containers_are_shared(l: List[int]):
    a = l
    d = {"l": l}
    t = (l, 1)
    n = [l]
    a.append(2)
    d["l"].append(3)
    t[0].append(4)
    n[0].append(5)
    return l, a is l


@gives((False, 2, 1), (1, 2, 3))
def indices_of_texts_may_split_characters(t: Tuple[int, int, int]):
    return "é"[0] == "é", len("é"), len("é"[:1])


@gives(('cpu', 'cpu', True, 6, 5, True, 1), tensor([1.0, 2.0]))
def devices_and_dtypes(x: torch.Tensor):
    d = torch.device("cpu")
    return d.type, str(d), d == x.device, x.dtype, torch.float16, x.to(d).dtype == torch.float32, torch.device("cuda", 1).index


@gives((True, True), 1)
def warnings_of_programs(x: int):
    warnings.warn("a warning")
    return torch.is_grad_enabled(), torch.jit.is_scripting()


@pytest.mark.parametrize(("check", "function", "expected", "args"), RULES.cases)
def test_rules(check, function, expected, args):
    check(function, expected, args)
