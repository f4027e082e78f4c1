"""Statements and expressions of programs: what Python computes, and what is refused.

Functions of `SAME` are run by Python and by the compiler; the results must be equal.
"""

import math
from typing import Any, Dict, List, Optional, Tuple, Union

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


# Statements.


@same(3)
def expression_statements(x: int):
    """A docstring."""
    x + 1
    "text"
    l = [1]
    l.append(x)
    l.pop
    return l


@same([1, 2, 3], (4, 5, 6))
def assignments(l: List[int], t: Tuple[int, int, int]):
    a = b = l[0]
    c, d = l[1], l[2]
    (e, f), g = (c, d), 7
    [h, i] = [8, 9]
    x, y, z = t
    p, q, r = l
    return a, b, c, d, e, f, g, h, i, x, y, z, p, q, r


@same([1, 2, 3], {"a": 1})
def assignments_to_elements(l: List[int], d: Dict[str, int]):
    l[0], d["b"] = 5, 6
    l[-1] = d["a"]
    d["a"] += 10
    l[1] -= 1
    x: float = 2.5
    y: Optional[int] = None
    y = 3
    return l, d, x, y


@same(7, 2)
def augmented_integers(x: int, y: int):
    a = b = c = d = e = f = g = x
    a += y
    b -= y
    c *= y
    d |= y
    e &= y
    f ^= y
    g <<= y
    h = x
    h >>= 1
    i = x
    i //= y
    return a, b, c, d, e, f, g, h, i


@same(7.5, "a", [1], tensor([1.0, 2.0]))
def augmented_values(x: float, s: str, l: List[int], t: torch.Tensor):
    x += 1
    x /= 2
    x *= 3.0
    s += "b"
    other = l
    other += [2]
    l *= 2
    alias = t
    alias += 1
    alias *= 2
    alias -= 0.5
    alias /= 4
    return x, s, l, t


@same([1, 2, 3, 4], {"a": 1, "b": 2})
def deletions(l: List[int], d: Dict[str, int]):
    x = 1
    del l[0], d["a"]
    del x
    del l[-1]
    x = 5
    return l, d, x


@same(5)
def returns_without_value(x: int) -> None:
    if x > 3:
        return
    return None


@same(3)
def elif_and_else(x: int) -> str:
    if x == 1:
        return "one"
    elif x == 2:
        return "two"
    elif x == 3:
        text = "three"
    else:
        text = "many"
    return text


@same(10)
def loops_with_exits(n: int):
    total, i = 0, 0
    while True:
        i += 1
        if i % 2 == 0:
            continue
        if i > n:
            break
        for j in range(i):
            if j == 3:
                break
            total += j
    return total, i


@same(4)
def endless_loop_with_return(n: int):
    i = 0
    while True:
        i += 1
        if i > n:
            return i


@same([3, 4, 5], "abc", {"x": 1, "y": 2}, tensor([[1.0], [2.0]]))
def loops_over_values(l: List[int], s: str, d: Dict[str, int], t: torch.Tensor):
    total, text, keys, rows = 0, "", "", []
    for x in l:
        total += x
    for c in s:
        text = c + text
    for key in d:
        keys += key
    for row in t:
        rows.append(row)
    for key, value in d.items():
        total += value
    for i, (a, b) in enumerate(zip(l, s)):
        total += i * a + len(b)
    for i in range(10, 0, -3):
        total += i
    for i, x in enumerate(l, 2):
        total += i * x
    return total, text, keys, torch.stack(rows)


@same(2, 3.5, "s")
def loops_over_tuples(a: int, b: float, c: str):
    text = ""
    for value in (a, b, c):
        text += str(value)
    for value, number in zip((a, b, c), (1, 2, 3)):
        text += str(value) + str(number)
    return text


@same([1, 2, 3])
def appends_do_not_lengthen_a_loop_over_a_range(l: List[int]):
    for i in range(len(l)):
        l.append(i)
    return l


@same(1)
def pass_and_assert(x: int):
    pass
    assert x > 0
    assert x > 0, f"{x} is negative"
    return x


# Expressions.


@same(2, 3)
def precedence(a: int, b: int):
    return (
        a + b * a, -a * b, (a | b) & a ^ b, a << 1 + b, not a == b, a < b and b < a or a == 2, True or False and False,
        -(2.0 ** 2) + b, a - b - a, 2 * b % 4 // 2, not a > b and b > a,
    )  # fmt: skip


@same(3, -4, 2.5, -1.5)
def arithmetic(a: int, b: int, x: float, y: float):
    return (
        a + b, a - b, a * b, a / b, a // b, b // a, a % b, b % a, x + a, x / y, x // y, x % y, y % x, x**2, a << 2, b >> 1, +a,
        -a, +x, a & b, a | b, a ^ b, divmod(a, b), abs(b), abs(y), float(round(x)) == 2.0, pow(x, y + 2), a < x, a == 3.0, b != a,
    )  # fmt: skip


@same(2, 5)
def chains_of_comparisons(a: int, b: int):
    return 1 < a < b < 9, a < b > 3, a == 2 != b, 0 <= a <= 1, a is a, a in [1, 2] and b not in [1, 2]


@same(0, 4, "", [1])
def logic(a: int, b: int, s: str, l: List[int]):
    flag = a > 0 or b > 0
    other = not s and len(l) > 0
    third = bool(a) or bool(s) or bool(l)
    return flag, other, third, not flag and other


@same(4)
def conditional_expressions(a: int):
    sign = -1 if a < 0 else 0 if a == 0 else 1
    text = "even" if a % 2 == 0 else "odd"
    maybe: Optional[int] = a if a > 2 else None
    return sign, text, maybe


@same([1, 2, 3, 4, 5], (1, "a", 2.5), "text")
def subscripts_and_slices(l: List[int], t: Tuple[int, str, float], s: str):
    return l[1:], l[:-1], l[::2], l[-1], l[1:100], l[3:1], l[:], t[0], t[-1], t[1:], t[:2], s[0], s[-2:], s[::2], s[1:3]


@same(2)
def displays(a: int):
    empty: List[int] = []
    nothing: Dict[str, int] = {}
    return [a, a + 1], (a,), (), (a, "x"), {"k": a, "l": a + 1}, {a: [a]}, [(a, 1)], [[a], [1, 2]], empty, nothing


@same([3, 1, 2], {"a": 1, "b": 2})
def comprehensions(l: List[int], d: Dict[str, int]):
    table = [[i * j for j in range(i)] for i in range(4)]
    lengths = {k: v * 2 for k, v in d.items()}
    pairs = [(i, c) for i, c in enumerate("abc")]
    total = sum([x * x for x in l])
    filtered = [x for x in l if x > 1]
    return [x + 1 for x in l], table, lengths, pairs, total, [k for k in d], filtered, [a + b for a, b in zip(l, l)]


@same(3, "x")
def formatted_texts(a: int, s: str):
    return f"{a} and {s}", f"{{{a}}}", "{} {}".format(a, s), "%d %s" % (a, s), f"{a + 1}{s.upper()}", "%s" % s


@same(1)
def texts(a: int):
    joined = "a" "b" 'c'
    long = """two
lines"""
    return joined, long, "\t\n\\\x41\u00e9\101", r"\n", 'it\'s "quoted"', "a\
b"


@same(1)
def numbers(a: int):
    return 0x1F, 0b101, 0o17, 1_000, 1e3, 0.5, 5.0, 1e-5, -9223372036854775808, 9223372036854775807, 2j + 1, - -a, 1.5e300 * 10


@same(2.0)
def constants_of_modules(x: float):
    return math.pi * x, math.inf, -math.inf, math.e, math.sqrt(x), math.floor(x + 0.5), math.atan2(x, 1.0), math.gcd(12, 18)


@same(None, 4)
def refinement_of_optionals(x: Optional[int], y: Optional[int]) -> int:
    total = 0
    if x is not None:
        total += x
    if x is None and y is not None:
        total += y
    if y is None:
        return -1
    total += y
    z = y if x is None else x
    assert z is not None
    if not (x is None or x > 3):
        total += x
    while y is not None and total < 100:
        total += y
    return total + z


@same("s", 4)
def refinement_by_isinstance(x: Union[int, str], y: Any) -> int:
    total = 0
    if isinstance(x, str):
        total += len(x)
    else:
        total += x
    if isinstance(y, int) and y > 3:
        total += y
    return total


@same(3)
def variables_of_branches(x: int):
    if x > 2:
        y = 1
        z = "a"
    else:
        y = 2
        z = "b"
    if x < 0:
        raise ValueError("negative")
    else:
        w = 5
    return y, z, w


@same(2)
def a_variable_may_change_its_type(x: int):
    y = x
    z = y + 1
    y = str(z)
    return y


@same(3)
def exits_of_nested_blocks(n: int) -> int:
    for i in range(n):
        for j in range(n):
            if i * j == 2:
                return i * 10 + j
            if j > i:
                break
        else_value = i
        if else_value == 7:
            continue
    return -1


@same([1, 2], {"a": 1.5}, (1, "b"))
def starred_arguments(l: List[int], d: Dict[str, float], t: Tuple[int, str]):
    def_pair = (1, 2)
    return max(*def_pair), "{} {}".format(*t)


@same(tensor([1.0, 2.0, 3.0]), 2)
def conditions_on_tensors(t: torch.Tensor, n: int):
    count = 0
    if t.sum() > 5:
        count += 1
    while t[0] < n:
        t = t + 1
        count += 1
    flag = bool(t[0] > 1) and bool(t.dim() == 1)
    return t, count, flag, t if n > 1 else t * 2


# What is refused, with the text of the message.


def refuse_try(x: int):
    try:
        return x
    except ValueError:
        return 0


def refuse_import(x: int):
    import json

    return x


def refuse_global(x: int):
    global counter
    counter = x


def refuse_lambda(x: int):
    f = lambda y: y + 1
    return f(x)


def refuse_yield(x: int):
    yield x


def refuse_set(x: int):
    return {x, 1}


def refuse_set_comprehension(x: int):
    return {i for i in range(x)}


def refuse_walrus(x: int):
    return (y := x) + y


def refuse_keywords(x: int, d: Dict[str, int]):
    return refuse_helper(**d)


def refuse_helper(x: int):
    return x


def refuse_class(x: int):
    class Inner:
        pass

    return x


def refuse_for_else(x: int):
    for i in range(x):
        pass
    else:
        x = 1
    return x


def refuse_while_else(x: int):
    while x > 0:
        x -= 1
    else:
        x = 1
    return x


def refuse_dict_expansion(x: Dict[str, int]):
    return {**x}


def refuse_bytes(x: int):
    return b"a"


def refuse_conversion(x: int):
    return f"{x!r}"


def refuse_format_spec(x: float):
    return f"{x:.2f}"


def refuse_slice_deletion(x: List[int]):
    del x[0:1]
    return x


def refuse_match(x: int):
    match x:
        case 1:
            return 2
    return 3


def refuse_bare_raise(x: int):
    raise


def refuse_break_of_unrolled_loop(x: int):
    for i in (1, "a"):
        break
    return x


async def refuse_async(x: int):
    return x


def refuse_reserved_name(x: int):
    __jit_x = x
    return __jit_x


def refuse_recursion(x: int) -> int:
    return refuse_recursion(x - 1)


def refuse_undefined_on_one_path(x: int):
    if x > 0:
        y = 1
    return y


def refuse_types_of_branches(x: int):
    if x > 0:
        y = 1
    else:
        y = "a"
    return y


def refuse_other_type_in_a_branch(x: int):
    y = 1
    if x > 0:
        y = "a"
    return y


def refuse_deleted(x: int):
    del x
    return x


def refuse_annotation_of_outer(x: int):
    y = 1
    if x > 0:
        y: int = 2
    return y


def refuse_two_generators(x: List[int]):
    return [a + b for a in x for b in x]


def refuse_complement_of_a_number(x: int):
    return ~x


def refuse_starred_list(x: List[int]):
    a, *b = x
    return b


def refuse_endless_loop_with_declared_result(x: int) -> int:
    while True:
        x += 1
        if x > 3:
            return x


def refuse_varargs(*args: int):
    return 1


def refuse_varkwargs(x: int, **kwargs: int):
    return x


def refuse_no_return(x: int) -> int:
    if x > 0:
        return 1


def refuse_other_result(x: int) -> int:
    return "a"


def refuse_mutable_default(x: List[int] = []):
    return x


def refuse_truth_of_optional(x: Optional[int]):
    if x:
        return 1
    return 0


def refuse_mixed_ternary(x: int):
    return 1 if x > 0 else "a"


def refuse_undefined(x: int):
    return lenght(x)  # noqa: F821


def refuse_unused_type(x: int):
    y: Dict[List[int], int] = {}
    return y


REFUSED = {
    refuse_try: "try",
    refuse_import: "import",
    refuse_global: "global",
    refuse_lambda: "lambda",
    refuse_yield: "yield",
    refuse_set: "set|`}`|`:`",
    refuse_set_comprehension: "set|`:`",
    refuse_walrus: ":=",
    refuse_keywords: r"\*\*",
    refuse_class: "class",
    refuse_for_else: "else branches of for loops aren't supported",
    refuse_while_else: "else branches of while loops aren't supported",
    refuse_dict_expansion: r"Dict expansion \(e.g. `{\*\*dict}`\) is not supported",
    refuse_bytes: "bytes|prefix",
    refuse_conversion: "conversion",
    refuse_format_spec: "format",
    refuse_slice_deletion: "slicing",
    refuse_match: "match",
    refuse_bare_raise: "raise",
    refuse_break_of_unrolled_loop: "unrolled",
    refuse_async: "def",
    refuse_reserved_name: "__jit",
    refuse_recursion: "recursive",
    refuse_undefined_on_one_path: "y is not defined in the false branch",
    refuse_types_of_branches: "Type mismatch: y is set to type int in the true branch and type str in the false branch",
    refuse_other_type_in_a_branch: "Variable 'y' previously had type int",
    refuse_deleted: "undefined value x",
    refuse_annotation_of_outer: "already defined in an outer block",
    refuse_two_generators: "comprehension",
    refuse_complement_of_a_number: "Arguments for call are not valid",
    refuse_starred_list: "cannot statically infer the expected size of a list in this context",
    refuse_endless_loop_with_declared_result: "does not return along all paths",
    refuse_varargs: "variable number",
    refuse_varkwargs: "variable number",
    refuse_no_return: "does not return along all paths|return along all",
    refuse_other_result: "type int but is actually of type str|Return value was annotated",
    refuse_mutable_default: "Mutable default parameters are not supported",
    refuse_truth_of_optional: r"Could not cast value of type Optional\[int\] to bool",
    refuse_mixed_ternary: "true branch has type int but",
    refuse_undefined: "undefined value lenght",
    refuse_unused_type: "key type|Dict key",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__.removeprefix("refuse_"))
def test_what_programs_do_not_have_is_an_error_at_its_place(function):
    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match=REFUSED[function]) as caught:
        jit.script(function)
    code = function.__code__
    lines = [line for *_, line in code.co_lines() if line is not None]
    assert caught.value.file == __file__ and code.co_firstlineno <= caught.value.line <= max(lines) + 2


def test_errors_name_the_functions_that_lead_to_them():
    def inner(x: int):
        return x.absent()

    def outer(x: int):
        return inner(x)

    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match="'inner' is being compiled since it was called from 'outer'"):
        jit.script(outer)


def test_asserts_and_raised_exceptions():
    def f(x: int, text: str):
        assert x != 1, "x is " + text
        assert x != 2
        if x == 3:
            raise IndexError(text)
        if x == 4:
            raise KeyError
        return x

    compiled = jit.script(f)
    for x, kind, message in [
        (1, RuntimeError, "AssertionError: x is t"),
        (2, RuntimeError, "AssertionError:"),
        (3, IndexError, "t"),
        (4, KeyError, ""),
    ]:
        with pytest.raises(kind, match=message):
            compiled(x, "t")
    assert compiled(5, "t") == 5


class Guard:
    """A context manager."""

    def __init__(self, log: List[str]):
        self.log = log

    def __enter__(self) -> int:
        self.log.append("enter")
        return len(self.log)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.log.append("exit")


def test_context_managers():
    def f(x: int, fail: bool):
        log: List[str] = []
        with Guard(log) as first, Guard(log) as second:
            log.append(str(first + second))
        with Guard(log):
            if x > 1:
                return log
        if fail:
            with Guard(log):
                raise ValueError("no")
        return log

    compiled = jit.script(f)
    assert compiled(2, False) == f(2, False) == ["enter", "enter", "3", "exit", "exit", "enter", "exit"]
    assert compiled(1, False) == f(1, False)
    with pytest.raises(ValueError, match="no"):
        compiled(1, True)


def test_gradients_are_off_in_a_context():
    def f(x: torch.Tensor):
        with torch.no_grad():
            y = x * 2
            with torch.enable_grad():
                z = x * 3
        return y.requires_grad, z.requires_grad, (x * 4).requires_grad

    assert jit.script(f)(tensor([1.0], requires_grad=True)) == (False, True, True)


def test_operands_in_the_middle_of_a_chain_are_compiled_as_any_other():
    offset = 1

    def helper(x: int) -> int:
        return x + offset

    def f(x: int, y: int, z: int):
        return x < helper(y) <= z + offset, not x < y < z, x < (
            y + offset  # a comment
        ) < 9 != helper(x), [a for a in [x, y, z] if x < a <= z]

    for values in ((1, 2, 3), (3, 2, 1), (1, 1, 1), (8, 0, 9)):
        assert jit.script(f)(*values) == f(*values)


def test_unpacked_parts_of_tuples_are_tuples():
    def f(t: Tuple[int, str, float]):
        a, *b = t
        *c, d = t
        e, *g, h = t
        return a, b, c, d, e, g, h

    assert jit.script(f)((1, "a", 2.5)) == (1, ("a", 2.5), (1, "a"), 2.5, 1, ("a",), 2.5)


def test_regions_of_a_profile_are_names_only():
    def f(x: torch.Tensor):
        with torch.autograd.profiler.record_function("first"):
            y = x + 1
        with torch.profiler.record_function("second") as region:
            y = y * 2
        return y, region.name

    y, name = jit.script(f)(tensor([1.0]))
    assert (y.tolist(), name) == ([4.0], "second")


def test_functions_of_texts_may_have_private_names():
    unit = flambeau.CompilationUnit("def _twice(x: int):\n    return x * 2\n")
    assert unit._twice(2) == 4 and not hasattr(unit, "_absent")


def test_prints(capsys):
    @jit.script
    def f(x: int):
        print("x", x, [1.5], True, None, (1, "a"))

    f(2)
    assert capsys.readouterr().out == "x 2 [1.5] True None (1, a)\n"


OUTSIDE = 3


def formatted(x: int):
    return (
        f"a {x} and {abs(x - 5)} "
        "is 'quoted' "
        f"{OUTSIDE}"
        " end"
    )  # fmt: skip


def test_formatted_texts_of_several_lines():
    assert jit.script(formatted)(4) == formatted(4)
