"""Helpers of several scripts of this folder: literals of test files, elements of tensors as text, values of recorded
suites as JSON, and calls of PyTorch's operator samples as TorchScript source.

Needs torch 2.6.
"""

import base64
import itertools
import json
import math
import os

import torch

# --- literals of test files -------------------------------------------------------------------------------------------

# The names of dtypes in test files.
DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
    "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
    "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128,
}

def tensor(data, dtype=None):
    return torch.tensor(data, dtype=dtype)


def iota(shape, dtype=torch.int64):
    """The numbers from 0 in row-major order."""
    return torch.arange(math.prod(shape)).reshape(shape).to(dtype)


def full(shape, value, dtype=None):
    return torch.full(shape, value, dtype=dtype)


def hex_elements(tensor):
    """The elements as little-endian bytes in hexadecimal."""
    flat = tensor.contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).tolist()).hex() if flat.numel() else ""


# --- values of recorded suites ----------------------------------------------------------------------------------------


def value_of(json_value):
    """The value that a JSON value of a suite denotes."""
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
    """The tensor that a JSON value of a suite denotes, with its strides and `requires_grad`."""
    dtype, shape = getattr(torch, json_value["dtype"]), json_value["shape"]
    if "b64" in json_value:
        data = bytearray(base64.b64decode(json_value["b64"]))
        flat = torch.frombuffer(data, dtype=dtype) if data else torch.zeros(0, dtype=dtype)
    else:
        data = [float(x) if isinstance(x, str) else x for x in json_value["data"]]
        if dtype.is_complex:
            data = [complex(*pair) for pair in zip(data[::2], data[1::2])]
        flat = torch.tensor(data, dtype=dtype)
    out = flat.reshape(shape)
    if "strides" in json_value:
        strides = json_value["strides"]
        size = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if out.numel() else 0
        memory = torch.zeros(size, dtype=dtype)
        # Elements may share memory, which `copy_` refuses.
        for index in itertools.product(*map(range, shape)):
            memory[sum(i * s for i, s in zip(index, strides))] = out[index]
        out = memory.as_strided(shape, strides)
    return out.requires_grad_() if json_value.get("rg") else out


def json_of(value):
    """The JSON value of a suite that denotes a value."""
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


# --- calls of operator samples ----------------------------------------------------------------------------------------


class Unwritable(Exception):
    """A value that TorchScript source cannot contain."""


def source_of(value, tensors):
    """TorchScript source of an argument. A tensor becomes the name `xN` and is appended to `tensors`."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return f"x{len(tensors) - 1}"
    if isinstance(value, (list, tuple, torch.Size)):
        return "[" + ", ".join(source_of(v, tensors) for v in value) + "]"
    if value is None or isinstance(value, (bool, int, str, float)):
        return repr(value)
    if isinstance(value, torch.dtype):
        return str(value)
    raise Unwritable(str(type(value)))


def source_of_call(args, kwargs):
    """TorchScript source of the arguments of a call, and their tensors."""
    tensors = []
    positional = [source_of(a, tensors) for a in args]
    return positional + [f"{k}={source_of(v, tensors)}" for k, v in kwargs.items()], tensors


def isolated(rows_of, op):
    """The rows that `rows_of(op)` yields in its own process, since some operators end it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as out:
            for row in rows_of(op):
                out.write(json.dumps(row) + "\n")
                out.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        rows = [json.loads(line) for line in lines]
    os.waitpid(child, 0)
    return rows


def collect(ops, rows_of):
    """The values observed per overload and flag: `{overload: {flag: {value, ...}}}`."""
    found = {}
    for op in ops:
        for name, flag, holds in isolated(rows_of, op):
            found.setdefault(name, {}).setdefault(flag, set()).add(holds)
    return found


def print_flags(found):
    """Prints a line per overload with the flags that always held."""
    for name in sorted(found):
        flags = [flag for flag in sorted(found[name]) if found[name][flag] == {True}]
        if flags:
            print(" ".join([name, *flags]))
