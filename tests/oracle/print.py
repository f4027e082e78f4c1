"""Records what TorchScript's print writes for tensors of many dtypes, shapes and magnitudes.

usage: python print.py > print.txt
A case is `=== dtype sizes hex-of-little-endian-elements`, then the text.
"""

import os
import sys
import tempfile

import torch
from common import hex_elements


@torch.jit.script
def show(x: torch.Tensor):
    print(x)


def printed(tensor):
    # print goes to the process's standard output, not to sys.stdout, for some callers: catch both.
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file:
        saved = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            show(tensor)
            sys.stdout.flush()
        finally:
            os.dup2(saved, 1)
            os.close(saved)
        file.seek(0)
        return file.read().decode()


torch.manual_seed(0)
nan, inf = float("nan"), float("inf")
cases = []
for values in ([1.0, 2.0], [1.5, -2.25], [0.001, 0.002], [1e-6, 1.0], [1e6, 2e6], [123456.789, 0.5], [1e10, 1.0],
               [nan, 1.0], [nan, inf], [-inf, 2.5], [0.0, -0.0], [99999.0, 1.0], [1e9, 5.0], [999999999.0],
               [0.1], [0.05, 0.04], [1e-200, 1e200], [1e-310], [-5.0, -123.0], [12345.6789], [123456.5, 123457.5],
               [0.0], [0.5, 0.0], [3.14159265358979]):
    cases.append(torch.tensor(values, dtype=torch.float64))
    cases.append(torch.tensor(values, dtype=torch.float32))
for value in (1.0, 0.1, -2.5, 1e10, 1e-10, nan, inf, 123456.0, 1234567.0, 3.14159265):
    cases.append(torch.tensor(value))
    cases.append(torch.tensor(value, dtype=torch.float64))
for value in (0, -1, 5, 1234567, 2**40, -(2**62)):
    cases.append(torch.tensor(value))
    cases.append(torch.tensor([value, 1]))
cases += [torch.tensor(True), torch.tensor([True, False]), torch.tensor([[True], [False]])]
for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
    cases.append(torch.arange(6).reshape(2, 3).to(dtype))
for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    cases.append(torch.randn(2, 3).to(dtype))
    cases.append(torch.randn(3, 2).to(dtype) * 1000)
    cases.append(torch.tensor([0.1, 65504.0]).to(dtype))
for shape in ((0,), (0, 3), (3, 0), (2, 0, 3), (0, 2, 3), (1, 1), (1, 1, 1), (2, 2, 2), (2, 1, 3, 2), (1, 2, 2, 2, 2),
              (2, 3, 0), (1, 30), (2, 30), (3, 80), (1, 2, 25), (0, 200), (0, 2**28)):
    cases.append(torch.randn(shape))
    cases.append(torch.randn(shape) * 1e7)
    cases.append(torch.arange(torch.Size(shape).numel()).reshape(shape))
cases.append(torch.tensor([[1.0, nan], [inf, -inf]]))
cases.append(torch.tensor([[1e-3, nan], [inf, 5e-3]]))
cases.append(torch.full((2, 2), nan))
cases.append(torch.tensor([[[1e7, 2.5e7]], [[1.0, 2.0]]]))
for tensor in cases:
    name = str(tensor.dtype).removeprefix("torch.")
    sys.stdout.write(f"=== {name} {','.join(map(str, tensor.shape)) or '-'} {hex_elements(tensor)}\n{printed(tensor)}")
