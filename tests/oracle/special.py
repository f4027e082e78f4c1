"""Records special functions in doubles into special.txt beside this file: name, arguments and result, as Python writes
them. Read by the tests of `tensor/src/math/special`."""

import math
import pathlib

import mpmath
import torch

torch.set_num_threads(1)
POINTS = [-40.5, -12.25, -7.01, -6.5, -3.7, -2.5, -1.0, -0.75, -0.1, 0.0, 1e-8, 0.1, 0.5, 0.999, 1.0, 1.7, 2.0, 3.3, 5.0, 8.25, 13.0, 29.9, 30.1, 55.5, 100.0]
UNIT = [1e-300, 1e-20, 1e-5, 0.02, 0.13, 0.14, 0.5, 0.7, 0.97, 0.999999]
S = torch.special
ONE = {
    "airy_ai": S.airy_ai, "bessel_j0": S.bessel_j0, "bessel_j1": S.bessel_j1, "bessel_y0": S.bessel_y0,
    "bessel_y1": S.bessel_y1, "i0": S.i0, "i0e": S.i0e, "i1": S.i1, "i1e": S.i1e, "k0": S.modified_bessel_k0,
    "k1": S.modified_bessel_k1, "k0e": S.scaled_modified_bessel_k0, "k1e": S.scaled_modified_bessel_k1,
    "spherical_j0": S.spherical_bessel_j0, "entropy_term": S.entr, "erfcx": S.erfcx, "ndtr": S.ndtr,
    "log_ndtr": S.log_ndtr, "trigamma": lambda x: torch.polygamma(1, x),
}
# PyTorch's Bessel and Airy functions are off by up to 2e-6 at some points, so the exact values are recorded, in fifty
# digits rounded; where they are not numbers, PyTorch's answer.
TRUE = {
    "airy_ai": mpmath.airyai, "bessel_j0": mpmath.j0, "bessel_j1": mpmath.j1,
    "bessel_y0": lambda x: mpmath.bessely(0, x), "bessel_y1": lambda x: mpmath.bessely(1, x),
}
mpmath.mp.dps = 50
TWO = {"zeta": S.zeta, "gamma_p": S.gammainc, "gamma_q": S.gammaincc}


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def lines():
    for name, f in ONE.items():
        for x in POINTS:
            found = f(tensor(x)).item()
            if name in TRUE and math.isfinite(found):
                found = float(TRUE[name](mpmath.mpf(x)))
            yield name, [x], found
    for p in UNIT:
        yield "ndtri", [p], S.ndtri(tensor(p)).item()
    for name, f in TWO.items():
        for a in [0.3, 1.0, 1.5, 2.0, 4.0, 7.7, 60.0, 300.0]:
            for b in [-2.5, 0.0, 0.2, 1.0, 3.5, 8.0, 55.0, 310.0]:
                yield name, [a, b], f(tensor(a), tensor(b)).item()
    for n in [2, 3, 5]:
        for x in [-3.3, -0.4, 0.3, 1.0, 7.5]:
            yield "polygamma", [float(n), x], torch.polygamma(n, tensor(x)).item()


rows = [f"{name} {' '.join(map(repr, args))} {value!r}\n" for name, args, value in lines()]
(pathlib.Path(__file__).parent / "special.txt").write_text("".join(rows))
