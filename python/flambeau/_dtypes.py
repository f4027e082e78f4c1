"""Element types, and other values that are integers in programs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CODES = {
    "uint8": 0,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "float16": 5,
    "float32": 6,
    "float64": 7,
    "complex32": 8,
    "complex64": 9,
    "complex128": 10,
    "bool": 11,
    "bfloat16": 15,
}

_MEMORY_FORMATS = {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3}
_LAYOUTS = {"strided": 0}
_QSCHEMES = {
    "per_tensor_affine": 0, "per_channel_affine": 1, "per_tensor_symmetric": 2, "per_channel_symmetric": 3,
    "per_channel_affine_float_qparams": 4,
}  # fmt: skip


class dtype:
    """An element type. Two element types are equal if they are the same object."""

    __slots__ = ("code", "name")

    def __init__(self, name: str, code: int) -> None:
        self.name = name
        self.code = code

    def __repr__(self) -> str:
        return f"flambeau.{self.name}"

    def __index__(self) -> int:
        return self.code

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_named, (self.name,)

    @property
    def is_floating_point(self) -> bool:
        """Whether elements are real floating-point numbers."""
        return self.name.startswith(("float", "bfloat"))

    @property
    def is_complex(self) -> bool:
        """Whether elements are complex numbers."""
        return self.name.startswith("complex")


DTYPES = {name: dtype(name, code) for name, code in _CODES.items()}
_BY_CODE = {d.code: d for d in DTYPES.values()}


def dtype_named(name: str) -> dtype:
    """Returns the element type of a name such as ``float32``."""
    return DTYPES[name]


def dtype_of_code(code: int) -> dtype:
    """Returns the element type with PyTorch's number."""
    return _BY_CODE[code]


def code_of(value: Any) -> int | None:
    """Returns the number of a dtype, layout, memory format or scheme of quantization of PyTorch or of this package, ``None`` for other objects."""
    if isinstance(value, dtype):
        return value.code
    if type(value).__module__ == "torch":
        name = str(value).rpartition(".")[2]
        for table in (_CODES, _MEMORY_FORMATS, _LAYOUTS, _QSCHEMES):
            if name in table:
                return table[name]
    return None
