"""The names of PyTorch, for programs that are written where PyTorch is not installed.

``from flambeau import torch_names as torch`` lets functions that are compiled use ``torch.relu`` and annotations use
``torch.Tensor``. A function that is called in Python runs the operator of that name.
"""

from __future__ import annotations

import types
from typing import Any

_GENERIC = ("torch.futures.Future", "torch.jit.Future", "torch.jit._Await")
"""Types that annotations subscript with what they contain."""

_PRIVATE = ("torch.jit._Await", "torch.jit._awaitable", "torch.jit._awaitable_nowait", "torch.jit._awaitable_wait")
"""Names with an underscore that programs use."""


class TorchName:
    """A dotted name below ``torch``."""

    def __init__(self, path: str) -> None:
        self._torch_path = path
        self.__name__ = path.rpartition(".")[2]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and f"{self._torch_path}.{name}" not in _PRIVATE:
            raise AttributeError(name)
        member = _member(f"{self._torch_path}.{name}")
        setattr(self, name, member)
        return member

    def __getitem__(self, contained: Any) -> Any:
        if self._torch_path not in _GENERIC:
            raise TypeError(f"'{self._torch_path}' is not subscriptable")
        return types.GenericAlias(self, contained)  # type: ignore[arg-type]

    def __dir__(self) -> list[str]:
        from ._ops import operator_names

        return operator_names("aten", only_methods=True) if self._torch_path == "torch.Tensor" else []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from ._ops import call

        return call(self._torch_path, args, kwargs)

    def __repr__(self) -> str:
        return self._torch_path


def __dir__() -> list[str]:
    from . import _dtypes
    from ._ops import operator_names

    return sorted({*_dtypes.DTYPES, *operator_names("aten"), *_NAMES})


_NAMES = ("Tensor", "device", "dtype", "jit", "layout", "memory_format", "nn", "ops")
"""Names of PyTorch that programs use and that are no operators."""


def _member(path: str) -> Any:
    from . import _dtypes

    name = path.removeprefix("torch.")
    return _dtypes.DTYPES.get(name) or TorchName(path)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return _member(f"torch.{name}")
