"""Sizes in traces of functions and modules of PyTorch, compared with PyTorch's own traces: where a number of the trace becomes an
integer, where PyTorch loses it, and numbers that cross submodules."""

import warnings

import pytest
from traces import agree

from flambeau import jit

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional


def written(x, index, value):
    y = x.clone()
    y[index(y)] = value(y)
    return y


FUNCTIONS = {
    # Python code of PyTorch.
    "split": lambda x: torch.split(x, x.size(1) // 2, dim=1),
    "tile": lambda x: x.tile((x.size(0), 1)),
    "pad": lambda x: F.pad(x, [0, 0, 0, x.size(1) - x.size(0)]),
    "interpolate": lambda x: F.interpolate(x[None, None], size=x.shape[-2:], mode="bilinear", align_corners=False),
    "interpolate by recomputed factors": lambda x: F.interpolate(
        x[None, None], scale_factor=1.5, recompute_scale_factor=True, mode="bilinear"
    ),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "one_hot": lambda x: F.one_hot(x.argmax(1), x.size(1)),
    "one_hot of a result": lambda x: F.one_hot(x.argmax(1), x.argmax(1).max() + 7),
    "affine_grid": lambda x: F.affine_grid(torch.ones(1, 2, 3), (1, 1, x.size(0), x.size(1)), align_corners=False),
    "meshgrid": lambda x: torch.meshgrid(torch.arange(x.size(0)), torch.arange(x.size(1)), indexing="ij"),
    "broadcast_to": lambda x: torch.broadcast_to(x[:1], x.shape),
    # Operators with plain integers.
    "permute": lambda x: x.permute(x.size(0) - 3, 0),
    "pool": lambda x: F.avg_pool2d(x[None], (x.size(0), x.size(1))),
    "max pool": lambda x: F.max_pool2d(x[None], (x.size(0), x.size(1))),
    "roll": lambda x: torch.roll(x, shifts=(x.size(0) // 2, 1), dims=(0, 1)),
    "combinations": lambda x: torch.combinations(torch.arange(x.size(0)), 2),
    # Numbers of any kind.
    "bounds": lambda x: (x.clamp(x.size(0) - 4, x.size(1)), F.hardtanh(x, -x.size(0), x.size(0))),
    "activations": lambda x: (F.elu(x, x.size(0)), F.leaky_relu(x, 1 / x.size(0)), F.threshold(x, x.size(0), 0)),
    "where": lambda x: (torch.where(x > 0, x, x.size(0)), torch.where(x > 0, x.size(0), 0.5)),
    "factors": lambda x: torch.addmm(x @ x.t(), x, x.t(), beta=x.size(0)),
    # The numbers of PyTorch's trace end at floats, at functions that it does not record, and at `Size.numel`.
    "scale": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], scale=x.size(-1) ** -0.5),
    "nan_to_num": lambda x: x.nan_to_num(x.size(0)),
    "numel of sizes": lambda x: x.view(x.shape.numel()),
    "numel of parts": lambda x: x.view(-1, x.shape[1:].numel()),
    "new": lambda x: x.new(x.size(0), 2).zero_(),
    "old constructor": lambda x: torch.Tensor(x.size(0), 2).zero_(),
    "groups": lambda x: F.conv1d(x[None], torch.ones(4, 1, 1), groups=x.size(0)),
    "output_padding": lambda x: F.conv_transpose1d(x[None], torch.ones(4, 1, 3), stride=2, output_padding=(x.size(0) // 4,)),
    # Sizes as containers.
    "torch.Size": lambda x: x.view(torch.Size([x.size(0), 6])),
    "is torch.Size": lambda x: x * 2 if isinstance(x.shape, torch.Size) else x,
    "shown": lambda x: (f"{x.shape} {x.shape[:1]!r}", x * 2)[1],
    "sorted": lambda x: x.reshape(sorted(x.shape)),
    "sizes by name": lambda x: x.view(x.size(dim=0), -1),
    # Constants and their sizes.
    "sizes of constants": lambda x: x[: torch.ones(3, 2).size(0)],
    "tensor": lambda x: x * torch.tensor(x.size(0)),
    "tensor of a list": lambda x: torch.tensor([x.size(0), 2]),
    "as_tensor": lambda x: (x * torch.as_tensor(x.size(0)), torch.as_tensor([x.size(0), 2])),
    "new_tensor": lambda x: x * x.new_tensor(x.size(0)) * x.new_tensor([2.0]),
    "called operator": lambda x: torch.ops.aten.slice(torch.ops.aten.view.default(x, [x.size(0), -1]), 1, 0, x.size(1) // 2),
    # Indices.
    "list of indices": lambda x: x[[0, x.size(0) - 1]],
    "tensor and number": lambda x: x[torch.arange(x.size(0)), x.size(1) - 1],
    "number and tensor": lambda x: x[torch.tensor([0, 1]), ..., x.size(1) - 2],
    "mask and number": lambda x: x[x[:, 0] > 0, x.size(1) - 1],
    "truth value": lambda x: x[x.sum() > 0],
    "result": lambda x: x[:, x[0].argmax()],
    "write of a size": lambda x: written(x, lambda y: 0, lambda y: y.size(1)),
    "write of a column": lambda x: written(x, lambda y: (slice(None), y.size(1) - 1), lambda y: 3.0),
    "write of a slice": lambda x: written(x, lambda y: slice(0, y.size(0) // 2), lambda y: 1),
    "write by a tensor": lambda x: written(x, lambda y: (torch.arange(2), y.size(1) - 1), lambda y: 3.0),
    "write by a slice and a tensor": lambda x: written(
        x, lambda y: (slice(0, y.size(0) // 2), torch.tensor([0, 1])), lambda y: torch.ones(2)
    ),
    # Operators of numbers.
    "bits": lambda x: x[: (x.size(0) & 6) | 1],
    "shifts": lambda x: x.view(x.size(0) << 1, -1)[: x.size(0) >> 1],
    "on the right": lambda x: x[: 12 // x.size(0)] * (12 / x.size(0)),
    "float to integer": lambda x: x[: (x.size(0) * 0.5).long()] if isinstance(x.size(0), torch.Tensor) else x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    torch.manual_seed(0)
    agree(FUNCTIONS[name], torch.randn(4, 6))


class Calls(nn.Module):
    """A module whose method is a function of it and its inputs."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args):
        return self.function(self, *args)


def flat(self, x, n):
    return x.view(n, -1)


MODULES = {
    "from outside": lambda: Calls(lambda self, x: self.a(x, x.size(0)), a=Calls(flat)),
    "from outside, twice": lambda: Calls(
        lambda self, x: (lambda n: self.b(self.a(x, n), n) * n)(x.size(0)), a=Calls(flat), b=Calls(flat)
    ),
    "from inside": lambda: Calls(lambda self, x: x.view(self.a(x)[1], -1), a=Calls(lambda self, x: (x * 2, x.size(0)))),
    "between siblings": lambda: Calls(
        lambda self, x: self.b(x, self.a(x)), a=Calls(lambda self, x: x.size(0)), b=Calls(flat)
    ),
    "between levels": lambda: Calls(
        lambda self, x: self.a(x),
        a=Calls(lambda self, x: x.view(self.b(x), -1), b=Calls(lambda self, x: x.size(0))),
    ),
    "arithmetic": lambda: Calls(
        lambda self, x: self.a(x, x.size(0) * 2),
        a=Calls(lambda self, x, n: x.view(n, -1) + torch.arange(n)[:, None] * (x.size(1) // 2)),
    ),
    "numbers": lambda: Calls(
        lambda self, x: self.a(x), a=Calls(lambda self, x: torch.full((2, x.size(0)), x.size(1)) + torch.arange(x.size(0)))
    ),
    "sizes of parameters": lambda: Calls(
        lambda self, x: x[:, : self.linear.weight.size(1)] @ self.linear.weight[: x.size(0)].t(), linear=nn.Linear(6, 4)
    ),
    "unused": lambda: Calls(lambda self, x: self.a(x), a=Calls(lambda self, x: (x.size(0), x.view(-1))[1])),
}


@pytest.mark.parametrize("name", MODULES)
def test_sizes_cross_submodules(name):
    torch.manual_seed(0)
    agree(MODULES[name]().requires_grad_(False), torch.randn(4, 6))


def attention(**options):
    return nn.MultiheadAttention(8, 2, **options)


LAYERS = {
    "attention": lambda: (Calls(lambda self, x: self.a(x, x, x)[0], a=attention()), (3, 2, 8)),
    "attention without weights": lambda: (
        Calls(lambda self, x: self.a(x, x, x, need_weights=False)[0], a=attention(batch_first=True).train()), (3, 2, 8),
    ),
    "attention with more keys": lambda: (attention(add_bias_kv=True, kdim=8, vdim=8), (3, 2, 8), (4, 2, 8), (4, 2, 8)),
    "decoder": lambda: (nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2), (3, 2, 8), (4, 2, 8)),
    "transformer": lambda: (nn.Transformer(8, 2, 1, 1, 16, batch_first=True), (2, 3, 8), (2, 4, 8)),
    "transposed convolution": lambda: (
        Calls(
            lambda self, x: self.c(x, output_size=(x.size(2) * 2, x.size(3) * 2)),
            c=nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1),
        ),
        (1, 2, 4, 4),
    ),
    "bags": lambda: (Calls(lambda self, x: self.b(x.abs().long()), b=nn.EmbeddingBag(10, 3)), (2, 4)),
    "padding": lambda: (nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), (1, 2, 5, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.filterwarnings("ignore")
def test_layers(name):
    torch.manual_seed(0)
    module, *sizes = LAYERS[name]()
    agree(module.eval().requires_grad_(False), *map(torch.randn, sizes))


def test_values_of_python_warn_and_integers_of_loops_do_not():
    def f(x):
        for i in range(x.size(0)):
            x = x + i
        return x * float(x.size(1)) + len(x)

    with warnings.catch_warnings(record=True) as ours:
        warnings.simplefilter("always")
        jit.trace(f, torch.ones(2, 3), check_trace=False)
    texts = [str(warning.message).split(" might")[0] for warning in ours]
    assert texts == ["Converting a tensor to a Python float", "Using len to get tensor shape"]
    assert torch.Size([1]).__class__ is type(torch.ones(1).shape)
