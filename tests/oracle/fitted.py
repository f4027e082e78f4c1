"""Fits the polynomials of `tensor/src/math/float32.rs` that its loops take most time with, and says how far they are off.

    python tests/oracle/fitted.py

Needs numpy. Each is the polynomial whose largest weighted error is smallest: least squares, in which the points that are
furthest off count more from step to step (Lawson's iteration). Errors are what singles and fused steps come to, in units
in the last place; the tests beside the functions hold them to limits.
"""

import math

import numpy as np

ROOT2 = math.sqrt(2)


def fit(function, weight, low, high, degree, of=lambda x: x, points=4000, steps=500):
    """Coefficients, lowest first, of the polynomial in `of(x)` nearest to a function."""
    x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(points) + 0.5) / points)
    v = of(x)
    wanted, weights = (np.array([f(float(p)) for p in x]) for f in (function, weight))
    ends = [v.min(), v.max()]
    basis = np.polynomial.chebyshev.chebvander((2 * v - sum(ends)) / (ends[1] - ends[0]), degree)
    share, best = np.full(points, 1 / points), (math.inf, None)
    for _ in range(steps):
        scale = np.sqrt(share) * weights
        found = np.linalg.lstsq(basis * scale[:, None], wanted * scale, rcond=None)[0]
        error = np.abs(weights * (basis @ found - wanted))
        best = min(best, (error.max(), found), key=lambda b: b[0])
        share = share * error / (share * error).sum()
    poly = np.polynomial.chebyshev.Chebyshev(best[1], domain=ends).convert(kind=np.polynomial.Polynomial)
    return [np.float32(c) for c in poly.coef]


def fused(a, b, c):
    return (np.float64(a) * np.float64(b) + np.float64(c)).astype(np.float32)


def poly(x, coefficients):
    total = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = fused(total, x, c)
    return total


def say(name, coefficients, got, wanted):
    units = np.abs(got - wanted) / np.spacing(np.abs(wanted.astype(np.float32))).astype(np.float64)
    print(f"{name}: {units.max():.2f} units")
    print("   ", ", ".join(repr(float(c)) for c in coefficients))


def each(f, x):
    return np.array([f(float(v)) for v in x])


def span(low, high):
    return np.linspace(low, high, 200_000).astype(np.float32)


def erf():
    bend = 0.9375
    small = fit(lambda x: math.erf(x) / x - 1, lambda x: x / math.erf(x), 1e-3, bend, 5, lambda x: x * x)
    x = span(1e-3, bend)
    say("erf, small", small, fused(poly(x * x, small), x, x), each(math.erf, x))
    large = fit(lambda x: math.erfc(x) ** 0.25, lambda x: 4 * math.erfc(x) ** 0.75, bend, 3.93, 7, lambda x: x - bend)
    x = span(bend, 3.93)
    square = poly(x - np.float32(bend), large) ** 2
    say("erf, large", large, fused(square, -square, np.float32(1)), each(math.erf, x))


def gelu():
    def above(x):
        return 0.5 * math.erfc(x / ROOT2)

    bend, end = 1.5, 5.6
    small = fit(lambda x: (0.5 - above(x)) / x, lambda x: x, 1e-3, bend, 5, lambda x: x * x)
    x = span(1e-3, bend)
    say("normal distribution, small", small, fused(poly(x * x, small), x, np.float32(0.5)), 1 - each(above, x))
    # What is above counts by itself too, for arguments below 0, where it is not small.
    large = fit(
        lambda x: above(x) ** 0.25,
        lambda x: 4 * above(x) ** 0.75 / (above(x) + 0.03),
        bend, end, 7, lambda x: x - bend,
    )
    x = span(bend, end)
    square = poly(x - np.float32(bend), large) ** 2
    say("normal distribution, large", large, np.float32(1) - square * square, 1 - each(above, x))


def ln():
    def rest(x):
        return (math.log1p(x) - x) / x**2 if abs(x) > 1e-4 else -0.5 + x / 3

    found = fit(rest, lambda x: x * x / abs(math.log1p(x)) if x else 0, 1 / ROOT2 - 1, ROOT2 - 1, 8)
    x = span(1 / ROOT2 - 1, ROOT2 - 1)
    x = x[np.abs(x) > 1e-6]
    say("ln", found, fused(x * x, poly(x, found), x), each(math.log1p, x))


def sin():
    end = math.pi / 2 * 1.0001

    def rest(x):
        return (math.sin(x) - x) / x**3 if x > 1e-2 else -1 / 6 + x * x / 120

    found = fit(rest, lambda x: x**3 / math.sin(x), 1e-4, end, 3, lambda x: x * x)
    x = span(1e-3, end)
    say("sin", found, fused(x * (x * x), poly(x * x, found), x), each(math.sin, x))


if __name__ == "__main__":
    erf()
    gelu()
    ln()
    sin()
