"""Measures the figures of the package. Build it with `--release` first; debug builds say nothing.

    python tests/figures.py [WHEEL]

Every figure is the best of several rounds, with its bound. The exit code is 1 if a figure is above its bound.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from typing import Any

LINES = 100


def best(call: Callable[[], Any], number: int, rounds: int = 9) -> float:
    """Returns the seconds of one call in the fastest round."""
    return min(timeit.repeat(call, number=number, repeat=rounds)) / number


def importing() -> float:
    """Returns the seconds of `import flambeau` in a new process, without those of starting Python."""
    script = "import time; t = time.perf_counter(); import flambeau; print(time.perf_counter() - t)"
    times = [float(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout) for _ in range(15)]
    return min(times)


def scripting() -> float:
    """Returns the seconds of compiling a function of `LINES` lines of a file."""
    body = "".join(f"    x{i + 1} = x{i} * {i} + factor\n    if x{i + 1} > {i}:\n        x{i + 1} = x{i + 1} - 1\n" for i in range(LINES // 3))
    source = f"def chain(x0: int, factor: int) -> int:\n{body}    return x{LINES // 3}\n"
    import importlib.util

    from flambeau import jit

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "chain.py"
        file.write_text(source)
        spec = importlib.util.spec_from_file_location("chain", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        jit.script(module.chain)
        times = []
        for _ in range(9):
            start = time.perf_counter()
            jit.script(module.chain)
            times.append(time.perf_counter() - start)
    return min(times)


def figures() -> list[tuple[str, float, float, str]]:
    """Returns the figures: what, found, bound, unit."""
    import flambeau

    scalar = flambeau.CompilationUnit("def f(x: int) -> int:\n    return x + 1\n").f
    of_tensor = flambeau.CompilationUnit("def f(x):\n    return x\n").f
    own = flambeau.tensor([1.0, 2.0])
    found = [
        ("import", importing() * 1e3, 15, "ms"),
        (f"scripting {LINES} lines", scripting() * 1e3, 5, "ms"),
        ("call with an int", best(lambda: scalar(1), 100_000) * 1e9, 300, "ns"),
        ("call with a tensor of the package", best(lambda: of_tensor(own), 100_000) * 1e9, 600, "ns"),
    ]
    try:
        import numpy
    except ImportError:
        pass
    else:
        array = numpy.ones(2, dtype=numpy.float32)
        found.append(("call with an array of NumPy", best(lambda: of_tensor(array), 20_000) * 1e9, 600, "ns"))
    try:
        import torch
    except ImportError:
        pass
    else:
        tensor = torch.ones(2)
        found.append(("call with a tensor of PyTorch", best(lambda: of_tensor(tensor), 20_000) * 1e9, 600, "ns"))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", nargs="?", type=pathlib.Path)
    options = parser.parse_args()
    found = figures()
    if options.wheel is not None:
        found.append(("wheel", options.wheel.stat().st_size / 1e6, 8, "MB"))
    for what, value, bound, unit in found:
        print(f"{what:36} {value:9.1f} {unit}   bound {bound} {unit}{'' if value <= bound else '   ABOVE'}")
    return int(any(value > bound for _, value, bound, _ in found))


if __name__ == "__main__":
    sys.exit(main())
