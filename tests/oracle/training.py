"""Times forward and backward of programs beside PyTorch: one core, rounds of either taken in turns.

    python tests/oracle/training.py target/dist/flambeau [FILTER] [--rounds N] [--seconds S]

Needs torch 2.6. A row is a function of tensors that all require gradients; a call is followed by the gradients of the sum of
its floating-point results (`flambeau bench --grad`). PyTorch's time is the smaller one of eager Python and of TorchScript,
whose profiling executor has specialized the program. The ratio is PyTorch's time over ours; one below the goal is marked `!`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile

import torch
from beside import human, spells, tensor

torch.set_num_threads(1)

LSTM = """gates = torch.mm(a, d.t()) + torch.mm(b, e.t()) + f
    i, g, h, o = gates.chunk(4, 1)
    c = torch.sigmoid(g) * c + torch.sigmoid(i) * torch.tanh(h)
    return torch.sigmoid(o) * torch.tanh(c), c"""
MLP = """x = torch.relu(torch.nn.functional.linear(a, b))
    x = torch.relu(torch.nn.functional.linear(x, c))
    return torch.nn.functional.linear(x, d)"""
CHAIN = "return torch.tanh(torch.sigmoid(a * b + a) * b - a * 0.5) * torch.exp(-a * a) + b"
CONV = """x = torch.relu(torch.conv2d(a, b, None, [1, 1], [1, 1]))
    x = torch.max_pool2d(x, [2, 2])
    x = torch.relu(torch.conv2d(x, c, None, [1, 1], [1, 1]))
    x = torch.max_pool2d(x, [2, 2])
    return torch.nn.functional.linear(x.flatten(1), d)"""
RNN = """for _ in range(32):
        b = torch.tanh(torch.mm(a, c.t()) + torch.mm(b, d.t()) + e)
    return b"""

# Name, goal, body, sizes.
ROWS = [
    ("lstm cell 1x32", 8.0, LSTM, [[1, 32], [1, 32], [1, 32], [128, 32], [128, 32], [128]]),
    ("mlp B=1", 8.0, MLP, [[1, 32], [64, 32], [64, 64], [10, 64]]),
    ("mlp B=64", 1.1, MLP, [[64, 256], [512, 256], [512, 512], [10, 512]]),
    ("pointwise chain 65536", 2.0, CHAIN, [[65536], [65536]]),
    ("small conv net B=4", 1.1, CONV, [[4, 3, 32, 32], [16, 3, 3, 3], [32, 16, 3, 3], [10, 2048]]),
    ("rnn 32 steps of 16", 6.0, RNN, [[1, 16], [1, 16], [16, 16], [16, 16], [16]]),
]


def theirs(f, inputs):
    """Calls `f` and its gradients so many times."""
    given = [t.requires_grad_() for t in inputs]

    def call(times):
        for _ in range(times):
            result = f(*given)
            results = result if isinstance(result, tuple) else (result,)
            for t in given:
                t.grad = None
            torch.autograd.backward(results, [torch.ones_like(r) for r in results])

    return call


def ours_with_gradients(program, path, names, sizes, seconds):
    command = [program, "bench", path, "--json", "--threads", "1", "--grad", "--min-time", str(seconds)]
    for name, of in zip(names, sizes):
        command += ["-a", f"{name}=rand:f32[{','.join(map(str, of))}]"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[0] if done.stderr else "failed"
    return json.loads(done.stdout)["ns_per_call_median"] * 1e-9, None


def measure(args, name, goal, body, sizes):
    names = "abcdef"[: len(sizes)]
    source = f"def f({', '.join(names)}):\n    {body}\n"
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(source)
        file.flush()
        scope = {"torch": torch}
        exec(source, scope)  # noqa: S102, the programs are above
        inputs = [tensor(of) for of in sizes]
        calls = [theirs(f, inputs) for f in (scope["f"], torch.jit.CompilationUnit(source).f)]
        rounds = []
        for _ in range(args.rounds):
            mine, why = ours_with_gradients(args.program, file.name, names, sizes, args.seconds)
            if why:
                print(f"| {name} | ? {why} |", flush=True)
                return
            rounds.append((mine, *(spells(call, args.seconds) for call in calls)))
    mine, eager, script = (statistics.median(r[k] for r in rounds) for k in range(3))
    ratio = statistics.median(min(r[1:]) / r[0] for r in rounds)
    mark = "!" if ratio < goal else " "
    print(f"| {name} | {human(mine)} | {human(eager)} | {human(script)} | {ratio:.2f}{mark} | {goal:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2)
    args = parser.parse_args()
    print("| forward and backward | ours | PyTorch, eager | TorchScript | ratio | goal |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    for row in ROWS:
        if args.filter in row[0]:
            measure(args, *row)


if __name__ == "__main__":
    sys.exit(main())
