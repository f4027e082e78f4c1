"""Writes tests/data/custom.pt: a module that uses an operator which only its author's library has.

    cd tests/oracle; python custom.py
"""

import pathlib
import sys

import torch

LIBRARY = torch.library.Library("acme", "DEF")
LIBRARY.define("blend(Tensor x, Tensor y, float w=0.5) -> Tensor")
LIBRARY.impl("blend", lambda x, y, w=0.5: x * w + y * (1 - w), "CPU")


class Blend(torch.nn.Module):
    def forward(self, x):
        return torch.ops.acme.blend(x, x * 2)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.ModuleList([Blend()])
        self.tail = Blend()

    def forward(self, x):
        for layer in self.body:
            x = layer(x)
        return self.tail(x)

    @torch.jit.export
    def fine(self, x):
        return x + 1


if __name__ == "__main__":
    out = pathlib.Path(__file__).resolve().parents[1] / "data" / "custom.pt"
    # The archive must not contain the path of this file.
    sys.modules["__main__"].__file__ = "custom.py"
    for function in (Blend.forward, Net.forward, Net.fine):
        function.__code__ = function.__code__.replace(co_filename="custom.py")
    torch.jit.script(Net()).save(str(out))
