"""Functions of PyTorch's libraries that its Python classes call."""

from __future__ import annotations

import ctypes
import pathlib
import re
import sys

import torch

VERSIONS = (2, 6), (2, 15)
"""The first and last version whose functions are known to be those that the extension calls."""

LIBRARIES = "c10", "torch_cpu"
"""The libraries that have the functions. PyTorch has loaded them."""


def addresses(names: list[str]) -> list[int] | None:
    """Returns the addresses of functions by their names in the libraries; ``None`` if the version is not known or has not all."""
    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if version is None or not VERSIONS[0] <= (int(version[1]), int(version[2])) <= VERSIONS[1]:
        return None
    folder = pathlib.Path(torch.__file__).parent / "lib"
    suffix = "dylib" if sys.platform == "darwin" else "so"
    try:
        libraries = [ctypes.CDLL(str(folder / f"lib{name}.{suffix}")) for name in LIBRARIES]
    except OSError:
        return None
    found = [_address(name, libraries) for name in names]
    return None if None in found else [address for address in found if address is not None]


def _address(name: str, libraries: list[ctypes.CDLL]) -> int | None:
    functions = (getattr(library, name, None) for library in libraries)
    known = next((function for function in functions if function is not None), None)
    return None if known is None else ctypes.cast(known, ctypes.c_void_p).value
