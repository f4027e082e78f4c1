"""Runs test files that are written for PyTorch with `torch.jit` replaced by this package.

    python tests/against_torch.py test_list_dict.py [NAME ...]

The functions `script`, `load`, `save`, `freeze` and the class `CompilationUnit` of `torch.jit` are replaced before the file is
imported, and so is `checkScript` of PyTorch's own test class: it compiles, calls, and compares with the call in Python. The
report counts the tests that passed, failed and were skipped, and the reasons of failures by frequency. NAMEs select tests whose
names contain one of them.
"""

from __future__ import annotations

import collections
import importlib.util
import inspect
import pathlib
import sys
import unittest
from typing import Any

import torch

import flambeau

_KEPT = {name: getattr(torch.jit, name) for name in ("script", "load", "save", "freeze", "CompilationUnit", "trace")}


def script(definition: Any, *args: Any, **options: Any) -> Any:
    """`torch.jit.script` without its private options."""
    return flambeau.jit.script(definition)


def trace(*args: Any, **options: Any) -> Any:
    """`torch.jit.trace`, which this package does not have."""
    raise flambeau.UnsupportedError("flambeau has no `trace`")


def check_script(self: unittest.TestCase, script: Any, inputs: Any, name: str = "func", **options: Any) -> Any:
    """`JitTestCase.checkScript`: results of the compiled function are those of Python."""
    if isinstance(script, str):
        frame = inspect.currentframe()
        names = dict(frame.f_back.f_globals) if frame is not None and frame.f_back is not None else {}
        exec(script, names)  # noqa: S102 - the tests' own source
        compiled, python = flambeau.CompilationUnit(script)[name], names[name]
    else:
        compiled, python = flambeau.jit.script(script), script
    wanted = python(*_copied(inputs))
    torch.testing.assert_close(compiled(*_copied(inputs)), wanted, rtol=1e-4, atol=1e-5, equal_nan=True) if _tensors(
        wanted
    ) else self.assertEqual(compiled(*_copied(inputs)), wanted)
    return compiled


def _copied(inputs: Any) -> list[Any]:
    import copy

    detach = [value.detach() if isinstance(value, torch.Tensor) else value for value in inputs]
    return [value.clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value) for value in detach]


def _tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(_tensors(part) for part in value)
    return isinstance(value, torch.Tensor)


def check_raises(
    self: unittest.TestCase, script: Any, inputs: Any, exception: Any, regex: str, name: str | None = None, **options: Any
) -> None:
    """`JitTestCase.checkScriptRaisesRegex`: both raise, whatever the text."""
    with self.assertRaises(exception):
        script(*inputs)
    with self.assertRaises(Exception):
        flambeau.jit.script(script)(*inputs)


def replace() -> None:
    """Replaces the functions of PyTorch."""
    torch.jit.script = script
    torch.jit.trace = trace
    torch.jit.load = flambeau.load
    torch.jit.save = flambeau.save
    torch.jit.freeze = flambeau.jit.freeze
    torch.jit.CompilationUnit = lambda text="", *args, **options: flambeau.CompilationUnit(text)
    try:
        from torch.testing._internal.jit_utils import JitTestCase
    except ImportError:
        return
    JitTestCase.checkScript = check_script
    JitTestCase.checkScriptRaisesRegex = check_raises
    # The hooks save and load every compiled function with PyTorch.
    JitTestCase.setHooks = lambda self: None
    JitTestCase.clearHooks = lambda self: None


class Result(unittest.TestResult):
    """Counts tests, and failures by reason."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0
        self.reasons: collections.Counter[str] = collections.Counter()

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.passed += 1

    def _note(self, test: unittest.TestCase, error: Any) -> None:
        lines = [line for line in str(error[1]).strip().splitlines() if line.strip()]
        reason = f"{error[0].__name__}: {lines[0][:100] if lines else ''}"
        self.reasons[reason] += 1
        print(f"FAILED {test.id().rpartition('.')[2]}: {reason}")

    def addFailure(self, test: unittest.TestCase, error: Any) -> None:
        super().addFailure(test, error)
        self._note(test, error)

    def addError(self, test: Any, error: Any) -> None:
        super().addError(test, error)
        self._note(test, error)


def _cases(suite: Any) -> Any:
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from _cases(part)
        else:
            yield part


def run(path: pathlib.Path, names: list[str]) -> Result:
    """Runs the tests of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    result = Result()
    for case in _cases(unittest.defaultTestLoader.loadTestsFromModule(module)):
        if not names or any(name in case.id() for name in names):
            case.run(result)
    return result


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__)
        return 2
    replace()
    result = run(pathlib.Path(arguments[0]), arguments[1:])
    skipped = len(result.skipped)
    total = result.passed + len(result.failures) + len(result.errors)
    for reason, count in result.reasons.most_common(20):
        print(f"{count:5}  {reason}")
    print(f"{result.passed} of {total} passed, {skipped} skipped: {arguments[0]}")
    return 0 if result.passed == total else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
