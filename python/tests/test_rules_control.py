"""Rules of control flow: loops, contexts, branches that are known when a program is compiled, and refinement of types.

Results and messages were recorded from PyTorch 2.6.
"""

import enum
import re
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import pytest
from comparison import Rules

import flambeau
from flambeau import jit, tensor
from flambeau import torch_names as torch

RULES = Rules()
gives, differs, refused, raises = RULES.gives, RULES.differs, RULES.refused, RULES.raises


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: int
    y: float


class Plain:
    def __init__(self, x: Optional[int]):
        self.x = x
        self.y = 1


# Loops.


@gives(([0, 1, 2, 3, 4], [1, 2, 3, 4], [5, 3, 1], [], [], [2, 5]), 5)
def ranges(n: int):
    return (
        [i for i in range(n)], [i for i in range(1, n)], [i for i in range(n, 0, -2)], [i for i in range(0)], [i for i in range(3, 1)],
        list(range(2, 8, 3)),
    )  # fmt: skip


@raises(r"RuntimeError: range\(\) arg 3 must not be zero", 0)
def a_range_without_step(n: int):
    l: List[int] = []
    for i in range(0, 5, n):
        l.append(i)
    return l


@refused("all inputs of range must be ints, found float")
def ranges_have_integers(x: float):
    for i in range(x):
        pass
    return 1


@refused("'int' object is not iterable")
def a_loop_over_a_number(n: int):
    for i in n:
        pass
    return 1


@gives((3, 4, 'ba', 3, [tensor([1.0]), tensor([2.0])]), [1, 2], "héy", tensor([[1.0], [2.0]]), {"b": 1, "a": 2}, (1, 2))
def loops_over_values(l: List[int], s: str, t: torch.Tensor, d: Dict[str, int], u: Tuple[int, int]):
    a, c, e, f = 0, 0, "", 0
    rows: List[torch.Tensor] = []
    for x in l:
        a += x
    for _ in s:
        c += 1
    for row in t:
        rows.append(row)
    for k in d:
        e += k
    for v in u:
        f += v
    return a, c, e, f, rows


@raises(r"len\(\) of a 0-d tensor", tensor(1.0))
def a_loop_over_a_tensor_without_dimensions(t: torch.Tensor):
    total = 0
    for row in t:
        total += int(row)
    return total


@gives(tensor([[2.0], [3.0]]), tensor([[1.0], [2.0]]))
def rows_of_a_loop_are_views(t: torch.Tensor):
    for row in t:
        row += 1
    return t


@gives(['RED', 'BLUE'])
def members_of_enumerations():
    names: List[str] = []
    for c in Color:
        names.append(c.name)
    return names


@gives(([(1, 'a'), (2, 'b')], [(0, 1), (1, 2), (2, 3)], [(5, 1, 'a'), (6, 2, 'b')], '071x71xb'), [1, 2, 3], "ab", (7, "x"))
def iterables_are_combined(l: List[int], s: str, t: Tuple[int, str]):
    a = [(i, c) for i, c in zip(l, s)]
    b = [(i, x) for i, x in enumerate(l)]
    c = [(i, x, y) for i, (x, y) in enumerate(zip(l, s), 5)]
    d = ""
    for i, x in enumerate(t):
        d += str(i) + str(x)
    for u, v in zip(t, (1, "b")):
        d += str(u) + str(v)
    return a, b, c, d


@refused("Can not iterate over a module list or tuple with a value that does not have a statically determinabl")
def tuples_and_lists_are_not_combined(l: List[int]):
    n = ""
    for x, y in zip((1, "a"), l):
        n += str(x) + str(y)
    return n


@gives(5, (1, 2))
def tuples_of_two_lengths(t: Tuple[int, int]):
    n = 0
    for x, y in zip(t, (1, 2, 3)):
        n += x * y
    return n


@gives([1, 2, 1, 2], [1, 2])
def appends_do_not_lengthen_a_loop(l: List[int]):
    for x in l:
        l.append(x)
    return l


@raises("Error: list index out of range", [1, 2, 3])
def removals_shorten_a_list_but_not_its_loop(l: List[int]):
    for x in l:
        l.remove(x)
    return l


@gives([0, 1, 2], 3)
def the_target_does_not_steer_a_loop(n: int):
    seen: List[int] = []
    for i in range(n):
        seen.append(i)
        i = 10
    return seen


@gives(3, 3)
def bounds_are_evaluated_once(n: int):
    count = 0
    for _ in range(n):
        n = 10
        count += 1
    return count


@gives((102, 4), 3)
def nested_exits(n: int):
    total = 0
    for i in range(10):
        if i == n:
            continue
        for j in range(10):
            if j > i:
                break
            if (i + j) % 2 == 0:
                continue
            total += i * j
        if total > 50:
            break
    else_ = total
    while True:
        else_ -= 7
        if else_ > 20:
            continue
        if else_ < 10:
            break
    return total, else_


@gives(2, 10)
def loops_without_result(n: int):
    while True:
        n -= 1
        if n < 3:
            return n


@gives('12.5', Point(1, 2.5))
def a_loop_over_a_named_tuple(p: Point):
    text = ""
    for v in p:
        text += str(v)
    return text


@refused("' object is not iterable")
def a_loop_over_an_object(p: Plain):
    for v in p:
        pass
    return 1


@refused(r"'Optional\[List\[int\]\]' object is not iterable")
def a_loop_over_an_optional(p: Optional[List[int]]):
    for v in p:
        pass
    return 1


# Comprehensions.


@gives(([2, 4], {1: [0], 2: [0, 1]}, [('a', 1)], 3, True, 7), [1, 2], {"a": 1})
def comprehensions(l: List[int], d: Dict[str, int]):
    x = 7
    a = [x * 2 for x in l]
    b = {x: [y for y in range(x)] for x in l}
    c = [(k, v) for k, v in d.items()]
    e = sum(x for x in l)
    f = any(x > 1 for x in l)
    return a, b, c, e, f, x


@refused("undefined value y")
def targets_of_comprehensions_end_with_them(l: List[int]):
    a = [y for y in l]
    return y


@gives([1, 2], [1, 2])
def comprehensions_over_tuples(l: List[int]):
    return [x for x in (1, 2)]


@gives([1, 2, None], [1, 2])
def elements_of_comprehensions_have_the_declared_type(l: List[int]):
    a: List[Optional[int]] = [x for x in l]
    a.append(None)
    return a


@gives(([-1, 2], [[1, 2]]), [1, 2])
def conditional_elements(l: List[int]):
    return [x if x > 1 else -x for x in l], [[x, y] for x, y in [(1, 2)]]


@differs([2], [1, 2])
def filters_of_comprehensions(l: List[int]):
    return [x for x in l if x > 1]


# Contexts.


class Guard:
    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> str:
        print("enter", self.name)
        return self.name

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        print("exit", self.name)


def returns_within(x: int) -> int:
    with Guard("a") as a, Guard("b"):
        print(a)
        if x == 1:
            return 1
        if x == 3:
            raise ValueError("no")
    return 5


def breaks_within(x: int) -> int:
    for _ in range(2):
        with Guard("a") as a, Guard("b"):
            print(a)
            if x == 1:
                break
            if x == 2:
                continue
            if x == 3:
                raise ValueError("no")
        x = 1
    return 5


@pytest.mark.parametrize(
    ("function", "x", "result", "times"),
    [(returns_within, 0, 5, 1), (returns_within, 1, 1, 1), (returns_within, 3, None, 1), (breaks_within, 0, 5, 2), (breaks_within, 1, 5, 1),
     (breaks_within, 2, 5, 2), (breaks_within, 3, None, 1)],
)  # fmt: skip
def test_contexts_are_left_by_every_exit(function, x, result, times, capsys):
    compiled = jit.script(function)
    if result is None:
        with pytest.raises((RuntimeError, flambeau.RuntimeError), match="no"):
            compiled(x)
    else:
        assert compiled(x) == result
    assert capsys.readouterr().out.split() == ["enter", "a", "enter", "b", "a", "exit", "b", "exit", "a"] * times


class NoExit:
    def __init__(self):
        self.x = 1

    def __enter__(self):
        return 1


class NoEnter:
    def __init__(self):
        self.x = 1

    def __exit__(self, kind: Any, value: Any, trace: Any):
        pass


class FewArguments:
    def __init__(self):
        self.x = 1

    def __enter__(self):
        return 1

    def __exit__(self, kind: Any):
        pass


class TypedArguments:
    def __init__(self):
        self.x = 1

    def __enter__(self):
        return 1

    def __exit__(self, kind: int, value: int, trace: int):
        pass


class ManyArguments:
    def __init__(self):
        self.x = 1

    def __enter__(self, more: int):
        return 1

    def __exit__(self, kind: Any, value: Any, trace: Any):
        pass


@refused("Object returned by with item expression does not define __enter__ and __exit__ methods")
def contexts_have_an_exit(x: int):
    with NoExit():
        x += 1
    return x


@refused("Object returned by with item expression does not define __enter__ and __exit__ methods")
def contexts_have_an_entry(x: int):
    with NoEnter():
        x += 1
    return x


@refused("__exit__ must have four arguments:")
def exits_of_contexts_take_three_arguments(x: int):
    with FewArguments():
        x += 1
    return x


@refused("argument 1 of __exit__ must have Any type")
def exits_of_contexts_take_any_value(x: int):
    with TypedArguments():
        x += 1
    return x


@refused("__enter__ must have only one argument and one return value")
def entries_of_contexts_take_no_argument(x: int):
    with ManyArguments():
        x += 1
    return x


@refused("With item expression must return an object")
def numbers_are_no_contexts(x: int):
    with x:
        x += 1
    return x


@gives(('a', 'a!'), "a")
def variables_of_contexts_leave_them(x: str):
    with Guard(x) as y:
        z = y + "!"
    return y, z


@gives((False, False, True, True), tensor([1.0], requires_grad=True))
def gradients_are_off_in_contexts(x: torch.Tensor):
    with torch.no_grad():
        a = x * 2
        b = torch.is_grad_enabled()
    return a.requires_grad, b, (x * 3).requires_grad, torch.is_grad_enabled()


@differs((False, True), tensor([1.0], requires_grad=True))
def gradients_are_on_in_contexts(x: torch.Tensor):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 2
    return a.requires_grad, b.requires_grad


# Branches that are known when a program is compiled: the other one may hold what programs do not have.


def only_in_python(x):
    return type(x)


@gives(3, 3)
def the_test_for_none_of_a_number(x: int):
    if x is None:
        return x.absent()
    return x


@gives(3, 3)
def the_negated_test_for_none_of_a_number(x: int):
    if x is not None:
        y = x
    else:
        y = x.absent()
    return y


@gives('a!', "a")
def the_type_of_a_text(x: str):
    if isinstance(x, int):
        y = x.absent()
    elif isinstance(x, (float, str)):
        y = x + "!"
    else:
        y = x.absent()
    return y


@gives(1, Plain(2))
def attributes_that_an_object_has(p: Plain):
    if hasattr(p, "absent"):
        return p.absent()
    if not hasattr(p, "y"):
        return p.absent()
    return p.y


@gives((4, True, False), 3)
def the_question_whether_programs_run(x: int):
    if not torch.jit.is_scripting():
        x = only_in_python(x)
    if torch.jit.is_scripting() and x > 1:
        x += 1
    y = x if torch.jit.is_scripting() else only_in_python(x)
    return y, torch.jit.is_scripting(), torch.jit.is_tracing()


@gives(3, 3)
def a_conditional_expression_of_a_known_condition(x: int):
    return x if x is not None else x.absent()


@gives(1, 3)
def literals_are_no_known_conditions(x: int):
    if True:
        y = 1
    else:
        y = "a"
    return y


@gives(2, None, 2)
def a_known_condition_and_an_unknown_one(x: Optional[int], y: int):
    if x is None and y is None:
        return 1
    if y is None or x is None:
        return 2
    return x


# Refinement.


@gives((10, 7, 3), None, 3)
def the_types_of_optionals_are_refined(x: Optional[int], y: Optional[int]):
    a = 0
    if x is not None and x > 1:
        a += x
    if x is None or x > 1:
        a += 1
    b = x + 1 if x is not None else 7
    if not (y is None):
        a += y
    if x is None and y is not None:
        a += y
    if y is None:
        raise ValueError("none")
    a += y
    return a, b, y


@gives(4, 3)
def an_assertion_refines(x: Optional[int]):
    assert x is not None
    return x + 1


@raises("RuntimeError: AssertionError: it is none", None)
def an_assertion_of_an_optional_fails(x: Optional[int]):
    assert x is not None, "it is none"
    return x + 1


@gives(9, 3)
def an_exit_of_a_loop_refines(x: Optional[int]):
    total = 0
    for i in range(3):
        if x is None:
            return -1
        total += x
    return total


@refused("Arguments for call are not valid")
def attributes_are_not_refined(p: Plain):
    if p.x is not None:
        return p.x + 1
    return 0


@refused("Arguments for call are not valid")
def elements_are_not_refined(l: List[Optional[int]]):
    if l[0] is not None:
        return l[0] + 1
    return 0


@gives(2, Plain(1))
def copies_of_attributes_are_refined(p: Plain):
    x = p.x
    if x is not None:
        return x + 1
    return 0


@refused("Arguments for call are not valid")
def conditions_of_while_do_not_refine(x: Optional[int]):
    while x is not None:
        x = x - 1
        if x == 0:
            x = None
    return 1


@refused("Arguments for call are not valid")
def comparisons_with_none_do_not_compile(x: Optional[int]):
    return x == None  # noqa: E711


@refused("Arguments for call are not valid")
def arithmetic_of_optionals(x: Optional[int]):
    return x + 1


@gives(6, 3)
def an_assignment_refines(x: Optional[int]):
    x = 5
    return x + 1


@refused("Arguments for call are not valid")
def a_declared_optional_is_the_type_of_its_value(x: int):
    y: Optional[int] = x
    return y + 1


@refused("Arguments for call are not valid")
def a_refined_variable_is_optional_again(x: Optional[int]):
    if x is not None:
        y = x + 1
    return x + 1


@gives(2, "ab")
def types_of_unions_are_refined(x: Union[int, str, List[int]]):
    if isinstance(x, (int, str)):
        if isinstance(x, int):
            return x
        return len(x)
    return x[0]


@gives(2, [1, 2])
def values_of_any_type_are_refined(x: Any):
    if isinstance(x, int):
        return x
    elif isinstance(x, List[int]):
        return x[1]
    elif isinstance(x, Dict[str, int]):
        return x["a"]
    elif torch.jit.isinstance(x, Tuple[int, str]):
        return x[0]
    return -1


@refused("Arguments for call are not valid")
def values_of_any_type_have_no_operators(x: Any):
    return x + 1


@gives(1, [1, "a"])
def types_of_several_values(l: List[Union[int, str]]):
    total = 0
    for x in l:
        if not isinstance(x, str):
            total += x
    return total


@refused("Expression of type const cannot be used in a type expression:|`3` is not a type of TorchScript")
def the_second_argument_of_isinstance_is_a_type(x: int):
    return isinstance(x, 3)


@gives((True, True, False, True, 1.5), (1, "a"), None, 1.5)
def isinstance_of_values(t: Tuple[int, str], o: Optional[int], f: float):
    return isinstance(t, tuple), isinstance([1], list), isinstance(o, int), isinstance(f, (int, float)), isinstance(o, type(None)) if False else f


@pytest.mark.parametrize(("check", "function", "expected", "args"), RULES.cases)
def test_rules(check, function, expected, args):
    check(function, expected, args)


# Functions that only a branch refers to that programs do not take.


def takes_any_number(*args):
    return args[0]


def yields(x):
    yield x


def mistaken(x: int) -> int:
    return x + not_defined  # noqa: F821


def calls_takes_any_number(x: int):
    return takes_any_number(x)


def never_called(x: int):
    if x is None:
        return takes_any_number(x)
    if isinstance(x, str):
        return calls_takes_any_number(yields(x))
    if x is not None and isinstance(x, int):
        return mistaken(x) if isinstance(x, float) else x + 1
    return sys.exit(x)


def called(x: Optional[int]):
    if x is None:
        return 0
    return calls_takes_any_number(x)


def called_with_wrong_syntax(x: Optional[int]):
    return 0 if x is None else yields(x)


def test_functions_of_branches_that_are_not_taken():
    assert jit.script(never_called)(3) == 4
    with pytest.raises(flambeau.UnsupportedError, match="can't take variable number of arguments") as raised:
        jit.script(called)
    chain = re.findall(r"'(\w+)' is being compiled since it was called from '(\w+)'", str(raised.value))
    assert chain == [("takes_any_number", "calls_takes_any_number"), ("calls_takes_any_number", "called")]
    with pytest.raises(flambeau.UnsupportedError, match="`yield` is not supported"):
        jit.script(called_with_wrong_syntax)
