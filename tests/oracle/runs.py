"""Checks the `run:` lines of test files against PyTorch, or writes the results of PyTorch.

    python tests/oracle/runs.py [--write] tests/cases/run/*.py tests/cases/run/*.ir

Needs torch 2.6. Literals mean what tests/src/value/literal.rs says they mean. A line that raises in PyTorch is
written as `raises ""`; the message to expect is ours and comes from blessing.
"""

import math
import os
import re
import sys

import torch
from common import DTYPES, full, iota, tensor

torch.set_num_threads(1)
SHORT = {v: k for k, v in DTYPES.items()}
MASK = (1 << 64) - 1


def rand(shape, dtype, seed):
    out = []
    for i in range(math.prod(shape)):
        x = (seed * 0x9E3779B97F4A7C15 + i + 1) & MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        out.append(((x >> 32) % 257) / 64.0 - 2.0)
    return torch.tensor(out, dtype=torch.float64).reshape(shape).to(dtype)


ENV = dict(DTYPES, full=full, iota=iota, rand=rand, tensor=tensor, complex=complex, nan=math.nan, inf=math.inf)
# `bool` in DTYPES hides Python's type of that name.


def text(v):
    if v is None or isinstance(v, bool):
        return str(v)
    if isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        return re.sub(r"e\+?(-?)0*(\d)", r"e\1\2", repr(v))
    if isinstance(v, complex):
        return f"complex({text(v.real)}, {text(v.imag)})"
    if isinstance(v, str):
        escaped = v.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + '"'
    if isinstance(v, list):
        return "[" + ", ".join(map(text, v)) + "]"
    if isinstance(v, tuple):
        return "(" + ", ".join(map(text, v)) + (",)" if len(v) == 1 else ")")
    if isinstance(v, dict):
        return "{" + ", ".join(f"{text(k)}: {text(x)}" for k, x in v.items()) + "}"
    if isinstance(v, torch.Tensor):
        short = SHORT[v.dtype]
        if v.numel() == 0:
            return f"full({list(v.shape)}, 0, {short})"
        return f"tensor({nested(v)}, {short})"
    raise TypeError(type(v))


def nested(t):
    if t.dim() > 0:
        return "[" + ", ".join(nested(r) for r in t) + "]"
    x = t.item()
    if isinstance(x, float) and t.dtype != torch.float64 and math.isfinite(x):
        import numpy
        short = str(numpy.format_float_positional(numpy.float32(x), unique=True, trim="0"))
        if abs(x) >= 1e16 or 0 < abs(x) < 1e-5:
            short = text(float(numpy.format_float_scientific(numpy.float32(x), unique=True)))
        return short
    return text(x)


def program(path, lines):
    mark = ";" if path.endswith(".ir") else "#"
    kept = []
    for line in lines:
        if line.startswith(mark + " == "):
            break
        kept.append("" if line.startswith(mark) else line.split(mark + " error: ")[0].rstrip())
    source = "\n".join(kept) + "\n"
    if mark == "#":
        unit = torch.jit.CompilationUnit(source)
        return lambda name: getattr(unit, name)
    graph = torch._C.parse_ir(source, True)
    function = torch._C._create_function_from_graph("main", graph)
    return lambda name: function


def outcome(function, call):
    """The text of the result or an exception. Made in a child process, because PyTorch dies of some calls."""
    arguments = re.fullmatch(r"(\w*)\((.*)\)", call).group(2)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = "=" + text(eval(f"f({arguments})", dict(ENV, f=function)))
        except Exception as error:
            answer = "!" + str(error)
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    answer = b""
    while part := os.read(read, 65536):
        answer += part
    os.close(read)
    os.waitpid(child, 0)
    answer = answer.decode() or "!PyTorch died"
    return answer[1:] if answer[0] == "=" else RuntimeError(answer[1:])


def parts(value):
    """With complex tensors as pairs, either of which may be NaN alone."""
    if isinstance(value, (list, tuple)):
        return [parts(x) for x in value]
    return torch.view_as_real(value) if isinstance(value, torch.Tensor) and value.is_complex() else value


def close(got, want):
    try:
        a, b = parts(eval(got, dict(ENV))), parts(eval(want, dict(ENV)))
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
        return True
    except Exception:
        return False


def split(line):
    """The call and the expectation after it: the first bracket at depth 0 ends the call."""
    depth, quoted = 0, None
    for i, c in enumerate(line):
        if quoted:
            quoted = None if c == quoted and line[i - 1] != "\\" else quoted
        elif c in "\"'":
            quoted = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return line[: i + 1].strip(), line[i + 1 :].strip()
    return line, ""


def main():
    write = "--write" in sys.argv
    wrong = 0
    for path in [a for a in sys.argv[1:] if not a.startswith("--")]:
        lines = open(path).read().split("\n")
        mark = ";" if path.endswith(".ir") else "#"
        find = None
        for i, line in enumerate(lines):
            if not line.startswith(f"{mark} run: "):
                continue
            find = find or program(path, lines)
            call, told = split(line[len(mark) + 6 :])
            got = outcome(find(call[: call.index("(")]), call)
            if isinstance(got, Exception):
                ok = told.startswith("raises")
                new = told if ok else 'raises ""'
            elif told.startswith("~="):
                ok = close(told[2:].strip(), got)
                new = told if ok else f"~= {got}"
            else:
                sign = "~=" if told == "" and re.search(r"\b[fc]\d+\b", got) else "=="
                ok = told == f"{sign} {got}" or told == f"== {got}"
                new = told if ok else f"{sign} {got}"
            if not ok:
                wrong += 1
                print(f"{path}:{i + 1}: {call}: {told or 'nothing written'}; PyTorch: {str(got).splitlines()[-1]}")
                lines[i] = f"{mark} run: {call} {new}"
        if write:
            open(path, "w").write("\n".join(lines))
    sys.exit(1 if wrong and not write else 0)


main()
