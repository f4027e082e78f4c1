"""Rules of graphs: the operators that statements and expressions become, and the text of graphs.

The operators are those of PyTorch 2.6, in the order in which its graphs print them.
"""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import pytest
from comparison import Rules

import flambeau
from flambeau import jit
from flambeau import torch_names as torch

RULES = Rules()
shows = RULES.shows


class Point(NamedTuple):
    x: int
    y: int


class Counter:
    def __init__(self, n: int):
        self.n = n

    def add(self, n: int) -> int:
        self.n += n
        return self.n


class Guard:
    def __init__(self, n: int):
        self.n = n

    def __enter__(self) -> int:
        return self.n

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        pass


def helper(x: int) -> int:
    return x + 1


@shows(
    [
        "aten::add", "aten::sub", "aten::mul", "aten::div", "aten::remainder", "aten::pow", "aten::floor_divide", "aten::matmul",
        "aten::__and__", "aten::__or__", "aten::__xor__", "aten::__lshift__", "aten::__rshift__", "aten::neg",
        "aten::bitwise_not", "aten::lt", "aten::eq", "prim::TupleConstruct",
    ],
)  # fmt: skip
def operators_on_tensors(x: torch.Tensor, y: torch.Tensor):
    return x + y, x - y, x * y, x / y, x % y, x**y, x // y, x @ y, x & y, x | y, x ^ y, x << y, x >> y, -x, ~x, x < y, x == y


@shows(
    [
        "aten::add", "aten::sub", "aten::mul", "aten::div", "aten::remainder", "aten::floordiv", "aten::__and__", "aten::__or__",
        "aten::__xor__", "aten::__lshift__", "aten::__rshift__", "aten::neg", "aten::eq", "aten::lt", "aten::ge",
        "prim::TupleConstruct",
    ],
)  # fmt: skip
def operators_on_integers(a: int, b: int):
    return a + b, a - b, a * b, a / b, a % b, a // b, a & b, a | b, a ^ b, a << b, a >> b, -a, a == b, a < b, a >= b


@shows(["aten::add_", "aten::sub_", "aten::mul_", "aten::div_", "aten::fmod_"])
def assignments_in_place(x: torch.Tensor):
    x += 1
    x -= 1
    x *= 2
    x /= 2
    x %= 2
    return x


@shows(["aten::__ilshift__", "aten::__irshift__", "aten::pow"])
def assignments_of_shifts(x: torch.Tensor):
    x <<= 1
    x >>= 1
    x **= 2
    return x


@shows(["aten::add", "aten::sub", "aten::mul", "aten::div", "aten::add", "aten::__or__", "prim::TupleConstruct"])
def assignments_to_numbers(x: int, y: float, s: str):
    x += 1
    x -= 2
    x *= 3
    y /= 2
    s += "a"
    x |= 4
    return x, y, s


@shows(
    [
        "prim::ListConstruct", "aten::add_", "aten::append", "aten::Delete", "aten::_set_item", "aten::__getitem__", "aten::len",
        "aten::add", "prim::TupleConstruct",
    ],
)  # fmt: skip
def lists_in_place(l: List[int]):
    l += [1]
    l.append(2)
    del l[0]
    l[0] = 5
    return l[1], len(l), l + l


@shows(
    [
        "aten::_set_item", "aten::Delete", "aten::__getitem__", "aten::__contains__", "aten::get", "aten::keys",
        "prim::DictConstruct", "prim::TupleConstruct",
    ],
)  # fmt: skip
def dictionaries(d: Dict[str, int]):
    d["a"] = 1
    del d["b"]
    return d["a"], "c" in d, d.get("e", 1), d.keys(), {"a": 1}


@shows(["prim::Loop", "aten::add"])
def a_loop_over_a_range(n: int):
    total = 0
    for i in range(n):
        total += i
    return total


@shows(["aten::__range_length", "prim::Loop", "aten::__derive_index", "aten::add"])
def a_loop_over_a_range_with_steps(n: int):
    total = 0
    for i in range(2, n, 3):
        total += i
    return total


@shows(["aten::len", "prim::Loop", "aten::__getitem__", "aten::add"])
def a_loop_over_a_list(l: List[int]):
    total = 0
    for x in l:
        total += x
    return total


@shows(["aten::len", "prim::Loop", "aten::select", "aten::Int", "aten::add"])
def a_loop_over_a_tensor(t: torch.Tensor):
    total = 0
    for x in t:
        total += int(x)
    return total


@shows(["aten::keys", "aten::len", "prim::Loop", "aten::__getitem__", "aten::add"])
def a_loop_over_a_dictionary(d: Dict[str, int]):
    text = ""
    for key in d:
        text += key
    return text


@shows(["aten::gt", "prim::Loop", "aten::sub", "aten::gt"])
def a_loop_with_a_condition(n: int):
    while n > 10:
        n -= 1
    return n


@shows(["prim::TupleUnpack", "aten::add", "aten::add"])
def a_loop_over_a_tuple(t: Tuple[int, int]):
    total = 0
    for x in t:
        total += x
    return total


@shows(["aten::gt", "prim::Loop", "aten::eq", "prim::If", "aten::add", "aten::add", "aten::lt", "aten::__and__"])
def a_loop_with_a_break(n: int):
    total = 0
    for i in range(n):
        if i == 3:
            break
        total += i
    return total


@shows(["aten::gt", "prim::Loop", "aten::eq", "prim::If", "aten::add", "aten::add", "aten::lt", "aten::__and__"])
def a_loop_with_a_continue(n: int):
    total = 0
    for i in range(n):
        if i == 3:
            continue
        total += i
    return total


@shows(
    [
        "prim::Uninitialized", "aten::len", "aten::gt", "prim::Loop", "aten::__getitem__", "aten::gt", "prim::If", "aten::add",
        "aten::lt", "aten::__and__", "prim::If",
    ],
)  # fmt: skip
def a_loop_with_a_return(l: List[int]):
    for x in l:
        if x > 2:
            return x
    return 0


@shows(["aten::gt", "prim::If", "aten::gt", "aten::gt", "prim::If", "aten::gt", "aten::gt", "aten::__not__", "prim::TupleConstruct"])
def short_circuits(a: int, b: int):
    return a > 0 and b > 0, a > 1 or b > 1, not a > 2


@shows(["aten::Bool", "prim::If", "aten::Bool", "prim::If", "prim::TupleConstruct"])
def truth_values(a: int, t: torch.Tensor):
    return 1 if a else 2, 3 if t else 4


@shows(["aten::gt", "prim::If"])
def branches(a: int):
    if a > 0:
        x = 1
    else:
        x = 2
    return x


@shows(["aten::gt", "prim::If", "prim::RaiseException"])
def a_branch_that_raises(a: int):
    if a > 0:
        raise ValueError("no")
    return a


@shows([])
def known_branches(a: int):
    if a is None:
        return 1
    if isinstance(a, int):
        return 2
    return 3


@shows(["aten::__isnot__", "prim::If", "prim::unchecked_cast", "aten::add"])
def a_refined_optional(a: Optional[int]):
    if a is not None:
        return a + 1
    return 0


@shows(["aten::gt", "prim::If", "aten::add", "prim::RaiseException"])
def an_assertion(a: int, text: str):
    assert a > 0, text
    return a


@shows(
    [
        "aten::select", "aten::slice", "aten::unsqueeze", "aten::select", "prim::ListConstruct", "aten::index", "aten::slice",
        "prim::ListConstruct", "aten::index", "aten::select", "aten::slice", "aten::unsqueeze", "prim::TupleConstruct",
    ],
)  # fmt: skip
def selections(x: torch.Tensor, t: torch.Tensor):
    return x[0], x[1:], x[None], x[..., 0], x[t], x[:, t], x[0, 1:, None]


@shows(
    [
        "aten::select", "aten::copy_", "prim::ListConstruct", "aten::index_put_", "aten::select", "prim::dtype", "prim::device",
        "aten::tensor", "aten::copy_", "aten::select", "aten::add_",
    ],
)  # fmt: skip
def assignments_to_parts(x: torch.Tensor, t: torch.Tensor):
    x[0] = t
    x[t] = t
    x[0] = 1.5
    x[0] += 1
    return x


@shows(["prim::TupleIndex", "prim::TupleIndex", "prim::TupleConstruct"])
def tuples(t: Tuple[int, str], p: Point):
    a, b = t
    return t[0], p.x, Point(1, 2), (1, "a")


@shows(["prim::ListUnpack", "prim::TupleConstruct"])
def unpacked_lists(l: List[int]):
    a, b = l
    return a, b


@shows(
    [
        "prim::ListConstruct", "aten::len", "prim::Loop", "aten::__getitem__", "aten::add", "aten::append",
        "prim::DictConstruct", "aten::len", "prim::Loop", "aten::__getitem__", "aten::_set_item", "prim::TupleConstruct",
    ],
)  # fmt: skip
def comprehensions(l: List[int]):
    return [x + 1 for x in l], {x: x for x in l}


@shows(["aten::format", "aten::format", "aten::percentFormat", "prim::TupleConstruct"])
def formatted_texts(a: int):
    return f"{a} {a}", "{}".format(a), "%d" % a


@shows(["prim::CallFunction", "prim::CallFunction", "prim::TupleConstruct"])
def calls(a: int):
    return helper(a), helper(2)


@shows(["prim::CreateObject", "prim::CallMethod", "prim::SetAttr", "prim::CallMethod", "prim::GetAttr", "prim::TupleConstruct"])
def objects(a: int):
    c = Counter(a)
    c.n = 5
    return c.add(1), c.n


@shows(["prim::CreateObject", "prim::CallMethod", "prim::Enter", "aten::add", "prim::Exit"])
def contexts(a: int):
    with Guard(a) as n:
        b = n + 1
    return b


@shows(["prim::Print"])
def printing(a: int):
    print(a, "text")


@shows(["prim::fork_0", "aten::wait", "prim::CallFunction"])
def tasks(a: int):
    task = jit.fork(helper, a)
    return jit.wait(task)


@shows(["aten::size", "prim::ListUnpack", "aten::size", "aten::dim", "prim::dtype", "prim::device", "prim::TupleConstruct"])
def sizes(x: torch.Tensor):
    n, m = x.shape
    return n, x.size(0), x.dim(), x.dtype, x.device


@shows(["aten::abs", "aten::sub", "prim::ListConstruct", "aten::cat", "aten::neg", "aten::div", "aten::acos", "prim::TupleConstruct"])
def synonyms(x: torch.Tensor):
    return torch.absolute(x), torch.subtract(x, x), torch.concat([x]), x.negative(), torch.true_divide(x, x), torch.arccos(x)


@shows(
    [
        "aten::Int", "aten::Float", "aten::str", "aten::Int", "aten::Bool", "aten::item", "aten::IntImplicit",
        "prim::CallFunction", "prim::TupleConstruct",
    ],
)  # fmt: skip
def conversions(x: torch.Tensor, a: int, b: float):
    return int(x), float(a), str(a), int(b), bool(b), x.item(), helper(x)


@pytest.mark.parametrize(("check", "function", "expected", "args"), RULES.cases)
def test_rules(check, function, expected, args):
    check(function, expected, args)


# The text of graphs.

TEXTS = [
    ("comments", "  %y : Tensor = aten::relu(%x) # a comment", "  %y : Tensor = aten::relu(%x)", "%y"),
    ("tensors without a type", "  %y = aten::relu(%x)", "  %y : Tensor = aten::relu(%x)", "%y"),
    ("no results", "  prim::Print(%x)", "   = prim::Print(%x)", ""),
    ("no results, as printed", "   = prim::Print(%x)", None, ""),
    ("an integer", "  %c : int = prim::Constant[value=-3]()", None, "%c"),
    ("a float", "  %c : float = prim::Constant[value=2.]()", None, "%c"),
    ("a small float", "  %c : float = prim::Constant[value=1.0000000000000001e-05]()", None, "%c"),
    ("a truth value", "  %c : bool = prim::Constant[value=1]()", None, "%c"),
    ("a text", '  %c : str = prim::Constant[value="a\\"b\\n"]()', None, "%c"),
    ("none", "  %c : NoneType = prim::Constant()", None, "%c"),
    ("integers", "  %c : int[] = prim::Constant[value=[1, 2]]()", None, "%c"),
    ("floats", "  %c : float[] = prim::Constant[value=[1., 2.5]]()", None, "%c"),
    ("an empty list", "  %c : int[] = prim::Constant[value=annotate(List[int], [])]()", None, "%c"),
    ("attributes", '  %y : Tensor = mylib::op[a=1, b="s", c=[1, 2]](%x)', None, "%y"),
    ("several results", "  %t : (Tensor, int) = prim::TupleConstruct(%x, %n)\n  %p : Tensor, %q : int = prim::TupleUnpack(%t)", None, "%q, %p"),
    (
        "a loop",
        "  %t : bool = prim::Constant[value=1]()\n  %y : Tensor = prim::Loop(%n, %t, %x)\n    block0(%i : int, %z : Tensor):\n"
        "      %w : Tensor = aten::add(%z, %i, %n)\n      -> (%t, %w)",
        None,
        "%y",
    ),
    (
        "a branch",
        "  %b : bool = aten::gt(%n, %n)\n  %y : Tensor = prim::If(%b)\n    block0():\n      -> (%x)\n    block1():\n"
        "      %z : Tensor = aten::neg(%x)\n      -> (%z)",
        None,
        "%y",
    ),
]
"""Lines of a graph, the lines that are printed (`None` if they are the same), and the results."""


@pytest.mark.parametrize(("lines", "printed", "results"), [case[1:] for case in TEXTS], ids=[case[0] for case in TEXTS])
def test_lines_of_graphs_are_read_and_printed(lines, printed, results):
    text = flambeau.parse_graph(f"graph(%x : Tensor, %n : int):\n{lines}\n  return ({results})\n").text()
    assert text.rstrip() == f"graph(%x : Tensor,\n      %n : int):\n{printed or lines}\n  return ({results})"


@pytest.mark.parametrize(
    "type",
    ["Tensor", "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", "Float(*, *)", "Long()", "int[]", "Tensor[]", "int?", "(int, str)",
     "Dict(str, int)", "Union(int, str)", "Device", "Scalar", "complex", "NoneType", "Any", "Generator", "int?[]"],
)  # fmt: skip
def test_types_of_graphs_are_read_and_printed(type):
    text = f"graph(%x : {type}):\n  return (%x)"
    assert flambeau.parse_graph(text).text().rstrip() == text


@pytest.mark.parametrize("lines", ["  return (%absent)", "  %y : NoSuchType[ = aten::relu(%x)\n  return (%y)", "  %y : Tensor = relu(%x\n"])
def test_graphs_that_are_not_read(lines):
    with pytest.raises(flambeau.Error):
        flambeau.parse_graph(f"graph(%x : Tensor):\n{lines}\n")


def test_the_text_of_a_graph():
    def f(n: int, l: List[int]) -> int:
        total = 0
        for i in range(n):
            if l[i] > 2:
                total += i
        return total

    text = re.sub(r" # .*", "", str(jit.script(f).graph)).rstrip()
    # The names of values are those of variables, with a number where a variable has several values.
    assert re.sub(r"%\d+", "%_", text) == """graph(%n.1 : int,
      %l.1 : int[]):
  %_ : bool = prim::Constant[value=1]()
  %total.1 : int = prim::Constant[value=0]()
  %_ : int = prim::Constant[value=2]()
  %total : int = prim::Loop(%n.1, %_, %total.1)
    block0(%i.1 : int, %total.21 : int):
      %_ : int = aten::__getitem__(%l.1, %i.1)
      %_ : bool = aten::gt(%_, %_)
      %total.19 : int = prim::If(%_)
        block0():
          %total.5 : int = aten::add(%total.21, %i.1)
          -> (%total.5)
        block1():
          -> (%total.21)
      -> (%_, %total.19)
  return (%total)"""


def test_parts_of_graphs():
    graph = jit.script(a_loop_over_a_range).graph
    (loop,) = [node for node in graph.nodes() if node.kind == "prim::Loop"]
    (body,) = loop.blocks()
    # The trip count, the condition and the carried values; the index and the carried values; the condition and the carried values.
    assert [value.type for value in loop.inputs()] == ["int", "bool", "int"]
    assert [value.type for value in body.inputs()] == ["int", "int"] and [value.type for value in body.outputs()] == ["bool", "int"]
    assert [value.type for value in loop.outputs()] == ["int"]
    graph = jit.script(branches).graph
    (branch,) = [node for node in graph.nodes() if node.kind == "prim::If"]
    assert len(branch.blocks()) == 2 and [len(block.outputs()) for block in branch.blocks()] == [1, 1]
    assert all(node.kind not in ("prim::Param", "prim::Return") for node in graph.nodes(nested=True))
    name = graph.inputs()[0].name
    other = graph.copy()
    assert other.inputs()[0].name == name and other.text() == graph.text()
