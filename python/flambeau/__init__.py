"""Flambeau: a compiler for TorchScript programs, without libtorch.

>>> import flambeau
>>> unit = flambeau.CompilationUnit("def f(x: int, y: int) -> int:\\n    return x * y + 1\\n")
>>> unit.f(6, 7)
43
"""

from __future__ import annotations

from . import _dtypes, _graphs, _native, _ops, _tensor, errors, jit
from ._dtypes import dtype
from ._modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from ._native import Block, Graph, Node, Tensor, Value, from_dlpack, manual_seed, parse_graph, passes
from ._ops import ops
from ._tensor import tensor
from ._values import device
from .errors import CompileError, Error, InternalError, LimitError, MisuseError, RuntimeError, UnsupportedError
from .jit import CompilationUnit, ExportedProgram, ScriptFunction, ScriptModule, load, save

# Checkers of types take the name for the one of `typing`, whose import takes longer than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._extend import RuleSet, RuleTrial, custom_op, rules
    from ._passes import Analysis, Finding, Report, RewritePass, analysis, fuzz, rewrite_pass

__all__ = [
    "Analysis", "Block", "CompilationUnit", "CompileError", "Error", "ExportedProgram", "Finding", "Graph", "InternalError", "LimitError",
    "MisuseError", "Node", "Report", "RewritePass", "RuleSet", "RuleTrial", "RuntimeError", "ScriptFunction",
    "ScriptModule", "Tensor", "UnsupportedError", "Value", "analysis", "custom_op", "device", "dtype", "enable_grad", "errors",
    "from_dlpack", "fuzz", "is_grad_enabled", "jit", "load", "manual_seed", "no_grad", "ops", "parse_graph", "passes", "rewrite_pass", "rules", "save",
    "set_grad_enabled", "tensor",
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128",
    "bool", "bfloat16",
]  # fmt: skip

__version__: str = _native.version()

uint8 = _dtypes.DTYPES["uint8"]
int8 = _dtypes.DTYPES["int8"]
int16 = _dtypes.DTYPES["int16"]
int32 = _dtypes.DTYPES["int32"]
int64 = _dtypes.DTYPES["int64"]
float16 = _dtypes.DTYPES["float16"]
float32 = _dtypes.DTYPES["float32"]
float64 = _dtypes.DTYPES["float64"]
complex32 = _dtypes.DTYPES["complex32"]
complex64 = _dtypes.DTYPES["complex64"]
complex128 = _dtypes.DTYPES["complex128"]
bool = _dtypes.DTYPES["bool"]
bfloat16 = _dtypes.DTYPES["bfloat16"]

_LATE = {
    **dict.fromkeys(["RuleSet", "RuleTrial", "custom_op", "rules"], "_extend"),
    **dict.fromkeys(["Analysis", "Finding", "Report", "RewritePass", "analysis", "fuzz", "rewrite_pass"], "_passes"),
}
"""Modules that are imported when a name of theirs is first used."""

_LATE_MODULES = ("autograd", "torch_names")
"""Modules that are imported when they are first used."""


def __getattr__(name: str) -> Any:
    """A function of ``torch`` by name: ``flambeau.cat``, ``flambeau.zeros``."""
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _LATE_MODULES or name in _LATE:
        import importlib

        if name in _LATE_MODULES:
            return importlib.import_module(f"flambeau.{name}")
        found = globals()[name] = getattr(importlib.import_module(f"flambeau.{_LATE[name]}"), name)
        return found
    from ._ops import Operator, is_known

    if not is_known(f"torch.{name}"):
        raise AttributeError(f"module 'flambeau' has no attribute {name!r}, and programs have no function `torch.{name}`")
    return Operator(f"torch.{name}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATE_MODULES, *_ops.operator_names("aten")})
