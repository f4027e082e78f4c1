"""Exceptions of the compiler.

Every exception has the parts that the compiler reports: a stable code, the message, the file, line and column where the text
has them, and the whole text with source lines and carets, which is also ``str(error)``.
"""

from __future__ import annotations

import builtins
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Range = tuple[str, int, int, int, str, str]
    """File, line, column and number of characters, from 1, the text of the line, and a remark."""

__all__ = ["CompileError", "Error", "FileError", "InternalError", "LimitError", "MisuseError", "RuntimeError", "UnsupportedError"]


class Error(Exception):
    """The base class of all exceptions of the compiler."""

    code: str = ""
    """A stable code; ``flambeau explain CODE`` prints its description."""
    message: str = ""
    """The summary, without position."""
    file: str | None = None
    """The name of the text in which the error is."""
    line: int | None = None
    """The line in the text, from 1."""
    column: int | None = None
    """The column in the line, from 1."""
    functions: tuple[str, ...] = ()
    """The functions of the program that were running, outermost first."""


class CompileError(Error, builtins.RuntimeError):
    """A program, a file or a graph is wrong."""


class FileError(CompileError, ValueError, OSError):
    """A file cannot be read or written: a ``ValueError`` as in PyTorch, and an ``OSError`` as in Python, with its ``errno``."""


class UnsupportedError(Error, NotImplementedError):
    """The program may be right, but the compiler does not have a feature that it needs."""


class AnnotationError(UnsupportedError, ValueError):
    """An annotation is not a type of TorchScript, or at a place without one: a ``ValueError`` as in PyTorch."""


class RuntimeError(Error, builtins.RuntimeError):
    """A running program raised an exception. The text has the traceback within the program."""


class MisuseError(Error, builtins.RuntimeError, TypeError):
    """A call violates the contract of the called function. In PyTorch such errors are ``RuntimeError``, in Python ``TypeError``."""


class LimitError(Error, builtins.RuntimeError):
    """A limit of the session was reached."""


class InternalError(Error, builtins.RuntimeError):
    """A bug of the compiler."""


_CLASSES: dict[str, type[Error]] = {
    "input": CompileError,
    "unsupported": UnsupportedError,
    "misuse": MisuseError,
    "limit": LimitError,
    "internal": InternalError,
}

_raised: dict[str, type[RuntimeError]] = {}

_of_users: weakref.WeakValueDictionary[str, type[BaseException]] = weakref.WeakValueDictionary()


def note_exception(name: str, cls: type[BaseException]) -> None:
    """Notes a class of the user, so that a program that raises it raises an instance."""
    _of_users[name] = cls
    _raised.pop(name, None)


def _class_of_raised(name: str) -> type[RuntimeError]:
    """Returns a subclass of both :class:`RuntimeError` and the exception class that the program raised."""
    name = name.removeprefix("builtins.")
    known = _raised.get(name)
    if known is not None:
        return known
    made: type[RuntimeError] = RuntimeError
    base = _of_users.get(name) or getattr(builtins, name, None)
    if isinstance(base, type) and issubclass(base, Exception) and not issubclass(RuntimeError, base):
        try:
            members = {"__module__": __name__, "__str__": lambda self: str(self.args[0])}
            made = type(name.rpartition(".")[2], (RuntimeError, base), members)
        except TypeError:
            # Classes with another layout in memory, such as OSError, cannot be combined.
            made = RuntimeError
    return _raised.setdefault(name, made)


def misuse(message: str) -> Error:
    """Makes the exception for a call that violates the contract of a function of this package."""
    return _error("misuse", message)


def wrong(message: str) -> Error:
    """Makes the exception for a wrong program."""
    return _error("input", message)


def unsupported(message: str, ranges: Sequence[Range] = (), of_annotation: bool = False) -> Error:
    """Makes the exception for a definition that the compiler does not support: at the first range, which was reached from the others."""
    error: Any = _error("annotation" if of_annotation else "unsupported", message, ranges)
    error._ranges = ranges
    return error  # type: ignore[no-any-return]


def reached_from(error: UnsupportedError, *further: Range) -> Error:
    """Returns an exception with further ranges from which the definition was reached."""
    ranges = getattr(error, "_ranges", ())
    return unsupported(error.message, [*ranges, *further], isinstance(error, AnnotationError)) if ranges and further else error


def name_class_attributes(error: Error, classes: dict[str, type]) -> None:
    """States in an error about a member that objects do not have that their class has it, or may inherit it."""
    import re

    lacking = re.search(r"([\w.]+)'? (?:object has no attribute or method|does not have an __init__ function)", error.message)
    derived = classes.get(lacking[1]) if lacking else None
    if derived is not None and derived.__bases__ != (object,):
        note = f"TorchScript does not support inheritance: `{derived.__name__}` has only the members that it defines itself"
        error.args = (f"{str(error).rstrip()}\n  note: {note}",)
    hint = "Did you forget to initialize an attribute in __init__()?"
    found = re.search(r"'([^']*)' object has no attribute or method '(\w+)'\. " + re.escape(hint), error.message)
    cls = classes.get(found[1]) if found else None
    if found and cls is not None and found[2] in vars(cls):
        why = (
            f"'{found[2]}' is defined as a class attribute which currently is not supported. Consider converting this to an "
            "instance attribute."
        )
        error.message = error.message.replace(hint, why)
        error.args = (str(error).replace(hint, why),)


def name_calls(error: Error, ranges: Sequence[Range]) -> None:
    """Adds the ranges from which a definition was reached to an error in it, unless the compiler did."""
    if ranges and "is being compiled since it was called from" not in str(error):
        # Without the header of the text with these ranges.
        shown = str(_error("unsupported", "", ranges)).partition("\n")[2]
        error.args = (f"{error}\n{shown}",)


def _error(kind: str, message: str, ranges: Sequence[Range] = ()) -> Error:
    from . import _native

    return _native.error(kind, message, list(ranges))


_DISTANCE = 200
"""The number of lines above a statement in which the definition that has it is looked for."""


def _with_definition(found: Any) -> str:
    """Returns an excerpt of a file with the first line of the function that has it."""
    import linecache

    margin, file, number = found[1], found[2], int(found[3])
    line = linecache.getline(file, number)
    depth = len(line) - len(line.lstrip())
    if not line.strip() or line.lstrip().startswith(("def ", "@", "class ")):
        return str(found[0])
    for above in range(number - 1, max(number - _DISTANCE, 0), -1):
        line = linecache.getline(file, above).rstrip()
        if not line.strip() or len(line) - len(line.lstrip()) >= depth:
            continue
        depth = len(line) - len(line.lstrip())
        if line.lstrip().startswith(("def ", "async def ")):
            head, _, excerpt = str(found[0]).partition("\n")
            return f"{head}\n{margin}{above:>{len(str(number))}} | {line}\n{excerpt}"
        if line.lstrip().startswith("class "):
            break
    return str(found[0])


def _make(
    fault: str,
    code: str,
    message: str,
    text: str,
    python_class: str | None = None,
    functions: list[str] | None = None,
    **position: Any,
) -> Error:
    """Makes the exception for an error of the compiler. Called by the extension."""
    cls = _CLASSES.get(fault, Error)
    if code == "F0002":
        # Syntax of Python that TorchScript does not have.
        cls = UnsupportedError
    elif code == "F0110" and fault == "unsupported":
        cls = AnnotationError
    elif code == "A0091":
        cls = FileError
    if code == "X0002" and fault == "input" or python_class is not None and fault in ("input", "misuse"):
        cls = _class_of_raised(python_class or "RuntimeError")
        text = "The following operation failed in the TorchScript interpreter.\n" + text.removeprefix(f"error[{code}]: ")
    import re

    # Positions as in tracebacks of Python, which tools recognize.
    text = re.sub(r"(?m)^( *)--> (.*):(\d+):\d+$", r'\1File "\2", line \3', text)
    # PyTorch has a colon between a message and its position.
    text = re.sub(r"""\A(\w+\[\w+\]: [^\n]*[\w)\]'"`])\n(?=  File ")""", r"\1:\n", text)
    text = re.sub(r'(?m)^( *)File "(.*)", line (\d+)\n *\d+ \| (.*)$', _with_definition, text)
    error = cls(text)
    if isinstance(error, FileError):
        import errno

        number = re.search(r"\(os error (\d+)\)", text)
        error.errno = int(number[1]) if number else errno.EISDIR if "is a directory" in text else None
    error.code = code
    error.message = message
    error.functions = tuple(functions or ())
    error.file = position.get("file")
    error.line = position.get("line")
    error.column = position.get("column")
    return error
