"""Functions of PyTorch by name.

The compiler knows most functions of PyTorch by their paths, such as `torch.nn.functional.relu`. Those that it does not know are compiled
from their source: an error of the compiler names one, which is noted for the whole process, and the program is compiled again.
"""

from __future__ import annotations

import re
import sys
import types
from typing import Any

_from_source: set[str] = set()
"""Functions, and modules of functions, of PyTorch that the compiler does not know by name, and whose source is compiled instead."""

_UNKNOWN = re.compile(r"`(torch(?:\.\w+)+)` is not supported|Unknown builtin op: aten::(\w+)")


def is_from_source(path: str) -> bool:
    """Returns whether a function of PyTorch is compiled from its source."""
    while path and path not in _from_source:
        path = path.rpartition(".")[0]
    return bool(path)


def is_now_from_source(message: str) -> bool:
    """Notes the function of PyTorch that an error of the compiler says is not known. Returns whether it has a source and was not noted
    before, so that another attempt may succeed."""
    found = _UNKNOWN.search(message)
    if found is None:
        return False
    # Functions of several modules are named like the operators.
    paths = [found[1]] if found[1] else [f"{home.__name__}.{found[2]}" for home in _homes()]
    for path in paths:
        value = sys.modules.get("torch")
        for name in path.split(".")[1:]:
            value = getattr(value, name, None)
        if path not in _from_source and isinstance(value, (types.FunctionType, types.ModuleType)):
            _from_source.add(path)
            return True
    return False


def _homes() -> list[Any]:
    """Returns the modules of PyTorch whose functions programs call by name."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return []
    nn = torch.nn
    return [torch, nn.functional, torch.linalg, torch.special, torch.fft, torch.jit, nn.init, nn.modules.utils, torch.cuda.amp]


def path_in_torch(value: Any, path: str, module: str) -> str | None:
    """Returns the path of a function or class of PyTorch or :mod:`math`."""
    root = path.split(".")[0]
    if root in ("torch", "math", "cmath") and "." in path:
        # Settings of PyTorch, such as `torch.backends.cudnn.enabled`, are constants.
        return None if value is None or isinstance(value, (str, int)) else path
    if module in ("math", "cmath"):
        return f"{module}.{value.__name__}"
    torch = sys.modules.get("torch")
    name = getattr(value, "__name__", None)
    if torch is None or name is None or isinstance(value, type) and module.split(".")[0] != "torch":
        return None
    for home in _homes():
        if getattr(home, name, None) is value:
            return f"{home.__name__}.{name}"
    return None
