"""Records how PyTorch prints tensor constants in graphs, and graphs at each level of type verbosity.

usage: python constants.py constants > constants.txt
       python constants.py types > types.txt
A constant is `=== dtype sizes hex-of-little-endian-elements`, then its line. A graph is `=== LEVEL`, then its text, all
from the text behind `=== source`.
"""

import os
import subprocess
import sys
import warnings

import torch
from common import hex_elements

GRAPH = """graph(%0 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),
      %1 : Tensor,
      %2 : Float(SS(-1), SS(-2)),
      %3 : Float(requires_grad=1, device=cpu)[],
      %4 : Double(2, SS(-3), requires_grad=0),
      %5 : Float(2, strides=[1])?,
      %6 : Float(SS(-4), 2),
      %7 : (Long(2, strides=[1], device=cpu), int),
      %8 : Dict(str, Float(2))):
  %9 : int = prim::Constant[value=1]()
  %10 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::add(%0, %1, %9)
  %11 : bool = prim::Constant[value=1]()
  %12 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = prim::If(%11)
    block0():
      -> (%10)
    block1():
      -> (%10)
  %13 : Tensor, %14 : int = prim::TupleUnpack(%7)
  %15 : Float(2) = prim::Uninitialized[types=[Float(2, strides=[1])]]()
  return (%12)
"""


def constants():
    nan, inf = float("nan"), float("inf")
    values = [[1, 2], [-100, 5], [1234567, 2], [1 << 62, 3], [True, False], [0.5, 1.5], [1 / 3, 2 / 3], [1e-5, 2e-5],
              [1e6, 2e6], [123456.5, 2.5], [nan, 1.0], [inf, -inf], [1e-10, 1.0], [-0.0, 1.0], [0.00123, 0.0045], [], [[], []],
              [[1, 2], [3, 4]], [[0.01, 0.02], [0.03, 0.04]], [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [[[[1.5, 2.0]]]],
              [[1e10, 1, 2.5, 3, 4, 5, 6, 7]], [[1 / 3] * 10], [[[1e-5, 2e-5], [3e-5, 4e-5]], [[1.0, 2.0], [3.0, 4.0]]],
              [[[1, 2]], [[3, 4]], [[5, 6]]], [[[[1], [2]], [[3], [4]]], [[[5], [6]], [[7], [8]]]],
              [99999.5, 1.0], 3, 3.0, 0.1, 123456789.0, True, [[5]], nan, -inf, [1 + 2j, 3 - 4j], 1 + 2j, list(range(11))]
    tensors = [torch.tensor(v) for v in values]
    tensors += [torch.tensor([1.5, 1 / 3]).to(t) for t in (torch.float16, torch.bfloat16, torch.float64)]
    tensors += [torch.tensor([1, 200]).to(t) for t in (torch.uint8, torch.int16, torch.int32)]
    for tensor in tensors:
        graph = torch._C.Graph()
        graph.insertConstant(tensor)
        name = str(tensor.dtype).removeprefix("torch.")
        line = str(graph).splitlines()[1].strip()
        print(f"=== {name} {','.join(map(str, tensor.shape)) or '-'} {hex_elements(tensor)}\n{line}")


def types():
    print(f"=== source\n{GRAPH}", end="")
    for level in range(5):
        env = dict(os.environ, PYTORCH_JIT_TYPE_VERBOSITY=str(level))
        code = "import sys, torch; sys.stdout.write(str(torch._C.parse_ir(sys.stdin.read())))"
        text = subprocess.run([sys.executable, "-c", code], env=env, input=GRAPH, capture_output=True, text=True, check=True)
        print(f"=== {level}\n{text.stdout}", end="")


warnings.simplefilter("ignore")
{"constants": constants, "types": types}[sys.argv[1]]()
