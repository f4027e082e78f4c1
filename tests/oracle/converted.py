"""Converts modules of TorchScript to exported programs with `flambeau convert`, and compares them in PyTorch.

    python tests/oracle/converted.py FLAMBEAU [VERSION]

FLAMBEAU is the command; VERSION is the version of files that this PyTorch reads, such as 2.6. For every module: the
results of `torch.export.load` of the converted file must be those of the module, buffers included. Prints one line per
module that fails, the number of those that agree, and of those that the command refuses to write for the version. Needs torch.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F
from common import json_of
from torch import nn
from typing import Dict, List, Optional, Tuple

warnings.filterwarnings("ignore")


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.5),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 5), nn.Softmax(dim=1),
        )

    def forward(self, x):
        return self.body(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(8, 2)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, _ = self.gru(y)
        return {"z": z, "state": [h, c]}


class Counter(nn.Module):
    """Updates buffers in place and by assignment."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("last", torch.zeros(2))

    def forward(self, x):
        self.count += 1
        self.last = x.sum(0)
        return x * self.count


class Branches(nn.Module):
    def forward(self, x, y: Optional[torch.Tensor]):
        if y is not None:
            x = x + y
        if bool(x.sum() > 0):
            z = x.sin()
        else:
            z = x.cos() * 2
        assert bool(z.abs().max() < 10), "large"
        return z, int(x.size(0)) * 2


class Containers(nn.Module):
    def forward(self, xs: List[torch.Tensor], named: Dict[str, torch.Tensor], n: int):
        out = torch.zeros_like(xs[0])
        for i, x in enumerate(xs):
            out = out + x * (i + n)
        for name in named.keys():
            out = torch.cat([out, named[name]])
        return torch.stack(torch.split(out, 1)), tuple((out, xs[0]))


class Caches(nn.Module):
    """Sets attributes that are no buffers: a flag, and a list with the same contents in each call."""

    warned: bool
    anchors: List[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.warned = False
        self.anchors = [torch.tensor([1.0, 2.0]), torch.tensor([3.0])]

    def forward(self, x):
        if not self.warned:
            self.warned = True
        self.anchors = [anchor.to(x.dtype) for anchor in self.anchors]
        return x * self.anchors[0] + self.anchors[1]


class Numbers(nn.Module):
    """Numbers that are read from tensors, as arguments and in sizes."""

    def forward(self, x, n):
        k = int(n.item())
        y = x * (2 * k + 1) + float(x[0].item())
        return y, torch.zeros(k), x[x > 0] * 2


class Sizes(nn.Module):
    """Sizes in arguments, metadata and branches."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 4)

    def forward(self, x, y):
        n = x.size(0)
        z = self.lin(x).view(n, 2, -1).transpose(0, 1).reshape(2 * n, 2)
        if n > 2:
            z = torch.cat([z, y[:, :2]])
        return z, torch.zeros(n + 1, x.numel()), z.mean(0, keepdim=True).expand(n, -1), y[y > 0].sum()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.embed = nn.Embedding(10, 8)
        self.out = nn.Linear(8, 10)
        self.out.weight = self.embed.weight

    def forward(self, x):
        return self.out(self.layer(self.embed(x)))


class Kinds(nn.Module):
    """Constants as arguments: dtypes, memory formats, infinities, lists of optionals, tensors of numbers."""

    def forward(self, x):
        y = x.to(torch.float64).contiguous(memory_format=torch.channels_last)
        y = y.masked_fill(y > 0.5, float("-inf")).clamp(min=-2.0)
        z = torch.tensor([[1, 0], [0, 1]]).to(x.dtype)
        i = torch.tensor([0, 1])
        return F.interpolate(y, scale_factor=2.0, mode="nearest"), z @ z, y[:, i], torch.arange(3, dtype=torch.float32)


class Loops(nn.Module):
    """Loops whose number of iterations depends on data: numbers, views, tuples and early exits in them."""

    def forward(self, x, n):
        y = x.clone()
        v = y[0]
        state = (x[0], 0.5)
        k = 0
        while bool(y.sum() < 20):
            v += x[1].abs()
            state = (state[0] + v, state[1] * 2)
            k += 1
        for i in range(int(n)):
            for j in range(int(n) - i):
                y = y * 0.5 + j
            if bool(y.sum() > 100):
                break
            y = y + i
        return y, state, k


class Search(nn.Module):
    """A loop that returns, and buffers that are written in branches and loops."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        if bool(x.sum() > 0):
            self.seen[0] += x[0]
            self.count += 1
        else:
            self.seen.mul_(2)
        for i in range(10):
            self.count += 1
            if bool(x[0] < i):
                return x * i, self.seen + 1
        return x, self.seen


def modules():
    torch.manual_seed(0)
    image, words = torch.rand(2, 3, 8, 8), torch.randint(0, 10, (2, 5))
    yield "convolutions", torch.jit.script(Convolutions().eval()), (image,)
    yield "training", torch.jit.script(Convolutions().eval()), (image,)
    yield "traced", torch.jit.trace(Convolutions().eval(), (image,)), (image,)
    yield "recurrent", torch.jit.script(Recurrent().eval()), (torch.rand(5, 2, 3),)
    yield "counter", torch.jit.script(Counter()), (torch.rand(3, 2),)
    yield "branches", torch.jit.script(Branches()), (torch.rand(2, 3), torch.rand(3))
    yield "absent", torch.jit.script(Branches()), (torch.rand(2, 3) - 2, None)
    named = {"a": torch.rand(1, 2), "b": torch.rand(1, 2)}
    yield "containers", torch.jit.script(Containers()), ([torch.rand(2, 2), torch.rand(2, 2)], named, 3)
    yield "attention", torch.jit.script(Attention().eval()), (words,)
    yield "attention_traced", torch.jit.trace(Attention().eval(), (words,), check_trace=False), (words,)
    yield "caches", torch.jit.script(Caches()), (torch.rand(3, 2),)
    sizes = [(torch.rand(n, 3), torch.rand(m, 3)) for n, m in [(4, 5), (7, 2), (16, 9)]]
    dynamic = ("x:0=n:3..16", "y:0=m")
    yield "sizes", torch.jit.script(Sizes()), sizes[0], dynamic, *sizes[1:]
    n = torch.tensor(3)
    yield "numbers", torch.jit.script(Numbers()), (torch.rand(4) - 0.5, n), (), (torch.rand(4) - 0.2, n + 2)
    image2 = torch.rand(5, 3, 8, 8)
    yield "batches", torch.jit.script(Convolutions().eval()), (image,), ("x:0=batch",), (image2,)
    calls = [(torch.rand(2, 3), torch.tensor(n)) for n in (3, 0, 5)]
    yield "loops", torch.jit.script(Loops()), calls[0], (), *calls[1:]
    calls = [(torch.tensor(x),) for x in ([1.5, 2.0], [-1.0, 0.5], [30.0, 1.0])]
    yield "search", torch.jit.script(Search()), calls[0], (), *calls[1:]
    yield "kinds", torch.jit.script(Kinds()), (torch.rand(1, 2, 2, 2),)


REFUSED = "refused: the version has no such operators or inputs"


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def compare(name, module, inputs, command, version, folder, dynamic=(), *others):
    path = os.path.join(folder, name)
    module.save(path + ".pt")
    with open(path + ".json", "w") as f:
        json.dump([json_of(value) for value in inputs], f)
    options = ["--inputs", path + ".json"] + (["--for", version] if version else [])
    options += [option for size in dynamic for option in ("--dynamic", size)]
    done = subprocess.run([command, "convert", path + ".pt", path + ".pt2", *options], capture_output=True, text=True)
    if "[E015]" in done.stderr:
        return REFUSED
    if done.returncode != 0:
        return done.stderr.strip()
    program = torch.export.load(path + ".pt2")
    converted = program.module()
    for inputs in (inputs, inputs, *others):
        wanted, found = leaves(module(*inputs)), leaves(converted(*inputs))
        if len(wanted) != len(found):
            return f"{len(found)} results for {len(wanted)}"
        for a, b in zip(wanted, found):
            if isinstance(a, torch.Tensor):
                torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-6)
            elif a != b:
                return f"{b} for {a}"
    for key, buffer in module.named_buffers():
        torch.testing.assert_close(dict(converted.named_buffers())[key], buffer)
    return None


def main():
    command, version = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    same = refused = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, module, inputs, *more in modules():
            total += 1
            try:
                problem = compare(name, module, inputs, command, version, folder, *more)
            except Exception as e:
                problem = f"{type(e).__name__}: {e}"
            same += problem is None
            refused += problem is REFUSED
            if problem not in (None, REFUSED):
                print(f"{name}: {problem}")
    print(f"{same} of {total} agree, {refused} are refused for this version")


main()
