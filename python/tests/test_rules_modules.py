"""Rules of modules of PyTorch in programs. Results and messages were recorded from PyTorch 2.6, which the tests need for its modules."""

import io
from typing import Final, List, Optional, Tuple

import pytest

torch = pytest.importorskip("torch")

import flambeau  # noqa: E402
from flambeau import jit  # noqa: E402

nn = torch.nn
REFUSALS = (flambeau.CompileError, flambeau.UnsupportedError)


class Less(nn.Module):
    def forward(self, x):
        return x - 1


class Parts(nn.Module):
    """A module with attributes of every kind."""

    constant: Final[int]
    optional: Optional[int]
    listed: List[int]
    __constants__ = ["names"]

    def __init__(self):
        super().__init__()
        self.constant = 3
        self.names = ("a", "b")
        self.optional = 4
        self.listed = []
        self.untyped = []
        self.number = 2.5
        self.none = None
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("count", torch.zeros(1))
        self.layers = nn.ModuleList([Less(), Less()])
        self.named = nn.ModuleDict({"first": Less(), "second": nn.ReLU()})


def module_with(forward, base=Parts, **members):
    return type(forward.__name__, (base,), {"forward": forward, **members})()


def attributes(self, x: int):
    self.number += x
    self.listed.append(x)
    copied = self.optional
    if copied is not None:
        x += copied
    return self.number, self.listed, x, self.constant * 2, self.names, self.none is None


def kinds_of_members(self, x: int):
    return (
        hasattr(self, "weight"), hasattr(self, "absent"), hasattr(self, "layers"), getattr(self, "number"), len(self.layers),  # noqa: B009
        getattr(self, "absent", 7), "first" in self.named, len(self.named),
    )  # fmt: skip


def known_branches(self, x: int):
    if self.none is not None:
        x = self.none.absent(x)
    if self.constant > 5:
        x += 100
    if hasattr(self, "absent"):
        x = self.absent(x)
    if not torch.jit.is_scripting():
        x = self.absent(x)
    return x


def loops(self, x: torch.Tensor):
    n = 0
    text = ""
    for i, layer in enumerate(self.layers):
        x = layer(x) * (i + 1)
    for name, layer in self.named.items():
        x = layer(x)
        text += name
    for name in self.named.keys():
        text += name
    for first, second in zip(self.layers, self.named.values()):
        x = first(second(x))
    for layer, number in zip(self.layers, (10, 20)):
        n += number
    return x, n, text


def parts(self, x: torch.Tensor):
    total = x
    for name, buffer in self.named_buffers():
        total = total + buffer.sum() + len(name)
    for name, child in self.named_children():
        total = total + len(name)
    for name, part in self.named_modules():
        total = total + len(name)
    return total


def state(self, x: torch.Tensor):
    self.count = self.count + x
    self.count += 1
    self.weight.mul_(1)
    return self.count


@pytest.mark.parametrize(
    ("forward", "arg", "result"),
    [
        (attributes, 5, (7.5, [5], 9, 6, ("a", "b"), True)),
        (kinds_of_members, 1, (True, False, True, 2.5, 2, 7, True, 2)),
        (known_branches, 1, 1),
    ],
)
def test_members_of_modules(forward, arg, result):
    assert jit.script(module_with(forward))(arg) == result


def test_loops_over_modules_are_unrolled():
    x, n, text = jit.script(module_with(loops))(torch.tensor([9.0]))
    assert (x.tolist(), n, text) == ([10.0], 30, "firstsecondfirstsecond")
    compiled = jit.script(module_with(parts))
    assert compiled(torch.tensor([1.0])).tolist() == [67.0]
    assert "prim::Loop" not in str(compiled.graph)


def test_buffers_are_assigned():
    with torch.no_grad():
        compiled = jit.script(module_with(state))
        assert compiled(torch.tensor([2.0])).tolist() == [3.0]
        assert compiled(torch.tensor([2.0])).tolist() == [6.0] and compiled.count.tolist() == [6.0]


def breaks(self, x):
    for layer in self.layers:
        if x.sum() > 0:
            break
        x = layer(x)
    return x


def refines_an_attribute(self, x: int):
    if self.optional is not None:
        return x + self.optional
    return x


def untyped_list(self, x: int):
    self.untyped.append(x)
    return x


def other_type(self, x: int):
    self.number = x
    return x


def absent_attribute(self, x: int):
    return self.absent


def new_attribute(self, x: int):
    self.absent = x
    return x


def assigns_constant(self, x: int):
    self.constant = x
    return x


def assigns_module(self, x: int):
    self.layers = x
    return x


def variable_index(self, x: int):
    return len(self.layers[x])


def mixed_lengths(self, x: List[int]):
    total = 0
    for layer, n in zip(self.layers, x):
        total += n
    return total


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (breaks, "do not support break or continue inside the body of these loops"),
        (refines_an_attribute, "Arguments for call are not valid"),
        (untyped_list, "failed to convert Python type 'list' to a TorchScript type|untyped"),
        (other_type, "Wrong type for attribute assignment. Expected float but got int"),
        (absent_attribute, "has no attribute 'absent'"),
        (new_attribute, "Tried to set nonexistent attribute: absent"),
        (assigns_constant, "constant"),
        (assigns_module, "layers"),
        (variable_index, "Expected integer literal for index"),
        (mixed_lengths, "does not have a statically determinable length"),
    ],
)
def test_modules_that_do_not_compile(forward, message):
    with pytest.raises(REFUSALS, match=message):
        jit.script(module_with(forward))


def test_the_mode_is_read_when_a_program_runs():
    class Mode(nn.Module):
        def forward(self, x: int):
            if self.training:
                return x
            return -x

    compiled = jit.script(Mode())
    assert compiled(3) == 3
    compiled.eval()
    assert compiled(3) == -3


def test_a_call_of_forward_runs_no_hooks():
    def before(self, input: Tuple[torch.Tensor]) -> Tuple[torch.Tensor]:
        return (input[0] * 10,)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Less()
            self.inner.register_forward_pre_hook(before)

        def forward(self, x):
            return self.inner(x), self.inner.forward(x)

    first, second = jit.script(Outer())(torch.tensor([2.0]))
    assert (first.item(), second.item()) == (19.0, 1.0)


class Untaken(nn.Module):
    """A module with methods that only branches refer to that are not taken."""

    def forward(self, x: int):
        if x is None:
            return self.takes_any_number(x)
        if isinstance(x, str):
            return self.mistaken(x)
        return self.helper(x)

    def takes_any_number(self, *args):
        return args

    def mistaken(self, x: int):
        return x + not_defined  # noqa: F821

    def helper(self, x: int):
        return x + 1


class TakesAnyNumber(Untaken):
    def helper(self, x: int):
        return self.takes_any_number(x)


class Mistaken(Untaken):
    def helper(self, x: int):
        return self.mistaken(x)


def test_methods_of_branches_that_are_not_taken():
    compiled = jit.script(Untaken())
    assert compiled(1) == compiled.helper(1) == 2 and not hasattr(compiled, "mistaken")
    with pytest.raises(REFUSALS, match="can't take variable number of arguments"):
        jit.script(TakesAnyNumber())
    with pytest.raises(REFUSALS, match="undefined value not_defined"):
        jit.script(Mistaken())


class Taken(nn.Module):
    """A module with members whose names hooks may have or not."""

    def forward(self, x: torch.Tensor):
        return self.helper(x).double()

    def helper(self, x: torch.Tensor):
        return x

    def lazy(self, x: torch.Tensor):
        return x

    @torch.jit.ignore
    def ignored(self, x: torch.Tensor) -> torch.Tensor:
        return x

    @torch.jit.export
    def exported(self, x: torch.Tensor):
        return x


class CallsLazy(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x: torch.Tensor):
        return self.part(x) + self.part.lazy(x)


def double(self, input: Tuple[torch.Tensor], output: torch.Tensor):
    return output + 1


def lazy(self, input: Tuple[torch.Tensor], output: torch.Tensor):
    return output + 1


def ignored(self, input: Tuple[torch.Tensor], output: torch.Tensor):
    return output + 1


def helper(self, input: Tuple[torch.Tensor], output: torch.Tensor):
    return output + 1


def exported(self, input: Tuple[torch.Tensor], output: torch.Tensor):
    return output + 1


def taken_with(hook):
    module = Taken()
    module.register_forward_hook(hook)
    return module


@pytest.mark.parametrize("hook", [double, lazy, ignored])
def test_hooks_are_named_like_members_that_are_not_compiled(hook):
    assert jit.script(taken_with(hook))(torch.zeros(1)).tolist() == [1]


@pytest.mark.parametrize(
    "module", [taken_with(helper), taken_with(exported), CallsLazy(taken_with(lazy))], ids=["reached", "exported", "called"]
)
def test_hooks_are_not_named_like_methods(module):
    with pytest.raises(REFUSALS, match="Can't define hook: .* because a method or hook with that name already exists"):
        jit.script(module)


def test_methods_with_several_signatures():
    class Several(nn.Module):
        @jit._overload_method
        def twice(self, x: int) -> int: ...

        @jit._overload_method
        def twice(self, x: str) -> str: ...  # noqa: F811

        def twice(self, x):  # noqa: F811
            return x + x

        def forward(self, x: int):
            return self.twice(x), self.twice("a")

    assert jit.script(Several())(2) == (4, "aa")


def test_methods_are_compiled_if_a_program_reaches_them():
    class Methods(nn.Module):
        def forward(self, x: int) -> int:
            return self.reached(x) + self.three + self.four()

        def reached(self, x: int) -> int:
            return x + 1

        @jit.export
        def exported(self, x: int) -> int:
            return x + 2

        def not_reached(self, x):
            return {x}

        @jit.unused
        def is_unused(self, x):
            return {x}

        @jit.ignore
        def is_ignored(self, x):
            return {x}

        @property
        def three(self) -> int:
            return 3

        @staticmethod
        def four() -> int:
            return 4

    compiled = jit.script(Methods())
    assert compiled(1) == 9 and compiled.exported(1) == 3


class Ignores(nn.Module):
    @jit.ignore
    def left_to_python(self, x: int) -> int:
        return x

    def forward(self, x: int) -> int:
        return self.left_to_python(x)


class Unused(nn.Module):
    @jit.unused
    def never_run(self, x: int) -> int:
        return x

    def forward(self, x: int) -> int:
        return self.never_run(x)


def test_programs_that_call_python_are_not_saved():
    compiled = jit.script(Ignores())
    assert compiled(3) == 3
    with pytest.raises((RuntimeError, flambeau.Error), match="Could not export Python function call|has no source form"):
        jit.save(compiled, io.BytesIO())


def test_programs_with_unused_methods_are_saved():
    file = io.BytesIO()
    jit.save(jit.script(Unused()), file)
    file.seek(0)
    with pytest.raises((RuntimeError, flambeau.Error), match="annotated to be ignored and cannot be run"):
        jit.load(file)(1)


@jit.interface
class Changeable(torch.nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        pass


class Holder(torch.nn.Module):
    part: Changeable

    def __init__(self):
        super().__init__()
        self.part = torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part.forward(x)


class OfAnotherName(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class OfAnotherResult(torch.nn.Module):
    def forward(self, input: torch.Tensor) -> int:
        return input.dim()


def test_a_module_of_an_interface_is_replaced_by_one_with_its_signatures():
    holder = jit.script(Holder())
    for other in (OfAnotherName(), OfAnotherResult()):
        with pytest.raises(RuntimeError, match="is not compatible with interface"):
            holder.part = jit.script(other)
    holder.part = jit.script(torch.nn.Tanh())
    assert torch.equal(holder(torch.ones(2)), torch.tanh(torch.ones(2)))
