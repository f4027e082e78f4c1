"""Comparison of compiled functions with what Python computes."""

import copy

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
