"""Packed sequences: a class that derives from a named tuple."""

from typing import Tuple

import pytest

from flambeau import jit

torch = pytest.importorskip("torch")
nn = torch.nn
rnn = nn.utils.rnn
PackedSequence = rnn.PackedSequence
pack_padded_sequence, pad_packed_sequence = rnn.pack_padded_sequence, rnn.pad_packed_sequence


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.GRU(3, 4)

    def forward(self, input: PackedSequence) -> Tuple[PackedSequence, torch.Tensor]:
        return self.inner(input)


class LongShort(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.LSTM(3, 4)

    def forward(self, input: PackedSequence) -> Tuple[PackedSequence, Tuple[torch.Tensor, torch.Tensor]]:
        return self.inner(input)


@pytest.mark.parametrize("cls", [Recurrent, LongShort])
def test_layers_take_and_return_packed_sequences(cls):
    torch.manual_seed(0)
    module, sequence = cls(), rnn.pack_sequence([torch.randn(2, 3), torch.randn(5, 3)], enforce_sorted=False)
    wanted, found = module(sequence)[0], jit.script(module)(sequence)[0]
    assert type(found) is PackedSequence and torch.allclose(found.data, wanted.data, atol=1e-6)
    assert torch.equal(found.batch_sizes, wanted.batch_sizes) and torch.equal(found.sorted_indices, wanted.sorted_indices)


def test_sequences_are_packed_and_padded():
    def function(x, lengths):
        return pad_packed_sequence(pack_padded_sequence(x, lengths))

    x, lengths = torch.randn(3, 4, 2), torch.tensor([3, 2, 2, 1])
    for found, wanted in zip(jit.script(function)(x, lengths), function(x, lengths), strict=True):
        assert torch.equal(found, wanted)


def test_a_number_stands_for_a_tuple():
    from torch.nn.modules.utils import _pair, _quadruple, _single

    def function():
        return _single(1), _pair(2.5), _quadruple(4), _quadruple((1, 2, 3, 4))

    assert jit.script(function)() == ([1], [2.5, 2.5], [4, 4, 4, 4], [1, 2, 3, 4])
