"""Records torch.result_type over pairs and triples of operands of every dtype and class.

usage: python promote.py > promote.txt
A line is the operands (`dim:` a tensor with dimensions, `zero:` one without, `num:` a Python number) and the result.
"""

import itertools

import torch

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
          torch.float32, torch.float64, torch.complex64, torch.complex128]
NUMBERS = {"bool": True, "int64": 1, "float64": 1.0, "complex128": 1j}


def name(dtype):
    return str(dtype).removeprefix("torch.")


operands = []
for dtype in DTYPES:
    operands.append((f"dim:{name(dtype)}", torch.ones(1, dtype=dtype)))
    operands.append((f"zero:{name(dtype)}", torch.ones((), dtype=dtype)))
for text, value in NUMBERS.items():
    operands.append((f"num:{text}", value))
for (a, x), (b, y) in itertools.product(operands, operands):
    print(a, b, name(torch.result_type(x, y)))
