"""Runs the programs of file tests with PyTorch and writes each result that differs from the expected one into programs.txt
beside this file.

The files are those of tests/cases/traps and those named below. A line has the file, the call (or the function that must be
refused), and the result of PyTorch: a value, or `!` and the main line of its error. Programs with classes are scripted
from a module, which Python's parser reads; all others are compiled as text. Each file runs in its own process, because
some end it.
"""

import importlib.util
import json
import math
import os
import pathlib
import re
import sys
import tempfile

import torch
import torch.nn.functional as F  # noqa: F401, programs name them
from common import DTYPES, full, iota, tensor

torch.set_num_threads(1)
HERE = pathlib.Path(__file__).parent
CASES = HERE.parent / "cases"
MORE = [
    "frontend/loops_without_uses", "frontend/writes_without_uses", "run/attention_forward", "run/awaitables",
    "run/fractional_pool_3d", "run/gradients", "run/sort_objects",
]
HEAD = """from __future__ import annotations
import math, torch
import torch.nn.functional as F
from enum import Enum
from torch import Tensor, device
from torch.jit import Future, annotate, interface
from torch.jit._await import _Await as Await
from typing import *
"""


def main_line(error):
    lines = [line for line in str(error).split("\n") if line.strip()]
    for line in reversed(lines):
        if "interpreter" in lines[0] and re.match(r"[\w.]+(Error|Exception): ", line):
            return line.split(": ", 1)[1]
    return lines[0].rstrip(":") if lines else ""


def load(program, folder):
    """The functions of a program by name."""
    if not re.search(r"^(@|class )", program, re.M):
        return torch.jit.CompilationUnit(program)
    path = pathlib.Path(folder) / "program.py"
    path.write_text(HEAD + re.sub(r"class (\w+)\(Interface\)", r"@interface\nclass \1", program))
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["program"] = module
    spec.loader.exec_module(module)

    class Functions:
        def __getattr__(self, name):
            return torch.jit.script(getattr(module, name))

    return Functions()


def answers(text):
    program = text.split("\n# == ")[0]
    runs = [line[len("# run: "):] for line in program.split("\n") if line.startswith("# run: ")]
    names = dict(DTYPES, tensor=tensor, iota=iota, full=full, nan=float("nan"), inf=float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        if not runs:
            blocks = re.split(r"\n(?=def |class |@)", program)
            shared = [b for b in blocks if "# error" not in b and re.match(r"def |class |@", b)]
            for block in blocks:
                if "# error" in block:
                    name = re.search(r"(?:def|class) (\w+)", block)[1]
                    try:
                        functions = load("\n".join(shared + [block]) + "\n", folder)
                        getattr(functions, name)
                        yield name, "accepted"
                    except Exception:
                        pass
            return
        try:
            functions = load(program, folder)
        except Exception as error:
            yield "program", "! " + main_line(error)
            return
        for run in runs:
            # The expected result follows the call.
            call, how, expected = (re.split(r" (==|~=|raises) (?=\S)", run, maxsplit=1) + [None, None])[:3]
            name, arguments = call.split("(", 1)
            try:
                result = eval(f"functions.{name}({arguments}", dict(names, functions=functions))
            except Exception as error:
                if how != "raises":
                    yield call, "! " + main_line(error)
                continue
            if how == "raises" or not same(result, eval(expected, dict(names))):
                yield call, repr(result).replace("\n", " ")


def same(a, b):
    if isinstance(b, torch.Tensor):
        alike = isinstance(a, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape
        return alike and torch.allclose(a, b, equal_nan=True)
    if isinstance(b, (list, tuple)):
        return isinstance(a, type(b)) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(b, dict):
        return isinstance(a, dict) and list(a) == list(b) and all(map(same, a.values(), b.values()))
    if isinstance(b, float):
        return isinstance(a, float) and (math.isclose(a, b) or a != a and b != b)
    return type(a) is type(b) and a == b


def asked(path):
    """The answers about one file, from a process of its own."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            with os.fdopen(write, "w") as out:
                for line in answers(path.read_text()):
                    out.write(json.dumps(line) + "\n")
                    out.flush()
        except Exception as error:
            sys.stderr.write(f"{path.stem}: {error}\n")
            os._exit(1)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        found = [json.loads(line) for line in lines]
    _, status = os.waitpid(child, 0)
    return found + ([("program", "! ends the process")] if status else [])


if __name__ == "__main__":
    with open(HERE / "programs.txt", "w") as out:
        for path in sorted((CASES / "traps").glob("*.py")) + [CASES / f"{name}.py" for name in MORE]:
            for call, answer in asked(path):
                out.write(f"{path.stem}\t{call}\t{answer}\n")
                out.flush()
