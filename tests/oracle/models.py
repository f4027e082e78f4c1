"""Converts the archives of a recorded suite, modules or exported programs, to exported programs, and compares their results
in PyTorch.

    python tests/oracle/models.py FLAMBEAU SUITE VERSION [DECOMPOSE]

SUITE is a folder with recorded cases; VERSION is the version of files that this PyTorch reads, such as 2.6; DECOMPOSE is the table of
decompositions, such as `core-aten`. Prints one line per case that is not converted or not equal, and the number of those that agree.
Needs torch, and torchvision for models that call its operators.
"""

import contextlib
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from common import value_of
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")

# Registers operators of torchvision such as `nms`, which files name.
with contextlib.suppress(ImportError):
    import torchvision  # noqa: F401


def differs(found, wanted, case):
    found, wanted = pytree.tree_leaves(found), pytree.tree_leaves(wanted)
    if len(found) != len(wanted):
        return f"{len(found)} results for {len(wanted)}"
    for a, b in zip(found, wanted):
        if isinstance(b, torch.Tensor):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"{a.dtype} {list(a.shape)} for {b.dtype} {list(b.shape)}"
            equal = torch.allclose(a.detach(), b.detach(), rtol=case["rtol"], atol=case["atol"], equal_nan=True)
            if case.get("check") != "meta" and not equal:
                return f"elements differ by {(a.detach().double() - b.detach().double()).abs().max().item()}"
        elif a != b:
            return f"{a} for {b}"
    return None


def tried(command, suite, case, options, folder):
    inputs, output = os.path.join(folder, "inputs.json"), os.path.join(folder, "program.pt2")
    with open(inputs, "w") as out:
        json.dump(case["inputs"], out)
    words = [command, "convert", str(suite / case["archive"]), output, *options]
    if not case["archive"].endswith(".pt2"):
        words += ["--inputs", inputs]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        return "not converted: " + " ".join(done.stderr.split())[-200:]
    try:
        module = torch.export.load(output).module()
        kwargs = {name: value_of(x) for name, x in case.get("kwargs", {}).items()}
        found = module(*[value_of(x) for x in case["inputs"]], **kwargs)
    except Exception as error:
        return None if "expected_error" in case else f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    if "expected_error" in case:
        return "no error"
    buffers = dict(module.named_buffers())
    for name, wanted in case.get("buffers_after", {}).items():
        why = differs(buffers[name], value_of(wanted), case)
        if why is not None:
            return f"buffer {name}: {why}"
    return differs(found, value_of(case["expected"]), case) if "expected" in case else None


def main():
    command, suite, version = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    options = ["--for", version, *(["--decompose", sys.argv[4]] if len(sys.argv) > 4 else [])]
    path = suite / "cases.jsonl.gz"
    lines = gzip.open(path, "rt") if path.exists() else open(suite / "cases.jsonl")
    with lines:
        cases = [json.loads(line) for line in lines]
    agree = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            why = tried(command, suite, case, options, folder)
            agree += why is None
            if why is not None:
                print(f"{case['id']}: {why}", flush=True)
    print(f"{agree} of {len(cases)} agree in torch {torch.__version__}")


main()
