"""Comparison of compiled functions with what Python computes."""

import copy
import re

import pytest

import flambeau
from flambeau import jit


def marker(cases):
    """Returns a decorator that adds a function and its arguments to the cases of a module."""

    def same(*args):
        def mark(function):
            cases.append(pytest.param(function, args, id=function.__name__))
            return function

        return mark

    return same


def plain(value):
    """Returns a value with lists in place of tensors."""
    if isinstance(value, flambeau.Tensor):
        return ("tensor", value.dtype, value.tolist())
    if isinstance(value, (list, tuple)):
        return type(value)(plain(part) for part in value)
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return value


def assert_same(function, args):
    """The compiled form returns what Python returns for the arguments."""

    def copied():
        return [arg.clone() if isinstance(arg, flambeau.Tensor) else copy.deepcopy(arg) for arg in args]

    found, wanted = plain(jit.script(function)(*copied())), plain(function(*copied()))
    assert found == wanted and repr(found) == repr(wanted)


class Rules:
    """Functions, and what PyTorch 2.6 does with them: the result, the message of the compiler, or the message of the run."""

    def __init__(self):
        self.cases = []

    def _case(self, check, *details):
        def mark(function):
            self.cases.append(pytest.param(check, function, *details, id=function.__name__))
            return function

        return mark

    def gives(self, result, *args):
        """The function returns the result for the arguments."""
        return self._case(assert_gives, result, args)

    def differs(self, result, *args):
        """As ``gives``, where PyTorch refuses the function or returns another result: ``docs/differences.md``."""
        return self._case(assert_gives, result, args)

    def refused(self, message):
        """The compiler refuses the function with a message that has the pattern."""
        return self._case(assert_refused, message, ())

    def shows(self, kinds):
        """The graph of the function has the operators, in the order of its text, without constants."""
        return self._case(assert_shows, kinds, ())

    def raises(self, message, *args):
        """The function compiles, and raises an error with a message that has the pattern."""
        return self._case(assert_raises, message, args)


def assert_gives(function, result, args):
    """The types of the result count, too: an integer is no float."""
    assert repr(plain(jit.script(function)(*args))) == repr(plain(result))


def assert_refused(function, message, _):
    with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match=message) as caught:
        jit.script(function)
    assert caught.value.file == function.__code__.co_filename
    # The error is in the function, or in one that it calls.
    last = max(line for *_, line in function.__code__.co_lines() if line is not None)
    within = function.__code__.co_firstlineno <= caught.value.line <= last + 2
    assert within or f"since it was called from '{function.__name__}'" in str(caught.value)


def assert_shows(function, kinds, _):
    assert re.findall(r"= ((?!prim::Constant)\w+::\w+)", str(jit.script(function).graph)) == kinds


def assert_raises(function, message, args):
    compiled = jit.script(function)
    with pytest.raises(flambeau.RuntimeError, match=message) as caught:
        compiled(*args)
    assert caught.value.file == function.__code__.co_filename
