"""Errors that Python finds have the form of those that the compiler finds."""

import errno
import re

import pytest

import flambeau
from flambeau import jit
from flambeau import torch_names as torch


def with_default(x: torch.Tensor, y=[1]):  # noqa: B006
    return x


def calls_with_default(x: torch.Tensor):
    return with_default(x)


def calls_a_caller(x: torch.Tensor):
    return calls_with_default(x)


def with_unknown_method(x: torch.Tensor):
    return x.is_no_method()


def calls_with_unknown_method(x: torch.Tensor):
    return with_unknown_method(x)


def form(error):
    """Returns the ranges of an error without the parts that depend on the program."""
    ranges = str(error)[str(error).index("\n  File") :]
    # The line of the definition, which only lines of its body have.
    ranges = re.sub(r" *\d+ \| def .*\n(?= *\d+ \| )", "", ranges)
    for part, name in ((r'"[^"]*"', "FILE"), (r"\d+( \| ).*", r"N\1TEXT"), (r"\^+", "^"), (r" +\| +", " | "), (r"line \d+", "line N"), (r"'\w+'", "NAME")):
        ranges = re.sub(part, name, ranges)
    return ranges


def test_a_refusal_has_the_form_of_a_compile_error():
    with pytest.raises(flambeau.UnsupportedError) as refused:
        jit.script(calls_with_default)
    with pytest.raises(flambeau.CompileError) as wrong:
        jit.script(calls_with_unknown_method)
    assert form(refused.value) == form(wrong.value)
    line = with_default.__code__.co_firstlineno
    assert str(refused.value).startswith("unsupported[F0101]: Mutable default parameters are not supported")
    assert str(refused.value).splitlines()[2:5] == [
        f'  File "{__file__}", line {line}',
        f"  {line} | def with_default(x: torch.Tensor, y=[1]):  # noqa: B006",
        "     | " + " " * 36 + "^^^",
    ]
    error = refused.value
    assert (error.code, error.file, error.line, error.column) == ("F0101", __file__, line, 37)
    assert error.message.startswith("Mutable default")


def test_a_refusal_has_the_whole_chain_of_calls():
    with pytest.raises(flambeau.UnsupportedError) as refused:
        jit.script(calls_a_caller)
    chain = re.findall(r"'(\w+)' is being compiled since it was called from '(\w+)'", str(refused.value))
    assert chain == [("with_default", "calls_with_default"), ("calls_with_default", "calls_a_caller")]


def test_an_annotation_that_is_no_type():
    def f(x: set):
        return x

    with pytest.raises(flambeau.UnsupportedError, match=r"^unsupported\[F0110\]: ") as refused:
        jit.script(f)
    assert isinstance(refused.value, ValueError) and refused.value.code == "F0110"


@pytest.mark.parametrize(
    "call",
    [lambda: jit.script(3), lambda: flambeau.ops.aten.relu(object()), lambda: jit.script(with_unknown)(),
     lambda: jit.trace(lambda x: x, (object(),))],
)  # fmt: skip
def test_misuse_has_a_code_and_a_message(call):
    with pytest.raises(flambeau.MisuseError) as wrong:
        call()
    assert wrong.value.code == "X0003"
    assert str(wrong.value) == f"error[X0003]: {wrong.value.message}" and wrong.value.message


def with_unknown(x: int):
    return x


def test_wide_characters_before_the_range():
    def f(x: torch.Tensor):
        return "äö", bytearray()

    with pytest.raises(flambeau.UnsupportedError) as refused:
        jit.script(f)
    lines = str(refused.value).splitlines()
    assert lines[-1].index("^") == lines[-2].index("bytearray") and lines[-1].count("^") == len("bytearray()") - 2


class Broken:
    def __init__(self, a: int):
        self.a = a

    def method(self):
        import sys  # noqa: F401

        return self.a


class Refused:
    def __init__(self, a: int):
        self.a = bytearray()


def uses_broken(x) -> Broken:
    return Broken(1)


def calls_uses_broken(x):
    return uses_broken(x).a


def uses_refused(x):
    return Refused(1).a


def does_not_parse(x):
    try:
        return x
    except ValueError:
        return x


def calls_what_does_not_parse(x):
    return does_not_parse(x)


@pytest.mark.parametrize(
    ("function", "chain"),
    [
        (calls_uses_broken, [("Broken", "uses_broken"), ("uses_broken", "calls_uses_broken")]),
        (uses_refused, [("Refused", "uses_refused")]),
        (calls_what_does_not_parse, [("does_not_parse", "calls_what_does_not_parse")]),
    ],
)
def test_errors_in_classes_and_of_the_parser_have_the_chain_of_calls(function, chain):
    with pytest.raises(flambeau.Error) as wrong:
        jit.script(function)
    assert re.findall(r"'(\w+)' is being compiled since it was called from '(\w+)'", str(wrong.value)) == chain


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "missing.pt", tmp_path):
        with pytest.raises(flambeau.errors.FileError) as refused:
            jit.load(str(path))
        for cls in (ValueError, OSError, RuntimeError, flambeau.CompileError):
            assert isinstance(refused.value, cls)
        assert str(path) in str(refused.value)
        assert refused.value.errno == (errno.EISDIR if path == tmp_path else errno.ENOENT)
    (tmp_path / "text.pt").write_text("no archive")
    with pytest.raises(flambeau.CompileError, match="too short for a zip file") as refused:
        jit.load(str(tmp_path / "text.pt"))
    assert not isinstance(refused.value, OSError)
