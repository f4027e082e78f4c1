"""Loads archives written by Flambeau with PyTorch and compares their results with the recorded ones.

    cargo xtask conform SUITE --through-save FOLDER
    python tests/oracle/saved.py SUITE FOLDER

SUITE is a folder with recorded cases, FOLDER what the first command wrote. Prints how many cases agree, and one line per
case that does not.
"""

import gzip
import json
import pathlib
import sys

import torch
from common import tensor_of, value_of


def same(got, want, case):
    t = want["t"]
    if t == "tensor":
        if not isinstance(got, torch.Tensor):
            return False
        want = tensor_of(want).detach()
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
        return torch.allclose(torch.tensor(got), torch.tensor(value_of(want)), case["rtol"], case["atol"], True)
    if t in ("enum", "object", "future"):
        return True
    return got == value_of(want) or str(got) == str(want.get("v"))


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
                args = [value_of(v) for v in case.get("inputs", [])]
                kwargs = {k: value_of(v) for k, v in case.get("kwargs", {}).items()}
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
