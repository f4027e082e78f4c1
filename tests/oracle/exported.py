"""Records the suite `exported`: programs of `torch.export`, their printed forms, and calls.

    python tests/oracle/exported.py [FOLDER] [NAME...]

Writes FOLDER/cases.jsonl.gz (default: tests/data/suites/exported). Every program is exported, saved and loaded again; the
texts are those of the loaded program, the results those of eager PyTorch. A program is recorded as exported, and where
`forms` says so in functional form (`functional`) and after decomposition (`core`). Stack traces are removed from the
files. Needs torch 2.6.
"""

import base64
import collections
import copy
import dataclasses
import gzip
import io
import json
import os
import sys
import warnings

import torch
import torch.nn.functional as F
from common import json_of
from torch import nn
from torch.export import Dim, export
from torch._higher_order_ops.map import map as map_op
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

warnings.filterwarnings("ignore")

PROGRAMS = []


def program(*calls, dynamic=None, forms=("", "functional", "core"), strict=True, kwargs=None, module=None, fails=()):
    """Adds a program: a function or module class, and the arguments of its calls, of which the first is the example."""

    def add(thing):
        PROGRAMS.append((thing.__name__, thing, calls, dynamic, forms, strict, kwargs or {}, fails))
        return thing

    return add


def r(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed + sum(shape))) * 2 - 1


Pair = collections.namedtuple("Pair", ["first", "second"])
torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="suite.Pair")


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    extra: object
    y: torch.Tensor


torch.export.register_dataclass(Point, serialized_type_name="suite.Point")

# --- operators --------------------------------------------------------------------------------------------------------


@program((r(3, 4), r(3, 4)))
def arithmetic(x, y):
    return x + y * 2 - 1, x / 3, x // 0.3, x % 0.7, 2 - x, 1 / (x + 2), x**2, 2**x, -x, abs(x), x + True


@program((torch.arange(-5, 7), torch.arange(12)))
def integers(x, y):
    return x // 2, x % 3, x & 3, x | 4, x ^ y, ~x, x << 1, y >> 1, x / 2, x * 1.5, -x, x.float(), x == y, x >= 2


@program((r(4, 5),))
def comparisons(x):
    y = x > 0
    return y & (x < 0.5), y | (x == 0), ~y, y.any(), y.all(0), torch.where(y, x, 0.0), torch.where(y, 1.0, x), y.sum()


@program((r(2, 3, 4),))
def reductions(x):
    return (x.sum(), x.mean(1), x.max(), x.max(2).values, x.argmax(1), x.std(0), x.var(1, keepdim=True), x.norm(),
            x.prod(2), x.amax((0, 1)), x.logsumexp(2), x.cumsum(1), x.median(), x.min(1))


@program((r(2, 3, 4),))
def shapes(x):
    a, b = x.split(2, dim=2)
    return (x.reshape(6, 4), x.permute(2, 0, 1), x.transpose(0, 1).contiguous(), x.flatten(1), x.unsqueeze(1), x[..., 1:3],
            x[:, -1], x[:, ::2], a + b, torch.cat([a, b], 1), torch.stack([a, b]), x.expand(5, 2, 3, 4), x.repeat(1, 2, 1),
            x.chunk(3, 1), x.unbind(0), x.flip(1), x.roll(1, 2), x.tile(2), x.narrow(1, 1, 2), x.select(2, 0))


@program((r(4, 4), torch.tensor([0, 2])))
def indexing(x, i):
    y = x.clone()
    y[0] = 1
    y[:, 1] += 2
    y[i] = x[i] * 3
    y[y > 2] = 0
    return y, x[i], x[:, i], x[i, i], x.index_select(1, i), x.gather(1, i.expand(4, 2)), x.masked_fill(x > 0, -1.0), x.take(i)


@program((r(2, 8),))
def activations(x):
    return (F.relu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.elu(x), F.leaky_relu(x, 0.1), F.softplus(x),
            F.hardswish(x), F.hardsigmoid(x), F.mish(x), F.softmax(x, -1), F.log_softmax(x, 1), F.sigmoid(x), torch.tanh(x),
            F.glu(x), F.hardtanh(x), F.relu6(x), F.selu(x), F.celu(x), F.logsigmoid(x), F.softsign(x), F.tanhshrink(x))


@program((r(2, 3), r(3, 4), r(2, 2, 3), r(2, 3, 5)))
def products(a, b, c, d):
    return a @ b, torch.bmm(c, d), c @ d, torch.einsum("bij,bjk->bik", c, d), torch.matmul(a, d[0]), a.mm(b), a[0] @ b, torch.outer(a[0], b[0])


@program((r(4, 6),))
def dtypes(x):
    h = x.half()
    return h, x.double() + 1, x.to(torch.bfloat16).float(), x.int(), (x > 0).to(torch.uint8), h.float() * 2, x.to(torch.int64), x.bool()


@program((r(3, 3),))
def creation(x):
    return (torch.zeros(2, 3), torch.ones_like(x), torch.full((2,), 7), torch.arange(5), torch.eye(3) + x, torch.linspace(0, 1, 5),
            x.new_zeros(2), torch.tril(x), torch.triu(x, 1), torch.zeros_like(x, dtype=torch.int32), torch.tensor([1.0, 2.0]) + 1)


@program((r(5, 3),))
def sorting(x):
    values, indices = x.sort(0)
    top = torch.topk(x, 2, dim=1)
    return values, indices, top.values, top.indices, x.argsort(1), torch.searchsorted(values[:, 0].contiguous(), 0.1), x.kthvalue(2, 0)


# --- modules ----------------------------------------------------------------------------------------------------------


@program((r(2, 3, 8, 8),))
class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, stride=2)
        self.depth = nn.Conv2d(4, 4, 3, groups=4, padding="same")
        self.norm = nn.BatchNorm2d(4)
        self.up = nn.ConvTranspose2d(4, 2, 2, stride=2)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        x = F.max_pool2d(self.depth(x), 2)
        return F.adaptive_avg_pool2d(self.up(x), 1).flatten(1), F.interpolate(x, scale_factor=2.0), F.avg_pool2d(x, 2)


@program((r(3, 2, 4),))
class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)

    def forward(self, x):
        return self.layer(x)


@program((r(5, 2, 3),))
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(3, 4, 2), nn.GRU(3, 4, bidirectional=True)
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, x):
        out, (h, c) = self.lstm(x)
        return out, h, c, self.gru(x), self.cell(x[0])


@program((r(4, 6),))
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.group, self.rms = nn.LayerNorm(6), nn.GroupNorm(2, 6), nn.RMSNorm(6)

    def forward(self, x):
        return self.layer(x), self.group(x), self.rms(x), F.normalize(x), F.layer_norm(x, (4, 6))


@program((torch.tensor([[1, 2], [3, 0]]),))
class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.bag = nn.Embedding(5, 3, padding_idx=0), nn.EmbeddingBag(5, 3, mode="mean")

    def forward(self, i):
        return self.table(i), self.bag(i), F.one_hot(i, 5), F.embedding(i, self.table.weight)


@program((r(2, 2, 3, 4), r(2, 2, 3, 4)))
def attention(q, k):
    mask = torch.ones(3, 3, dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, q, attn_mask=mask), F.scaled_dot_product_attention(q, k, k, is_causal=True)


@program((r(4, 3), torch.tensor([0, 2, 1, 1])))
def losses(x, t):
    return F.cross_entropy(x, t), F.nll_loss(F.log_softmax(x, 1), t), F.mse_loss(x, x * 2), F.l1_loss(x, -x), F.binary_cross_entropy_with_logits(x, (x > 0).float()), F.smooth_l1_loss(x, x + 1), F.kl_div(x, x.softmax(1))


@program((r(2, 3, 6, 6),))
def padding(x):
    return F.pad(x, (1, 2)), F.pad(x, (1, 1, 1, 1), mode="reflect"), F.pad(x, (1, 0), value=3.0), F.unfold(x, 2), F.pixel_shuffle(x.reshape(1, 4, 3, 9), 2), F.grid_sample(x, torch.zeros(2, 2, 2, 2), align_corners=False)


@program((r(4, 3),))
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


@program((r(4, 3),))
class Dropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) + F.dropout(x, 0.1, training=False)


# --- state ------------------------------------------------------------------------------------------------------------


@program((r(3),), (r(3, seed=1),))
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("total", torch.zeros(3), persistent=False)
        self.scale = torch.tensor(2.0)

    def forward(self, x):
        self.steps.add_(1)
        self.total += x
        return self.total * self.scale / self.steps


@program((r(4, 3), r(3)))
def input_mutation(x, y):
    x.mul_(2)
    x[0].add_(y)
    y.zero_()
    return x + y


@program((r(2, 4),))
class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(6, 4))

    def forward(self, x):
        self.keys[2:4] = x
        self.keys[0] += x[0]
        return self.keys.sum(0), self.keys


@program((r(4, 3),), forms=("",))
class Training(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.train()

    def forward(self, x):
        return self.norm(x)


# --- structure --------------------------------------------------------------------------------------------------------


@program(({"b": r(2), "a": [r(3), (r(2), r(1))]}, r(2)), forms=("",))
def nested(d, y):
    return {"sum": d["b"] + y, "rest": (d["a"][0] * 2, [d["a"][1][0], d["a"][1][1]])}


@program((Pair(r(2), r(2)), Point(r(2), None, r(2))), forms=("",))
def classes(pair, point):
    return Pair(pair.second + 1, pair.first), Point(point.x + point.y, pair.first, point.y)


@program((collections.OrderedDict(z=r(2), a=r(2)),), forms=("",))
def ordered(d):
    return collections.OrderedDict(first=d["z"] - d["a"], second=d["a"])


@program((r(2),), kwargs={"scale": torch.tensor(2.0), "bias": r(2, seed=3)}, forms=("",))
def named(x, *, bias, scale):
    return x * scale + bias


@program((r(2), 3, 0.5, "relu", True, None), forms=("",))
def constants(x, n, p, mode, flag, nothing):
    y = x * n + p
    return (F.relu(y) if mode == "relu" else y) if flag and nothing is None else x, n, None, flag


@program((r(2), r(3), r(4)), forms=("",))
def variadic(*xs):
    return [x * 2 for x in xs]


@program((r(3),), forms=("",))
def same_output(x):
    y = x + 1
    return y, y, x, (y,)


# --- symbolic shapes --------------------------------------------------------------------------------------------------

batch, width, rows = Dim("batch", max=64), Dim("width", min=3, max=16), Dim("rows", min=2, max=64)


@program((r(4, 3), r(4, 3)), (r(2, 3), r(2, 3)), (r(1, 3), r(1, 3)), (r(2, 3), r(3, 3)), (r(2, 4), r(2, 4)), (r(70, 3), r(70, 3)),
         dynamic=({0: batch}, {0: batch}), fails=(3, 4, 5))
def dynamic_batch(x, y):
    return x + y, x.shape[0], x.reshape(-1), torch.cat([x, y]), torch.zeros(x.shape[0] * 2)


@program((r(4, 5),), (r(2, 3),), (r(9, 16),), (r(2, 2),), dynamic=({0: rows, 1: width},), fails=(3,))
def dynamic_sizes(x):
    n, m = x.shape
    return x.reshape(m, n), x[: n // 2], n * m, x.sum() / n, torch.arange(m) % 3, x.expand(2, n, m), n - m, x.view(n, 1, m)


@program((r(4), r(5)), (r(7), r(8)), (r(7), r(7)), dynamic=({0: (d := Dim("d", min=2, max=64))}, {0: d + 1}), fails=(2,), forms=("", "functional"))
def derived(x, y):
    return x + y[1:]


@program((r(6),), (r(8),), (r(7),), dynamic=({0: 2 * Dim("half", max=32)},), fails=(2,), forms=("",))
def even(x):
    return x.reshape(-1, 2), x[::2]


@program((r(4, 8, 8), ), (r(2, 12, 10),), dynamic=({0: batch, 1: Dim("high", min=4, max=64), 2: Dim("wide", min=4, max=64)},))
class DynamicConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)

    def forward(self, x):
        return F.interpolate(self.conv(x.unsqueeze(1)), scale_factor=2, mode="bilinear"), x.flatten(1).sum(1)


@program((torch.tensor([3]), r(5)), (torch.tensor([2]), r(5)), (torch.tensor([9]), r(5)), fails=(2,), forms=("", "functional"))
def unbacked(n, x):
    k = n.item()
    torch._check_is_size(k)
    torch._check(k <= x.shape[0])
    return torch.zeros(k) + 1, x.narrow(0, 0, k), k + 1


@program((torch.tensor([0, 3, 0, 2]),), (torch.tensor([1, 3, 1, 2]),), forms=("",))
def nonzero(x):
    i = x.nonzero()
    return i, i.shape[0] * 2, x[x > 0]


# --- control flow -----------------------------------------------------------------------------------------------------


@program((r(3), torch.tensor(True)), (r(3), torch.tensor(False)))
def branches(x, p):
    return torch.cond(p, lambda a: (a.sin(), a + 1), lambda a: (a.cos(), a * 2), (x,))


@program((r(4),), (r(8),), dynamic=({0: Dim("n", min=2, max=32)},), forms=("",))
def shape_branch(x):
    return torch.cond(x.shape[0] > 5, lambda a: a * 2, lambda a: a + 1, (x,))


@program((r(4),), (r(4, seed=5),))
class ModuleBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x):
        def inner(y):
            return torch.cond(y.sum() > 0.3, lambda z: self.b(z), lambda z: self.a(z) * 2, (y,))

        return torch.cond(x.sum() > 0, inner, lambda y: self.a(y), (x,))


@program((torch.tensor(3), r(2)), (torch.tensor(0), r(2)))
def loop(n, x):
    return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2 + n), (n, x))


@program((r(4, 3), r(3)), forms=("", "functional"))
def mapped(xs, y):
    return map_op(lambda x, y: x * y + x.sum(), xs, y)


@program((r(3, 3), ), forms=("",))
def grad_mode(x):
    with torch.no_grad():
        y = x * 2
    with torch.enable_grad():
        z = y + x
    return z, y.detach()


@program((r(3, 3), ), forms=("",), strict=False)
def grad_mode_nonstrict(x):
    with torch.no_grad():
        y = x * 2
    return y + x


@program((r(3, 4), r(4, 2)), forms=("",))
def autocast(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
        z = F.softmax(y, -1) + y.sum()
    with torch.autocast("cpu", enabled=False):
        u = x @ w
    return y, z, u


@program((r(3, 4), r(4, 4)), forms=("",))
def autocast_products(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
        sums = torch.einsum("ij,jk->ik", y, w), torch.einsum("ij,jk,kl->l", x, w, y.mT), torch.einsum("ij,kj->ik", y, y)
        outer = torch.einsum("i,j->ij", x[0], w[0]), torch.einsum("bi,bj->bij", x, y), torch.einsum("ii->i", w)
        dots = torch.tensordot(x, w, 1), torch.tensordot(y, y, 2), torch.inner(x, w), torch.inner(x, w[0, 0])
        chains = torch.linalg.multi_dot([x, w, w]), torch.linalg.matrix_power(w, 3), torch.linalg.matrix_power(w, 1)
        borders = F.pad(y[None], (1, 2), mode="reflect"), F.pad(y[None], (1, 2, 0, 1), mode="replicate"), F.pad(y, (1, 1))
    return sums, outer, dots, chains, borders


@program((r(5, 2, 3), r(2, 4)), forms=("", "core"))
class AutocastRecurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.rnn = nn.GRU(3, 4), nn.RNN(3, 4)
        self.lstm_cell, self.gru_cell, self.rnn_cell = nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4, nonlinearity="relu")

    def forward(self, x, h):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            cells = self.lstm_cell(x[0], (h, h + 1)), self.gru_cell(x[0], h), self.rnn_cell(x[0], h)
            return self.gru(x), self.rnn(x), cells


@program((r(7, 3),), (r(2, 5),), dynamic=({0: rows, 1: Dim("width", max=40)},), forms=("", "core"))
def powers(x):
    n, m = x.shape
    bounded = torch.sym_max(n, m), torch.sym_min(n, m), torch.sym_ite(n > m, n, m)
    return x.new_full((2,), n**2), x.new_full((2,), n**m), x.new_full((1,), 2**n), x * n**0.5, x.new_zeros(bounded)


@program((r(7, 3) + 4,), (r(7, 3) - 4,), dynamic=({0: rows},), forms=("",))
def decided(x):
    return torch.cond((x.sum() > 3).item(), lambda x: x + 1, lambda x: x - 1, (x,)), torch.cond(x.any().item(), lambda x: x * 2, lambda x: x, (x,))


@program((torch.tensor([2, 4]),), (torch.tensor([2, 3]),), (torch.tensor([0, 2]),), (torch.tensor([4, 4]),), forms=("",), fails=(1, 2, 3))
def conditions(x):
    n = x.sum().item()
    torch._check(n > 2)
    torch._check(n % 2 == 0)
    torch._check(n != 8)
    torch._assert_async((x < 100).all(), "too large")
    return x.to(torch.float64) + n


@program((r(3, 4),), forms=("",))
def checked(x):
    torch._assert_async(x.sum() < 100, "too large")
    return x + 1


@program((torch.complex(r(3), r(3, seed=1)),), forms=("",))
def complexes(z):
    return z * z, z.abs(), z.conj().resolve_conj(), torch.view_as_real(z), torch.fft.fft(z), z.real + z.imag


@program((r(3, 4, 2), r(3, 2)), (r(3, 4, 2, seed=4), r(3, 2)))
def scanned(xs, h):
    def step(carried, x):
        a, b = carried
        return (a * 0.5 + x["u"], b + x["v"].sin()), {"o": a * x["v"], "p": b + 0}

    forward = scan(lambda c, x: (c * 2 + x, c - x), h, xs, dim=1)
    return forward, scan(step, (h, h * 2), {"u": xs, "v": xs + 1}, dim=1, reverse=True)


@program((r(4, 6),), (r(3, 9),), (r(2, 300),), (r(2, 7),), dynamic=({0: rows, 1: 3 * Dim("third", max=40)},), fails=(2, 3))
def thirds(x):
    n, m = x.shape
    return x.view(n, m // 3, 3).sum(1), x[:, : m // 3], torch.zeros(n + m)


@program((torch.arange(-6, 6).view(3, 4), torch.arange(1, 13).view(3, 4)))
def divided(x, y):
    return x // y, x % y, torch.floor_divide(x, y), torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y), x.remainder(3), torch.gcd(x, y)


# --- recording --------------------------------------------------------------------------------------------------------


# --- what TorchScript's schemas do not accept as it is ----------------------------------------------------------------


@program((r(4), torch.tensor([True, False, True, False]), torch.arange(4)), forms=("", "functional"))
def booleans(x, m, i):
    both = m.masked_fill(~m, True), m ^ True, m + True, m * False, m | False, m & True, m == True, m < True
    chosen = torch.where(m, x, True), torch.where(m, True, False), x.clamp(min=True), x + True, i + True
    made = torch.full((2,), True), torch.full((2,), False, dtype=torch.int32), torch.full_like(x, True), x.new_full((2,), True)
    return both, chosen, made, torch.addcdiv(x, x, x + 2, value=True), i.scatter(0, i[:1], True), i // True, i**True


@program((r(2), [r(2), {"a": r(2), "b": [r(3)]}], Pair(r(2), Pair(r(1), (r(1),))), Point(r(2), None, r(2)), {1: r(1), 2: (r(2),)}), forms=("",), strict=False)
def containers(x, mixed, pair, point, numbered):
    inner = [mixed[0] + x, (mixed[1]["b"][0], None), {"k": [x]}]
    return {"pair": Pair(pair.second.first, inner), "point": Point(point.y, None, point.x), "x": x + pair.first}, numbered[2][0], None


@program((r(3),), forms=("",))
class Attributed(nn.Module):
    """Tensors with attributes in Python."""

    def __init__(self):
        super().__init__()
        self.buffer = nn.Buffer(torch.arange(3.0))
        self.weight = nn.Parameter(torch.ones(3))
        self.weight.note = "kept"
        self.constant = torch.full((3,), 2.0)
        self.constant.note = {"of": [1, 2]}

    def forward(self, x):
        self.buffer.add_(1)
        return x * self.weight + self.buffer - self.constant


class Wrapped(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def value(x):
    if isinstance(x, Point):
        return {"t": "dataclass", "class": "suite.Point", "v": [[f.name, value(getattr(x, f.name))] for f in dataclasses.fields(x)]}
    if isinstance(x, Pair):
        return {"t": "tuple", "fields": list(x._fields), "class": "suite.Pair", "v": [value(y) for y in x]}
    if isinstance(x, (list, tuple)):
        return {"t": "list" if isinstance(x, list) else "tuple", "v": [value(y) for y in x]}
    if isinstance(x, dict):
        return {"t": "dict", "v": [[value(k), value(v)] for k, v in x.items()]}
    if isinstance(x, torch.Tensor):
        x = x.detach().resolve_conj()
        out = json_of(x)
        return out
    return json_of(x)


def spec(s):
    arg = s.arg
    name = getattr(arg, "name", None)
    own = {"type": type(arg).__name__, "name": name}
    if hasattr(arg, "value"):
        own["value"] = arg.value
    out = {"kind": s.kind.name, "arg": own, "target": s.target}
    return out


def without_traces(exported):
    for module in exported.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                node.meta.pop("stack_trace", None)
    return exported


def module_of(thing):
    torch.manual_seed(0)
    if isinstance(thing, type):
        module = thing()
        return module if thing is Training else module.eval()
    names = thing.__code__.co_varnames[: thing.__code__.co_argcount]
    if thing.__code__.co_flags & 4 or thing.__code__.co_kwonlyargcount:
        return Wrapped(thing).eval()
    # The parameters keep their names.
    scope = {"thing": thing, "nn": nn}
    params = ", ".join(names)
    exec(f"class M(nn.Module):\n    def forward(self, {params}):\n        return thing({params})\n", scope)
    return scope["M"]().eval()


def record(name, thing, calls, dynamic, form, strict, kwargs, fails):
    module = module_of(thing)
    shapes = dynamic
    exported = export(copy.deepcopy(module), copy.deepcopy(calls[0]), copy.deepcopy(kwargs), dynamic_shapes=shapes, strict=strict)
    if form == "functional":
        exported = exported.run_decompositions({})
    elif form == "core":
        exported = exported.run_decompositions()
    buffer = io.BytesIO()
    torch.export.save(without_traces(exported), buffer)
    case = {"id": f"exported/{name}" + (f"/{form}" if form else ""), "suite": "exported", "kind": "pt2", "rtol": 1e-4, "atol": 1e-5}
    case["archive_bytes"] = base64.b64encode(buffer.getvalue()).decode()
    buffer.seek(0)
    try:
        loaded = torch.export.load(buffer)
        case["graph"], case["program_text"] = str(loaded.graph), str(loaded)
        case["range_constraints"] = {str(k): [str(v.lower), str(v.upper)] for k, v in loaded.range_constraints.items()}
        # The results are those of the loaded program; some decompositions have other results than their operators.
        answers = loaded.module()
    except Exception as error:
        print(f"  {name} {form}: cannot be loaded: {error}")
        answers = module
    case["calls"] = []
    for i, inputs in enumerate(calls):
        args, named = copy.deepcopy(inputs), copy.deepcopy(kwargs)
        call = {"inputs": [value(x) for x in args]}
        if named:
            call["kwargs"] = {k: value(v) for k, v in named.items()}
        if i in fails:
            call["expected_error"] = {"kind": "runtime", "class": "RuntimeError", "message": ""}
        else:
            try:
                call["expected"] = value(answers(*args, **named))
            except Exception as error:
                print(f"  {name} {form}: does not run as loaded: {str(error).strip()[:200]}")
                args, named, answers = copy.deepcopy(inputs), copy.deepcopy(kwargs), module
                call["expected"] = value(answers(*args, **named))
            after = [value(x) for x in args]
            if after != call["inputs"]:
                call["inputs_after"] = after
            buffers = {k: value(v) for k, v in answers.named_buffers() if not k.startswith("lifted_tensor")}
            if buffers and i == len(calls) - 1:
                case["buffers_after"] = buffers
        case["calls"].append(call)
    return case


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "tests/data/suites/exported"
    wanted = sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    cases = []
    for name, thing, calls, dynamic, forms, strict, kwargs, fails in PROGRAMS:
        if wanted and name not in wanted:
            continue
        for form in forms:
            try:
                cases.append(record(name, thing, calls, dynamic, form, strict, kwargs, fails))
            except Exception as error:
                print(f"{name} {form}: {type(error).__name__}: {str(error).strip()[:300]}")
    text = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    with open(os.path.join(folder, "cases.jsonl.gz"), "wb") as out:
        out.write(gzip.compress(text.encode(), 9, mtime=0))
    print(len(cases), "cases")


main()
