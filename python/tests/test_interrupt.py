"""Ctrl-C during long calls."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import flambeau

LOOP = """
def count(n: int) -> int:
    total = 0
    for i in range(n):
        for j in range(1000):
            total += j
    return total
"""


# An iteration takes so long that the bound on iterations is far, also on a busy machine.
SLOW = """
def repeat(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = torch.tanh(x)
    return x
"""


@pytest.fixture(autouse=True)
def interrupts():
    """Programs that a shell starts in the background ignore the signal, and so does Python then."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of other processes")
def test_a_signal_ends_a_long_call():
    unit = flambeau.CompilationUnit(SLOW)
    x = flambeau.tensor([0.5] * 20000)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        unit.repeat(x, 10**9)
    assert time.monotonic() - start < 60
    assert unit.repeat(x, 0).tolist() == x.tolist()


def test_handlers_run_during_a_call_and_let_it_go_on():
    unit = flambeau.CompilationUnit(LOOP)
    start = time.monotonic()
    unit.count(100)
    # A call of about three seconds.
    turns = int(300 / (time.monotonic() - start)) + 100
    sent, seen = [], []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, lambda *_: seen.append(time.monotonic()))
    try:
        threading.Timer(0.2, send).start()
        assert unit.count(turns) == turns * 499500
        end = time.monotonic()
    finally:
        signal.signal(signal.SIGINT, before)
    # Python itself runs handlers after the call.
    assert seen and seen[0] - sent[0] < (end - sent[0]) / 2


def test_an_exception_ends_the_run_that_it_was_raised_in():
    x = flambeau.tensor([1.0, 2.0])
    x.requires_grad = True
    y = (x * x).sum()

    def fail(_):
        raise KeyError("hook")

    handle = y.register_hook(fail)
    with pytest.raises(KeyError, match="hook"):
        flambeau._native.gradients([y], [flambeau.tensor(1.0)], [x], True, False)
    with pytest.raises(KeyError, match="hook"):
        y.backward(retain_graph=True)
    handle.remove()
    with pytest.raises(flambeau.RuntimeError, match="negative"):
        flambeau.CompilationUnit("def f():\n    raise RuntimeError('negative')\n").f()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_runs_within_hooks_have_their_own_exceptions():
    x = flambeau.tensor([3.0])
    x.requires_grad = True
    y = (x * x).sum()
    unit = flambeau.CompilationUnit("def f():\n    raise ValueError('inner')\n")

    def hook(grad):
        with pytest.raises(ValueError, match="inner"):
            unit.f()
        return grad

    y.register_hook(hook)
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_calls_of_other_threads_go_on():
    script = (
        "import threading, flambeau\n"
        f"unit = flambeau.CompilationUnit('''{LOOP}''')\n"
        "found = []\n"
        "threads = [threading.Thread(target=lambda: found.append(unit.count(300))) for _ in range(3)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "assert found == [300 * 499500] * 3\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
