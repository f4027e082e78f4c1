"""Compares `flambeau convert --decompose core-aten` with PyTorch's `run_decompositions` on PyTorch's samples of operators.

    python tests/oracle/decomposed.py FLAMBEAU [FILTER [SAMPLES]]

For every operator of `op_db` whose name contains FILTER, the first SAMPLES samples are exported by `torch.export` and
decomposed by both. Prints, per operator of ATen, the operators of `op_db` for which we keep it and PyTorch does not; the
programs that we refuse; and those whose results differ. Needs torch 2.6, numpy and expecttest.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections import defaultdict

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")


class Call(torch.nn.Module):
    """A call of an operator whose tensors are inputs."""

    def __init__(self, op, args, kwargs):
        super().__init__()
        leaves, self.spec = pytree.tree_flatten((args, kwargs))
        self.op, self.leaves = op, [None if isinstance(x, torch.Tensor) else x for x in leaves]
        self.inputs = tuple(x.detach() for x in leaves if isinstance(x, torch.Tensor))
        self.is_tensor = [isinstance(x, torch.Tensor) for x in leaves]

    def forward(self, *inputs):
        given = iter(inputs)
        leaves = [next(given) if is_tensor else leaf for leaf, is_tensor in zip(self.leaves, self.is_tensor)]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.op(*args, **kwargs)


def targets(graph_module):
    nodes = [node for module in graph_module.modules() for node in getattr(module, "graph", torch.fx.Graph()).nodes]
    return {str(node.target) for node in nodes if isinstance(node.target, torch._ops.OpOverload)}


def of_file(path):
    """Operators of a file, without those of subgraphs."""
    with zipfile.ZipFile(path) as archive:
        record = next(name for name in archive.namelist() if name.endswith("serialized_exported_program.json"))
        program = json.loads(archive.read(record))
    nodes = program["graph_module"]["graph"]["nodes"]
    return {node["target"].removeprefix("torch.ops.") for node in nodes if node["target"].startswith("torch.ops.aten")}


def samples(op, count):
    dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if d in op.dtypes), None)
    if dtype is None:
        return
    for i, sample in enumerate(op.sample_inputs("cpu", dtype)):
        if i >= count:
            return
        yield Call(op.op, (sample.input, *sample.args), sample.kwargs)


def agree(a, b):
    a, b = pytree.tree_leaves(a), pytree.tree_leaves(b)
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        if isinstance(x, torch.Tensor):
            if x.shape != y.shape or x.dtype != y.dtype:
                return False
            is_inexact = x.dtype.is_floating_point or x.is_complex()
            if is_inexact and not torch.allclose(x, y, rtol=1e-4, atol=1e-4, equal_nan=True):
                return False
            if not is_inexact and not torch.equal(x, y):
                return False
    return True


def main():
    command, only = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    kept, refused, differ = defaultdict(set), [], []
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        source, result = os.path.join(folder, "a.pt2"), os.path.join(folder, "b.pt2")
        for op in op_db:
            name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
            if only not in name:
                continue
            try:
                calls = list(samples(op, count))
            except Exception:
                continue
            for call in calls:
                try:
                    program = torch.export.export_for_training(call, call.inputs, strict=False)
                    wanted = targets(program.run_decompositions().graph_module)
                    torch.export.save(program, source)
                    expected = call(*call.inputs)
                except Exception:
                    continue
                total += 1
                words = [command, "convert", source, result, "--for", "2.6", "--decompose", "core-aten"]
                done = subprocess.run(words, capture_output=True, text=True)
                if done.returncode != 0:
                    refused.append(f"{name}: {done.stderr.strip().splitlines()[-1][:200]}")
                    continue
                for target in of_file(result) - wanted:
                    print(f"{name} keeps {target}", flush=True)
                    kept[target].add(name)
                try:
                    found = torch.export.load(result).module()(*call.inputs)
                    if "random" not in name and not agree(expected, found):
                        differ.append(name)
                except Exception as e:
                    differ.append(f"{name}: {type(e).__name__} {str(e).strip().splitlines()[0][:160] if str(e) else ''}")
    for target in sorted(kept):
        print(f"kept {target}: {' '.join(sorted(kept[target])[:6])}")
    for text in sorted(set(refused)):
        print(f"refused {text}")
    for text in sorted(set(differ)):
        print(f"differs {text}")
    print(f"{total} programs, {len(kept)} operators kept, {len(refused)} refused, {len(differ)} with other results")


main()
