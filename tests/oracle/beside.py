"""Times operators beside PyTorch's TorchScript: one core, one run, rounds of either taken in turns.

    python tests/oracle/beside.py target/dist/flambeau [FILTER] [--rounds N] [--seconds S]
    python tests/oracle/beside.py target/dist/flambeau machine[/NAME]

With `machine`, the rows are the programs of `scalars.py`: scalars, control flow, containers, strings, objects.

Needs torch 2.6. A row is a function of tensors named `a`, `b`, ..., in groups with the largest ratio of times that is meant
to hold. Either side calls the same compiled function again and again and gives the median over short runs; the result is the
median over rounds. A ratio over its target is marked `!`. A row that cannot run (no support) is marked `?`.

A floor is what the machine needs at least: multiplications at its peak, or operands and result at the bandwidth of the
nearest memory that holds them. `--peak` and `--bandwidth` are measured apart, on the machine at hand.
"""

import argparse
import importlib.util
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch.utils.flop_counter import FlopCounterMode

from scalars import PROGRAMS

torch.set_num_threads(1)

# Groups: target ratio, and rows of (name, body, inputs). An input is a list of sizes, of singles unless a dtype stands first.


def row(name, body, *inputs, flops=0):
    """`flops` where PyTorch's counter has no formula for the operator."""
    return name, body, inputs, flops


def pointwise(n):
    return [
        row(f"add {n}", "return a + b", [n], [n]),
        row(f"mul {n}", "return a * b", [n], [n]),
        row(f"relu {n}", "return torch.relu(a)", [n]),
        row(f"exp {n}", "return torch.exp(a)", [n]),
        row(f"tanh {n}", "return torch.tanh(a)", [n]),
        row(f"sigmoid {n}", "return torch.sigmoid(a)", [n]),
        row(f"where {n}", "return torch.where(a > b, a, b)", [n], [n]),
        row(f"erf {n}", "return torch.erf(a)", [n]),
        row(f"gelu {n}", "return torch.ops.aten.gelu(a)", [n]),
        row(f"log {n}", "return torch.log(a + 2)", [n]),
        row(f"sin {n}", "return torch.sin(a)", [n]),
    ]


def conv(name, x, w, extra):
    return row(name, f"return torch.ops.aten.conv2d(a, b, None, {extra})", x, w)


GROUPS = {
    "small": (0.15, [
        row("add", "return a + b", [16], [16]),
        row("relu", "return torch.relu(a)", [16]),
        row("add_", "return a.add_(b)", [16], [16]),
        row("where", "return torch.where(a > b, a, b)", [16], [16]),
        row("mm", "return torch.mm(a, b)", [4, 4], [4, 4]),
        row("layer_norm", "return torch.layer_norm(a, [16])", [4, 16]),
        row("cat", "return torch.cat([a, b])", [16], [16]),
        row("softmax", "return torch.softmax(a, 1)", [4, 16]),
        row("sum", "return a.sum(1)", [4, 16]),
    ]),
    "views": (0.1, [
        row("t", "return a.t()", [4, 4]),
        row("view", "return a.view(2, 8)", [16]),
        row("select", "return a[3]", [16, 4]),
        row("slice", "return a[1:3]", [16, 4]),
        row("index", "return a[:, 1:3].unsqueeze(0)", [16, 4]),
        row("read", "return float(a[3])", [16]),
        row("write", "a[3] = 0.5\n    return a", [16]),
        row("reading loop", "s = 0.0\n    for i in range(64):\n        s += float(a[i])\n    return s", [64]),
        row("in-place loop", "for i in range(64):\n        a[i] = a[i] * 0.5 + 1.0\n    return a", [64]),
        row("row loop", "for i in range(1, 16):\n        a[i] += a[i - 1]\n    a *= 0.01\n    return a", [16, 16]),
    ]),
    "cells": (0.167, [
        row("lstm cell 8", """gates = torch.mm(a, d.t()) + torch.mm(b, e.t()) + f
    i, g, c, o = gates.chunk(4, 1)
    c = torch.sigmoid(g) * b + torch.sigmoid(i) * torch.tanh(c)
    return torch.sigmoid(o) * torch.tanh(c), c""", [1, 8], [1, 8], [1, 8], [32, 8], [32, 8], [32]),
        row("rnn 32 steps of 16", """for _ in range(32):
        b = torch.tanh(torch.mm(a, c.t()) + torch.mm(b, d.t()) + e)
    return b""", [1, 16], [1, 16], [16, 16], [16, 16], [16]),
        row("rnn over a sequence", """outs = []
    for x in a.unbind(0):
        b = torch.tanh(torch.mm(x, c.t()) + torch.mm(b, d.t()) + e)
        outs.append(b)
    return torch.stack(outs)""", [32, 1, 16], [1, 16], [16, 16], [16, 16], [16]),
        row("greedy decoding", """token = 0
    tokens: List[int] = []
    for _ in range(32):
        b = torch.tanh(torch.mm(a[token].unsqueeze(0), c) + torch.mm(b, d))
        token = int(torch.argmax(torch.mm(b, e), 1))
        tokens.append(token)
    return tokens""", [20, 16], [1, 16], [16, 16], [16, 16], [16, 20]),
    ]),
    # Tensors of up to 4,096 elements in programs of several operators.
    "programs": (0.083, [
        row("lstm cell 3x20", """gates = torch.mm(a, d.t()) + torch.mm(b, e.t()) + f
    i, g, c, o = gates.chunk(4, 1)
    c = torch.sigmoid(g) * b + torch.sigmoid(i) * torch.tanh(c)
    return torch.sigmoid(o) * torch.tanh(c), c""", [3, 20], [3, 20], [3, 20], [80, 20], [80, 20], [80]),
        row("gru cell 8", """gi = torch.mm(a, c.t()) + e
    gh = torch.mm(b, d.t()) + f
    ri, zi, ni = gi.chunk(3, 1)
    rh, zh, nh = gh.chunk(3, 1)
    r = torch.sigmoid(ri + rh)
    z = torch.sigmoid(zi + zh)
    n = torch.tanh(ni + r * nh)
    return n + z * (b - n)""", [1, 8], [1, 8], [24, 8], [24, 8], [24], [24]),
        row("mlp 32", """x = torch.relu(torch.nn.functional.linear(a, b, e))
    x = torch.relu(torch.nn.functional.linear(x, c, e))
    return torch.nn.functional.linear(x, d, e)""", [1, 32], [32, 32], [32, 32], [32, 32], [32]),
        *[row(f"chain {n}", """x = torch.tanh(a * b + 1.0)
    y = torch.sigmoid(x - b) * a
    z = torch.relu(y + x) * 0.5
    return torch.exp(-z) + torch.sqrt(torch.abs(y) + 1.0)""", [n], [n]) for n in (16, 256, 4096)],
        *[row(f"polynomial {n}", """y = a * 0.1 + 0.2
    y = y * a + 0.3
    y = y * a + 0.4
    y = y * a + 0.5
    y = y * a + 0.6
    return y * a + 0.7""", [n]) for n in (16, 4096)],
        *[row(f"broadcast {n}", "return (a + b) * c - a / (b * b + 1.0)", [n, 1], [1, n], [n, n]) for n in (8, 64)],
        row("softmax 8x32", "return torch.softmax(a, 1)", [8, 32]),
        row("layer_norm 8x64", "return torch.layer_norm(a, [64], b, c)", [8, 64], [64], [64]),
        row("reductions 16", """m = a.mean(1, True)
    d = a - m
    v = (d * d).sum(1) / 16.0
    return d.amax(1) + v - a.amin(0) + torch.sqrt(v.sum())""", [16, 16]),
        row("views in place", """for i in range(64):
        r = a[i % 16]
        r[1:9].mul_(0.5)
        r[0:8].add_(b[i % 16, 8:16])
    return a""", [16, 16], [16, 16]),
        row("index loop", """s = a[0]
    for i in range(1, 32):
        s = s + a[i] * b[i]
    return s""", [32, 8], [32, 8]),
        row("tensor while", """i = torch.zeros([])
    x = a
    while bool(i < 64):
        x = x * 0.5 + 1.0
        i = i + 1
    return x""", [4]),
        row("list stack", """outs = []
    for i in range(32):
        outs.append(a[i] * 2.0 + b)
    return torch.stack(outs)""", [32, 8], [8]),
        row("rnn loop", """for i in range(32):
        b = torch.tanh(torch.mm(a[i], c) + torch.mm(b, d) + e)
    return b""", [32, 1, 16], [1, 16], [16, 16], [16, 16], [16]),
        row("shape operators", """x = a.view(a.size(0), -1).t().contiguous()
    x = x.unsqueeze(0).expand(2, x.size(0), x.size(1))
    x = x.permute(2, 0, 1).reshape(x.size(2), -1)
    y = torch.cat([x, x], 1)
    return y.narrow(1, 1, 6).transpose(0, 1).squeeze()""", [4, 2, 4]),
        row("attention 8x16", """q = torch.matmul(a, b).view(8, 2, 8).transpose(0, 1)
    k = torch.matmul(a, c).view(8, 2, 8).transpose(0, 1)
    v = torch.matmul(a, d).view(8, 2, 8).transpose(0, 1)
    w = torch.softmax(torch.matmul(q, k.transpose(1, 2)) * 0.35, -1)
    return torch.matmul(w, v).transpose(0, 1).reshape(8, 16)""", [8, 16], [16, 16], [16, 16], [16, 16]),
        row("suppression loop", """n = a.size(0)
    areas = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    alive = torch.ones([n], dtype=torch.bool)
    kept: List[int] = []
    for i in range(n):
        if bool(alive[i]):
            kept.append(i)
            low = torch.max(a[i, :2], a[:, :2])
            high = torch.min(a[i, 2:], a[:, 2:])
            size = (high - low).clamp(min=0.0)
            inter = size[:, 0] * size[:, 1]
            iou = inter / (areas[i] + areas - inter)
            alive = alive & (iou <= 0.5)
    return kept""", [32, 4]),
    ]),
    "4096": (0.15, [
        *pointwise(4096),
        row("add_ 4096", "return a.add_(b)", [4096], [4096]),
        row("softmax 64x64", "return torch.softmax(a, 1)", [64, 64]),
        row("sum(1) 64x64", "return a.sum(1)", [64, 64]),
        row("sum(0) 64x64", "return a.sum(0)", [64, 64]),
        row("sum 4096", "return a.sum()", [4096]),
        row("cat 2x2048", "return torch.cat([a, b])", [2048], [2048]),
        row("layer_norm 64x64", "return torch.layer_norm(a, [64])", [64, 64]),
        row("zeros 4096", "return torch.zeros([4096])"),
        row("clone 4096", "return a.clone()", [4096]),
        row("transposed 64x64", "return a.t().contiguous()", [64, 64]),
        row("mm 32", "return torch.mm(a, b)", [32, 32], [32, 32]),
        row("mm 64", "return torch.mm(a, b)", [64, 64], [64, 64]),
        row("linear 32", "return torch.ops.aten.linear(a, b)", [32, 32], [32, 32]),
        row("linear 1x64", "return torch.ops.aten.linear(a, b)", [1, 64], [64, 64]),
    ]),
    "large": (1.0, [*pointwise(65536), *pointwise(1000000)]),
    "rows": (0.67, [
        row("softmax 12x128x128", "return torch.softmax(a, 2)", [12, 128, 128]),
        row("softmax 64x1000", "return torch.softmax(a, 1)", [64, 1000]),
        row("log_softmax 64x1000", "return torch.log_softmax(a, 1)", [64, 1000]),
        row("layer_norm 512x768", "return torch.layer_norm(a, [768])", [512, 768]),
        row("layer_norm 128x768", "return torch.layer_norm(a, [768])", [128, 768]),
        row("batch_norm 64x56", "return torch.batch_norm(a, None, None, b, c, False, 0.1, 1e-5, False)",
            [1, 64, 56, 56], [64], ["rand", 64]),
        row("group_norm", "return torch.group_norm(a, 8)", [1, 64, 56, 56]),
        row("sum_rows 4096x1024", "return a.sum(1)", [4096, 1024]),
        row("sum_columns 4096x1024", "return a.sum(0)", [4096, 1024]),
        row("max(1) 512x768", "return a.amax(1)", [512, 768]),
        row("argmax(1) 512x768", "return a.argmax(1)", [512, 768]),
        row("var(1) 512x768", "return a.var(1)", [512, 768]),
        row("avg_pool 64x112", "return torch.ops.aten.avg_pool2d(a, 2)", [1, 64, 112, 112]),
        row("avg_pool global", "return torch.ops.aten.adaptive_avg_pool2d(a, [1, 1])", [1, 512, 7, 7]),
        row("embedding 30k", "return torch.ops.aten.embedding(a, b)", [30000, 768], ["i64", 1, 128]),
        row("gelu 128x3072", "return torch.ops.aten.gelu(a)", [128, 3072]),
    ]),
    "maxpool": (0.1, [
        row("max_pool 3x3s2 64x112", "return torch.ops.aten.max_pool2d(a, [3, 3], [2, 2], [1, 1])",
            [1, 64, 112, 112]),
    ]),
    "products": (1.1, [
        *[row(f"mm {n}", "return torch.mm(a, b)", [n, n], [n, n]) for n in (64, 128, 256, 512, 1024)],
        row("mm tall", "return torch.mm(a, b)", [16384, 64], [64, 64]),
        row("mv 1024", "return torch.mv(a, b)", [1024, 1024], [1024]),
        row("bmm 12x128", "return torch.bmm(a, b)", [12, 128, 64], [12, 64, 128]),
        row("linear 128x768x3072", "return torch.ops.aten.linear(a, b)", [128, 768], [3072, 768]),
        row("linear 1x768", "return torch.ops.aten.linear(a, b)", [1, 768], [768, 768]),
        row("sdpa 12x128x64", "return torch.ops.aten.scaled_dot_product_attention(a, b, c)",
            [1, 12, 128, 64], [1, 12, 128, 64], [1, 12, 128, 64], flops=4 * 12 * 128 * 128 * 64),
        conv("conv 3x3 64@56", [1, 64, 56, 56], [64, 64, 3, 3], "1, 1"),
        conv("conv 3x3 256@14", [1, 256, 14, 14], [256, 256, 3, 3], "1, 1"),
        conv("conv 3x3 512@7", [1, 512, 7, 7], [512, 512, 3, 3], "1, 1"),
        conv("conv 7x7s2 3@224", [1, 3, 224, 224], [64, 3, 7, 7], "2, 3"),
        conv("conv 3x3s2 64@56", [1, 64, 56, 56], [128, 64, 3, 3], "2, 1"),
        conv("conv 1x1 64-256@56", [1, 64, 56, 56], [256, 64, 1, 1], "1, 0"),
        conv("conv 1x1s2 256@28", [1, 256, 28, 28], [512, 256, 1, 1], "2, 0"),
        conv("conv dw3x3 96@56", [1, 96, 56, 56], [96, 1, 3, 3], "1, 1, 1, 96"),
        conv("conv dw3x3s2 96@112", [1, 96, 112, 112], [96, 1, 3, 3], "2, 1, 1, 96"),
        conv("conv dw5x5 240@28", [1, 240, 28, 28], [240, 1, 5, 5], "1, 2, 1, 240"),
        row("conv1d 64-128 k5", "return torch.ops.aten.conv1d(a, b, None, 1, 2)", [1, 64, 512], [128, 64, 5]),
    ]),
}


def spec(sizes):
    """Sizes as `dtype[2,3]`."""
    dtype = "f32"
    if sizes and isinstance(sizes[0], str):
        dtype, sizes = ("f32" if sizes[0] == "rand" else sizes[0]), sizes[1:]
    return dtype, list(sizes)


def tensor(sizes):
    dtype, sizes = spec(sizes)
    if dtype == "i64":
        return torch.randint(0, 10, sizes)
    return torch.rand(sizes) * 2 - 1


def spells(call, seconds):
    """The median time of a call, in seconds, over short spells."""
    start = time.perf_counter()
    count = 0
    while count < 5 or time.perf_counter() - start < seconds / 5:
        call(1)
        count += 1
    batch = max(1, int(1e-3 / ((time.perf_counter() - start) / count)))
    times = []
    start = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - start < seconds:
        t = time.perf_counter()
        call(batch)
        times.append((time.perf_counter() - t) / batch)
    return statistics.median(times)


def theirs(path, inputs):
    """A function that calls the compiled one so many times; Python's part in a call counts as PyTorch's."""
    with open(path) as file:
        f = torch.jit.CompilationUnit(file.read()).f

    def call(times):
        for _ in range(times):
            f(*inputs)

    return call


def floor(call, inputs, result, flops, args):
    """Seconds that the machine needs at least. Of a table that is looked up in, what the result has is read."""
    with FlopCounterMode(display=False) as counter:
        call(1)
    lookup = any(t.dtype == torch.int64 for t in inputs)
    results = [result] if isinstance(result, torch.Tensor) else []
    sizes = [min(t.numel(), result.numel()) if lookup else t.numel() for t in inputs]
    sizes += [t.numel() for t in results]
    moved = sum(n * t.element_size() for n, t in zip(sizes, [*inputs, *results]))
    limits = zip((32 << 10, 512 << 10, 32 << 20, math.inf), args.bandwidth)
    speed = next(speed for size, speed in limits if moved <= size)
    return max((flops or counter.get_total_flops()) / args.peak, moved / speed) * 1e-9


def ours(program, path, names, inputs, seconds):
    command = [program, "bench", path, "--json", "--threads", "1", "--min-time", str(seconds)]
    for name, sizes in zip(names, inputs):
        dtype, sizes = spec(sizes)
        command += ["-a", f"{name}=rand:{dtype}[{','.join(map(str, sizes))}]"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[0] if done.stderr else "failed"
    return json.loads(done.stdout)["ns_per_call_median"] * 1e-9, None


def scripted(source, folder):
    """The function `main` of a program, compiled by TorchScript. Classes need a module with a file."""
    path = f"{folder}/program_{abs(hash(source))}.py"
    with open(path, "w") as file:
        file.write("import math\nfrom typing import Dict, List, Optional\n\nimport torch\n\n" + source)
    spec_of = importlib.util.spec_from_file_location(path.rsplit("/", 1)[1][:-3], path)
    module = importlib.util.module_from_spec(spec_of)
    sys.modules[spec_of.name] = module
    spec_of.loader.exec_module(module)
    return torch.jit.script(module.main), module.main


def programs(args):
    """Rows of `scalars.PROGRAMS`: ratios are times of TorchScript and of CPython over ours."""
    print("| program | ours | TorchScript | CPython | TorchScript / ours | CPython / ours |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (n, source) in PROGRAMS.items():
            if args.filter.removeprefix("machine").removeprefix("/") not in name:
                continue
            ratios += program_row(args, folder, name, n, source)
    if ratios:
        means = [math.exp(sum(math.log(r[k]) for r in ratios) / len(ratios)) for k in (0, 1)]
        least = min(r[0] for r in ratios)
        print(f"| **geometric mean** | | | | **{means[0]:.2f}**, least {least:.2f} | **{means[1]:.2f}** |")


def fastest(f, n, seconds):
    """The least time of a call: other load of the machine only adds to it."""
    least, start = math.inf, time.perf_counter()
    while time.perf_counter() - start < seconds or least == math.inf:
        t = time.perf_counter()
        f(n)
        least = min(least, time.perf_counter() - t)
    return least


def program_row(args, folder, name, n, source):
    """Times one program; prints its row and returns its ratios."""
    theirs_of, plain = scripted(source, folder)
    path = f"{folder}/{name}.py"
    with open(path, "w") as file:
        file.write(source.lstrip())
    command = [args.program, "bench", path, "-e", "main", "--json", "--threads", "1"]
    command += ["--min-time", str(args.seconds), "-a", f"n={n}"]
    rounds = []
    for _ in range(args.rounds):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"| {name} | ? {done.stderr.strip().splitlines()[0]} |", flush=True)
            return []
        mine = json.loads(done.stdout)["ns_per_call_min"] * 1e-9
        others = [fastest(f, n, args.seconds) for f in (theirs_of, plain)]
        rounds.append((mine, *others))
    mine, script, python = (min(r[k] for r in rounds) for k in range(3))
    pair = [script / mine, python / mine]
    times = " | ".join(human(t / n) for t in (mine, script, python))
    print(f"| {name} | {times} | {pair[0]:.2f} | {pair[1]:.2f} |", flush=True)
    return [pair]


def human(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--peak", type=float, default=104.0, help="GFLOP/s")
    parser.add_argument("--bandwidth", type=float, nargs=4, default=[150.0, 104.0, 55.0, 32.0], help="GB/s, by level")
    args = parser.parse_args()
    if args.filter.startswith("machine"):
        return programs(args)
    print("| workload | ours | PyTorch | ratio | target | floor | ours / floor |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for group, (target, rows) in GROUPS.items():
        ratios = []
        for name, body, inputs, flops in rows:
            if args.filter not in f"{group}/{name}":
                continue
            names = "abcdef"[: len(inputs)]
            with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
                file.write(f"def f({', '.join(names)}):\n    {body}\n")
                file.flush()
                given = [tensor(sizes) for sizes in inputs]
                call = theirs(file.name, given)
                result = torch.jit.CompilationUnit(open(file.name).read()).f(*given)
                least = floor(call, given, result, flops, args)
                pairs, why = [], None
                for _ in range(args.rounds):
                    time_theirs = spells(call, args.seconds)
                    time_ours, why = ours(args.program, file.name, names, inputs, args.seconds)
                    if why:
                        break
                    pairs.append((time_ours, time_theirs))
            if why:
                print(f"| {name} | ? {why} |", flush=True)
                continue
            mine, other = (statistics.median(p[k] for p in pairs) for k in (0, 1))
            ratio = statistics.median(p[0] / p[1] for p in pairs)
            ratios.append(ratio)
            mark = "!" if ratio > target else " "
            times = f"{human(mine)} | {human(other)} | {ratio:.3f}{mark} | {target:.2f}"
            print(f"| {name} | {times} | {human(least)} | {mine / least:.1f} |", flush=True)
        if ratios:
            mean, median = math.exp(sum(map(math.log, ratios)) / len(ratios)), statistics.median(ratios)
            over = f"{sum(r > target for r in ratios)} of {len(ratios)} over"
            print(f"| **{group}: geometric mean, median** | | | **{mean:.3f}, {median:.3f}** | {over} | | |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
