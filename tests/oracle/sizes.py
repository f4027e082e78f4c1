"""Writes sizes.txt beside this file: the nodes that PyTorch's tracer makes of functions that compute with sizes.

    python tests/oracle/sizes.py > tests/oracle/sizes.txt

Needs torch 2.6. The functions are those of `python/tests/traces.py`; `python/tests/test_trace.py` traces them with tensors of
this project. A line is a function with the kinds of its nodes in order, without constants.
"""

import pathlib
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python/tests"))
from traces import FUNCTIONS, kinds  # noqa: E402

warnings.simplefilter("ignore")
for name, function in FUNCTIONS.items():

    def run(x, function=function):
        return function(torch, x)

    traced = torch.jit.trace(run, torch.arange(24.0).reshape(4, 6) - 11, check_trace=False)
    print(f"{name}: {' '.join(kinds(traced.graph))}")
