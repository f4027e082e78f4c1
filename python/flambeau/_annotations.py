"""Types of Python as annotations of programs."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any

from . import _dtypes, _native
from ._frames import warn_once
from ._module_kinds import is_module_class
from ._values import device

_PLAIN: dict[Any, str] = {
    int: "int", float: "float", bool: "bool", str: "str", complex: "complex", None: "None", type(None): "None",
    Any: "Any", list: "list", tuple: "tuple", _native.Tensor: "Tensor", device: "torch.device",
    _dtypes.dtype: "int",
}  # fmt: skip

_BARE = (list, tuple, dict)
"""Types of Python that do not say what they contain. The first two are types of programs, whose values have no elements that a program
can reach; only a list may contain them."""

_GENERIC = {list: "List", dict: "Dict", tuple: "Tuple"}


_SUBTYPE = (
    "TorchScript will treat type annotations of Tensor dtype-specific subtypes as if they are normal Tensors. dtype constraints "
    "are not enforced in compilation either."
)


def own_annotations(definition: Any) -> Mapping[str, Any]:
    """Returns the annotations of a function or of a class, without those of its bases, as Python evaluates them. From 3.14 Python does
    so on request; a name that is not defined by then is left as text."""
    if sys.version_info < (3, 14):
        return inspect.get_annotations(definition) if callable(definition) else {}
    import annotationlib

    found = annotationlib.get_annotations(definition, format=annotationlib.Format.FORWARDREF) if callable(definition) else {}
    return {
        name: hint.__forward_arg__ if isinstance(hint, annotationlib.ForwardRef) else hint for name, hint in found.items()
    }


class Unknown(Exception):
    """The object is not a type of TorchScript."""

    def __init__(self, what: str, message: str | None = None) -> None:
        super().__init__(what)
        self.message = message or f"{what} is not a type of TorchScript"


def _without_types(annotation: Any) -> str | None:
    """Returns the name of a generic type that is used without contained types."""
    for known, name in ((typing.Tuple, "Tuple"), (typing.Optional, "Optional"), (typing.List, "List"), (typing.Dict, "Dict")):
        if annotation is known:
            return name
    is_future = getattr(annotation, "__name__", "") == "Future" and isinstance(annotation, type)
    return "Future" if is_future and annotation.__module__.split(".")[0] in ("torch", "flambeau") else None


def without_types(name: str) -> str:
    """Returns PyTorch's message for a generic type without contained types."""
    if name == "Dict":
        return "Attempted to use Dict without contained types. Please add contained type, e.g. Dict[int, int]"
    return f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"


def is_interface(annotation: Any) -> bool:
    """Returns whether an annotation is a class that `interface` marks."""
    marks = ("_flambeau_interface", "__torch_script_interface__")
    return isinstance(annotation, type) and any(getattr(annotation, mark, False) for mark in marks)


def is_bare(annotation: Any) -> bool:
    """Returns whether an annotation is a container of Python without contained types."""
    return any(annotation is bare for bare in _BARE)


def annotation_text(
    annotation: Any, name_of_class: typing.Callable[[type], str], forward: typing.Callable[[str], Any] | None = None
) -> str:
    """Returns the text of an annotation; classes of the user get the names that ``name_of_class`` gives them, and ``forward``
    evaluates references that are texts.

    Raises:
        Unknown: the annotation has no counterpart.
    """
    bare = _without_types(annotation)
    if bare is not None:
        raise Unknown(f"`{bare}` without a contained type", without_types(bare))
    if isinstance(annotation, (str, typing.ForwardRef)) and forward is not None:
        text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        return annotation_text(forward(text), name_of_class, forward)
    try:
        plain = _PLAIN.get(annotation)
    except TypeError:
        plain = None
    if plain is not None:
        return plain
    if annotation is dict:
        raise Unknown("`dict`", "Unknown type name 'dict'. Please add contained types, e.g. Dict[int, int]")
    origin = typing.get_origin(annotation)
    path = getattr(annotation, "_torch_path", None) if origin is None else None
    if path is not None:
        return _of_torch(path)
    args = typing.get_args(annotation)

    def inner(part: Any) -> str:
        if is_bare(part) and origin is not list:
            raise Unknown(
                f"`{annotation!r}`",
                f"Unsupported annotation {annotation!r} could not be resolved because {part!r} could not be resolved",
            )
        return annotation_text(part, name_of_class, forward)

    if origin in _GENERIC:
        if origin is tuple and args == ((),):
            return "Tuple[()]"
        if Ellipsis in args:
            raise Unknown("tuples of any length")
        return f"{_GENERIC[origin]}[{', '.join(map(inner, args)) or '()'}]"
    if origin is typing.Union or origin is types.UnionType:
        kept = [part for part in args if part is not type(None)]
        if {*args} == {int, float, complex}:
            # PyTorch prints this union as the type of numbers.
            return "number"
        return f"Optional[{inner(kept[0])}]" if len(kept) == 1 else f"Union[{', '.join(map(inner, args))}]"
    if origin is typing.Final:
        return inner(args[0])
    module = getattr(annotation, "__module__", "") or ""
    if isinstance(annotation, type):
        if module == "torch" or module.startswith("torch."):
            if annotation.__name__ == "Parameter" or annotation.__name__.endswith("Tensor"):
                # `torch.LongTensor` and others: programs have one type of tensors.
                if type(annotation).__name__ == "tensortype":
                    warn_once(_SUBTYPE)
                return "Tensor"
            if annotation.__name__ in ("device", "dtype", "Generator", "layout", "memory_format", "qscheme"):
                return _of_torch(f"torch.{annotation.__name__}")
        if annotation.__name__ == "_Await" and module.split(".")[0] in ("torch", "flambeau"):
            return _of_torch("torch.jit._Await")
        if module == "builtins" and not issubclass(annotation, BaseException):
            raise Unknown(f"`{annotation.__name__}`")
        if is_module_class(annotation) and not is_interface(annotation):
            raise Unknown(
                f"`{annotation.__name__}`",
                f"Unknown type annotation: '{annotation.__name__}', a class of modules; only interfaces of modules are types",
            )
        return name_of_class(annotation)
    if origin is not None and args and getattr(origin, "__name__", "") in ("Future", "_Await", "Await"):
        return f"{'Future' if origin.__name__ == 'Future' else 'Await'}[{inner(args[0])}]"
    raise Unknown(f"`{annotation!r}`")


def _of_torch(path: str) -> str:
    name = path.rpartition(".")[2]
    if name in ("Tensor", "Parameter", "LongTensor", "FloatTensor"):
        return "Tensor"
    if name in ("dtype", "layout", "memory_format", "qscheme"):
        return "int"
    return "Await[Any]" if name == "_Await" else path


def type_of_value(value: Any, name_of_class: typing.Callable[[type], str]) -> str:
    """Returns the annotation for an attribute with this value.

    Raises:
        Unknown: TorchScript has no such value, or the value does not determine its type.
    """
    kind = type(value)
    if kind in _PLAIN and not is_bare(kind):
        return _PLAIN[kind]
    if hasattr(value, "__dlpack__"):
        return "Tensor"
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return name_of_class(kind)
        return f"Tuple[{', '.join(type_of_value(item, name_of_class) for item in value) or '()'}]"
    if isinstance(value, (list, dict)):
        return _type_of_container(value, name_of_class)
    if isinstance(value, (bool, int, float, str)):
        return next(base.__name__ for base in (bool, int, float, str) if isinstance(value, base))
    if _dtypes.code_of(value) is not None:
        return "int"
    if type(value).__name__ == "device":
        return "torch.device"
    import enum

    if isinstance(value, enum.Enum):
        return name_of_class(kind)
    if kind.__module__ != "builtins" and "__dict__" in dir(kind) and not callable(value):
        return name_of_class(kind)
    if "_parameters" in getattr(value, "__dict__", ()):
        raise Unknown(f"Cannot infer concrete type of torch.nn.Module: a value of type `{kind.__name__}`")
    raise Unknown(f"a value of type `{kind.__name__}`")


def _type_of_container(value: Any, name_of_class: typing.Callable[[type], str]) -> str:
    if not value:
        raise Unknown("an empty container, whose element type is not known; annotate it in the class")

    def common(items: Any, what: str) -> str:
        try:
            found = {type_of_value(item, name_of_class) for item in items}
        except Unknown as unknown:
            raise Unknown(f"Could not infer type of {what}: {unknown}") from None
        if len(found) > 1:
            raise Unknown(f"a container of values of the types {', '.join(sorted(found))}")
        return next(iter(found))

    if isinstance(value, dict):
        return f"Dict[{common(value.keys(), 'dict key')}, {common(value.values(), 'dict value')}]"
    return f"List[{common(value, 'list element')}]"
