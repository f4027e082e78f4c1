"""Rules of statements: tokens, assignments, exceptions, conditions and results.

Results and messages were recorded from PyTorch 2.6.
"""

import math
from typing import Any, Dict, List, Optional, Tuple

import pytest
from comparison import Rules

from flambeau import tensor
from flambeau import torch_names as torch

RULES = Rules()
gives, differs, refused, raises = RULES.gives, RULES.differs, RULES.refused, RULES.raises


# Tokens and lines.


@gives((1, 2, 3, 4, 5, 6), 1)
def names_that_begin_with_keywords(index: int):
    notx, order, is_, format_, android = index + 1, index + 2, index + 3, index + 4, index + 5
    return index, notx, order, is_, format_, android


@gives((7, 6, [1, 2]), 1)
def lines_are_joined_by_brackets_and_backslashes(x: int):
    a = x + \
        6
    b = (x
  + 5)
    return (
a, b, [
            1,
       2])  # fmt: skip


@gives(3, 1)
def comments_are_no_tokens(x: int):
        # The body has a deep indentation.
        y = x + 1  # type: ignore
        # type: ignore
    # A comment with less indentation than the body.
        return y + 1  # "text  # fmt: skip


@gives(2, 1)
def a_body_in_the_line_of_its_head(x: int): return x + 1  # fmt: skip


@gives((0.5, 5.0, 1e-05, 2000.0, 1j, 2.5j, 1e+300, math.inf, 9223372036854775807, 16, 3, 15, 1000))
def forms_of_numbers():
    return .5, 5., 1e-5, 2E3, 1j, 2.5J, 1e+300, 1e400, 9223372036854775807, 0x10, 0b11, 0o17, 1_000


@differs((-9223372036854775808,))
def the_least_integer_is_a_literal():
    # PyTorch refuses the literal before it negates it.
    return (-9223372036854775808,)


@gives(('\x07\x08\x0c\x0b\t\r\n\\\'"', 'abc', 'A', 2))
def escapes_of_texts():
    return "\a\b\f\v\t\r\n\\\'\"", "a" 'b' """c""", "\101", len("\\n")


@gives(([1, 2], (1,), (), (1, 2), {'a': 1}, 3), 1, 2)
def commas_at_the_end(x: int, y: int,):
    return [x, y,], (x,), (), (x, y,), {"a": x,}, max(x, 3,)  # fmt: skip


@refused(
    r"Integral constant out of range \(must fit in a signed 64 bit integer\):|"
    r"integer literal `9223372036854775808` is out of range of 64 bits",
)  # fmt: skip
def integers_above_64_bits():
    return 9223372036854775808


@refused(
    r"Integral constant out of range \(must fit in a signed 64 bit integer\):|"
    r"integer literal `9223372036854775809` is out of range of 64 bits",
)  # fmt: skip
def integers_below_64_bits():
    return -9223372036854775809


# Assignments.


@gives((2, 1, 5, [3, 9], (4, 5), 6, 6))
def targets_of_assignments():
    a, b = 1, 2
    a, b = b, a
    l = [3, 4]
    (c, l[1]), d = (5, 9), (4, 5)
    e = f = 6
    return a, b, c, l, d, e, f


@differs((7, 8))
def lists_are_targets():
    [a, b] = (7, 8)
    return a, b


class Pair:
    def __init__(self, x: int):
        self.x = x
        self.y = [x]

    def swap(self, y: int) -> int:
        self.x, self.y[0] = y, self.x
        return self.x


@gives((5, [8], 8))
def attributes_and_elements_are_targets():
    p = Pair(3)
    q = Pair(1)
    q.x = p.x = 8
    return p.swap(5), p.y, q.x


@gives((1, (2, 3), (1, 2), 3, 1, (2,), 3))
def a_starred_target_takes_a_tuple():
    a, *b = (1, 2, 3)
    *c, d = (1, 2, 3)
    e, *f, g = (1, 2, 3)
    return a, b, c, d, e, f, g


@gives((1, ()))
def a_starred_target_may_take_nothing():
    a, *b = (1,)
    return a, b


@refused("too many values to unpack: need 2 but found 3")
def a_value_is_unpacked_into_too_many():
    a, b = (1, 2, 3)
    return a


@gives((2, 1), [1, 2])
def lists_are_unpacked(l: List[int]):
    a, b = l
    return b, a


@raises("RuntimeError: Expected 2 elements in a list but found 3", [1, 2, 3])
def lists_of_another_length_are_not_unpacked(l: List[int]):
    a, b = l
    return b, a


@refused("int cannot be used as a tuple")
def numbers_are_not_unpacked(x: int):
    a, b = x
    return a


@refused("annotated assignments without assigned value aren't supported:|For an assignment, an rhs must be present")
def declarations_without_value(x: int):
    y: int
    return x


@refused(r"Variable 'y' is annotated with type List\[int\] but is being assigned to a value of type int")
def values_of_another_type_than_declared(x: int):
    y: List[int] = x
    return y


@gives((1, None, 2.0, [1.5], (1, None)))
def declared_types():
    a: Optional[int] = 1
    b: Optional[int] = None
    c: Any = 2.0
    d: List[float] = [1.5]
    e: Tuple[int, Optional[str]] = (1, None)
    return a, b, c, d, e


@refused(
    r"Sliced expression not yet supported for subscripted assignment\. File a bug if you want this:|"
    r"assignment to a slice is not supported",
)  # fmt: skip
def slices_of_lists_are_not_assigned(x: List[int]):
    x[0:1] = [2]
    return x


@refused(r"Arguments for call are not valid\.|'str' does not support subscripted assignment: its elements cannot be replaced")
def elements_of_texts_are_not_assigned(x: str):
    x[0] = "a"
    return x


@refused("does not support subscripted assignment:")
def elements_of_tuples_are_not_assigned(x: Tuple[int, int]):
    x[0] = 1
    return x


@refused(
    "del statements are only supported for deleting list and dict items and variables:|"
    "deletion of anything other than variables and elements is not supported",
)  # fmt: skip
def attributes_are_not_deleted(x: int):
    p = Pair(x)
    del p.x
    return p.y


@gives(([1, 2], {2: 'b'}), [1, 2, 3], {1: "a", 2: "b"})
def several_things_are_deleted(l: List[int], d: Dict[int, str]):
    a, b = 1, 2
    del a, b, l[-1], d[1]
    return l, d


@raises("RuntimeError: KeyError: 5", {1: 2})
def a_missing_key_is_deleted(d: Dict[int, int]):
    del d[5]
    return d


@gives((3.0, 3.5, -1.0, 2.0, -1.5))
def powers_and_remainders_are_assigned():
    a, b, c, d, e, f = 7, 2, 7.5, -3, 4.0, -7.5
    a %= 4
    c %= 4
    d %= 2
    e **= 0.5
    f %= 2.0
    return a, c, d, e, f


@gives(8.0)
def powers_of_integers_are_assigned():
    b = 2.0
    b **= 3
    return b


@gives(8.0)
def powers_of_integers_change_the_type():
    b = 2
    b **= 3
    return b


@gives((15, 3, 6, 28, 1), 7, 2)
def bits_are_assigned(x: int, y: int):
    a = b = c = d = e = x
    a |= 8
    b &= 3
    c ^= 1
    d <<= y
    e >>= y
    return a, b, c, d, e


@gives((tensor([3, -3]), tensor([1.5, -1.5]), tensor([3, -3])), tensor([7, -7]), tensor([7.5, -7.5]))
def remainders_of_tensors_are_assigned(x: torch.Tensor, y: torch.Tensor):
    a, b = x.clone(), y.clone()
    c = a
    a %= 4
    b %= 2
    return a, b, c


@gives((tensor([2.0, 3.0]), tensor([4.0, 9.0])), tensor([2.0, 3.0]))
def powers_of_tensors_are_assigned(x: torch.Tensor):
    y = x
    y **= 2
    return x, y


@gives((tensor([5, 3]), tensor([4, 0]), tensor([3, 5]), tensor([8, 4]), tensor([8, 4]), tensor([2, 1]), tensor([2, 1])), tensor([4, 2]))
def bits_of_tensors_are_assigned(x: torch.Tensor):
    a = b = c = x.clone()
    a |= 1
    b &= 4
    c ^= 7
    d = x.clone()
    e = d
    d <<= 1
    f = x.clone()
    g = f
    f >>= 1
    return a, b, c, d, e, f, g


class Held:
    def __init__(self, x: torch.Tensor):
        self.x = x
        self.n = 1
        self.l = [1]

    def change(self):
        self.x += 1
        self.n += 2
        self.l += [2]
        self.x *= 2
        self.n *= 5


@gives((tensor([4.0]), tensor([4.0]), 15, [1, 2]), tensor([1.0]))
def attributes_are_assigned_in_place(x: torch.Tensor):
    h = Held(x)
    h.change()
    return x, h.x, h.n, h.l


@gives((tensor([2.0, 6.0]), [6, 6], [tensor([2.0])], tensor([2.0])), tensor([1.0, 2.0]), [tensor([1.0])])
def elements_are_assigned_in_place(x: torch.Tensor, l: List[torch.Tensor]):
    n, y = [1, 2], l[0]
    n[0] += 5
    n[-1] *= 3
    l[0] += 1
    x[0] += 1
    x[1:] *= 3
    return x, n, l, y


@gives(([1, 2, 1, 2], [1, 2, 3], [1, 2, 1, 2]), [1])
def lists_are_extended_in_place(l: List[int]):
    a = l
    a += [2]
    b = l + [3]
    a *= 2
    return l, b, a


# Exceptions.


class Problem(Exception):
    pass


@refused("exceptions must derive from BaseException")
def raises_a_number(x: int):
    raise x


@raises(r"[\w.]+Problem: a problem", 1)
def raises_an_exception_of_the_user(x: int):
    raise Problem("a problem")


@raises(r"RuntimeError:|builtins\.ValueError:", 1)
def raises_a_class(x: int):
    if x > 0:
        raise ValueError
    return x


@raises(r"builtins\.ValueError: t", "t")
def raises_from_none(x: str):
    raise ValueError(x) from None


@raises(r"builtins\.RuntimeError: 3", 3)
def raises_with_a_number(x: int):
    raise RuntimeError(x)


@raises(r"builtins\.RuntimeError: \(a, 3\)", 3)
def raises_with_two_values(x: int):
    raise RuntimeError("a", x)


@raises(r"builtins\.NotImplementedError: 3 is not 4", 3)
def raises_with_a_formatted_text(x: int):
    raise NotImplementedError(f"{x} is not {x + 1}")


@raises("RuntimeError: AssertionError: 3 is small", 3)
def asserts_with_a_formatted_text(x: int):
    assert x > 5, f"{x} is small"
    return x


@raises("RuntimeError: AssertionError: 3", 3)
def asserts_with_a_number(x: int):
    assert x > 5, x
    return x


@raises("RuntimeError: AssertionError:", 3)
def asserts_without_a_text(x: int):
    assert x > 5
    return x


@raises("RuntimeError: AssertionError: empty", "")
def asserts_the_truth_of_a_text(x: str):
    assert x, "empty"
    return x


@refused("NotImplementedType")
def returns_the_constant_not_implemented(x: int):
    return NotImplemented


@refused("import statements")
def imports_from(x: int):
    from math import pi

    return pi


@refused("function definitions aren't supported:|calling a function inside of a function is not supported")
def defines_a_function(x: int):
    def inner(y: int):
        return y

    return inner(x)


@refused("Because we emit iteration over modulelists or tuples as unrolled loops, we do not support break or c")
def continues_an_unrolled_loop(x: int):
    for i in (1, "a"):
        if x > 1:
            continue
    return x


@refused("incompatible constructor arguments|Arguments for call are not valid")
def names_of_contexts_are_variables(x: List[int]):
    with torch.no_grad() as x[0]:
        pass
    return x


@gives(13, 1)
def breaks_outside_of_a_loop_of_programs(x: int):
    while x < 3:
        x += 1
    for i in range(2):
        if i == 1:
            break
        x += 10
    return x


# Conditions.


@gives(
    ([False, False, False, False, False, True, False], False, False, True, False, True, True),
    0, 0.0, "", [1], {"a": 1}, True, tensor([0]), 0j,
)  # fmt: skip
def truth_of_values(i: int, x: float, s: str, l: List[int], d: Dict[str, int], b: bool, t: torch.Tensor, z: complex):
    found = [False, False, False, False, False, False, False]
    if i:
        found[0] = True
    if x:
        found[1] = True
    if b:
        found[5] = True
    if t:
        found[6] = True
    return found, bool(i), bool(x), bool(b), bool(t), not i, not t


@gives((False, True, True, True, False, 1, 2), "", [1], {"a": 1})
def truth_of_containers(s: str, l: List[int], d: Dict[str, int]):
    return bool(s), bool(l), bool(d), not s, not l, 1 if d else 2, 1 if s else 2


@refused(r"Could not cast value of type Tuple\[int, int\] to bool")
def truth_of_tuples(t: Tuple[int, int]):
    return 1 if t else 2


@refused("Could not cast value of type complex to bool")
def truth_of_complex_numbers(z: complex):
    return 1 if z else 2


@refused(r"\w+\.Pair")
def truth_of_objects(x: int):
    p = Pair(x)
    return 1 if p else 2


@gives(1, None)
def truth_of_none(x: Optional[str]):
    return 1 if x is None else 2


@raises("RuntimeError: Boolean value of Tensor with more than one value is ambiguous", tensor([1, 2]))
def truth_of_many_elements(x: torch.Tensor):
    return 1 if x else 2


@gives((False, True, True), [], 0)
def logic_does_not_evaluate_what_it_need_not(l: List[int], x: int):
    a = len(l) > 0 and l[0] > 1
    b = len(l) == 0 or l[0] > 1
    c = x == 0 or 1 // x > 0
    return a, b, c


@gives((False, True, True, True, True, True), 3, 0, "a")
def logic_gives_truth_values(x: int, y: int, s: str):
    return x and y, x or y, y or x, s and x, s or y, x and s and [1]


@refused(r"Could not cast value of type Optional\[int\] to bool")
def logic_is_no_default_of_optionals(x: Optional[int]):
    return x or 1


@gives((None, 5, 1), 1, None)
def types_of_branches_are_unified(x: int, y: Optional[int]):
    if x > 0:
        z = None
    else:
        z = 1
    w: Optional[int] = None
    if x > 0:
        w = 5
    if x > 1:
        v = y
    else:
        v = x
    return z, w, v


@gives([1, None], 1)
def types_of_containers_in_branches_are_unified(x: int):
    if x > 0:
        l = [1, None]
    else:
        l = [None, 2]
    return l


@refused("y is not defined in the true branch")
def a_variable_in_the_other_branch_only(x: int):
    if x > 0:
        pass
    else:
        y = 1
    return y


@refused("undefined value y")
def a_variable_of_a_loop_body(x: int):
    for i in range(x):
        y = i
    return y


@refused("undefined value i")
def the_target_after_a_loop(x: int):
    for i in range(x):
        pass
    return i


@refused("undefined value y")
def a_variable_of_a_while_body(x: int):
    while x > 0:
        y = 1
        x -= 1
    return y


@refused("Variable 'y' previously had type int but is now being assigned to a value of type str")
def a_loop_changes_a_type(x: int):
    y = 1
    for i in range(x):
        y = "a"
    return y


@refused("Variable 'y' previously had type int but is now being assigned to a value of type float")
def a_loop_makes_a_variable_a_float(x: int):
    y = 1
    for i in range(x):
        y = 1.5
    return y


@gives(2, 3)
def a_branch_that_exits_defines_nothing(x: int):
    if x > 2:
        y = 1
    else:
        raise ValueError("small")
    if x > 3:
        return 7
    else:
        z = y + 1
    return z


@gives('three', 3)
def early_returns_in_loops(n: int):
    for i in range(n):
        if i == 5:
            return "five"
        for j in range(i):
            if i + j == 3:
                return "three"
    return "none"


@gives(3, 3)
def code_behind_an_exit(x: int):
    return x
    y = x + 1
    return y


@gives(1, 4)
def results_on_all_paths(x: int):
    while x > 0:
        if x == 2:
            return 1
        x -= 1
    else_ = 5
    return else_


@gives(1, 4)
def no_result_on_a_path(x: int):
    if x > 2:
        return 1


@refused("Previous return statement returned a value of type int but this return statement returns a value of ")
def results_of_two_types(x: int):
    if x > 2:
        return 1
    return "a"


@refused("Function was not annotated as having type None, but does not return along all paths")
def no_result_where_one_may_be_none(x: int) -> Optional[int]:
    if x > 5:
        return 1


@gives(4, 4)
def results_are_converted_to_the_declared_type(x: int) -> Optional[int]:
    if x > 2:
        return x
    return None


@gives('a', 4)
def results_are_of_any_type(x: int) -> Any:
    if x > 2:
        return "a"
    return x


@refused("Return value was annotated as having type float but is actually of type int")
def integers_are_no_results_for_floats(x: int) -> float:
    return x


@gives((1, 'a'), 1)
def several_values_are_a_tuple(x: int) -> Tuple[int, str]:
    return x, "a"


@pytest.mark.parametrize(("check", "function", "expected", "args"), RULES.cases)
def test_rules(check, function, expected, args):
    check(function, expected, args)
