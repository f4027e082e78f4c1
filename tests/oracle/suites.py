"""Packs recorded suites for tests/data/suites, or records the results in them anew.

    python tests/oracle/suites.py pack FOLDER tests/data/suites/NAME/cases.jsonl.gz
    python tests/oracle/suites.py record tests/data/suites/NAME/cases.jsonl.gz

The format is described in tests/data/suites/README.md. `pack` reads a folder with `cases.jsonl` (or `.gz`) and the
archives that its cases name, which become part of the cases. `record` needs torch 2.6: it calls every program of a source
or archive again and replaces the recorded results, errors and inputs after the call; tolerances stay as they are.
"""

import base64
import gzip
import io
import itertools
import json
import math
import os
import sys

# What readers of a suite may want to know, and replaying does not.
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


def value_of(json_value):
    """A value as PyTorch takes it."""
    import torch

    tag, v = json_value["t"], json_value.get("v")
    if tag == "tensor":
        return tensor_of(json_value)
    if tag in ("none", "bool", "int", "str"):
        return v
    if tag == "float":
        return float(v)
    if tag == "complex":
        return complex(float(v[0]), float(v[1]))
    if tag in ("list", "tuple"):
        return (list if tag == "list" else tuple)(value_of(x) for x in v)
    if tag == "dict":
        return {value_of(key): value_of(x) for key, x in v}
    if tag == "device":
        return torch.device(v)
    return getattr(torch, v)


def tensor_of(json_value):
    import torch

    dtype, shape = getattr(torch, json_value["dtype"]), json_value["shape"]
    if "b64" in json_value:
        flat = torch.frombuffer(bytearray(base64.b64decode(json_value["b64"])), dtype=dtype) if math.prod(shape) else torch.zeros(0, dtype=dtype)
    else:
        data = [float(x) if isinstance(x, str) else x for x in json_value["data"]]
        if dtype.is_complex:
            data = [complex(*pair) for pair in zip(data[::2], data[1::2])]
        flat = torch.tensor(data, dtype=dtype)
    out = flat.reshape(shape)
    if "strides" in json_value:
        strides = json_value["strides"]
        memory = torch.zeros(1 + sum((n - 1) * s for n, s in zip(shape, strides)) if out.numel() else 0, dtype=dtype)
        for index in itertools.product(*map(range, shape)):
            memory[sum(i * s for i, s in zip(index, strides))] = out[index]
        out = memory.as_strided(shape, strides)
    return out.requires_grad_() if json_value.get("rg") else out


def json_of(value):
    """A value as it is recorded."""
    import torch

    if isinstance(value, torch.Tensor):
        return json_of_tensor(value)
    if value is None:
        return {"t": "none"}
    if isinstance(value, (bool, int, str)):
        return {"t": {bool: "bool", int: "int", str: "str"}[type(value)], "v": value}
    if isinstance(value, float):
        return {"t": "float", "v": repr(value)}
    if isinstance(value, complex):
        return {"t": "complex", "v": [repr(value.real), repr(value.imag)]}
    if isinstance(value, (list, tuple)):
        return {"t": "list" if isinstance(value, list) else "tuple", "v": [json_of(x) for x in value]}
    if isinstance(value, dict):
        return {"t": "dict", "v": [[json_of(key), json_of(x)] for key, x in value.items()]}
    return {"t": type(value).__name__, "v": str(value).removeprefix("torch.")}


def json_of_tensor(value):
    import torch

    out = {"t": "tensor", "dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
    if value.requires_grad:
        out["rg"] = True
    if not value.is_contiguous():
        out["strides"] = list(value.stride())
    flat = value.detach().resolve_conj().resolve_neg().contiguous().flatten()
    if flat.numel() > 64:
        out["b64"] = base64.b64encode(flat.view(torch.uint8).numpy().tobytes()).decode()
        return out
    flat = torch.view_as_real(flat).flatten() if flat.is_complex() else flat
    short = lambda x: x if not isinstance(x, float) or math.isfinite(x) else repr(x)
    if flat.dtype in (torch.float32, torch.float16, torch.bfloat16):
        import numpy

        out["data"] = [short(float(numpy.format_float_positional(x, unique=True))) for x in flat.float().numpy()]
    else:
        out["data"] = [short(x) for x in flat.tolist()]
    return out


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
    import torch

    # Names of the caller's frame that a source may use.
    F, device, Tensor = torch.nn.functional, torch.device, torch.Tensor
    return torch.jit.CompilationUnit(source) if (F, device, Tensor, math) else None


def record(path):
    import torch

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
