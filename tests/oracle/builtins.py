"""Records results of operators on plain values (lists, dictionaries, strings, ...) into builtins.txt beside this file.

A line has four fields between tabs: the overload that was run, its arguments, its results or `!` and the main line of the
error, its arguments afterwards (empty after an error). Values are written by `text` below, without spaces; a space
stands between values.
"""

import itertools
import pathlib
import struct

import torch

torch.set_num_threads(1)
NAN, INF = float("nan"), float("inf")


def text(value, ty):
    ty = ty.replace(" ", "")
    if ty.endswith("?"):
        return "N" if value is None else text(value, ty[:-1])
    if ty == "Scalar":
        ty = {int: "int", float: "float", bool: "bool", complex: "complex"}[type(value)]
    if ty == "int":
        return f"i{value}"
    if ty == "bool":
        return "T" if value else "F"
    if ty == "float":
        return "f" + struct.pack(">d", value).hex()
    if ty == "complex":
        return "c" + struct.pack(">d", value.real).hex() + struct.pack(">d", value.imag).hex()
    if ty == "str":
        return "s" + value.encode().hex()
    if ty == "Device":
        return f"d{value}"
    if ty == "Tensor":
        assert value.dtype == torch.float32
        return "t" + "x".join(map(str, value.shape)) + ":" + ";".join(str(x) for x in value.flatten().tolist())
    if ty.endswith("[]"):
        return f"L{ty[:-2]}|[" + ",".join(text(v, ty[:-2]) for v in value) + "]"
    if ty.startswith("Dict("):
        key, val = ty[5:-1].split(",", 1)
        return f"D{key}:{val}|{{" + ",".join(f"{text(k, key)}={text(v, val)}" for k, v in value.items()) + "}"
    if ty.startswith("("):
        inner = [t for t in ty[1:-1].split(",") if t]
        return "(" + ",".join(text(v, t) for v, t in zip(value, inner)) + ")"
    raise ValueError(ty)


def build(op, types, rets):
    params = ", ".join(f"%a{i} : {t}" for i, t in enumerate(types))
    args = ", ".join(f"%a{i}" for i in range(len(types)))
    outs = ", ".join(f"%r{i} : {t}" for i, t in enumerate(rets))
    all_types = ", ".join(list(rets) + list(types))
    names = ", ".join([f"%r{i}" for i in range(len(rets))] + [f"%a{i}" for i in range(len(types))])
    call = f"  {outs} = {op}({args})\n" if rets else ""
    graph = torch._C.parse_ir(
        f"graph({params}):\n{call}  %t : ({all_types}) = prim::TupleConstruct({names})\n  return (%t)"
    )
    if not rets:
        node = graph.create(op, list(graph.inputs()), 0)
        node.insertBefore(next(iter(graph.nodes())))
    node = next(iter(graph.nodes()))
    return torch._C._create_function_from_graph("f", graph), node.schema().split("(", 1)[0]


LINES = []


def record(op, types, rets, *cases):
    rets = [rets] if isinstance(rets, str) else list(rets)
    function, name = build(op, types, rets)
    for args in cases:
        before = " ".join(text(a, t) for a, t in zip(args, types))
        try:
            out = function(*args)
        except UnicodeDecodeError:
            continue  # Half a character cannot leave the interpreter.
        except RuntimeError as error:
            lines = str(error).rstrip().split("\n")
            at = next((i for i, line in enumerate(lines) if line.startswith("RuntimeError: ")), len(lines) - 1)
            LINES.append("\t".join([name, before, "!" + lines[at].removeprefix("RuntimeError: "), ""]))
            continue
        out = out if isinstance(out, tuple) and len(rets) + len(types) > 1 else (out,)
        if len(rets) + len(types) == 1 and isinstance(out[0], tuple):
            out = out[0]
        results = " ".join(text(v, t) for v, t in zip(out, rets))
        after = " ".join(text(v, t) for v, t in zip(out[len(rets):], types))
        LINES.append("\t".join([name, before, results, after]))


def lists():
    some = {
        "int": ([3, 1, 2, 1], 1, 9), "float": ([2.5, NAN, -1.0, 2.5, INF], 2.5, 1.123456789),
        "bool": ([True, False, True], False, True), "str": (["b", "a", "é", ""], "a", "zz"),
        "Tensor": ([torch.tensor(2.0), torch.tensor(1.0)], torch.tensor(1.0), torch.tensor(5.0)),
    }
    for ty, (full, present, absent) in some.items():
        lst, one = f"{ty}[]", f"{ty}"
        searched = [(full, present), (full, absent), ([], present)]
        record("aten::len", [lst], "int", (full,), ([],))
        for i in (0, 1, -1, 7, -7):
            record("aten::__getitem__", [lst, "int"], ty, (full, i), ([], i))
            record("aten::pop", [lst, "int"], ty, (list(full), i), ([], i))
            record("aten::Delete", [lst, "int"], [], (list(full), i), ([], i))
            record("aten::insert", [lst, "int", one], [], (list(full), i, absent), ([], i, absent))
            record("aten::_set_item", [lst, "int", one], lst, (list(full), i, absent), ([], i, absent))
        record("aten::append", [lst, one], lst, (list(full), absent), ([], absent))
        if ty != "Tensor":
            record("aten::index", [lst, one], "int", *searched)
        record("aten::count", [lst, one], "int", *searched)
        record("aten::remove", [lst, one], [], *[(list(l), x) for l, x in searched])
        for op in ("eq", "ne"):
            record(f"aten::{op}", [lst, lst], "bool", (full, full), (full, full[:-1]), ([], []), (full, full[::-1]))
        record("aten::extend", [lst, lst], [], (list(full), full), ([], full), (list(full), []))
        record("aten::add", [lst, lst], lst, (full, full), ([], []))
        record("aten::add_", [lst, lst], lst, (list(full), full))
        for n in (-1, 0, 2):
            record("aten::mul", [lst, "int"], lst, (full, n), ([], n))
            record("aten::mul", ["int", lst], lst, (n, full))
            record("aten::mul_", [lst, "int"], lst, (list(full), n))
        record("aten::copy", [lst], lst, (full,))
        record("aten::list", [lst], lst, (full,))
        record("aten::clear", [lst], [], (list(full),))
        record("aten::reverse", [lst], [], (list(full),), ([],))
        bounds = itertools.product((None, 0, 1, -2, 9, -9), (None, 0, 2, -1, 9, -9), (1, 2, -1, -2, 0))
        record("aten::slice", [lst, "int?", "int?", "int"], lst, *[(full, *b) for b in bounds])
        sortable = [x for x in full if x == x] if ty != "Tensor" else full
        for reverse in (False, True):
            record("aten::sort", [lst, "bool"], [], (list(sortable), reverse), ([], reverse))
        record("aten::sorted", [lst], lst, (sortable,))
        if ty in ("int", "str", "float"):
            record("aten::__contains__", [lst, one], "bool", *searched)
        if ty in ("int", "float", "bool"):
            record("aten::sum", [lst], "int" if ty == "bool" else ty, ([x for x in full if x == x],), ([],))
            record("aten::all", [lst], "bool", (full,), ([],))
            for op in ("prim::min", "prim::max"):
                record(op, [lst], ty, (full,), ([],))
                pairs = [(full, full[:-1]), (full[:-1], full), (full, full[::-1]), ([], full), ([], [])]
                record(op, [lst, lst], lst, *pairs)
        if ty != "Tensor":
            record("aten::any", [lst], "bool", (full,), ([],))
    record("aten::sorted", ["(int, str)[]"], "(int, str)[]", ([(2, "a"), (1, "b"), (2, ""), (1, "b")],))
    record("aten::sort", ["(int, str)[]", "bool"], [], ([(2, "a"), (1, "b"), (2, "")], True))
    for ty, value in (("int[]", [[1]]), ("Dict(int, int)", [{}]), ("complex", [1j])):
        record("aten::sorted", [f"{ty}[]"], f"{ty}[]", (value,))
    record("prim::rangelist", ["int"], "int[]", (3,), (0,), (-1,))
    record("aten::__range_length", ["int"] * 3, "int", *itertools.product((0, 5), (0, 7, -4), (1, 2, -1, -3, 0)))
    record("aten::__derive_index", ["int"] * 3, "int", (3, 5, -2))


def dictionaries():
    keys = {"str": ("a", "b", "zz"), "int": (1, -2, 7), "bool": (True, True, False), "float": (1.0, 0.1, NAN),
            "complex": (1j, 2 + 0.5j, -1j)}
    for ty, (first, second, absent) in keys.items():
        d = f"Dict({ty}, int)"
        make = lambda: {first: 1, second: 2}
        for op, rets in (("aten::__contains__", "bool"), ("aten::__getitem__", "int"), ("aten::get", "int?"),
                         ("aten::Delete", []), ("aten::pop", "int")):
            record(op, [d, ty], rets, (make(), first), (make(), absent), ({}, first))
        for op in ("get", "pop", "setdefault"):
            record(f"aten::{op}", [d, ty, "int"], "int", (make(), first, 5), (make(), absent, 5))
        record("aten::_set_item", [d, ty, "int"], [], (make(), first, 5), (make(), absent, 5))
        record("aten::len", [d], "int", (make(),), ({},))
        record("aten::keys", [d], f"{ty}[]", (make(),), ({},))
        record("aten::values", [d], "int[]", (make(),), ({},))
        record("aten::items", [d], f"({ty}, int)[]", (make(),))
        record("aten::popitem", [d], f"({ty}, int)", (make(),), ({},))
        record("aten::update", [d, d], [], (make(), {absent: 4, first: 5}))
        record("aten::clear", [d], [], (make(),))
        record("aten::copy", [d], d, (make(),))
        record("aten::dict", [d], d, (make(),))
        record("aten::dict", [f"({ty}, int)[]"], d, ([(first, 1), (absent, 2), (first, 3)],), ([],))


def strings():
    s = "str"
    words = ["", "a", "abc", "Hello World", "they're bill's", "a_b c-d 1x", "A", "A1b", "A1B", "aB", " \t\n", "1", "é", "aBé1",
             "a\n", "_a1", "1a", "a b  c", " a ", ",a,,b", "a\r\nb\n", "\n\n", "a\x0bb\x0cc\x1cd"]
    for op in "capitalize title lower upper swapcase".split():
        record(f"aten::{op}", [s], s, *[(w,) for w in words])
    for op in ("isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isprintable isspace isupper "
               "istitle").split():
        record(f"aten::{op}", [s], "bool", *[(w,) for w in words])
    record("aten::len", [s], "int", *[(w,) for w in words])
    record("aten::list", [s], "str[]", ("abc",), ("",))
    for op in ("center", "ljust", "rjust"):
        record(f"aten::{op}", [s, "int", s], s, *itertools.product(("abc", "ab"), (3, 4, 5, 8), ("*", "", "xy")))
    record("aten::zfill", [s, "int"], s, *itertools.product(("42", "-42", "+4", "", "-"), (-1, 0, 3, 5)))
    bounds = [(0, -1), (1, 2), (0, 3), (-1, 5), (5, 9), (-5, -2), (4, 2), (9, -1), (-15, 4), (0, 0), (-2, -9)]
    searched = [("aXbXc", "X"), ("aaaa", "aa"), ("abcabc", "c"), ("abcabc", "bc"), ("", "a"), ("abc", "abcd"), ("abc", "z")]
    empty = [("abc", ""), ("", "")]
    for op in ("find", "rfind", "index", "rindex", "count"):
        pairs = searched + (empty if op != "count" else [])
        record(f"aten::{op}", [s, s, "int", "int"], "int", *[(*p, *b) for p in pairs for b in bounds])
    for op in ("startswith", "endswith"):
        record(f"aten::{op}", [s, s, "int", "int"], "bool", *[(*p, *b) for p in searched + empty for b in bounds])
    for op in ("strip", "lstrip", "rstrip"):
        record(f"aten::{op}", [s, s], s, *itertools.product(("  ab ", "xyabyx", "aaa", ""), (" ", "xy", "a", "")))
    record("aten::split", [s, "str?", "int"], "str[]", *itertools.product(words, (None, " ", ",", "b "), (-1, 0, 1, 2)))
    record("aten::split", [s, "str?", "int"], "str[]", ("abc", "", -1))
    record("aten::rsplit", [s, s, "int"], "str[]", *itertools.product(words, (" ", ",", "b "), (-1, 0, 1, 2)))
    record("aten::splitlines", [s, "bool"], "str[]", *itertools.product(words, (False, True)))
    cut = [("abc", "b"), ("abc", "x"), ("abcabc", "bc"), ("", ""), ("abc", "")]
    record("aten::partition", [s, s], [s, s, s], *cut)
    record("aten::rpartition", [s, s], [s, s, s], *cut)
    record("aten::replace", [s, s, s, "int"], s, ("aaa", "a", "bb", -1), ("aaa", "a", "bb", 2), ("aaa", "a", "", 0),
           ("aaa", "aa", "b", -1), ("abc", "z", "y", -1), ("", "a", "b", -1))
    record("aten::join", [s, "str[]"], s, (",", ["a", "b", ""]), (",", []), ("", ["x", "y"]))
    record("aten::expandtabs", [s, "int"], s, *itertools.product(("a\tb", "\ta\tbc\td", "a\nb\tc", ""), (8, 4, 1, 0, -1)))
    for op in ("aten::__getitem__", "prim::StringIndex"):
        record(op, [s, "int"], s, *itertools.product(("abc", ""), (0, -1, 2, -3, 3, -4)))
    slices = itertools.product((None, 1, -2, 9), (None, 0, 2, -1), (1, 2, -1, 0))
    record("aten::slice", [s, "int?", "int?", "int"], s, *[("hello", *b) for b in slices])
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        record(f"aten::{op}", [s, s], "bool", ("a", "b"), ("a", "a"), ("é", "z"), ("", "a"))
    record("aten::add", [s, s], s, ("a", "b"), ("", ""))


def texts():
    s = "str"
    for ty, values in (("int", (0, -5)), ("float", (1.0, 0.1, 1e20, -0.0, NAN, 1e-7, 123456789.125)), ("bool", (True,)),
                       ("str", ("a", "")), ("int?", (None,)), ("int[]", ([1, 2], [])), ("(int, str)", ((1, "a"),)),
                       ("Dict(str, float)", ({"a": 1.0},)), ("complex", (1 + 2j, -0.5j)), ("str[]", (["a"],)),
                       ("Tensor", (torch.ones(2), torch.tensor(1.5))), ("Device", (torch.device("cuda:1"),))):
        record("aten::str", [ty], s, *[(v,) for v in values])
        record("aten::format", [s, ty], s, *[("<{}>", v) for v in values])
        for spec in "dieEfFcsgx5.":
            record("aten::percentFormat", [s, ty], s, *[(f"%{spec}|", v) for v in values
                   if not (ty in ("bool", "complex") and spec in "dieEfF") and not (ty == "float" and spec == "c")])
    for pattern in ("{} x {}", "{}", "{} {} {}", "{0} {:d} {} {}", "{{}}{}", "x"):
        record("aten::format", [s, "int", "float"], s, (pattern, 1, 2.0))
    for pattern in ("%d %s", "%s", "%d%%", "%%", "%", "x%", "%d %s %s", "%c%c"):
        record("aten::percentFormat", [s, "(int, str)"], s, (pattern, (65, "x")))
    record("aten::percentFormat", [s, "int"], s, ("%d%%", 5), ("%c", 65))
    for op in ("bin", "hex", "oct"):
        record(f"aten::{op}", ["int"], s, (0,), (5,), (-5,), (2**63 - 1,))
    record("aten::ord", [s], "int", ("a",), ("",), ("ab",), ("é",))
    record("aten::chr", ["int"], s, (65,), (0,), (127,), (256 + 65,), (1114111,), (-1,))
    for ty, values in (("int", (5, -1)), ("str", ("a", "", "hello world", "12345678", "é")), ("float", (5.0, 0.0, -0.0, NAN, INF)),
                       ("bool", (True, False)), ("(int, int)", ((1, 2),)), ("(int, str)", ((1, "a"),)),
                       ("Device", (torch.device("cpu"), torch.device("cuda:1"))), ("int?", (None, 3)), ("int[]", ([1],)),
                       ("complex", (1j,))):
        record("aten::hash", [ty], "int", *[(v,) for v in values])


def others():
    record("aten::_unwrap_optional", ["int?"], "int", (None,), (3,))
    record("aten::device", ["str"], "Device", ("cuda:1",), ("cpu",), ("cpu:x",))
    for op in ("eq", "ne"):
        record(f"aten::{op}", ["Device", "Device"], "bool", (torch.device("cpu"), torch.device("cpu:0")),
               (torch.device("cpu"), torch.device("cpu")))
    record("prim::type", ["Device"], "str", (torch.device("cuda:1"),))
    record("prim::index", ["Device"], "int?", (torch.device("cuda:1"),), (torch.device("cpu"),))
    record("aten::Size", ["int[]"], "int[]", ([1, 2],))
    record("aten::_size_if_not_equal", ["int[]", "int[]"], "int[]?", ([1], [1]), ([1], [2]))
    record("aten::__round_to_zero_floordiv", ["int", "int"], "int", (-7, 2), (-7, -2), (7, 2))
    record("aten::promote_types", ["int", "int"], "int", *itertools.product((0, 3, 4, 5, 6, 7, 9, 11, 15), repeat=2))
    record("aten::can_cast", ["int", "int"], "bool", *itertools.product((0, 3, 4, 5, 6, 7, 9, 11, 15), repeat=2))
    record("aten::result_type", ["Scalar", "Scalar"], "int", *itertools.product((1, 2.5), repeat=2))
    record("aten::has_torch_function", ["int"], "bool", (1,))
    record("aten::get_autocast_dtype", ["str"], "int", ("cpu",))
    for op, want in (("__is__", "bool"), ("__isnot__", "bool")):
        for ty, a, b in (("str", "a", "a"), ("int", 1, 1), ("int", 1, 2), ("int[]", [1], [1]), ("float", NAN, NAN), ("int?", None, None),
                         ("int?", None, 1)):
            record(f"aten::{op}", [ty, ty], want, (a, b))


for part in (lists, dictionaries, strings, texts, others):
    part()
out = pathlib.Path(__file__).with_name("builtins.txt")
escaped = [line.replace("\\", "\\\\").replace("\n", "\\n") for line in LINES]
out.write_text("".join(line + "\n" for line in escaped))
print(len(LINES), "cases of", len({line.split("\t")[0] for line in LINES}), "overloads")
