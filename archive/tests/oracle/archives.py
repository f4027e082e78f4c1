"""Writes the small archives of `tests/data` and their expected values with PyTorch 2.6.

    cd archive/tests/oracle && python archives.py

`NAME.weights.pt` is written by `torch.save`: a state dict or other tensors. `NAME.pt` is written by `torch.jit.save`. `NAME.txt` describes the loaded module: one line per parameter, buffer
and attribute, as `path: value`, tensors with dtype, shape, strides and data. The output is deterministic.
"""

import _thread
import enum
import pathlib
import sys
import time
import types
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

OUT = pathlib.Path(__file__).resolve().parent.parent / "data"


class LSTMCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.w_ih = nn.Parameter(torch.randn(16, 3))
        self.w_hh = nn.Parameter(torch.randn(16, 4))
        self.b = nn.Parameter(torch.randn(16))

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tuple[Tensor, Tensor]:
        gates = x.mm(self.w_ih.t()) + h.mm(self.w_hh.t()) + self.b
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


class Block(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.lin = nn.Linear(n, n, bias=False)
        self.scale = 0.5
        self.steps = n

    def forward(self, x: Tensor) -> Tensor:
        return self.lin(x) * self.scale


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Block(2)
        self.b = Block(2)
        self.again = self.a
        self.register_buffer("count", torch.tensor(3))

    def helper(self, x: Tensor) -> Tensor:
        return self.b(x) + self.again(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.a(self.helper(x))


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        base = torch.arange(12.0)
        self.register_buffer("whole", base)
        self.register_buffer("tail", base[6:])
        self.register_buffer("matrix", base.view(3, 4).t())
        self.register_buffer("same", base)
        self.register_buffer("empty", torch.zeros(0, 3))
        self.w = nn.Parameter(torch.ones(2))
        self.tied = self.w

    def forward(self, x: Tensor) -> Tensor:
        return self.whole + x


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.ints = [1, 2, 3]
        self.floats = torch.jit.Attribute([1.5, float("inf")], List[float])
        self.bools = [True, False]
        self.strings = ["é", "two\n"]
        self.tensors = [torch.zeros(1), torch.ones(2)]
        self.nested = torch.jit.Attribute([[1], []], List[List[int]])
        self.table = torch.jit.Attribute({"a": 1, "b": 2}, Dict[str, int])
        self.by_int = torch.jit.Attribute({3: torch.ones(1)}, Dict[int, Tensor])
        self.pair = torch.jit.Attribute((1, "x", 2.5), Tuple[int, str, float])
        self.maybe = torch.jit.Attribute(None, Optional[int])
        self.some = torch.jit.Attribute(7, Optional[int])
        self.big = 2**40
        self.negative = -5
        self.dev = torch.device("cpu")
        self.cplx = 1 + 2j

    def forward(self) -> int:
        return len(self.ints) + self.table["a"] + len(self.nested)


class DTypes(nn.Module):
    def __init__(self):
        super().__init__()
        for dtype in (
            torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
            torch.float32, torch.float64, torch.complex64, torch.complex128,
        ):
            self.register_buffer("t_" + str(dtype)[6:], torch.arange(3).to(dtype))

    def forward(self) -> Tensor:
        return self.t_int64


class Point(NamedTuple):
    x: Tensor
    y: int


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Plain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Counter:
    def __init__(self, start: int):
        self.n = start

    def bump(self) -> int:
        self.n += 1
        return self.n


class Classes(nn.Module):
    step: Step
    point: Point

    def __init__(self):
        super().__init__()
        self.point = Point(torch.ones(1), 2)
        self.colour = torch.jit.Attribute(Colour.GREEN, Colour)
        self.step = Plain()
        self.counter = torch.jit.Attribute(Counter(3), Counter)

    def forward(self, x: Tensor) -> Point:
        bumped = self.counter.bump()
        if self.colour == Colour.RED:
            bumped = 0
        return Point(self.step(x), bumped + self.point.y)


class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 2))
        self.text = "attribute"

    def forward(self, x: Tensor) -> Tuple[Tensor, str]:
        return x.mm(self.w) + 1, "naïve"


def double_input(self, inputs: Tuple[Tensor, float]) -> Tuple[Tensor, float]:
    return inputs[0] * 2, inputs[1] + 1.0


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def forward(this, x: Tensor, y: float) -> Tensor:
        return x * this.scale * y


def note(self, inputs: Tuple[Tensor, float]) -> None:
    print("called")


def add_input(self, inputs: Tuple[Tensor, float], output: Tensor) -> Tensor:
    return output + inputs[0]


class Foreign(nn.Module):
    """One method needs an operator that only this test registers."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))

    @torch.jit.export
    def known(self, x: Tensor) -> Tensor:
        return x

    def step(self, x: Tensor) -> Tensor:
        return torch.ops.stranger.wave(x, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.known(self.step(x))


def paint(x: Tensor, colour: Colour = Colour.GREEN, on: Optional[List[int]] = None) -> Tensor:
    return x * colour.value if on is None else x[on]


class Defaults(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return paint(x) + paint(x, Colour.RED)


def double(x: Tensor, by: float = 2.0) -> Tensor:
    if bool(x.sum() > 0):
        x = x * by
    return x


def describe(value, path, out):
    if isinstance(value, Tensor):
        data = value.detach().flatten().tolist()
        dtype = str(value.dtype)[6:]
        out.append(f"{path}: tensor {dtype} {list(value.shape)} {list(value.stride())} {data}")
    elif isinstance(value, torch.jit.ScriptModule):
        for name, v in value.named_parameters(recurse=False, remove_duplicate=False):
            describe(v, f"{path}.{name}", out)
        for name, v in value.named_buffers(recurse=False, remove_duplicate=False):
            describe(v, f"{path}.{name}", out)
        for name, v in value.named_children():
            describe(v, f"{path}.{name}", out)


def forget_paths(module, main="archives.py"):
    """Replaces the file names of a module's functions by its module name, so that archives contain no local paths."""
    name = module.__name__.replace(".", "/") + ".py" if module.__name__ != "__main__" else main
    for owner in [module, *(v for v in vars(module).values() if isinstance(v, type))]:
        for function in vars(owner).values():
            if isinstance(function, types.FunctionType):
                function.__code__ = function.__code__.replace(co_filename=name)


def save(name, module, **options):
    torch.jit.save(module, str(OUT / f"{name}.pt"), **options)
    out = []
    if isinstance(module, torch.jit.ScriptModule):
        describe(torch.jit.load(str(OUT / f"{name}.pt")), "self", out)
    (OUT / f"{name}.txt").write_text("\n".join(out) + "\n")


def save_weights(name, value):
    torch.save(value, str(OUT / f"{name}.weights.pt"))


class Normed(nn.Module):
    """Has running statistics and a counter, which training updates."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 2)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu_(self.norm(self.conv(x)))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.by = 3

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight * self.by


class Tasks(nn.Module):
    """Forks methods of itself and of a submodule, nested and in a loop; one of them writes a buffer."""

    def __init__(self):
        super().__init__()
        self.inner = Scaled()
        self.bias = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(2))
        self.conv = nn.Conv1d(2, 3, 2)
        self.norm = nn.BatchNorm1d(3)

    def shifted(self, x: Tensor) -> Tensor:
        self.seen.add_(1.0)
        return self.inner(x) + self.bias + self.seen

    def deep(self, x: Tensor) -> Tensor:
        return torch.jit.wait(torch.jit.fork(self.shifted, x * self.inner.by))

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        futures: List[torch.jit.Future[Tensor]] = []
        for i in range(2):
            futures.append(torch.jit.fork(self.inner, x + i))
        out = torch.jit.wait(torch.jit.fork(self.deep, x))
        for future in futures:
            out = out + torch.jit.wait(future)
        return out, self.norm(self.conv(torch.stack([x, out]).unsqueeze(0)))


def numbers(x):
    """Traced: its numbers become constant tensors."""
    return x / 2.5, (x * 2.5 + 1) - torch.tensor([0.5], dtype=torch.float64)


def main(done):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    OUT.mkdir(exist_ok=True)
    torch.jit.script(Counter)
    save("lstm", torch.jit.script(LSTMCell()))
    save("nested", torch.jit.script(Nested()))
    save("shared", torch.jit.script(Shared()))
    save("containers", torch.jit.script(Containers()))
    save("dtypes", torch.jit.script(DTypes()))
    save("classes", torch.jit.script(Classes()))
    save("defaults", torch.jit.script(Defaults()))
    save("function", torch.jit.script(double))
    module = torch.jit.freeze(torch.jit.script(Constants().eval()))
    save("constants", module)
    save("traced", torch.jit.trace(Nested(), torch.ones(1, 2)))
    hooked = Hooked()
    hooked.register_forward_pre_hook(note)
    hooked.register_forward_pre_hook(double_input)
    hooked.register_forward_hook(add_input)
    save("hooked", torch.jit.script(hooked), _extra_files={"notes.txt": "beside", "more/config.json": "{}"})
    library = torch.library.Library("stranger", "DEF")
    library.define("wave(Tensor x, int n) -> Tensor")
    save("foreign", torch.jit.script(Foreign()))
    shared = torch.arange(6, dtype=torch.float64)
    save_weights("nested", Nested().state_dict())
    save_weights("checkpoint", {"model": {"w": shared, "tail": shared[2:]}, "epoch": 3, "all": [shared, (shared,)]})
    save_weights("single", nn.Parameter(torch.ones(2, 3)))
    save("normed", torch.jit.script(Normed().eval()))
    save("half", torch.jit.script(Normed().eval().half()))
    save("tasks", torch.jit.script(Tasks().eval()))
    save("numbers", torch.jit.trace(numbers, torch.ones(2)))
    done.release()


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    for module in list(sys.modules.values()):
        if module.__name__.startswith(("torch.nn.modules.", "torch.jit.", "__main__")):
            forget_paths(module)
    sys.modules["__main__"].__file__ = "archives.py"
    # In a new thread the trace records no caller outside of this file.
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(main, (done,))
    done.acquire()
    time.sleep(1)
