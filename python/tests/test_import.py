"""Importing the package imports neither NumPy nor PyTorch."""

import subprocess
import sys


def test_import_is_light():
    script = "import flambeau, sys; print([m for m in ('numpy', 'torch', 'ast', 'inspect') if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_the_package_is_complete():
    import flambeau

    for name in flambeau.__all__:
        assert getattr(flambeau, name) is not None
    assert flambeau.__version__
