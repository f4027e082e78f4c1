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


@pytest.mark.skipif(sys.platform == "win32", reason="signals of other processes")
def test_a_signal_ends_a_long_call():
    unit = flambeau.CompilationUnit(LOOP)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        unit.count(10**9)
    assert time.monotonic() - start < 60
    assert unit.count(1) == 499500


def test_handlers_that_do_not_raise_let_the_call_go_on():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        unit = flambeau.CompilationUnit(LOOP)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        start, total = time.monotonic(), 0
        while not seen and time.monotonic() - start < 60:
            total += unit.count(1000)
        assert seen and total > 0
    finally:
        signal.signal(signal.SIGINT, before)


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
