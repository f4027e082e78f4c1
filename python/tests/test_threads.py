"""Threads that use one program, one graph or one capsule at the same time, with and without an interpreter lock."""

import threading
from typing import Dict, List

import pytest

import flambeau
from flambeau import CompilationUnit, jit

THREADS = 8


def at_once(run, count=THREADS):
    """Runs a function of the thread's number in threads that start together; returns results and errors."""
    start, found = threading.Barrier(count), []

    def begin(number):
        start.wait()
        try:
            found.append(run(number))
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_calls_run_in_parallel():
    text = "def f(n: int):\n    s = 0\n    for i in range(n):\n        s += i * i % 7\n    return s\n"
    f = CompilationUnit(text).f
    assert at_once(lambda _: f(20_000)) == [f(20_000)] * THREADS


def test_the_first_calls_of_a_program():
    for _ in range(20):
        unit = CompilationUnit("def f(x: Tensor, n: int):\n    return torch.relu(x @ x) * n\n")
        assert sorted(at_once(lambda n, unit=unit: unit.f(flambeau.ones(2, 2), n).sum().item())) == [8.0 * n for n in range(THREADS)]


def test_lists_that_threads_share():
    pop = CompilationUnit("def f(l: List[int]):\n    while len(l) > 0:\n        l.pop()\n").f
    shared = jit.script(list(range(20_000)))
    found = at_once(lambda _: pop(shared))
    assert len(shared) == 0 and all(error is None or isinstance(error, IndexError) for error in found)


def test_dictionaries_that_threads_share():
    count = CompilationUnit("def f(d: Dict[str, int], k: str, n: int):\n    for i in range(n):\n        d[k + str(i)] = i\n    return len(d)\n").f
    shared = jit.script({"a": 0})
    at_once(lambda n: count(shared, f"k{n}.", 500))
    assert len(shared) == 1 + THREADS * 500


def test_compilation():
    def scripted(number):
        def f(x: int, y: List[int], d: Dict[str, int]):
            return x + len(y) + len(d) + number

        return jit.script(f)(2, [1, 2], {"a": 1})

    assert sorted(at_once(scripted)) == [5 + n for n in range(THREADS)]


def test_gradients():
    f = CompilationUnit("def f(x: Tensor, w: Tensor):\n    return torch.tanh(x * w).sum()\n").f
    w = flambeau.ones(3)

    def run(number):
        x = flambeau.full([3], float(number))
        x.requires_grad = True
        for _ in range(20):
            f(x, w).backward()
        return x.grad[0].item()

    wanted = [20 * (1 - flambeau.tanh(flambeau.tensor(float(n))).item() ** 2) for n in range(THREADS)]
    assert sorted(at_once(run)) == pytest.approx(sorted(wanted), rel=1e-4)


def test_graphs():
    graph = CompilationUnit("def f(x: Tensor):\n    return x + x * 2\n").f.graph
    texts = at_once(lambda _: [str(graph), [str(node) for node in graph.nodes()]])
    assert texts == [texts[0]] * THREADS


def test_a_capsule_has_one_consumer():
    class Lender:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, **options):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    tensor = flambeau.arange(4)
    for _ in range(50):
        lender = Lender(tensor.__dlpack__())
        found = at_once(lambda _, lender=lender: flambeau.from_dlpack(lender))
        taken = [result for result in found if not isinstance(result, Exception)]
        assert len(taken) == 1 and taken[0].tolist() == [0, 1, 2, 3]
