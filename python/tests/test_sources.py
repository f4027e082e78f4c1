"""Where definitions are found."""

import functools
import linecache
import pathlib
import time

import pytest

from flambeau import jit
from flambeau._sources import definition


class Outer:
    class Inner:
        def method(self):
            return 1


def same_name(flag):
    if flag:

        class Local:
            def one(self):
                return 1

    else:

        class Local:
            def two(self):
                return 2

    return Local


def deco(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    return call


@deco
def wrapped(x: int) -> int:
    return x + 1


def test_definitions_have_their_lines():
    for cls, text in ((Outer, "class Outer:"), (Outer.Inner, "    class Inner:")):
        lines, first, file = definition(cls)
        assert lines[0] == text + "\n" and file == __file__
        assert pathlib.Path(__file__).read_text().splitlines()[first - 1] == text
    assert "one" in "".join(definition(same_name(True))[0]) and "two" in "".join(definition(same_name(False))[0])
    lines, first, _ = definition(wrapped)
    assert lines[0] == "@deco\n" and lines[-1] == "    return x + 1\n" and first == wrapped.__wrapped__.__code__.co_firstlineno


def lines_with_less_indentation(
    x: int,  # the parenthesis below closes the signature
) -> str:
    text = """
unindented
"""
    # more
# less
    if x > 0:
        return (text +
"a")

    return text


def two(x: int) -> int: return x + 2


async def other(): pass


def in_one_line(flag):
    def inner(x: int) -> int: return x + 1; y = 1  # fmt: skip
    return inner


def after() -> int:
    return 1 \
+ 2
# a comment behind


def test_the_end_of_a_definition():
    text = "".join(definition(lines_with_less_indentation)[0])
    assert text.endswith('"a")\n\n    return text\n') and jit.script(lines_with_less_indentation)(1) == "\nunindented\na"
    assert definition(two)[0] == ["def two(x: int) -> int: return x + 2\n"] and jit.script(two)(1) == 3
    assert "".join(definition(in_one_line(True))[0]).startswith("    def inner(") and len(definition(in_one_line(True))[0]) == 1
    assert "".join(definition(after)[0]).endswith("return 1 \\\n+ 2\n") and jit.script(after)() == 3
    assert definition(other)[0] == ["async def other(): pass\n"]


def test_definitions_without_source():
    made = type("Made", (), {})
    with pytest.raises(OSError):
        definition(made)
    with pytest.raises((OSError, TypeError)):
        definition(int)
    function = eval("lambda x: x")
    with pytest.raises(OSError):
        definition(function)


def test_classes_of_large_files_compile_in_time(tmp_path):
    import importlib.util

    classes = "".join(
        f"class C{i}:\n    def __init__(self, x: int):\n        self.x = x\n    def get(self) -> int:\n        return self.x + {i}\n\n\n"
        for i in range(2000)
    )
    calls = " + ".join(f"C{i}(x).get()" for i in range(20))
    file = tmp_path / "large.py"
    file.write_text(f"{classes}\ndef f(x: int) -> int:\n    return {calls}\n")
    spec = importlib.util.spec_from_file_location("large", file)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["large"] = module
    spec.loader.exec_module(module)
    definition(module.C0)
    start = time.perf_counter()
    for i in range(2000):
        assert definition(getattr(module, f"C{i}"))[0][0] == f"class C{i}:\n"
    assert time.perf_counter() - start < 2, "the file is parsed once"
    assert jit.script(module.f)(1) == 20 + sum(range(20))
    del sys.modules["large"]


def test_classes_of_notebooks_are_found_by_their_methods():
    cell = """
class Counter:
    def __init__(self, n: int):
        self.n = n

    def twice(self) -> int:
        return self.n * 2


def double(n: int) -> int:
    return Counter(n).twice()
"""
    # As notebooks do: the module has no file, and the lines of the cell are in the cache.
    linecache.cache["<cell 1>"] = (len(cell), None, cell.splitlines(True), "<cell 1>")
    names = {"__name__": "a_notebook"}
    exec(compile(cell, "<cell 1>", "exec"), names)
    assert jit.script(names["double"])(4) == 8
