"""Errors, tracebacks, warnings and graphs name positions in the user's file, also where names are replaced and lines are indented."""

import pathlib
import re
from typing import List

import pytest

import flambeau
from flambeau import jit

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
LINES = pathlib.Path(__file__).read_text().splitlines()


def underlined(text: str, sign: str = "^") -> list[str]:
    """Returns what is underlined in the excerpts of a text."""
    lines = text.splitlines()
    found = []
    for above, line in zip(lines, lines[1:], strict=False):
        marks = re.search(re.escape(sign) + "+", line)
        if marks is not None and not line.replace(sign, "").replace("<--- HERE", "").strip(" |"):
            found.append(above[marks.start() : marks.end()])
    return found


def at(error: flambeau.Error, text: str) -> bool:
    """Returns whether an error is at a text of this file."""
    assert error.file == __file__ and error.line is not None and error.column is not None
    return LINES[error.line - 1][error.column - 1 :].startswith(text)


def after_a_name(x):
    return F.relu(x) + undefined_name


def in_a_method_call(x):
    return F.relu(F.relu(x)).no_such_method(F.relu(x))


def test_columns_behind_replaced_names():
    with pytest.raises(flambeau.Error) as refused:
        jit.script(after_a_name)
    assert at(refused.value, "undefined_name") and underlined(str(refused.value)) == ["undefined_name"]
    with pytest.raises(flambeau.Error) as refused:
        jit.script(in_a_method_call)
    assert at(refused.value, "F.relu(F.relu(x)).no_such")
    assert underlined(str(refused.value))[0].startswith("F.relu(F.relu(x)).no_such_method")


def over_several_lines(x, y: int):
    return F.relu(
        F.threshold(
            x, float(y), "text",  # a comment
        )
    )  # fmt: skip


def test_excerpts_of_calls_over_several_lines():
    with pytest.raises(flambeau.Error) as refused:
        jit.script(over_several_lines)
    assert at(refused.value, "F.threshold(") and "        F.threshold(" in str(refused.value)


def chained(a: int, b: str, c: int) -> bool:
    return 0 < a < b < c


def test_chained_comparisons():
    with pytest.raises(flambeau.Error) as refused:
        jit.script(chained)
    assert at(refused.value, "a < b < c")


def make(flag: bool):
    if flag:

        def nested(x: List[int], at: int) -> int:
            y = F.relu(torch.ones([2]))
            return int(y[0]) + x[at + len([1, 2, 3])]

    return nested


def test_tracebacks_have_the_indentation_of_the_file():
    nested = jit.script(make(True))
    with pytest.raises(flambeau.errors.RuntimeError) as raised:
        nested([1], 7)
    assert at(raised.value, "x[at + len([1, 2, 3])]")
    assert underlined(str(raised.value), "~")[-1].startswith("x[at + len([1, 2, 3])")
    assert "            return int(y[0]) + x[at" in str(raised.value)


def test_graphs_name_the_columns_of_the_file():
    def twice(x):
        return F.relu(x) + F.tanh(x)

    text = str(jit.script(twice).graph)
    line = next(i for i, line in enumerate(LINES) if "F.relu(x) + F.tanh(x)" in line)
    assert f"# {__file__}:{line + 1}:{LINES[line].index('F.relu(x) + F.tanh(x)')}" in text


class Base(nn.Module):
    def inherited(self, x):
        return F.relu(x).sum() + self.absent


class Derived(Base):
    def forward(self, x):
        return self.inherited(F.relu(x))


def test_inherited_methods_have_their_own_lines():
    with pytest.raises(flambeau.Error) as refused:
        jit.script(Derived())
    assert at(refused.value, "self.absent")


class Indexed(Base):
    @property
    def first(self) -> int:
        return [1, 2, 3][4]

    def forward(self, x):
        return F.relu(x) * self.first


def test_properties_have_their_own_lines():
    with pytest.raises(flambeau.errors.RuntimeError) as raised:
        jit.script(Indexed())(flambeau.tensor([1.0]))
    assert at(raised.value, "[1, 2, 3][4]")


@jit.script
class Counter:
    @staticmethod
    def start() -> int:
        return [1, 2][2]

    def __init__(self, count: int):
        self.count = count


def counted(x: int) -> int:
    return Counter.start() + Counter(x).count


def test_decorated_first_members_of_classes():
    with pytest.raises(flambeau.errors.RuntimeError) as raised:
        jit.script(counted)(1)
    assert at(raised.value, "[1, 2][2]")


def test_texts_keep_their_columns():
    with pytest.raises(flambeau.Error) as refused:
        flambeau.CompilationUnit("""
            def f(x: int) -> int:
                return x + absent
        """)
    assert (refused.value.line, refused.value.column) == (3, 28)


def test_separators_within_texts_are_characters():
    with pytest.raises(flambeau.Error) as refused:
        flambeau.CompilationUnit("def f(x: int) -> str:\n    a = '\N{LINE SEPARATOR}\f'\n    return a + absent\n")
    assert (refused.value.line, refused.value.column) == (3, 16)


class Headed(
    torch.nn.Module if False else object,
): count: int = 3  # fmt: skip


def test_headers_of_classes_over_several_lines():
    def counts() -> int:
        return Headed().count

    with pytest.raises(flambeau.Error) as refused:
        jit.script(counts)
    assert "F0001" not in str(refused.value)


def fails_late(x):
    for i in range(10):
        y = x[i]
        z = y.sum()
        x = x + z + y
    return x


def test_errors_of_optimized_programs_have_the_statement():
    compiled = jit.script(fails_late)
    for _ in range(3):
        with pytest.raises(flambeau.errors.RuntimeError) as raised:
            compiled(torch.ones(3))
        assert at(raised.value, "x[i]")
