"""Runs test files that are written for PyTorch with `torch.jit` replaced by this package.

    python tests/against_torch.py [--report FILE] [--select NAME] test/jit/test_list_dict.py test/jit/test_union.py ...

The functions and classes of `torch.jit` that compile, trace, load and save are replaced before a file is imported; everything
else, PyTorch's own test class and `FileCheck` included, is PyTorch's. The assertions of a test are therefore those of the file,
on results of this package.

Every file runs in a process of its own. A test that ends the process or takes longer than `--seconds` is reported as such,
and the next process continues behind it. The outcome of a test is one of

- `passed`: all assertions held, and at least one replaced function was called;
- `untouched`: all assertions held, but no replaced function was called, so the test says nothing about this package;
- `internal`: the test failed, and its source uses parts of PyTorch's C++ library or of its fusers and executors
  (`_INTERNAL` below), which this package does not have, or a helper passes an object of this package to that library, which
  may end the process;
- `failed`, `crashed`, `hung`, `skipped`.

The share passed is `passed` of `passed`, `failed`, `crashed` and `hung`. `--report` writes every outcome as JSON lines.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import functools
import importlib.util
import inspect
import io
import json
import linecache
import os
import pathlib
import re
import signal
import sys
import threading
import traceback
import unittest
from collections.abc import Iterator
from typing import IO, Any

_INTERNAL = re.compile(
    r"torch\._C\._?(?!_nn|_get_tracing|_jit_internal|_disable_emit)[A-Za-z]|parse_ir|run_pass|self\.assertAutodiffNode|"
    r"\.cuda\(|RUN_CUDA|device_count|torch\.onnx|_get_trace_graph|assertExpectedGraph|torch\.jit\._(?!fork|wait|overload|"
    r"unwrap_optional|script)|last_executed_optimized_graph|FUSION_GROUP|assertAllFused|get_debug_state|mobile|"
    r"_jit_pass|torchbind|torch\.classes|quantiz|_save_for_lite|debug_pkl|\._c\.|torch\.package|BUILD_WITH_CAFFE2|"
    r"propagate_shapes|flatbuffer|nvfuser|to_backend|monkeytype|_force_outplace=True"
)
"""Uses in the source of a test of what only PyTorch's own library has."""


class Calls:
    """Counts calls of replaced functions."""

    count = 0


def _counted(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        Calls.count += 1
        return function(*args, **kwargs)

    return call


def replace() -> None:
    """Replaces the functions and classes of `torch.jit`."""
    import torch
    from torch.testing import FileCheck
    from torch.testing._internal import common_jit, jit_utils

    import flambeau
    from flambeau import jit

    # Test utilities of PyTorch let a call state that it runs twice, the second time with the profile of the first.
    call_function = jit.ScriptFunction.__call__

    @functools.wraps(call_function)
    def call_twice(self: Any, *args: Any, profile_and_replay: bool = False, **kwargs: Any) -> Any:
        if profile_and_replay:
            call_function(self, *args, **kwargs)
        return call_function(self, *args, **kwargs)

    jit.ScriptFunction.__call__ = call_twice

    def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
        return jit.script(obj)

    def trace(func: Any, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
        for private in ("optimize", "_force_outplace", "_module_class", "_compilation_unit", "_store_inputs"):
            options.pop(private, None)
        return jit.trace(func, example_inputs, *args, **options)

    def trace_module(mod: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        for private in ("optimize", "_force_outplace", "_module_class", "_compilation_unit", "_store_inputs"):
            options.pop(private, None)
        return jit.trace_module(mod, inputs, *args, **options)

    def unit(lang: str | None = None, _frames_up: int = 0) -> Any:
        # The frames of this function and of the one that counts calls are between the test and the unit.
        return jit.CompilationUnit(lang, _frames_up=_frames_up + 2)

    names: dict[str, Any] = {
        "script": script, "trace": trace, "trace_module": trace_module, "CompilationUnit": unit, "freeze": jit.freeze,
        "load": jit.load, "save": jit.save, "optimize_for_inference": jit.optimize_for_inference,
        "script_if_tracing": jit.script_if_tracing, "_script_if_tracing": jit.script_if_tracing,
    }  # fmt: skip
    for name, function in names.items():
        setattr(torch.jit, name, _counted(function))
    for name in ("ScriptModule", "RecursiveScriptModule", "ScriptFunction"):
        setattr(torch.jit, name, getattr(jit, name, jit.ScriptModule))
    torch.jit.script_method = getattr(jit, "script_method", torch.jit.script_method)
    torch.jit.Error = flambeau.RuntimeError
    torch.jit.frontend.NotSupportedError = flambeau.UnsupportedError
    torch.jit.frontend.FrontendError = flambeau.errors.Error
    for name in ("TracerWarning", "TracingCheckError"):
        setattr(torch.jit, name, getattr(jit, name))
    jit.TracerWarning.ignore_lib_warnings = staticmethod(lambda: None)

    run = FileCheck.run

    def run_on_text(self: Any, *texts: Any, **options: Any) -> Any:
        *checks, test = [*texts, *options.values()]
        text = test if isinstance(test, str) else str(test)
        *first, last = dict.fromkeys(_with_marks_of_torch(text, closing) for closing in ("", ")]}", ")]}\"'"))
        for marked in first:
            try:
                return run(self, *checks, marked)
            except RuntimeError:
                # The object has the checks now.
                checks = []
        return run(self, *checks, last)

    class TextCheck(FileCheck):
        run = run_on_text

    torch.testing.FileCheck = TextCheck
    jit_utils.FileCheck = TextCheck
    # The hooks save and load every function that PyTorch compiles.
    jit_utils.JitTestCase.setHooks = lambda self: None
    jit_utils.JitTestCase.clearHooks = lambda self: None

    def contains(self: Any, graph: Any, kind: str, consider_subgraphs: bool = False) -> None:
        self.assertTrue(any(node.kind == kind for node in graph.nodes(nested=True)), str(graph))

    def contains_exactly(
        self: Any, graph: Any, kind: str, num_kind_nodes: int, consider_subgraphs: bool = False
    ) -> None:
        self.assertEqual(sum(node.kind == kind for node in graph.nodes(nested=True)), num_kind_nodes, str(graph))

    def check_output_types(self: Any, func: Any, ref_outputs: Any, args: Any, kwargs: Any) -> None:
        outputs = func.last_graph.outputs()
        self.assertEqual(len(outputs), 1)
        declared = torch._C.parse_schema(f"f() -> ({outputs[0].type})").returns[0].type
        torch._C._jit_assert_is_instance(ref_outputs, declared)

    # A graph of ours becomes a function by itself.
    made_function = common_jit.JitCommonTestCase.createFunctionFromGraph

    def function_of_graph(self: Any, graph: Any) -> Any:
        if not isinstance(graph, flambeau.Graph):
            return made_function(self, graph)
        Calls.count += 1
        return jit.ScriptFunction(graph.function())

    common_jit.JitCommonTestCase.createFunctionFromGraph = function_of_graph

    _replace_passes(torch, jit_utils, flambeau)
    # In PyTorch, nodes and values have methods where ours have properties.
    common_jit.check_output_types = check_output_types
    jit_utils.JitTestCase.assertGraphContains = contains
    jit_utils.JitTestCase.assertGraphContainsExactly = contains_exactly


_MARKS = re.compile(r"(?m)^(?P<source>.*)\n(?P<margin>[ |]*)(?P<marks>\^+|~+ <--- HERE)")


def _with_marks_of_torch(text: str, closing: str) -> str:
    """Returns the text of an error with the marks of PyTorch. Ours are `^` in compile errors, and end at the end of an expression.
    PyTorch's are `~`; those of some expressions leave out the ``closing`` brackets and quotes, which depends on the parser."""

    def marked(found: re.Match[str]) -> str:
        source, start = found["source"], len(found["margin"])
        end = start + len(found["marks"].removesuffix(" <--- HERE"))
        while end > start + 1 and source[end - 1 : end] in (*closing,):
            end = start + len(source[start : end - 1].rstrip())
        return f"{source}\n{found['margin']}{'~' * (end - start)} <--- HERE"

    return _MARKS.sub(marked, text)


class _Schema(str):
    """The signature of a function as text, where PyTorch has an object."""

    read: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(_Schema.read(self), name)


class _Text(str):
    """A text that PyTorch's classes have as a method and ours as a property."""

    def __call__(self) -> str:
        return self


class _TypeText(str):
    """The type of a value as text, where PyTorch's classes have a method that returns an object."""

    parse_ir: Any = None

    def __call__(self) -> Any:
        try:
            graph = _TypeText.parse_ir(f"graph(%x : {self}):\n  return (%x)\n")
        except RuntimeError:
            return self._tensor_type()
        return next(graph.inputs()).type()


    def _tensor_type(self) -> Any:
        """Returns the type of a tensor whose text PyTorch prints and does not read, such as `Tensor(device=cpu)`; the text for
        a class or an enumeration, which only its program has."""
        import torch

        found = re.fullmatch(r"Tensor\(.*device=(\w+).*\)", self)
        return self if found is None else torch._C.TensorType.get().with_device(torch.device(found[1]))


class _Items(list):  # type: ignore[type-arg]
    """A list that is an iterator as well: PyTorch's methods return iterators."""

    def __next__(self) -> Any:
        self._at = getattr(self, "_at", -1) + 1
        if self._at == len(self):
            raise StopIteration
        return self[self._at]


def _replace_passes(torch: Any, jit_utils: Any, flambeau: Any) -> None:
    """Lets tests run passes and read graphs by PyTorch's names: passes that this package has under the same name, and the
    methods of graphs, nodes and values. A pass that the package does not have is a part of PyTorch's library."""
    own = {name for name, _ in flambeau.passes()}

    def pass_named(name: str, original: Any) -> Any:
        def run(graph: Any, *args: Any) -> Any:
            if not isinstance(graph, flambeau.Graph):
                return original(graph, *args)
            if name != "lint":
                graph.run(name)
            return graph if name == "canonicalize" else None

        return run

    # One analysis of ours has the facts of several of PyTorch.
    same = {f"propagate_{facts}": "propagate_shapes" for facts in ("dtype", "device", "shapes_on_graph")}
    for name in [*own, "lint", *same]:
        original = getattr(torch._C, f"_jit_pass_{name}", None)
        setattr(torch._C, f"_jit_pass_{name}", pass_named(same.get(name, name), original))

    def run_pass(self: Any, name: str, target: Any) -> Any:
        graph = target if isinstance(target, flambeau.Graph) else target.graph
        getattr(torch._C, f"_jit_pass_{name}")(graph)
        return graph

    _Schema.read = staticmethod(torch._C.parse_schema)
    schema = flambeau.jit.ScriptFunction.schema
    flambeau.jit.ScriptFunction.schema = property(lambda self: _Schema(schema.__get__(self)))
    jit_utils.JitTestCase.run_pass = run_pass
    _TypeText.parse_ir = staticmethod(torch._C.parse_ir)
    torch._C.parse_ir = lambda text, parse_tensor_constants=False: flambeau.parse_graph(text)
    native = flambeau._native
    for cls, name, made in ((native.Node, "kind", _Text), (native.Value, "type", _TypeText)):
        text = vars(cls)[name]
        setattr(cls, name, property(lambda self, text=text, made=made: made(text.__get__(self))))
    native.Node.__call__ = lambda self: self
    # Types of PyTorch have their whole text in this method.
    native.Value.setType = lambda self, type_: self.set_type(type_.str() if hasattr(type_, "str") else str(type_))
    for cls in (native.Graph, native.Node, native.Block):
        for name in ("nodes", "inputs", "outputs", "blocks"):
            method = vars(cls).get(name)
            if method is not None:
                setattr(cls, name, lambda self, *a, method=method, **k: _Items(method(self, *a, **k)))


def _cases(suite: Any) -> Iterator[Any]:
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from _cases(part)
        else:
            yield part


def _reason(error: Any) -> str:
    """Returns the class of an exception and the first line of its text, or the error of the program below it."""
    value = error[1]
    while value.__cause__ is not None and not type(value).__module__.startswith("flambeau"):
        value = value.__cause__
    lines = [line.strip() for line in str(value).strip().splitlines() if line.strip()]
    text = lines[-1] if lines and "TorchScript interpreter" in lines[0] else "".join(lines[:1])
    return f"{type(value).__name__}: {text[:160]}"


class Result(unittest.TestResult):
    """The outcome of one test, with the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome, self.reason, self.text = "passed", "", ""

    def addSkip(self, test: Any, reason: str) -> None:
        self.outcome, self.reason = "skipped", reason

    def addExpectedFailure(self, test: Any, error: Any) -> None:
        self.outcome = "passed"

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.outcome, self.reason = "failed", "the test is expected to fail"

    def _note(self, test: Any, error: Any) -> None:
        if self.outcome != "failed":
            self.outcome, self.reason = "failed", _reason(error)
            self.text = self._exc_info_to_string(error, test) if not self.text else self.text

    def addFailure(self, test: Any, error: Any) -> None:
        self._note(test, error)

    def addError(self, test: Any, error: Any) -> None:
        self._note(test, error)

    def addSubTest(self, test: Any, subtest: Any, error: Any) -> None:
        if error is not None:
            self._note(subtest, error)


def _is_internal(case: Any) -> bool:
    method = getattr(type(case), case._testMethodName, None)
    try:
        return _INTERNAL.search(inspect.getsource(inspect.unwrap(method))) is not None  # type: ignore[arg-type]
    except (OSError, TypeError):
        return False


def work(path: pathlib.Path, skip: set[str], select: list[str], seconds: int) -> None:
    """Runs the tests of a file that are not to be skipped; writes a line before and after each."""
    faulthandler.enable()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    # What tests print is not part of the report.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path.insert(0, str(path.parent.parent))
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path)]
    # Tests expect the names of types under the name of the module in its package.
    name = f"{path.parent.name}.{path.stem}" if (path.parent / "__init__.py").exists() else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, f"{path} is not a Python file"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)

    def expired(*_: Any) -> None:
        raise TimeoutError(f"the test takes more than {seconds} seconds")

    signal.signal(signal.SIGALRM, expired)
    own = [
        value for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ in (name, "__main__")
    ]  # fmt: skip
    for cls in own:
        if not cls.__dict__.get("__unittest_skip__"):
            cls.setUpClass()
        for case in _cases(unittest.defaultTestLoader.loadTestsFromTestCase(cls)):
            name = f"{cls.__name__}.{case._testMethodName}"
            if name in skip or select and not any(part in name for part in select):
                continue
            print(json.dumps({"start": name}), file=out)
            result, before = Result(), Calls.count
            signal.alarm(seconds)
            try:
                case.run(result)
            except TimeoutError:
                result.outcome = "hung"
            finally:
                signal.alarm(0)
            if result.outcome == "failed" and result.reason.startswith("TimeoutError"):
                result.outcome = "hung"
            if result.outcome == "passed" and Calls.count == before:
                result.outcome = "untouched"
            # A binding of PyTorch's library that refuses an object of this package.
            refused = "incompatible function arguments. The following argument types" in result.text
            if result.outcome in ("failed", "hung") and (refused or _is_internal(case)):
                result.outcome = "internal"
            print(json.dumps({"test": name, "outcome": result.outcome, "reason": result.reason, "text": result.text}), file=out)
    print(json.dumps({"end": True}), file=out)


class Worker:
    """A process that runs the tests of a file: a copy of this one, in which PyTorch is imported already."""

    def __init__(self, path: pathlib.Path, skip: set[str], select: list[str], seconds: int) -> None:
        (out, to_out), (error, to_error) = os.pipe(), os.pipe()
        sys.stdout.flush()
        self.id = os.fork()
        if self.id == 0:
            try:
                os.dup2(to_out, 1)
                os.dup2(to_error, 2)
                work(path, skip, select, seconds)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(0)
        os.close(to_out)
        os.close(to_error)
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(error, errors="replace")

    def kill(self) -> None:
        os.kill(self.id, signal.SIGKILL)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.id, 0)[1])


def run(
    path: pathlib.Path, select: list[str], seconds: int, verbose: bool, report: IO[str] | None = None
) -> list[dict[str, Any]]:
    """Runs a file in worker processes, and returns the outcomes of its tests. Writes each to the report, and prints those that
    did not pass, at once."""
    found: list[dict[str, Any]] = []

    def note(outcome: dict[str, Any]) -> None:
        found.append(outcome)
        if report is not None:
            print(json.dumps(outcome), file=report, flush=True)
        if outcome["outcome"] in ("failed", "crashed", "hung"):
            print(f"{outcome['outcome']} {path.name}::{outcome['test']}: {outcome['reason']}", flush=True)
            if verbose:
                print(outcome["text"])

    done: set[str] = set()
    while True:
        worker = Worker(path, done, select, seconds)
        running, ended = None, False

        killer: threading.Timer | None = None
        errors = io.StringIO()
        reader = threading.Thread(target=lambda pipe=worker.stderr, to=errors: [to.write(line) for line in pipe], daemon=True)
        reader.start()
        for text in worker.stdout:
            line = json.loads(text)
            if "start" in line:
                running = line["start"]
                killer = threading.Timer(seconds + 10, worker.kill)
                killer.start()
                continue
            if killer is not None:
                killer.cancel()
            if "end" in line:
                ended = True
                continue
            note({"file": path.name, **line})
            done.add(line["test"])
            running = None
        code = worker.wait()
        if killer is not None:
            killer.cancel()
        if ended:
            return found
        reader.join(5)
        last = " / ".join(errors.getvalue().strip().splitlines()[-3:])[-300:]
        if running is None:
            note({"file": path.name, "test": "<import>", "outcome": "crashed", "reason": last, "text": errors.getvalue()[-4000:]})
            return found
        outcome = "hung" if code == -signal.SIGKILL else "internal" if _is_in_torch(errors.getvalue()) else "crashed"
        note({"file": path.name, "test": running, "outcome": outcome, "reason": last, "text": errors.getvalue()[-4000:]})
        done.add(running)


def _is_in_torch(trace: str) -> bool:
    """Returns whether a process ended within a call of PyTorch's library in the test itself, which does not check its arguments."""
    found = re.search(r'most recent call first\):\n  File "(.*)", line (\d+)', trace)
    return found is not None and "torch._C._" in linecache.getline(found[1], int(found[2]))


_COUNTED = ("passed", "failed", "crashed", "hung")


def summary(found: list[dict[str, Any]]) -> str:
    """Returns the shares per file and the reasons of failures by frequency."""
    lines = []
    by_file: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for test in found:
        by_file[test["file"]][test["outcome"]] += 1
    by_file["all"] = sum(by_file.values(), collections.Counter())
    reasons = collections.Counter(t["reason"] for t in found if t["outcome"] in ("failed", "crashed", "hung"))
    for reason, count in reasons.most_common(60):
        lines.append(f"{count:5}  {reason}")
    lines.append("")
    lines.append(f"{'file':44} passed    of  share   internal untouched skipped")
    for name, counts in by_file.items():
        total = sum(counts[outcome] for outcome in _COUNTED)
        share = f"{counts['passed'] / total:6.1%}" if total else "     -"
        rest = f"{counts['internal']:8} {counts['untouched']:9} {counts['skipped']:7}"
        lines.append(f"{name:44} {counts['passed']:6} {total:5} {share}   {rest}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--select", action="append", default=[], help="run tests whose names contain this")
    parser.add_argument("--report", type=pathlib.Path, help="write all outcomes to this file")
    parser.add_argument("--seconds", type=int, default=120, help="the bound of the time of a test")
    parser.add_argument("--verbose", action="store_true", help="print the whole error of each failure")
    options = parser.parse_args(arguments)
    # Not a part of the reasons of failures.
    os.environ["PYTORCH_PRINT_REPRO_ON_FAILURE"] = "0"
    import torch

    if not hasattr(torch._C, "has_mkldnn"):
        # Files for PyTorch of 2023 read it.
        torch._C.has_mkldnn = torch.backends.mkldnn.is_available()
    replace()
    found: list[dict[str, Any]] = []
    with open(options.report or os.devnull, "w") as report:
        for path in options.files:
            found += run(path.resolve(), options.select, options.seconds, options.verbose, report)
    print(summary(found))
    return 0 if all(test["outcome"] not in ("failed", "crashed", "hung") for test in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
