"""What PyTorch adds to calls: hooks, autocast, forward-mode differentiation, views of arguments."""

import warnings
from typing import Tuple

import pytest

import flambeau
from flambeau import jit

torch = pytest.importorskip("torch")
nn = torch.nn


class AddOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class Outer(nn.Module):
    def __init__(self, where, register):
        super().__init__()
        self.sequence = nn.Sequential(AddOne(), AddOne())
        self.items = nn.ModuleList([AddOne()])
        for hook in register:
            getattr(self.get_submodule(where), hook[0])(hook[1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.sequence(x)
        for item in self.items:
            x = item(x)
        return self.items[0](x)


def times_ten(self, input: Tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    return output * 10


def times_hundred(self, input: Tuple[torch.Tensor]) -> Tuple[torch.Tensor]:
    return (input[0] * 100,)


def as_tensor(self, input: Tuple[torch.Tensor]) -> torch.Tensor:
    return input[0] * 3


AFTER, BEFORE = ("register_forward_hook", times_ten), ("register_forward_pre_hook", times_hundred)


@pytest.mark.parametrize("where", ["sequence", "sequence.0", "items.0"])
@pytest.mark.parametrize("hooks", [[AFTER], [BEFORE], [AFTER, BEFORE, AFTER], [("register_forward_pre_hook", as_tensor)]])
def test_hooks_of_submodules(where, hooks):
    module, x = Outer(where, hooks), torch.ones(1)
    compiled = jit.script(module)
    assert torch.equal(compiled(x), module(x))
    # A call of the method omits the hooks, as in PyTorch.
    part, own = compiled.get_submodule(where), module.get_submodule(where)
    assert torch.equal(part(x), own(x)) and torch.equal(part.forward(x), own.forward(x))


def test_compiled_modules_take_no_hooks():
    compiled = jit.script(Outer("sequence", []))
    for module in (compiled, compiled.sequence):
        for name in ("register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"):
            with pytest.raises(flambeau.MisuseError, match=f"{name} is not supported on ScriptModules"):
                getattr(module, name)(lambda *_: None)


class SharedBuffers(nn.Module):
    def __init__(self):
        super().__init__()
        memory = torch.zeros(4)
        self.register_buffer("whole", memory)
        self.register_buffer("part", memory[1:3])
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("start", self.weight.detach()[:2])

    def forward(self, x: torch.Tensor):
        self.whole.add_(x)
        return self.part.clone()


def test_buffers_that_overlap_share_their_memory():
    module = SharedBuffers()
    compiled = jit.script(module)
    assert compiled(torch.ones(1)).tolist() == [1, 1] and module.part.tolist() == [1, 1]
    with torch.no_grad():
        compiled.weight.add_(5)
    assert compiled.start.tolist() == [6, 6]


def test_autocast_gives_a_warning():
    compiled, x = jit.script(nn.Linear(2, 2)), torch.ones(1, 2)

    def call():
        with torch.autocast("cpu", torch.bfloat16):
            return compiled(x).dtype

    with pytest.warns(UserWarning, match="does not follow it") as warned:
        assert call() == torch.float32
    assert {warning.filename for warning in warned} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(x)
    with torch.autocast("cpu", torch.bfloat16), pytest.warns(jit.TracerWarning, match="does not record the conversions"):
        jit.trace(lambda x: x @ x.T, x, check_trace=False)


cuda_autocast = torch.cuda.amp.autocast


def of_other_devices(x: torch.Tensor):
    with torch.cuda.amp.autocast(False):
        y = x @ x
    with cuda_autocast(), torch.autocast("cpu", enabled=False):
        return y @ x


def of_the_cpu(x: torch.Tensor):
    with torch.autocast("cpu"):
        return x @ x


def test_autocast_in_programs_is_without_effect_or_refused():
    x = torch.ones(2, 2)
    assert jit.script(of_other_devices)(x).tolist() == [[4, 4], [4, 4]]
    compiled = jit.script(of_the_cpu)
    with pytest.raises(flambeau.RuntimeError, match="torch.autocast for the CPU is not supported in a program"):
        compiled(x)


def test_dual_tensors_are_refused():
    from torch.autograd import forward_ad

    compiled, weight = jit.script(nn.Linear(2, 2)), torch.ones(2, requires_grad=True)
    times = jit.script(product)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(1, 2), torch.ones(1, 2))
        for call in (lambda: compiled(dual), lambda: times(dual, weight), lambda: times(dual, dual)):
            with pytest.raises(flambeau.UnsupportedError, match="programs do not compute tangents"):
                call()
        assert compiled(torch.ones(1, 2)).shape == (1, 2)


def product(x, y):
    return x * y


def middle(x):
    return x.view(-1)[1:3]


def test_results_in_the_memory_of_arguments_are_views():
    compiled, x = jit.script(middle), torch.zeros(4, requires_grad=True)
    y = x * 1
    part = compiled(y)
    assert part._is_view() and part._base is y and part.tolist() == y[1:3].tolist()
    part.sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 0]


def test_writes_to_views_of_arguments_are_refused():
    compiled = jit.script(middle)

    def arguments():
        x = torch.zeros(4, requires_grad=True)
        y = x * 1
        return x, y, compiled(y)

    # PyTorch's own views have a gradient for writes; the node of a call does not.
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        arguments()[2].mul_(3)
    _, y, part = arguments()
    y.mul_(3)
    with pytest.raises(RuntimeError, match="modified"):
        part.sum().backward()
    x = torch.zeros(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        compiled(x).add_(1)


def test_gradients_can_be_written():
    x = torch.ones(4, requires_grad=True)
    (jit.script(middle)(x * 1) * 2).sum().backward(create_graph=True)
    with torch.no_grad():
        x.grad.zero_()
    assert x.grad.tolist() == [0] * 4


def records():
    return torch.is_grad_enabled()


def records_for(x):
    return torch.is_grad_enabled()


def test_programs_see_whether_pytorch_records():
    own, given = jit.script(records), jit.script(records_for)
    x = torch.ones(1)
    assert own() and given(x)
    with torch.no_grad():
        assert not own() and not given(x)
    assert own() and given(x)


def test_leaves_of_programs_are_leaves_of_pytorch():
    def required(x):
        return x.requires_grad_()

    def made(x):
        return torch.ones(2).requires_grad_()

    x = torch.ones(2)
    assert jit.script(required)(x) is x and x.requires_grad
    assert jit.script(made)(torch.ones(1)).requires_grad


def test_devices_are_those_of_pytorch():
    def device_of(x):
        return x.device

    device = jit.script(device_of)(torch.ones(1))
    assert isinstance(device, torch.device) and device == torch.device("cpu")
