"""Importing the package imports neither NumPy nor PyTorch."""

import subprocess
import sys


def test_import_is_light():
    script = "import flambeau, sys; print([m for m in ('numpy', 'torch', 'ast', 'inspect') if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_import_imports_no_slow_modules():
    script = (
        "import sys; before = set(sys.modules); import flambeau; "
        "print([m for m in ('typing', 're', 'enum', 'collections', 'functools', 'contextlib') if m in sys.modules and m not in before])"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


def test_names_that_are_imported_late():
    script = (
        "import flambeau, sys; print('flambeau._passes' in sys.modules, callable(flambeau.rewrite_pass), "
        "'rewrite_pass' in vars(flambeau), flambeau.custom_op.__name__)"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout.split() == ["False", "True", "True", "custom_op"]


def test_the_package_is_complete():
    import flambeau

    for name in flambeau.__all__:
        assert getattr(flambeau, name) is not None
    assert flambeau.__version__
