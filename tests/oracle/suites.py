"""Packs recorded suites for tests/data/suites, or records the results in them anew.

    python tests/oracle/suites.py pack FOLDER tests/data/suites/NAME/cases.jsonl.gz
    python tests/oracle/suites.py record tests/data/suites/NAME/cases.jsonl.gz

The format is described in tests/data/suites/README.md. `pack` reads a folder with `cases.jsonl` (or `.gz`) and the
archives that its cases name, which become part of the cases. `record` calls every program of a source or archive again and
replaces the recorded results, errors and inputs after the call; tolerances stay as they are. Needs torch 2.6.
"""

import base64
import gzip
import io
import json
import math
import os
import sys

import torch
from common import json_of, value_of

# Remarks for readers of a suite, which replaying ignores.
REMARKS = ["py_source", "torch", "note", "torch_differs"]


def lines_of(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as lines:
        return [json.loads(line) for line in lines]


def write(path, cases):
    text = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    with open(path, "wb") as out:
        out.write(gzip.compress(text.encode(), 9, mtime=0))


def pack(folder, target):
    names = [os.path.join(folder, name) for name in ("cases.jsonl.gz", "cases.jsonl")]
    cases = lines_of(next(name for name in names if os.path.exists(name)))
    for case in cases:
        for remark in REMARKS:
            case.pop(remark, None)
        if "archive" in case:
            with open(os.path.join(folder, case.pop("archive")), "rb") as archive:
                case["archive_bytes"] = base64.b64encode(archive.read()).decode()
    write(target, cases)


def record_call(program, case, call):
    entry = getattr(program, call.get("entry", case["entry"]))
    for path, value in call.get("set", []):
        *owners, name = path.split(".")
        owner = program
        for part in owners:
            owner = getattr(owner, part)
        setattr(owner, name, value_of(value))
    args = [value_of(x) for x in call["inputs"]]
    for group in call.get("same", []):
        for position in group[1:]:
            args[position] = args[group[0]]
    kwargs = {name: value_of(x) for name, x in call.get("kwargs", {}).items()}
    before = [json_of(x) for x in args]
    for field in ("expected", "expected_error", "inputs_after"):
        call.pop(field, None)
    try:
        call["expected"] = json_of(entry(*args, **kwargs))
    except Exception as error:
        message = str(error).strip().splitlines() or [""]
        call["expected_error"] = {"kind": "runtime", "class": type(error).__name__, "message": message[-1]}
    after = [json_of(x) for x in args]
    if after != before:
        call["inputs_after"] = after


def compiled(source):
    # Names of the caller's frame that a source may use.
    F, device, Tensor = torch.nn.functional, torch.device, torch.Tensor
    return torch.jit.CompilationUnit(source) if (F, device, Tensor, math) else None


def record(path):
    torch.set_num_threads(1)
    torch._C._jit_set_profiling_executor(False)
    cases = lines_of(path)
    for case in cases:
        if case["kind"] == "source":
            program = compiled(case["source"])
        elif "archive_bytes" in case and "expect" not in case:
            program = torch.jit.load(io.BytesIO(base64.b64decode(case["archive_bytes"])))
        else:
            continue
        for call in case.get("calls", [case]):
            record_call(program, case, call)
    write(path, cases)


def main():
    match sys.argv[1:]:
        case ["pack", folder, target]:
            pack(folder, target)
        case ["record", path]:
            record(path)
        case _:
            sys.exit(__doc__)


main()
