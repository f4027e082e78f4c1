"""Finds the coefficients in `ops/src/gamma.rs` from what PyTorch's `_standard_gamma_grad` gives.

    python tests/oracle/gamma.py

For samples from 0.8 on and shapes up to 8, the logarithm of a result is a quotient of two polynomials in the logarithms of
`sample / shape` and of `shape`. Multiplied out that is linear in the coefficients: least squares finds all but the scale,
which is fixed by the first below the line. They come out with the digits they have; also printed are results in all
ranges, which the tests beside the function hold.
"""

import numpy as np
import torch

slope = torch.ops.aten._standard_gamma_grad
draw = np.random.default_rng(0)
shape = np.exp(draw.uniform(np.log(0.05), np.log(8), 20000))
sample = np.exp(draw.uniform(np.log(0.8), np.log(60), 20000))
result = slope(torch.tensor(shape), torch.tensor(sample)).numpy()
told = (result > 1e-200) & np.isfinite(result)
u, v, y = np.log(sample / shape)[told], np.log(shape)[told], np.log(result)[told]
powers = np.stack([u**i * v**j for i in range(3) for j in range(4)], 1)
system = np.concatenate([powers, -y[:, None] * powers[:, 1:]], 1)
found, _, rank, _ = np.linalg.lstsq(system, y, rcond=None)
assert rank == 23 and np.abs(system @ found - y).max() < 1e-9
np.set_printoptions(formatter={"float": "{:.8g}".format})
print("above", found[:12].reshape(3, 4), sep="\n")
print("below", np.concatenate([[1], found[12:]]).reshape(3, 4), sep="\n")
for a, x in [(0.3, 0.1), (2.0, 0.5), (30.0, 0.7), (0.0, 0.5), (1.0, 0.0), (0.4, 3.0), (2.5, 2.0), (7.5, 20.0), (20.0, 19.0),
             (9.0, 9.9), (20.0, 12.0), (20.0, 40.0), (100.0, 3.0)]:
    print((a, x, slope(torch.tensor(a, dtype=torch.float64), torch.tensor(x, dtype=torch.float64)).item()))
