"""Random numbers of programs on tensors of PyTorch are those of PyTorch's generator."""

import pytest

torch = pytest.importorskip("torch")

from flambeau import jit  # noqa: E402


@jit.script
def draws(x: torch.Tensor):
    a = torch.rand(3)
    b = torch.randn(2, 5)
    c = torch.randperm(7)
    return a, b, c, torch.normal(torch.zeros(3), torch.ones(3))


@jit.script
def drops(x: torch.Tensor):
    return torch.rand(3), torch.nn.functional.dropout(x, 0.5), torch.randn(2, 5)


# PyTorch 2.9 draws other masks for `dropout` than 2.6.
SCRIPTED = [draws, drops] if torch.__version__.startswith("2.6.") else [draws]


@pytest.mark.parametrize("scripted", SCRIPTED)
@pytest.mark.parametrize("before", [0, 1, 623, 624, 700])
def test_programs_draw_what_python_draws(before, scripted):
    x = torch.ones(50)

    def run(function):
        torch.manual_seed(7)
        torch.rand(before)
        torch.randn(1)
        return [*function(x), *function(x), torch.rand(4), torch.randn(3)]

    for found, wanted in zip(run(scripted), run(scripted._python), strict=True):
        assert torch.equal(found, wanted)


def test_runs_without_draws_leave_the_state():
    @jit.script
    def plain(x: torch.Tensor):
        return x + 1

    before = torch.get_rng_state()
    plain(torch.ones(2))
    assert torch.equal(torch.get_rng_state(), before)


def test_calls_of_python_within_a_run_draw_in_order():
    @jit.ignore
    def of_python(x: torch.Tensor) -> torch.Tensor:
        return torch.rand(2)

    def function(x: torch.Tensor):
        return torch.cat([torch.rand(2), of_python(x), torch.rand(2)])

    compiled = jit.script(function)
    torch.manual_seed(3)
    found = compiled(torch.ones(1))
    torch.manual_seed(3)
    assert torch.equal(found, function(torch.ones(1)))


def test_traces_draw_what_python_draws_and_return_tensors_of_pytorch():
    def noise():
        return torch.rand(4)

    traced = jit.trace(noise, (), check_trace=False)
    torch.manual_seed(5)
    found = traced()
    torch.manual_seed(5)
    assert isinstance(found, torch.Tensor) and torch.equal(found, noise())


def test_programs_seed_the_generator():
    @jit.script
    def seeded(n: int):
        torch.manual_seed(n)
        return torch.rand(3)

    @jit.script
    def seeds(n: int):
        torch.manual_seed(n)

    torch.manual_seed(9)
    wanted = torch.rand(6)
    assert torch.equal(torch.cat([seeded(9), torch.rand(3)]), wanted)
    seeds(9)
    assert torch.equal(torch.rand(6), wanted)


def with_generator(n: int, g: torch.Generator | None):
    return torch.rand([n], generator=g), torch.randn([n], generator=g)


def returned(g: torch.Generator, other: torch.Generator):
    a = torch.rand([2], generator=g)
    b = torch.rand([2], generator=other)
    return g, a, b


def test_generators_are_arguments():
    scripted = jit.script(with_generator)
    own, of_torch = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    for n in [3, 0, 700]:
        for found, wanted in zip(scripted(n, own), with_generator(n, of_torch), strict=True):
            assert torch.equal(found, wanted)
    assert torch.equal(torch.rand(4, generator=own), torch.rand(4, generator=of_torch))
    torch.manual_seed(7)
    found = scripted(3, None)
    torch.manual_seed(7)
    assert all(map(torch.equal, found, with_generator(3, None)))


def test_a_generator_that_occurs_twice_is_one():
    own, of_torch = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    back, *found = jit.script(returned)(own, own)
    assert back is own
    assert all(map(torch.equal, found, returned(of_torch, of_torch)[1:]))


def test_other_objects_are_no_generators():
    with pytest.raises(RuntimeError, match="Expected a value of type 'Generator' for argument 'g'"):
        jit.script(returned)(3, torch.Generator())
