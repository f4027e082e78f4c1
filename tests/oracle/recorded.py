"""Writes recorded.txt beside this file: what PyTorch does with programs at the borders of what it records: writes to views
and leaves, arguments whose elements share memory, results that do not depend on arguments, graphs that were released.

    python tests/oracle/recorded.py > tests/oracle/recorded.txt

Needs torch 2.6. Each program is TorchScript with a function `f`. After its source come the arguments of the call, by name,
and the outcome: the gradients of the sum of the result, one per argument, or the error of the call (`raises`) or of the
backward pass (`refuses`). `tests/tests/programs/recorded.rs` compares ours.
"""

import re
import warnings

import torch

warnings.filterwarnings("ignore")
torch.set_num_threads(1)


def iota(n):
    return (torch.arange(n, dtype=torch.float64) + 1) / 8


# `leaf` requires a gradient, as do `row`, whose three rows are one in memory, `flat`, whose elements are one, and `windows`,
# whose elements overlap. `again` is another leaf with the memory of the argument before it.
ARGUMENTS = {
    "leaf": lambda: iota(12).view(3, 4).clone().requires_grad_(),
    "plain": lambda: iota(12).view(3, 4).clone(),
    "row": lambda: iota(4).expand(3, 4).requires_grad_(),
    "flat": lambda: iota(1).expand(3, 4).requires_grad_(),
    "windows": lambda: iota(4).as_strided([3, 2], [1, 1]).requires_grad_(),
    "scalar": lambda: torch.tensor(0.5, dtype=torch.float64).requires_grad_(),
    "ints": lambda: torch.arange(12).view(3, 4),
    "again": None,
    "empty": lambda: torch.zeros(0, 4, dtype=torch.float64).requires_grad_(),
    "signs": lambda: torch.tensor([1.0, -1.0, 1.0, 1.0], dtype=torch.float64).requires_grad_(),
}

PROGRAMS = []


def program(arguments, *lines):
    names = "abc"[: len(arguments.split())]
    body = "".join(f"    {line}\n" for line in lines)
    PROGRAMS.append((f"def f({', '.join(names)}):\n{body}", arguments.split()))


# Arguments on which no result depends.
program("plain signs", "return torch.hinge_embedding_loss(a[0], b)")
program("leaf signs", "return torch.hinge_embedding_loss(a[0], b)")
program("leaf", "return torch.linalg.lstsq(a.t(), a.t())[1]")
program("leaf", "return torch.linalg.lstsq(a.t(), a.t(), driver='gelsd')[3]")
program("leaf", "return torch.view_as_real(torch.fft.ifftn(a, None, [], None))")
program("leaf", "return torch.view_as_real(torch.fft.fftn(a, None, [], None))")
program("plain leaf", "return torch.ops.aten.unflatten_dense_tensors(a.flatten(), [b[0], b[:2]])[1]")
program("leaf plain", "return torch.ops.aten.unflatten_dense_tensors(a.flatten(), [b[:1], b[0]])[1] * 2")
program("plain leaf", "return a.view_as(b) * 2")
program("plain leaf", "return a.type_as(b) * 2")
program("leaf leaf", "return a.expand_as(b) * 2")

program("empty leaf", "return torch.batch_norm(a, None, b, None, None, True, 0.1, 1e-5, False)")
program("empty leaf", "return torch.batch_norm(a, b, None, None, None, False, 0.1, 1e-5, False)")
program("leaf", "return torch.norm_except_dim(a, 1, -2)")
program("leaf", "return torch.norm_except_dim(a, 2, 1)")
program("leaf", "return torch.ops.aten._log_softmax_backward_data(a, a, 0, 0)")
program("leaf", "return torch.special.zeta(2, a.to(3 if a.dim() == 2 else 7))")
program("leaf", "b = torch.tensor_split(a, [2, 0], 0)", "return b[0].sum() * 2 + b[1].sum() + b[2].sum()")
program("leaf", "b = torch.hsplit(a, [-1, 1, 7])", "return b[0].sum() * 2 + b[1].sum() + b[2].sum() * 3 + b[3].sum() * 5")
program("leaf", "return torch.chain_matmul([a]) * 2")
program("leaf leaf", "return torch.chain_matmul([a.t(), b])")
program("leaf leaf", "return torch.linalg.vecdot(a[0], b, dim=0)")
program("leaf leaf", "return torch.linalg.vecdot(a[:, :1], b * b)")
program("leaf", "return torch.norm(a, 0)")
program("leaf", "return torch.norm(a * 2, 0) + a.sum()")
program("leaf", "return torch.norm(torch.norm(a, 0) * a, 2)")

program("empty leaf", "c, d = a.chunk(2, 0) if a.dim() == 1 else a.chunk(2, 1)", "return c if a.numel() > 0 else b")
program("leaf leaf", "c, d = a.chunk(2, 1)", "return c * 2 if bool(b.sum() > 0) else b")
program("leaf leaf", "c, d = a.chunk(2, 1)", "return c * 2 if bool(b.sum() < 0) else b")

# Leaves that share memory.
program("leaf again", "return b.t()")
program("plain again", "return b.t()")
program("leaf again", "return a.expand_as(b)")
program("leaf again", "return a * b.t().t()")

# Elements of a leaf that share memory.
program("flat", "return a.t()[1:, 1:] * 2")
program("flat", "return a.t().view(12) * 2")
program("flat", "return a.t().reshape(12) * 2")
program("flat", "return a.t().flatten()[3:] * a.sum()")
program("row", "return a.t().reshape(12)[3:] * 2")
for leaf in ("row", "windows"):
    program(leaf, "return a * a")
    program(leaf, "return a[0] * a[0]")
    program(leaf, "return a[:, 0] * a[:, 1]")
    program(leaf, "return a.t()[1:, 1:] * 2")
    program(leaf, "return a[1:][1] * 3 + a.reshape(-1)[0]")
    program(leaf, "return a.as_strided([3], [1]) * 2")
    program(leaf, "return a.as_strided([2, 2], [1, 1]) * a.as_strided([2, 2], [0, 1])")
    program(leaf, "return a.unbind(0)[1] * 2")
    program(leaf, "return torch.tensor_split(a, [3, 3], 0)[0]")
    program(leaf, "return a[1:, :2]")
    program(leaf, "return torch.broadcast_tensors([a, a])[0] * 2")
    program(leaf, "return torch.stack([a[0], a[2]]) * 2")
    program(leaf, "b = a.clone()", "b[1] *= 2", "return b[1] * b[0]")
program("leaf", "return a.as_strided([3, 4], [1, 1]) * 2")
program("leaf", "return a[0].expand(3, 4).as_strided([3, 4], [1, 1]) * 2")

# Writes to one of several views.
SEVERAL = [
    "unbind(0)", "split(2, 1)", "split_with_sizes([1, 3], 1)", "split([1, 3], 1)", "chunk(2, 1)", "tensor_split(2, 1)", "hsplit(2)",
]
for several in SEVERAL:
    program("leaf", "b = a * 1", f"c = b.{several}", "c[1].mul_(2)", "return b")
    program("leaf", f"a.{several}[0].mul_(2)", "return a")
    program("plain leaf", f"c = a.{several}", "c[0].mul_(2)", "return c[0] * b[0, 0]")
    program("plain scalar", f"c = a.{several}", "c[0].mul_(b)", "return a")
    program("leaf", "b = a * 1", f"c = b.{several}[1]", "c[:1].mul_(2)", "return b")
    program("leaf", "b = a * 1", f"c = b.{several}[1]", "b.mul_(2)", "return c * 1")
    program("leaf", "b = a * 1", f"c = b.{several}[1] * 2", "b.mul_(2)", "return c.sum() + b")
    program("leaf", "b = a * 1", f"c = b.{several}[1].detach()", "c.mul_(2)", "return b * 1")
program("leaf", "b = a * 1", "c, d, e = b.unbind(0)", "d.add_(1)", "return b")
program("leaf", "b = a * 1", "for c in b.unbind(0):", "    c.add_(1)", "return b")
program("leaf", "b = a * 1", "for c in b:", "    c.add_(1)", "return b")
program("leaf", "b = a * 1", "b.chunk(2, 1)[0].view(6).t_().add_(1)", "return b")

# Views that are made, or written, while gradients are disabled.
for view in ("b[0]", "b.unbind(0)[0]", "b.view(-1)[1:]", "b.detach()"):
    for made in ("a * 1", "a"):
        for argument in ("leaf", "plain"):
            program(f"{argument} scalar", f"c = {made}", *[f"with torch.no_grad():", f"    d = {view.replace('b', 'c', 1)}"],
                    "d.mul_(2)", "return c * 1")
            program(f"{argument} scalar", f"c = {made}", "with torch.no_grad():", f"    d = {view.replace('b', 'c', 1)}",
                    "d.mul_(b)", "return c * 1")
            program(f"{argument} scalar", f"c = {made}", "with torch.no_grad():", f"    d = {view.replace('b', 'c', 1)}",
                    "    d.mul_(2)", "return c * b")
program("leaf", "b = a * 1", "with torch.no_grad():", "    c = b[0]", "c[1:].mul_(2)", "return b")
program("leaf", "b = a * 1", "with torch.no_grad():", "    c = b[0]", "    c.mul_(2)", "return c * 2 + b")
program("leaf", "b = a * 1", "with torch.no_grad():", "    c = b[0]", "b.mul_(2)", "return c * 2 + b")
program("leaf", "with torch.no_grad():", "    c = a[0]", "    c.mul_(2)", "return a * 2")
program("leaf", "with torch.no_grad():", "    a.mul_(2)", "return a * a")
program("leaf", "b = a * 3", "with torch.no_grad():", "    b.mul_(2)", "return b * b")
program("leaf", "b = a * 3", "c = b[0]", "with torch.no_grad():", "    c.mul_(2)", "return b * b")
program("leaf", "b = a * a", "with torch.no_grad():", "    a.mul_(2)", "return b")
# A view requires a gradient if its base does, also where no gradient reaches the base.
program("plain leaf", "c = a.expand(2, 3, 4)", "a.mul_(b)", "return b * float(c.requires_grad)")
program("plain leaf", "c = a.expand(2, 3, 4)", "a.mul_(b)", "return c * 2")
program("plain leaf", "c = torch.special.legendre_polynomial_p(a, 2)", "d = c[0]", "c.mul_(b)", "return b * float(d.requires_grad)")
program("plain leaf", "c = a[0]", "d = a[1]", "c.mul_(b[0])", "return b * float(d.requires_grad)")
program("leaf", "with torch.no_grad():", "    b = a[0]", "return a * float(b.requires_grad)")
program("leaf", "b = a * 2", "with torch.no_grad():", "    c = b[0]", "return a * float(c.requires_grad)")
program("leaf", "with torch.no_grad():", "    b = a[0]", "return b * 2")
program("leaf", "with torch.no_grad():", "    b = a[0]", "return b")
program("leaf", "b = a * 2", "with torch.no_grad():", "    c = b[0]", "return c * 2")
program("leaf", "b = a * 2", "with torch.no_grad():", "    c = b[0]", "return c * b")
program("leaf", "b = a * 2", "with torch.no_grad():", "    c = b[0]", "d = c[1]", "return d * 2")
program("leaf", "b = a * 2", "with torch.no_grad():", "    c = b[0]", "    d = c[1:]", "return d * 2")
program("leaf", "b = a * 2", "with torch.no_grad():", "    c = b.view(-1) * 3", "return c * 2")
program("leaf", "b = a * 2", "with torch.no_grad():", "    c = b.view(-1) * 3", "return b * c.sum()")
program("leaf", "with torch.no_grad():", "    b = a.detach()[0]", "return b * 2")
program("plain", "b = a[0]", "a.requires_grad_()", "return b * 2")
program("plain", "b = a[0]", "a.requires_grad_()", "b.mul_(2)", "return a * 2")
program("plain", "b = a[0]", "b.requires_grad_()", "return a * 2")
program("plain", "b = a[0]", "b.requires_grad_()", "return b * 2")

# Writes whose derivative reads memory that was written.
for call in ("divide_(b)", "mul_(b)", "atan2_(b)", "pow_(b)", "xlogy_(b)", "hypot_(b)", "sub_(b)", "copysign_(b)",
             "addcmul_(b, b)", "lerp_(b, b)", "mul_(b[0])", "div_(b[:1])"):
    program("leaf", "b = a.clone()", f"b.{call}", "return b")
program("leaf", "b = a.clone()", "b[0].mul_(b[1])", "return b")
program("leaf", "b = a.exp()", "b.add_(1)", "return b")
program("leaf", "b = a * 1", "c = b * b", "b.add_(1)", "return c")
program("leaf", "b = a.sin()", "b.add_(1)", "return b")

# Errors.
program("leaf", "a.add_(1)", "return a")
program("leaf", "a[0].add_(1)", "return a")
program("leaf", "a.zero_()", "return a")
program("leaf", "a.t_()", "return a")
program("leaf", "a.view(-1)[0] = 2.0", "return a")
program("plain leaf", "torch.add(b, 1, out=a)", "return a")
program("plain", "return a * 2")
program("ints", "return a * 2")
program("leaf", "return a.argmax()")
program("leaf", "return a > 0")
program("leaf", "return a.detach() * 2")
program("leaf ints", "return b * 2")
program("ints", "return a.requires_grad_()")
program("leaf", "a[0].detach_()", "return a")
program("leaf", "b = a * 2", "b.requires_grad_(False)", "return b")
program("leaf", "return torch.autograd.grad([a.argmax()], [a])[0]")
program("leaf plain", "return torch.autograd.grad([(a * 2).sum()], [b])[0]")
program("leaf leaf", "return torch.autograd.grad([(a * 2).sum()], [b])[0]")
program("leaf leaf", "c = torch.autograd.grad([(a * 2).sum()], [b], allow_unused=True)[0]", "assert c is None",
        "return a")
program("leaf", "return torch.autograd.grad([a * 2], [a])[0]")
program("leaf", "b = (a * a).sum()", "b.backward()", "b.backward()", "return a")
program("leaf", "b = (a + a).sum()", "b.backward()", "b.backward()", "return a * 1")
program("leaf", "b = (a * 2).exp().sum()", "torch.autograd.grad([b], [a])", "torch.autograd.grad([b], [a])", "return a")
program("leaf", "b = a.detach()", "b.sum().backward()", "return a")
program("leaf", "(a * 2).backward()", "return a")
for empty in ("torch.zeros(0)", "torch.zeros(0, dtype=torch.bool)"):
    program("leaf", f"y = {empty}", "return torch.trapezoid(y, a, dim=-1) + a.sum()")


def outcome(source, arguments):
    values = []
    for name in arguments:
        values.append(values[-1].detach().requires_grad_() if name == "again" else ARGUMENTS[name]())
    try:
        result = torch.jit.CompilationUnit(source).f(*values)
    except RuntimeError as error:
        return "raises " + text(error)
    wanted = [value for value in values if value.requires_grad]
    if not result.requires_grad or not wanted:
        return "requires no gradient"
    try:
        found = iter(torch.autograd.grad(result.sum(), wanted, allow_unused=True))
    except RuntimeError as error:
        return "refuses " + text(error)
    shown = [next(found) if value.requires_grad else None for value in values]
    return "gradients " + "; ".join("none" if g is None else str(g.flatten().tolist()) for g in shown)


def text(error):
    found = re.split(r"(?:RuntimeError|torch\.\w+): ", str(error))[-1]
    return found.strip().splitlines()[0]


for source, arguments in PROGRAMS:
    print(f"{source}# {' '.join(arguments)}\n# {outcome(source, arguments)}\n")
