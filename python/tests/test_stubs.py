"""The stubs of the extension have what the extension has, with the same signatures."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

import flambeau

CONFIGURATION = """
[mypy]
[mypy-flambeau.*]
ignore_errors = True
[mypy-flambeau._native]
ignore_errors = False
"""


def test_the_package_is_typed():
    folder = pathlib.Path(flambeau.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_native.pyi").exists()


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_stubs_are_complete(tmp_path):
    configuration = tmp_path / "mypy.ini"
    configuration.write_text(CONFIGURATION)
    command = [sys.executable, "-m", "mypy.stubtest", "flambeau._native", "--concise", "--mypy-config-file", str(configuration)]
    # From a folder in which the sources are not a second package of the name.
    outcome = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
