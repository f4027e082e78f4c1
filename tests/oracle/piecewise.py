"""Writes tests/oracle/piecewise.txt: second derivatives of functions whose first derivative is constant in pieces.

    python tests/oracle/piecewise.py > tests/oracle/piecewise.txt

Needs torch 2.6. Each line has an expression of `x`, whether its gradient requires a gradient itself (the gradient of the
result does not), and whether the gradient of that gradient exists; where it exists it is zero.
"""

import torch
import torch.nn.functional as F

EXPRESSIONS = [
    "F.relu(x)",
    "F.relu6(x)",
    "F.leaky_relu(x, 0.1)",
    "F.prelu(x, torch.full([1], 0.25, dtype=x.dtype))",
    "F.rrelu(x, 0.1, 0.3, False)",
    "F.hardtanh(x)",
    "F.threshold(x, 0.1, 0.3)",
    "F.softshrink(x)",
    "F.hardshrink(x)",
    "F.max_pool1d(x.unsqueeze(0), 2)",
    "F.adaptive_max_pool1d(x.unsqueeze(0), 2)",
    "x.clamp(-1.0, 1.0)",
    "x.masked_fill(x > 0, 0.0)",
    "torch.where(x > 0, x, torch.zeros_like(x))",
    "x.sort()[0]",
    "x + 1",
]

for expression in EXPRESSIONS:
    x = torch.tensor([-2.0, -0.5, 0.25, 0.75, 2.0, 7.0], dtype=torch.float64, requires_grad=True)
    y = eval(expression)
    (grad,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    second = None
    if grad.requires_grad:
        (second,) = torch.autograd.grad(grad, x, torch.ones_like(grad), allow_unused=True)
        assert second is None or not second.any()
    print(expression, grad.requires_grad, second is not None, sep="\t")
