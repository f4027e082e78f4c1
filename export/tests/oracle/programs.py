"""Records small exported programs and the texts that PyTorch prints for them.

    python export/tests/oracle/programs.py

Writes export/tests/data/NAME.pt2, NAME.graph.txt (`str(ep.graph)`) and NAME.program.txt (`str(ep)`), both of the program
that PyTorch loads from the file; for some programs also NAME.json, the seed of the fuzz target `pt2`. Paths in stack traces are replaced. Needs torch 2.6.
"""

import io
import json
import os
import sys
import warnings
import zipfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim, export

warnings.filterwarnings("ignore")
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
SEEDS = {"layers", "branches"}
DATE = (1980, 1, 1, 0, 0, 0)


class Layers(nn.Module):
    """Parameters, of which two are one tensor, buffers of both kinds, a constant, a dynamic size."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 0.5]), persistent=False)
        self.offset = torch.tensor([0.5, -0.5, 0.25])

    def forward(self, x):
        self.count.add_(1)
        return self.second(F.relu(self.first(x))) * self.scale + self.offset, self.count * 2


class Values(nn.Module):
    """Inputs of every kind: a name that Python reserves, constants, a nested container; constants as arguments."""

    def forward(self, input, n, flag, text, pair):
        a, b = pair["a"], pair["b"]
        x = F.gelu(input, approximate=text) if flag else input
        y = torch.where(x > 0, x, float("-inf")).masked_fill(x > 1, float("nan"))
        z = F.interpolate(y.to(torch.float64)[None, None], scale_factor=2.0, mode="nearest")[0, 0]
        return {"z": z.contiguous(), "split": torch.split(a + n, [1, 2])}, tuple(b.max(0)), 3, None


class Branches(nn.Module):
    """Subgraphs within subgraphs, symbolic sizes and conditions."""

    def forward(self, x, y):
        def inner(a, b):
            return torch.cond(b.sum() > 0, lambda a, b: a + b, lambda a, b: a - b, (a, b))

        out = torch.cond(x.shape[0] > 4, inner, lambda a, b: a * b, (x, y))
        return out, x.shape[0] * 2 + 1, (x.shape[0] + 1) // 2


class Scaled(nn.Module):
    """A module that is called twice, with nested arguments and results, and counts its calls."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, *, options):
        self.calls.add_(1)
        return {"scaled": self.linear(x) * options["scale"], "x": x}


class Modules(nn.Module):
    """Modules below modules, a module without tensors, a tied weight, a call of a module of another one."""

    def __init__(self):
        super().__init__()
        self.scaled = Scaled()
        self.head = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(0.5))
        self.head[0].weight = self.scaled.linear.weight
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        first = self.scaled(x, options={"scale": x * 3})
        second = self.scaled(first["scaled"], options={"scale": x * 2})
        return self.head(self.norm(second["scaled"] + second["x"])), self.head[0](x)


class Program(nn.Module):
    """A class with the name that converted programs have, whose buffer is over the memory of a parameter."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("start", self.weight.data)

    def forward(s, x):
        return x * s.start + s.weight


Program.__module__ = "exported"


class Renamed(nn.Module):
    """A receiver that is not named `self`."""

    def __init__(self):
        super().__init__()
        self.inner = Program()

    def forward(this, x):
        return this.inner(x), x


class Chosen(nn.Module):
    """A module that uses one of its arguments."""

    def forward(self, x, unused):
        return x * 2


class Between(nn.Module):
    """A module that passes its second argument on, and does not use it otherwise."""

    def __init__(self):
        super().__init__()
        self.chosen = Chosen()

    def forward(self, x, y):
        return self.chosen(x + 1, y)


class Unused(nn.Module):
    """Calls with arguments that no node uses: an input, and a value that is computed for the call only."""

    def __init__(self):
        super().__init__()
        self.between = Between()
        self.chosen = Chosen()

    def forward(self, x, y):
        z = self.between(x, x.exp())
        return self.chosen(z, y), z


class Booleans(nn.Module):
    """Bools for parameters of type `Scalar`, which decide dtypes of results, or do not."""

    def forward(self, x, m):
        return m.masked_fill(~m, True), m ^ True, torch.full((2,), True), x + True


def programs():
    torch.manual_seed(0)
    batch = Dim("batch", min=2, max=64)
    layers = Layers()
    yield "layers", export(layers, (torch.rand(4, 3),), dynamic_shapes={"x": {0: batch}})
    yield "layers_core", export(Layers(), (torch.rand(4, 3),)).run_decompositions()
    pair = {"a": torch.rand(3, 2), "b": torch.rand(2, 2)}
    yield "values", export(Values(), (torch.rand(2, 3), 2, True, "tanh", pair))
    n = Dim("n", min=2)
    shapes = {"x": {0: n}, "y": {0: n}}
    yield "branches", export(Branches(), (torch.rand(6, 2), torch.rand(6, 2)), dynamic_shapes=shapes)
    rows = {"x": {0: batch}}
    for name, kept in (("modules", ()), ("modules_kept", ("scaled",))):
        torch.manual_seed(1)
        model = Modules().eval()
        yield name, export(
            model, (torch.rand(4, 3),), strict=False, dynamic_shapes=rows, preserve_module_call_signature=kept
        )
    kept = ("chosen", "between.chosen")
    args = (torch.rand(2, 3), torch.rand(2, 3))
    yield "modules_unused", export(Unused(), args, strict=False, preserve_module_call_signature=kept)
    yield "modules_renamed", export(Renamed(), (torch.rand(2, 3),), strict=True)
    yield "booleans", export(Booleans(), (torch.rand(2), torch.tensor([True, False])))


def without_paths(text):
    """Replaces the paths of files in stack traces by their names."""

    def change(value):
        if isinstance(value, dict):
            return {k: shorten(v) if k == "stack_trace" else change(v) for k, v in value.items()}
        return [change(v) for v in value] if isinstance(value, list) else value

    def shorten(trace):
        lines = []
        for line in trace.split("\n"):
            if line.strip().startswith('File "'):
                start, path, rest = line.split('"', 2)
                line = f'{start}"{os.path.basename(path)}"{rest}'
            lines.append(line)
        return "\n".join(lines)

    return json.dumps(change(json.loads(text)))


def rewritten(data):
    """Returns the file with short paths and without example inputs and dates, so that recording is reproducible."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "serialized_exported_program.json":
                content = without_paths(content.decode()).encode()
            new.writestr(zipfile.ZipInfo(name, DATE), content)
    return out.getvalue()


def write(name, content):
    with open(os.path.join(DATA, name), "wb") as f:
        f.write(content)


def main():
    for name, program in programs():
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
        data = rewritten(buffer.getvalue())
        loaded = torch.export.load(io.BytesIO(data))
        write(f"{name}.pt2", data)
        write(f"{name}.graph.txt", str(loaded.graph).encode())
        write(f"{name}.program.txt", str(loaded).encode())
        if name in SEEDS:
            write(f"{name}.json", zipfile.ZipFile(io.BytesIO(data)).read("serialized_exported_program.json"))
        print(name, len(data), file=sys.stderr)


main()
