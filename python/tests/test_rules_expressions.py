"""Rules of expressions: operators, displays, subscripts, calls and names.

Results and messages were recorded from PyTorch 2.6.
"""

import math
from typing import Dict, List, NamedTuple, Optional, Tuple

import pytest
from comparison import Rules

from flambeau import tensor
from flambeau import torch_names as torch

RULES = Rules()
gives, differs, refused, raises = RULES.gives, RULES.differs, RULES.refused, RULES.raises


class Point(NamedTuple):
    x: int
    y: float = 0.5


def helper(x: int, y: int = 2) -> int:
    return x * 10 + y


# Names and attributes.


@refused("names of variables used in JIT-ed functions can't start with __jit")
def reserved_names(x: int):
    __jit_y = x
    return __jit_y


@gives(tensor(-1.0), tensor([1.0]))
def attributes_behind_spaces_and_lines(x: torch.Tensor):
    y = x . neg () . abs()
    return (
        y
        .neg()
        .sum(
            0
        )
    )  # fmt: skip


@refused("cannot call a value of type 'int'")
def numbers_are_not_called(x: int):
    return x()


@refused("cannot call a value of type 'str'")
def texts_are_not_called(x: int):
    text = "a"
    return text(x)


@refused("function cannot be used as a value")
def a_function_is_no_result(x: int):
    return helper


@refused("cannot be used as a value")
def modules_are_no_results(x: int):
    return math


@refused("cannot be used as a value")
def classes_are_no_results(x: int):
    return Point


@gives(4, 3)
def a_local_name_hides_a_builtin(x: int):
    len = x + 1
    return len


@refused("undefined value valus")
def misspelt_variables(values: List[int]):
    return valus[0]


@refused(r"'int' object has no attribute or method 'shape'\.")
def attributes_that_numbers_lack(x: int):
    return x.shape


@refused(r"'Tensor' object has no attribute or method 'absent'\.")
def attributes_that_tensors_lack(x: torch.Tensor):
    return x.absent


@refused(r"'Tensor' object has no attribute or method 'absent'\.")
def methods_that_tensors_lack(x: torch.Tensor):
    return x.absent()


@refused(r"'[\w.]+Point' object has no attribute or method 'z'\.")
def attributes_that_tuples_lack(x: Point):
    return x.z


# Calls.


@gives((32, 34, 31, 37, 56, 34, 32), 3)
def arguments_of_calls(x: int):
    t = (5, 6)
    return helper(x), helper(x, 4), helper(y=1, x=x), helper(x, y=7), helper(*t), helper(*(x,), y=4), helper(x=x)


@refused("cannot statically infer the expected size of a list in this context")
def lists_are_not_spread(x: int):
    l = [1, 2]
    return helper(*l)


@refused(r"Expected at most 2 arguments but found 3 positional arguments\.")
def too_many_arguments(x: int):
    return helper(x, 1, 2)


@refused(r"Argument x not provided\.")
def too_few_arguments(x: int):
    return helper()


@refused(r"Keyword argument z unknown\.")
def unknown_keywords(x: int):
    return helper(x, z=1)


@refused(r"Keyword argument x specified twice\.")
def arguments_twice(x: int):
    return helper(x, x=1)


@refused(r"Expected a value of type 'int' for argument 'x' but instead found type 'str'\.")
def arguments_of_another_type(x: int):
    return helper(str(x))


@refused("keyword-arg expansion is not supported")
def keywords_are_not_spread(x: int):
    d = {"x": 1}
    return helper(**d)


@gives((tensor(5.0), tensor([6.0, 9.0]), tensor([5.0]), tensor([2.0, 2.5]), tensor(5.0)), tensor([2.0, 3.0]))
def arguments_of_operators(x: torch.Tensor):
    return torch.sum(x, dim=0), torch.add(x, x, alpha=2), x.sum(0, keepdim=True), torch.clamp(x, max=2.5), torch.sum(input=x)


@refused("Arguments for call are not valid")
def unknown_keywords_of_operators(x: torch.Tensor):
    return torch.relu(x, absent=1)


# Operators.


@gives(
    (
        9, 5, 14, 3.5, 3, -4, 1, 1, -1, 2, 7, 5, 28, 3, -7, 7.5, 6.5, 1.0, 14.0, 2.0, 0.09999999999999998, 0.25, 0.5, False,
        False, True, True, 2, False, True, False,
    ),
    7, 2, -7, 0.5,
)  # fmt: skip
def operators_of_numbers(a: int, b: int, c: int, x: float):
    return (
        a + b, a - b, a * b, a / b, a // b, c // b, a % b, c % b, c % -2, a & b, a | b, a ^ b, a << b, a >> 1, -a, x + a, a - x, x * b, a / x,
        x // 0.2, -x % 0.3, x**b, 2.0**-1, not a, a < x, a == 7.0, b >= 2, True + True, True & False, True | False, True ^ True,
    )  # fmt: skip


@gives((26.0, -4.0, -3, 1, 32, 7, 2, True, True, True, True, 7, True, True, True, 6, True, 1, -6, True), 2, 3)
def precedence_of_operators(a: int, b: int):
    return (
        a + b * a**b, -(a**2.0), a - b - a, a * b % 4 // 2, a << 1 + b, a & b | 4 ^ 1, a | b & 4, not a == b, not a > b and b > a,
        True or False and False, a < b or a > b and False, a if a > b else b if b > 5 else 7, a == b or b, a in [a] and True,
        [x + 1 for x in [a, b]] == [3, 4], 1 + 2 << 1, 7 & 3 == 3, -a + b, a * -b, 2.0**3.0**0.5 == 2.0 ** (3.0**0.5),
    )  # fmt: skip


@gives((tensor([-1, -6]), tensor([0, -5]), tensor([2, 1]), tensor([-3, -8])), tensor([1, 6]))
def inversion_binds_tighter_than_sums(x: torch.Tensor):
    return ~x + 1, -x + 1, ~x & 3, ~(x + 1)


@gives((True, True, True, True, True, True), 2, 3)
def chains_of_comparisons(a: int, b: int):
    return 1 < a < b, a < b > 2, a == 2 != b < 9, 5 > b >= a > 1, a is a is a, a in [2] in [[2]] if False else True


def counted(log: List[int], x: int) -> int:
    log.append(x)
    return x


@gives((True, False, [0, 2, 2, 2]), [0])
def middle_operands_are_evaluated_twice(log: List[int]):
    a = 1 < counted(log, 2) < 3
    b = 5 < counted(log, 2) < counted(log, 3)
    return a, b, log


@gives([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0])
def operands_are_evaluated_from_left_to_right(log: List[int]):
    a = counted(log, 1) + counted(log, 2) * counted(log, 3)
    b = [counted(log, 4), counted(log, 5)]
    c = {counted(log, 6): counted(log, 7)}
    d = helper(counted(log, 8), y=counted(log, 9))
    return log


@gives((True, True, True, True, True, True, True, True, True, True), [1, 2], "abc", {"a": 1}, (1, 2), tensor([1, 2]))
def membership(l: List[int], s: str, d: Dict[str, int], t: Tuple[int, int], x: torch.Tensor):
    return 1 in l, 3 not in l, "b" in s, "z" not in s, "a" in d, "b" not in d, 1 in t, 5 not in t, 1.0 in [1.0], "a" in ["a"]


@gives((False, True, False, True, True), 1, None, None)
def identity(a: int, b: Optional[int], c: Optional[str]):
    return a is None, b is None, c is not None, None is None, b is not None or a is not None


@gives((False, -1, False, True), 1)
def unary_operators_of_truth_values(x: int):
    return not True, -True, not x, not not x


@refused("Arguments for call are not valid")
def inversion_of_integers(x: int):
    return ~x


@refused("Arguments for call are not valid")
def a_product_of_a_text(x: int):
    return "ab" * x


@gives(([1, 1], [1, 1], [1, 2], (1, 2, 'a'), [1, 2, 1, 2]), [1])
def products_and_sums_of_lists(l: List[int]):
    return l * 2, 2 * l, l + [2], (1, 2) + ("a",), (1, 2) * 2


@refused("Arguments for call are not valid")
def sums_of_different_things(l: List[int], s: str):
    return s + 1


@refused("Arguments for call are not valid")
def lists_are_not_ordered(l: List[int], m: List[int]):
    return l < m


@refused("Arguments for call are not valid")
def tuples_are_not_ordered(t: Tuple[int, int]):
    return t < (2, 3)


@gives((True, False, True, True, True, True, False), (1, 2), [1, 2])
def containers_are_compared(t: Tuple[int, int], l: List[int]):
    return t == (1, 2), t != (1, 2), l == [1, 2], l != [1], ["a"] == ["a"], [1.5] == [1.5], [True] != [True]


@refused("Arguments for call are not valid")
def tuples_of_several_types_are_not_compared(t: Tuple[int, str]):
    return t == (1, "a")


@refused("Arguments for call are not valid")
def nested_lists_are_not_compared(l: List[List[int]]):
    return l == [[1]]


@refused("Arguments for call are not valid")
def dictionaries_are_not_compared(d: Dict[int, int]):
    return d == {1: 2}


@gives((False, True, False, True, False, True), "b", "ab")
def texts_are_ordered(s: str, t: str):
    return s < t, s > t, s <= t, s >= t, s == t, s != t


@gives(('a', None, 1, [2, 3], None), 2)
def conditional_expressions(x: int):
    y: Optional[int] = x if x > 5 else None
    return ("a" if x > 1 else "b"), y, 1 if x else 2, [1] if x > 5 else [2, 3], None if x > 1 else x


@refused("if-expression's true branch has type int but false branch has type float")
def conditional_expressions_of_two_types(x: int):
    return 1 if x > 1 else 2.5


# Displays.


@gives(([2, 1], [[2], [1]], (2,), (), (2, ('a', [1])), {'a': 2}, {2: {2: 'b'}}, [(2, 'a')], [], {}, [None], [True]), 2)
def displays(x: int):
    a: List[int] = []
    b: Dict[str, List[int]] = {}
    return [x, 1], [[x], [1]], (x,), (), (x, ("a", [1])), {"a": x}, {x: {x: "b"}}, [(x, "a")], a, b, [None], [True]


@gives([tensor(1)], tensor(1))
def empty_lists_have_tensors(x: torch.Tensor):
    l = []
    l.append(x)
    return l


@refused("Could not match type int to t in argument 'el': Type variable 't' previously matched to type Tensor ")
def empty_lists_have_no_integers(x: int):
    l = []
    l.append(x)
    return l


@gives({'a': tensor(1)}, tensor(1))
def empty_dictionaries_have_texts_and_tensors(x: torch.Tensor):
    d = {}
    d["a"] = x
    return d


@refused("Arguments for call are not valid")
def empty_dictionaries_have_no_integers(x: int):
    d = {}
    d[1] = x
    return d


def takes_lists(a: List[int], b: Optional[List[str]] = None) -> int:
    return len(a)


@gives((0, 1), 1)
def empty_lists_are_arguments_of_any_type(x: int):
    return takes_lists([]), takes_lists([x], [])


@gives(([1, 'a', None, 'b'], {'a': 1, 'b': 'c'}, [1, None]), 1)
def elements_of_several_types(x: int):
    l = [x, "a", None]
    l.append("b")
    m = {"a": 1, "b": "c"}
    n = [1, None]
    return l, m, n


@gives(2.5, 1)
def integers_and_floats_are_elements(x: int):
    l = [x, 2.5]
    return l[1]


@refused(r"Dict keys must contain only a single type\. Expected: int but found str instead")
def keys_of_several_types(x: int):
    return {1: x, "a": x}


@refused(r"\]', only int, float, complex, Tensor, device and string keys are supported")
def keys_that_are_lists(x: int):
    return {[1]: x}


@gives(('n4', '{n} 3', 'ab1.5[3]', '', 'True None'), "n", 3)
def formatted_texts(s: str, x: int):
    return f"{s}{x + 1}", f"{{{s}}} {x}", f"a{'b'}{1.5}{[x]}", f"", f"{True} {None}"


@refused("Don't support conversion in JoinedStr:|a conversion or format of an f-string's value is not supported")
def conversions_in_formatted_texts(x: int):
    return f"{x!s}"


@refused("Don't support formatting in JoinedStr:|a conversion or format of an f-string's value is not supported")
def formats_in_formatted_texts(x: float):
    return f"{x:.2f}"


# Subscripts.


@gives(
    (
        1, 4, [2, 3, 4], [1, 2], [1, 3], [2, 3], [], [1, 2, 3, 4], [2, 3, 4], 't', 't', 'ext', 'tx', 1, 2.5, ('a', 2.5),
        (1, 'a'), (1, 2.5), [4, 3, 2, 1], 'txet', (2.5, 'a', 1),
    ),
    [1, 2, 3, 4], "text", (1, "a", 2.5),
)  # fmt: skip
def subscripts_of_sequences(l: List[int], s: str, t: Tuple[int, str, float]):
    return (
        l[0], l[-1], l[1:], l[:2], l[::2], l[-3:-1], l[5:], l[:], l[1:100], s[0], s[-1], s[1:], s[::2], t[0], t[-1], t[1:], t[:-1], t[::2],
        l[::-1], s[::-1], t[::-1],
    )  # fmt: skip


@raises("Error: list index out of range", [1])
def an_index_out_of_range(l: List[int]):
    return l[3]


@raises(r"RuntimeError: basic_string::at: __n \(which is 3\) >= this->size\(\) \(which is 1\)", "a")
def an_index_out_of_a_text(s: str):
    return s[3]


@refused(r"Tuple index out of range\. Tuple is length 2 and index is 2")
def an_index_out_of_a_tuple(t: Tuple[int, int]):
    return t[2]


@gives((2, 3), (1, 2, 3), 1)
def indices_of_uniform_tuples(t: Tuple[int, int, int], i: int):
    return t[i], t[i - 2]


@refused(r"Cannot index into a Tuple\[int, str\] with a non-integer literal because we cannot resolve the outpu")
def indices_of_mixed_tuples(t: Tuple[int, str], i: int):
    return t[i]


@refused("ices must be integer constants")
def slices_of_tuples_are_constant(t: Tuple[int, int, int], i: int):
    return t[i:]


@gives((11, 'b', 2, 3, {'a': 11, 'c': 5}), {"a": 1}, {2: "b"}, {1.5: 2}, {True: 3})
def subscripts_of_dictionaries(a: Dict[str, int], b: Dict[int, str], c: Dict[float, int], d: Dict[bool, int]):
    a["c"] = 5
    a["a"] += 10
    return a["a"], b[2], c[1.5], d[True], a


@raises("RuntimeError: KeyError: b", {"a": 1})
def a_missing_key(a: Dict[str, int]):
    return a["b"]


@refused("Arguments for call are not valid")
def a_key_of_another_type(a: Dict[str, int]):
    return a[1]


@refused("'int' object is not subscriptable")
def subscripts_of_numbers(x: int):
    return x[0]


@gives(
    (
        tensor([[1, 2, 3], [4, 5, 6]]), tensor([[1, 2, 3], [4, 5, 6]]), tensor([4, 5, 6]), tensor(6), tensor([[1, 4]]),
        tensor([[2, 3], [5, 6]]), tensor([[4, 5, 6]]), tensor([[1, 3], [4, 6]]), tensor([[[[1, 2, 3], [4, 5, 6]]]]),
        tensor([[1, 2, 3]]), tensor([[[1], [4]]]), tensor([[1, 2, 3], [4, 5, 6]]), tensor([1, 5]), tensor([3, 4, 5, 6]),
        tensor([[4, 5, 6], [1, 2, 3]]), tensor([[1, 3], [4, 6]]), tensor([4, 5, 6]), tensor([4, 5, 6]),
        tensor([[1, 2, 3], [4, 5, 6]]), tensor([[1, 2, 3]]), tensor([[4, 5, 6], [1, 2, 3]]),
    ),
    tensor([[[1, 2, 3], [4, 5, 6]]]), 1, None,
)  # fmt: skip
def subscripts_of_tensors(x: torch.Tensor, i: int, none: Optional[torch.Tensor]):
    at = torch.tensor([0, 1])
    return (
        x[0], x[-1], x[0, i], x[0, i, 2], x[..., 0], x[0, ..., 1:], x[:, i], x[0, :, ::2], x[None], x[0, 0, None], x[..., None, 0],
        x[0, at], x[0, at, at], x[0][x[0] > 2], x[0, [1, 0]], x[0, :, [0, 2]], x[(0, 1)], x[0, torch.tensor(1)], x[0, i - 1 : i + 1],
        x[0, :i], x[0, [True, False]],
    )  # fmt: skip


@refused("Ellipses followed by tensor indexing is currently not supported")
def an_index_tensor_behind_an_ellipsis(x: torch.Tensor):
    return x[..., torch.tensor([0])]


@refused(r"Unsupported operation: indexing tensor with unsupported index type 'bool'\. Only ints, slices, lists")
def truth_values_are_no_indices(x: torch.Tensor):
    return x[True]


@refused(r"Unsupported operation: indexing tensor with unsupported index type 'float'\. Only ints, slices, list")
def floats_are_no_indices(x: torch.Tensor):
    return x[1.5]


@raises(r"RuntimeError: select\(\) cannot be applied to a 0-dim tensor\.", tensor([[1, 2], [3, 4]]))
def too_many_indices(x: torch.Tensor):
    return x[0, 0, 0]


@gives(
    (
        tensor([[5.0, 5.0], [3.0, 2.5]]), tensor([[7.0, -1.0], [8.0, -1.0]]), tensor([[9.0, 9.5], [0.0, 0.0]]),
        tensor([[-3.0, 3.0], [6.0, 2.0]]), tensor([[1.0, 3.0], [1.0, 2.0]]), tensor([[2, 2], [1, 1]]),
    ),
    tensor([[1.0, 2.0], [3.0, 4.0]]), 1,
)  # fmt: skip
def parts_of_tensors_are_assigned(x: torch.Tensor, i: int):
    a, b, c = x.clone(), x.clone(), x.clone()
    a[0] = 5
    a[i, i] = 2.5
    b[:, 0] = torch.tensor([7, 8])
    b[..., 1] = -1
    c[c > 2.5] = 0
    c[torch.tensor([0])] = torch.tensor([9.0, 9.5])
    d = x.clone()
    d[0:1] += 1
    d[i] *= 2
    d[0, 0] -= 5
    d[1, 1] /= 4
    e = x.clone()
    e[0, 1] = x[1, 0]
    e[1] = x[0]
    f = x.long()
    f[0] = 2.7
    f[1] = True
    return a, b, c, d, e, f


@gives(tensor([5.0]), tensor([1.0]))
def an_assigned_part_is_a_view(x: torch.Tensor):
    y = x[:]
    y[0] = 5
    return x


# Operators on tensors and numbers.


@gives(
    (
        tensor([6, 7]), tensor([6, 7]), tensor([6.5, 7.5]), tensor([10, 12]), tensor([10, 12]), tensor([4, 5]), tensor([-4, -5]),
        tensor([1.0, 5.0]), tensor([2.5, 3.0]), tensor([0.4000000059604645, 0.3333333432674408]),
        tensor([0.6666666865348816, -0.4000000059604645]), tensor([2, 3]), tensor([0.0, -2.0]), tensor([1, 2]),
        tensor([1.5, 1.5]), tensor([25, 36]), tensor([2.25, 6.25]), tensor([2.8284270763397217, 0.1767766922712326]),
        tensor([32, 64]), tensor([1, 2]), tensor([13, 14]), tensor([4, 7]), tensor([10, 12]), tensor([2, 3]), tensor([-6, -7]),
        tensor([-1.5, 2.5]), tensor([False, True]), tensor([True, False]), tensor([True, False]), tensor([False, True]),
        tensor([True, False]), tensor([True, False]), tensor([True, False]), tensor(4), tensor(1.5), tensor(4.5), tensor(8.5),
        tensor([6.5, 3.5]), tensor([8, 9]), tensor([4.5, 0.5]), tensor([False, True]),
    ),
    tensor([5, 6]), tensor([1.5, -2.5]), tensor(3),
)  # fmt: skip
def tensors_and_numbers(i: torch.Tensor, x: torch.Tensor, z: torch.Tensor):
    return (
        i + 1, 1 + i, i + 1.5, i * 2, 2 * i, i - 1, 1 - i, 2.5 - x, i / 2, 2 / i, 1.0 / x, i // 2, x // 2, i % 4, x % 2, i**2, x**2, 2.0**x,
        2**i, i & 3, i | 8, i ^ 1, i << 1, i >> 1, ~i, -x, x < 1, 1 < x, i == 5, i != 5, x >= 1.5, i <= 5, 5 >= i, z + 1, z / 2, z * 1.5,
        x @ x, i + x, i + z, x + z, i > 5.5,
    )  # fmt: skip


@gives(
    (tensor([1, 198], dtype=torch.uint8), tensor([4, 201], dtype=torch.uint8), tensor([6, 144], dtype=torch.uint8)),
    tensor([3, 200], dtype=torch.uint8),
)  # fmt: skip
def differences_of_small_integers(x: torch.Tensor):
    return x - 2, x + 1, x * 2


@gives((tensor([2, 1]), tensor([1, 0]), tensor([True, False]), tensor([1, 0]), tensor([False, True])), tensor([1, 0]), True)
def truth_values_and_tensors(x: torch.Tensor, b: bool):
    return x + b, x * b, x == b, x & b, x < b


# Classes with operators.


class Two:
    def __init__(self, x: int):
        self.x = x

    def __radd__(self, y: int) -> int:
        return y

    def __floordiv__(self, y: int) -> int:
        return y

    def __matmul__(self, y: int) -> int:
        return y

    def __iter__(self) -> List[int]:
        return [1]


@refused("Arguments for call are not valid")
def reflected_operators(x: int):
    return x + Two(1)


@differs(1, 1)
def floored_division_of_objects(x: int):
    return Two(1) // x


@differs(1, 1)
def matrix_products_of_objects(x: int):
    return Two(1) @ x


@refused("' object is not iterable")
def iteration_over_objects(x: int):
    return [y for y in Two(1)]


@refused(r"' object has no attribute or method '__add__'\. Did you forget to initialize an attribute in __init_")
def operators_that_objects_lack(x: int):
    return Two(1) + x


class InPlace:
    def __init__(self, x: int):
        self.x = x

    def __iadd__(self, y: int) -> "InPlace":
        self.x += y
        return self

    def __isub__(self, y: int) -> "InPlace":
        self.x -= y
        return self

    def __imul__(self, y: int) -> "InPlace":
        self.x *= y
        return self

    def __itruediv__(self, y: int) -> "InPlace":
        self.x = self.x // y
        return self

    def __imod__(self, y: int) -> "InPlace":
        self.x = self.x % y
        return self


class OnlyAdds:
    def __init__(self, x: int):
        self.x = x

    def __add__(self, y: int) -> "OnlyAdds":
        return OnlyAdds(self.x + y)


@gives((1, 1, 8, 3), 3)
def objects_are_changed_in_place(x: int):
    a = InPlace(x)
    b = a
    a += 10
    a -= 1
    a *= 6
    a /= 2
    a %= 7
    c = OnlyAdds(x)
    d = c
    c += 5
    return a.x, b.x, c.x, d.x


@refused("since it does not define an __imul__ or __mul__ method")
def objects_without_the_operator_in_place(x: int):
    a = OnlyAdds(x)
    a *= 2
    return a.x


@pytest.mark.parametrize(("check", "function", "expected", "args"), RULES.cases)
def test_rules(check, function, expected, args):
    check(function, expected, args)
