"""Random programs with Optional, Union and refined variables in nested control flow, compared with PyTorch.

    python tests/oracle/control_flow.py FLAMBEAU [SEED [SECONDS]]

Every program that PyTorch compiles has to compile to a graph that verifies and to give the same result (or to raise as
well); every program that PyTorch refuses has to be refused. Prints the programs on which the two differ. Needs torch 2.6.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time

import torch

TYPES = ["int", "Optional[int]", "Optional[Tensor]", "Union[int, str]", "Optional[List[int]]", "Optional[Tuple[int, int]]",
         "List[Optional[int]]", "str"]
VALUES = {
    "int": ["n", "k + 1", "len(l)", "2"],
    "Optional[int]": ["None", "n", "k", "3"],
    "Optional[Tensor]": ["None", "x", "x + 1"],
    "Union[int, str]": ["n", "'a'", "k"],
    "Optional[List[int]]": ["None", "l", "[n, k]"],
    "Optional[Tuple[int, int]]": ["None", "(n, k)"],
    "List[Optional[int]]": ["[None, n]", "torch.jit.annotate(List[Optional[int]], [])"],
    "str": ["'b'", "str(n)"],
}
# How a variable is used where it may be anything of its type, as a number.
USES = {
    "int": "{v}", "str": "len({v})",
    "Optional[int]": "({v} if {v} is not None else 7)",
    "Optional[Tensor]": "(int({v}.sum()) if {v} is not None else 5)",
    "Union[int, str]": "(0 if isinstance({v}, str) else 1)",
    "Optional[List[int]]": "(len({v}) if {v} is not None else 4)",
    "Optional[Tuple[int, int]]": "({v}[0] if {v} is not None else 6)",
    "List[Optional[int]]": "len({v})",
}


class Program:
    def __init__(self, rng):
        self.rng = rng
        self.variables = {f"v{i}": rng.choice(TYPES) for i in range(rng.randint(1, 4))}
        self.loops = 0
        self.budget = rng.randint(4, 14)
        self.lines = ["def f(x: Tensor, n: int, l: List[int]) -> int:", "    k = 0"]
        for name, ty in self.variables.items():
            value = rng.choice(VALUES[ty])
            bare = rng.random() < 0.1
            self.lines.append(f"    {name} = {value}" if bare else f"    {name}: {ty} = {value}")
        self.block(1, False)
        total = " + ".join(["k"] + [USES[t].format(v=v) for v, t in self.variables.items()])
        self.lines.append(f"    return {total}")

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    def condition(self):
        name, ty = self.rng.choice(list(self.variables.items()))
        plain = ["k > n", "n > 1", "len(l) > k", "k % 2 == 0", "bool(x.sum() > 0)"]
        if ty.startswith("Optional"):
            plain += [f"{name} is None", f"{name} is not None"] * 2
        if ty.startswith("Union"):
            plain += [f"isinstance({name}, int)"] * 2
        first = self.rng.choice(plain)
        if self.rng.random() < 0.15:
            return f"{first} {self.rng.choice(['and', 'or'])} {self.rng.choice(plain)}"
        return f"not ({first})" if self.rng.random() < 0.1 else first

    def block(self, depth, in_loop):
        for _ in range(self.rng.randint(1, 3)):
            self.statement(depth, in_loop)

    def statement(self, depth, in_loop):
        self.budget -= 1
        rng = self.rng
        kinds = ["assign"] * 5 + ["count"] * 2 + ["return"]
        if depth < 5 and self.budget > 0:
            kinds += ["if"] * 4 + ["for"] * 3 + ["while"] * 2
        if in_loop:
            kinds += ["break", "continue"]
        kind = rng.choice(kinds)
        if kind == "assign":
            name, ty = rng.choice(list(self.variables.items()))
            same = [v for v, t in self.variables.items() if t == ty]
            self.emit(depth, f"{name} = {rng.choice(VALUES[ty] + same)}")
        elif kind == "count":
            name, ty = rng.choice(list(self.variables.items()))
            self.emit(depth, f"k += {USES[ty].format(v=name)}" if rng.random() < 0.5 else "k += 1")
        elif kind == "return":
            name, ty = rng.choice(list(self.variables.items()))
            self.emit(depth, f"return {USES[ty].format(v=name)}" if rng.random() < 0.4 else "k += 2")
        elif kind == "if":
            self.emit(depth, f"if {self.condition()}:")
            self.block(depth + 1, in_loop)
            if rng.random() < 0.5:
                self.emit(depth, "else:")
                self.block(depth + 1, in_loop)
        elif kind == "for":
            self.loops += 1
            over = rng.choice(["range(n)", "range(2)", "l", "range(len(l))"])
            self.emit(depth, f"for i{self.loops} in {over}:")
            self.block(depth + 1, True)
        elif kind == "while":
            self.loops += 1
            name = f"w{self.loops}"
            self.emit(depth, f"{name} = 0")
            self.emit(depth, f"while {name} < {rng.choice(['2', '3', 'n'])}:")
            self.emit(depth + 1, f"{name} += 1")
            self.block(depth + 1, True)
        else:
            self.emit(depth, kind)

    def text(self):
        return "\n".join(self.lines) + "\n"


INPUTS = [(3, [1, 2]), (0, []), (2, [5])]


def of_torch(text):
    try:
        unit = torch.jit.CompilationUnit(text)
    except Exception as error:  # noqa: BLE001
        return "refused", str(error)
    results = []
    for n, l in INPUTS:
        try:
            results.append(unit.f(torch.ones(2), n, list(l)))
        except Exception:  # noqa: BLE001
            results.append("raises")
    return "accepted", results


def of_flambeau(command, path):
    verified = subprocess.run([command, "verify", path], capture_output=True, text=True, timeout=60)
    if verified.returncode:
        text = verified.stderr
        return ("broken" if "V0" in text or verified.returncode != 1 else "refused"), text
    results = []
    for n, l in INPUTS:
        found = None
        for way in ([], ["--reference"]):
            ones = {"t": "tensor", "dtype": "float32", "shape": [2], "data": [1.0, 1.0]}
            numbers = [{"t": "int", "v": v} for v in l]
            inputs = json.dumps({"inputs": [ones, {"t": "int", "v": n}, {"t": "list", "v": numbers}]})
            args = [command, "run", *way, "--json", path, "--inputs", "-"]
            ran = subprocess.run(args, input=inputs, capture_output=True, text=True, timeout=60)
            if ran.returncode not in (0, 1):
                return "broken", ran.stderr
            result = json.loads(ran.stdout)["v"] if ran.returncode == 0 else "raises"
            if found is not None and found != result:
                return "broken", f"reference: {result}, optimized: {found}"
            found = result
        results.append(found)
    return "accepted", results


def main():
    command, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    end = time.time() + (float(sys.argv[3]) if len(sys.argv) > 3 else 60)
    counts = {"accepted": 0, "refused": 0, "different": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "case.py")
        while time.time() < end:
            text = Program(random.Random(seed)).text()
            with open(path, "w") as file:
                file.write(text)
            want, got = of_torch(text), of_flambeau(command, path)
            same = want == got if want[0] == "accepted" else want[0] == got[0]
            counts[want[0] if same else "different"] += 1
            if not same:
                print(f"# seed {seed}: torch {want}, flambeau {got}\n{text}", flush=True)
            seed += 1
    print(counts, "next seed", seed)
    sys.exit(bool(counts["different"]))


if __name__ == "__main__":
    main()
