"""Writes `tests/data/modules.pt`, and to `modules.txt` the results of PyTorch 2.6 for the module in it.

    cd archive/tests/oracle && python modules.py

Each line is a query and its result: lists of names in order, results of calls, and the errors for state dicts that do
not match. The results of calls are the sums of all elements.
"""

import copy
import io
import sys
from typing import Dict, List, Optional

import torch
from archives import OUT, forget_paths
from torch import Tensor, nn


class Leaf(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.register_buffer("seen", torch.zeros(n))
        self.scale = 2.0
        self.weight = nn.Parameter(torch.arange(1.0, n + 1))
        self.register_parameter("bias", None)
        self.register_buffer("passing", torch.ones(1), persistent=False)
        self.drop = nn.Dropout(1.0)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.seen.add_(1.0)
        return self.drop(x * self.weight * self.scale) + self.seen + self.passing


class Gather(nn.Module):
    """Appends results of in-place operators to a list."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 1)
        self.norm = nn.BatchNorm1d(2)
        self.again = nn.Conv1d(2, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: List[Tensor] = []
        y = torch.relu_(self.norm(self.conv(x)))
        out.append(y)
        out.append(torch.relu_(self.again(out[-1])))
        return torch.cat(out)


class Root(nn.Module):
    limits: Dict[str, int]
    maybe: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.late = nn.Linear(3, 3)
        self.counts = [1, 2]
        self.register_buffer("table", torch.ones(2, 3))
        self.first = Leaf(3)
        self.gain = nn.Parameter(torch.ones(()))
        self.many = nn.ModuleList([Leaf(3), nn.Identity(), self.first])
        self.by_name = nn.ModuleDict({"z": nn.Tanh(), "a": Leaf(3)})
        self.tied = self.late.weight
        self.row = nn.Parameter(torch.ones(3), requires_grad=False)
        self.register_buffer("part", self.table[1])
        self.register_buffer("nothing", None)
        self.limits = {"a": 1}
        self.maybe = None
        self.gather = Gather()

    def forward(self, x: Tensor) -> Tensor:
        y = self.late(x) * self.gain + self.tied.sum()
        for m in self.many:
            y = m(y)
        for m in self.by_name.values():
            y = m(y)
        maybe = self.maybe
        if maybe is not None:
            y = y + maybe
        return y + self.table + self.part + self.row + self.gather(x.reshape(-1, 1, 3)).sum()

    @torch.jit.export
    def bump(self, by: int) -> int:
        self.counts.append(by)
        self.gain.data.add_(1.0)
        return len(self.counts)


def spell(x):
    return f"{float(x):.3f}"


def load(data):
    return torch.jit.load(io.BytesIO(data))


def mismatch(m, state, strict):
    """Returns the missing and the unexpected names, or the text of the error."""
    try:
        result = m.load_state_dict(state, strict)
        return f"lacks {result.missing_keys} beyond {result.unexpected_keys}"
    except RuntimeError as e:
        return "error: " + " ".join(str(e).split())


def answers(data, say):
    m = load(data)
    x = torch.arange(6.0).reshape(2, 3)
    say("parameters", [n for n, _ in m.named_parameters()])
    say("buffers", [n for n, _ in m.named_buffers()])
    say("modules", [n for n, _ in m.named_modules()])
    say("children", [n for n, _ in m.named_children()])
    say("state", list(m.state_dict()))
    say("trained", [n for n, p in m.named_parameters() if p.requires_grad])
    say("methods", m._c._method_names())
    say("training", [n for n, s in m.named_modules() if s.training])
    torch.manual_seed(0)
    say("run", spell(m(x).sum()))
    m.eval()
    say("eval", [n for n, s in m.named_modules() if s.training])
    say("run eval", spell(m(x).sum()))
    m.first.train()
    say("part trained", [n for n, s in m.named_modules() if s.training])
    say("run again", spell(m(x).sum()))
    say("bumped", m.bump(5))
    say("run bumped", spell(m.eval()(x).sum()))
    m.maybe = torch.ones(3)
    m.first.scale = 3.0
    say("run set", spell(m(x).sum()))
    other = copy.deepcopy(m)
    other.first.weight.data.add_(1.0)
    other.late.weight.data.zero_()
    say("copied", spell(m(x).sum()))
    say("changed copy", spell(other(x).sum()))
    state = {k: v.clone() for k, v in load(data).state_dict().items()}
    say("restored", mismatch(m, state, True))
    say("run restored", spell(m(x).sum()))
    fewer = {k: v for k, v in state.items() if "weight" not in k}
    more = dict(fewer, **{"first.extra": x, "zzz": x, "nowhere.w": x, "gain": torch.tensor([5.0, 7.0])})
    say("not strict", mismatch(m, more, False))
    say("run not strict", spell(m(x).sum()))
    say("strict", mismatch(m, more, True)[:5])
    say("sizes", mismatch(m, dict(state, row=torch.ones(4)), True)[:5])
    say("sizes not strict", mismatch(m, dict(state, row=torch.ones(4)), False)[:5])
    say("doubles", mismatch(m, {k: v.double() for k, v in state.items()}, True))
    say("run doubles", spell(m(x).sum()))
    say("frozen", spell(torch.jit.freeze(load(data).eval())(x).sum()))


def main():
    torch.manual_seed(0)
    module = torch.jit.script(Root())
    data = io.BytesIO()
    torch.jit.save(module, data)
    (OUT / "modules.pt").write_bytes(data.getvalue())
    lines = []
    answers(data.getvalue(), lambda q, a: lines.append(f"{q}: {' '.join(a) if isinstance(a, list) else a}"))
    (OUT / "modules.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for module in list(sys.modules.values()):
        if module.__name__.startswith(("torch.nn.modules.", "torch.jit.", "__main__")):
            forget_paths(module, "modules.py")
    sys.modules["__main__"].__file__ = "modules.py"
    main()
