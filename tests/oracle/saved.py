"""Loads archives written by Flambeau with PyTorch and compares what they compute with what was recorded.

    cargo xtask conform SUITE --through-save FOLDER
    python tests/oracle/saved.py SUITE FOLDER

SUITE is a folder with recorded cases, FOLDER what the first command wrote. Prints how many cases agree, and one line per
case that does not.
"""

import base64
import gzip
import json
import pathlib
import sys

import torch


def number(v):
    return {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}.get(v, v) if isinstance(v, str) else v


def tensor(v):
    dtype = getattr(torch, v["dtype"])
    if "b64" in v:
        flat = torch.frombuffer(bytearray(base64.b64decode(v["b64"])), dtype=dtype).clone()
    elif dtype.is_complex:
        parts = [float(number(x)) for x in v["data"]]
        flat = torch.tensor([complex(a, b) for a, b in zip(parts[::2], parts[1::2])], dtype=dtype)
    else:
        flat = torch.tensor([number(x) for x in v["data"]], dtype=dtype)
    t = flat.reshape(v["shape"])
    if "strides" in v:
        size = 1 + sum((n - 1) * s for n, s in zip(v["shape"], v["strides"])) if t.numel() else 0
        store = torch.zeros(size, dtype=dtype).as_strided(v["shape"], v["strides"])
        t = store.copy_(t) if t.numel() else t
    return t.requires_grad_() if v.get("rg") else t


def value(v):
    t = v["t"]
    if t == "none":
        return None
    if t == "tensor":
        return tensor(v)
    if t == "float":
        return float(v["v"])
    if t == "complex":
        return complex(float(v["v"][0]), float(v["v"][1]))
    if t == "list":
        return [value(x) for x in v["v"]]
    if t == "tuple":
        return tuple(value(x) for x in v["v"])
    if t == "dict":
        return {value(k): value(x) for k, x in v["v"]}
    if t in ("dtype", "layout", "memory_format"):
        return getattr(torch, v["v"])
    return torch.device(v["v"]) if t == "device" else v.get("v")


def same(got, want, case):
    t = want["t"]
    if t == "tensor":
        if not isinstance(got, torch.Tensor):
            return False
        want = tensor(want).detach()
        got = got.detach()
        if got.dtype != want.dtype or got.shape != want.shape:
            return False
        return case.get("check") == "meta" or torch.allclose(
            got, want, rtol=case["rtol"], atol=case["atol"], equal_nan=True
        )
    if t in ("list", "tuple"):
        return len(got) == len(want["v"]) and all(same(g, w, case) for g, w in zip(got, want["v"]))
    if t == "dict":
        return len(got) == len(want["v"]) and all(
            same(g, w, case) for g, (_, w) in zip(got.values(), want["v"])
        )
    if t in ("float", "complex"):
        return torch.allclose(torch.tensor(got), torch.tensor(value(want)), case["rtol"], case["atol"], True)
    if t in ("enum", "object", "future"):
        return True
    return got == value(want) or str(got) == str(want.get("v"))


def main():
    suite, saved = map(pathlib.Path, sys.argv[1:3])
    torch.set_num_threads(1)
    counts = {"agree": 0, "differ": 0, "not loaded": 0, "not saved": 0}
    plain = suite / "cases.jsonl"
    lines = plain.open() if plain.exists() else gzip.open(f"{plain}.gz", "rt")
    for case in map(json.loads, lines):
        if "archive" not in case:
            continue
        path = saved / pathlib.Path(case["archive"]).name
        if not path.exists():
            counts["not saved"] += 1
            continue
        why = ""
        try:
            module = torch.jit.load(str(path))
        except Exception as e:
            counts["not loaded"] += 1
            print("not loaded", case["id"], str(e).strip().splitlines()[0][:150])
            continue
        if "expected" in case:
            try:
                args = [value(v) for v in case.get("inputs", [])]
                kwargs = {k: value(v) for k, v in case.get("kwargs", {}).items()}
                agrees = same(getattr(module, case["entry"])(*args, **kwargs), case["expected"], case)
            except Exception as e:
                agrees, why = False, str(e).strip().splitlines()[-1][:150]
        else:
            agrees = True
        counts["agree" if agrees else "differ"] += 1
        if not agrees:
            print("differs", case["id"], why)
    print(", ".join(f"{n} {what}" for what, n in counts.items()))


if __name__ == "__main__":
    main()
