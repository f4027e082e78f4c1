"""Operators that PyTorch's Python library computes."""

import io

import pytest

torch = pytest.importorskip("torch")

from flambeau import jit  # noqa: E402


def test_programs_save_values(tmp_path):
    path = str(tmp_path / "values.pt")

    def save(x, path: str):
        y = x + 1
        torch.save((y, y.view(4)[1:], [3, 4], {"a": 2.5}), path)
        return y

    x = torch.rand(2, 2)
    assert torch.equal(jit.script(save)(x, path), x + 1)
    y, part, numbers, named = torch.load(path)
    assert torch.equal(y, x + 1) and (numbers, named) == ([3, 4], {"a": 2.5})
    part.zero_()
    assert y.view(-1)[1:].tolist() == [0] * 3, "the tensors have one storage"


def test_loaded_programs_save_values(tmp_path):
    class Saver(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.rand(2))

        def forward(self, path: str):
            torch.save(self.weight, path)

    path = str(tmp_path / "weight.pt")
    saver = jit.script(Saver())
    jit.load(io.BytesIO(saver.save_to_buffer()))(path)
    weight = torch.load(path)
    assert torch.equal(weight, saver.weight) and weight.requires_grad
