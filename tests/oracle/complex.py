"""Records functions of complex numbers into complex.txt beside this file: name, argument(s) and result, each as two
doubles, as TorchScript's operators on numbers (C's functions) give them. Read by the tests of
`tensor/src/math/complex.rs`."""

import itertools
import math
import pathlib

import torch

inf, nan = math.inf, math.nan
PARTS = [0.0, -0.0, 1.0, -2.0, 0.5, 1e-5, 100.0, -800.0, 1e200, -1e-200, inf, -inf, nan]
FEW = [0.0, -2.0, 0.5, 1e200, inf, -inf, nan]
ONE = "acos acosh asin asinh atan atanh cos cosh exp log sin sinh sqrt tan tanh".split()


def script(name, arguments):
    declared = ", ".join(f"{a}: complex" for a in arguments)
    source = f"def f({declared}) -> complex:\n    return torch.ops.aten.{name}({', '.join(arguments)})\n"
    return torch.jit.CompilationUnit(source).f


def parts(z):
    return f"{z.real!r} {z.imag!r}"


def lines():
    for name in ONE:
        f = script(name, ["z"])
        for a, b in itertools.product(PARTS, PARTS):
            z = complex(a, b)
            yield f"{name} {parts(z)} {parts(f(z))}"
    f = script("pow", ["a", "b"])
    numbers = [complex(a, b) for a in FEW for b in FEW]
    for a, b in itertools.product(numbers, numbers[::3]):
        yield f"pow {parts(a)} {parts(b)} {parts(f(a, b))}"


out = pathlib.Path(__file__).with_suffix(".txt")
out.write_text("".join(f"{line}\n" for line in lines()))
