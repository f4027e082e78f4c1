"""The texts of a program: the functions and classes that are reached from the first one, each once."""

from __future__ import annotations

import ast
import re
import textwrap
import types
from collections.abc import Callable
from typing import Any

from . import _native, errors
from ._annotations import Unknown, annotation_text
from ._edits import Edits
from ._ignored import declaration
from ._source_map import MappedText, with_segments
from ._markers import kind_of
from ._names import MISSING, scope_of
from ._objects import literal, reference
from ._rewriter import Rewriter
from ._signatures import make_static, raise_instead
from ._sources import Place, Source
from .errors import AnnotationError, UnsupportedError, reached_from


class Fallback:
    """A use of an object that a program leaves to Python."""

    def __init__(self, name: str, value: Any, reason: str, place: Place) -> None:
        self.name = name
        """The name in the program."""
        self.value = value
        self.reason = reason
        """Why it is not compiled."""
        self.file, self.line, self.column = place.file, place.line, place.column

    def __repr__(self) -> str:
        return f"<Fallback {self.name}: {self.reason} at {self.file}:{self.line}:{self.column}>"


class Texts:
    """The texts of one program."""

    def __init__(self, fallback: bool = False, prefix: str = "") -> None:
        # The prefix of the names of functions and classes.
        self._prefix = prefix
        # Whether a text names a function of PyTorch, so that results without tensors among the arguments are PyTorch's.
        self._of_torch = False
        self.texts: list[MappedText] = []
        # Functions are compiled in this order: those that a function calls come behind it, so that errors in them name the calls.
        self.functions: list[MappedText] = []
        # Whether what cannot be compiled is left to Python.
        self.fallback = fallback
        self.objects: dict[str, Any] = {}
        # The functions that declare the signatures of functions among the objects, by the names of the latter.
        self.declarations: dict[str, str] = {}
        # Tensors that are defaults of parameters, by name.
        self.constants: dict[str, _native.Tensor] = {}
        # The functions of names with several signatures.
        self.overloads: dict[str, list[str]] = {}
        # Exception classes of the user, by name, with their qualified names.
        self.exceptions: dict[str, str] = {}
        self.fallbacks: list[Fallback] = []
        # Functions and classes that did not compile and are therefore left to Python, with the reasons.
        self.refused: dict[int, tuple[Any, str]] = {}
        # Names without a definition in the program, each for an object that cannot be compiled, with the error and the function that
        # refers to it: only a branch that programs do not take may do so.
        self.deferred: dict[str, tuple[UnsupportedError, Any]] = {}
        self._origins: list[tuple[Any, str, int, int]] = []
        self._classes: dict[str, type] = {}
        self._names: dict[int, str] = {}
        # Qualified names of the types that classes become, by the names of the classes in the texts.
        self._type_names: dict[str, str] = {}
        self._used_types: set[str] = set()
        # Functions and methods that are compiled only if others call them, by qualified name.
        self.optional: set[str] = set()
        # Whether what is added is reached from optional methods only.
        self.is_candidate = False
        # The names of the functions that are being rewritten, each called by the one before, with the functions.
        self.rewritten: list[tuple[str, Any]] = []
        # Where functions and classes are first referred to, by identity, with the functions that do.
        self._reached_from: dict[int, tuple[errors.Range, Any]] = {}
        # Class methods by class and function.
        self._class_methods: dict[tuple[Any, Any], types.MethodType] = {}
        # Objects whose identity is a key stay alive.
        self._objects: list[Any] = []
        # The modules whose functions programs call on objects of Python.
        self._used = {"operator", "builtins"}

    def use_torch(self) -> None:
        """States that the program is one of PyTorch."""
        self._of_torch = True

    def parts(self) -> list[MappedText]:
        """Returns all texts."""
        return [*self.texts, *self.functions]

    def compile(self) -> _native.Program:
        """Compiles what was collected."""
        try:
            return _native.compile_texts(
                *with_segments(self.parts()), self.objects, self._classes, self._of_torch, self.constants, self.overloads, self.exceptions,
                self._type_names, self.optional, self.declarations,
            )  # fmt: skip
        except (errors.CompileError, UnsupportedError) as error:
            deferred = self._deferred_error(error)
            if deferred is not None:
                raise deferred from None
            errors.name_class_attributes(error, self._classes)
            errors.name_calls(error, self.calls(self.origin(error.file or "", error.line or 0)))
            raise

    def calls(self, value: Any) -> list[errors.Range]:
        """Returns where a function or class was referred to, where the function that does was, and so on."""
        ranges = []
        seen = set()
        while id(value) in self._reached_from and id(value) not in seen:
            seen.add(id(value))
            range, value = self._reached_from[id(value)]
            ranges.append(range)
        return ranges

    def classes(self) -> list[tuple[str, type]]:
        """Returns the classes of Python by their names in the texts."""
        return [(name, self._classes[type_name]) for name, type_name in self._type_names.items() if type_name in self._classes]

    def origin(self, file: str, line: int) -> Any:
        """Returns the function or class whose text has a line of a file, ``None`` if none has it."""
        found = [value for value, name, first, last in self._origins if name == file and first <= line <= last]
        return found[-1] if found else None

    def add(self, value: Any, text: MappedText, source: Source, at: int | None = None) -> None:
        """Adds the text of a function, at a position among the functions, or of a class."""
        if at is None:
            self.texts.append(text)
        else:
            self.functions.insert(at, text)
        self.note_origin(value, source)

    def note_origin(self, value: Any, source: Source) -> None:
        """Notes the lines of a function or class."""
        self._origins.append((value, source.file, source.first, source.first + len(source.lines) - 1))

    def leave(self, value: Any, name: str, place: Place, reason: str) -> str:
        """Leaves an object to Python, and returns its name in the program."""
        known = self._names.get(id(value))
        if known is None:
            known = self.reserve(name, value)
            self.objects[known] = value
        self.fallbacks.append(Fallback(known, value, reason, place))
        return known

    def leave_ignored(self, value: Any, function: types.FunctionType, name: str, place: Place) -> str:
        """Leaves a function that is marked with `@ignore` to Python: a method if it is not the value itself. Its calls have to fit its
        signature."""
        known = self.leave(value, name, place, "it is marked with `@ignore`")
        if known not in self.declarations:
            text = declaration(self, function, value is not function, place)
            if text is not None:
                unique = self.declarations[known] = self.reserve(f"{name}_declaration", object())
                self.optional.add(unique)
                self.texts.append(place.mapped(f"def {unique}{text}: ...\n"))
        return known

    def reserve(self, name: str, key: Any) -> str:
        """Gives an object a name that no other one of the program has."""
        name = self._prefix + "".join(c if c.isalnum() or c == "_" else "_" for c in name)
        unique, count = name, 0
        while unique in self._used:
            count += 1
            unique = f"{name}_{count}"
        self._used.add(unique)
        self._names[id(key)] = unique
        self._objects.append(key)
        return unique

    def reserve_class(self, qualified: str, key: Any) -> str:
        """Gives a class a name like ``reserve``, and its type a qualified name, with PyTorch's mark if the program has another type
        of that name."""
        module, _, name = qualified.rpartition(".")
        unique = self.reserve(name, key)
        count = 0
        while qualified in self._used_types:
            qualified = f"{module}.___torch_mangle_{count}.{name}"
            count += 1
        self._used_types.add(qualified)
        self._type_names[unique] = qualified
        if isinstance(key, type):
            self._classes[qualified] = key
        return unique

    def class_of(self, qualified: str) -> type | None:
        """Returns the class of the program whose type has a qualified name."""
        return self._classes.get(qualified)

    def type_name(self, name: str) -> str:
        """Returns the qualified name of the type of a class by its name in the texts."""
        return self._type_names[name]

    def source(self, text: str, file: str, find: Callable[[str], Any]) -> None:
        """Adds the definitions of a text, whose free names ``find`` resolves."""
        dedented = textwrap.dedent(text)
        try:
            tree = ast.parse(dedented)
        except SyntaxError:
            # The compiler reports the error.
            self.texts.append(MappedText(file, 1, dedented))
            return
        own = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self._used |= own
        source = Source.of_text(dedented, file, tree, text)
        edits = Edits(source)
        rewriter = Rewriter(self, edits, lambda name: MISSING if name in own else find(name), text=True)
        for node in tree.body:
            rewriter.visit(node)
        self.texts.append(edits.text(1, len(source.lines)))

    def known(self, key: Any) -> str | None:
        return self._names.get(id(key))

    def class_method(self, method: types.MethodType) -> str:
        """Adds a method of a class for one class, and returns its name in the program."""
        # Each look-up in the class makes another object.
        key = self._class_methods.setdefault((method.__self__, method.__func__), method)
        return self.known(key) or self._added(method.__func__, key, method.__self__)  # type: ignore[arg-type]

    def function(self, function: types.FunctionType) -> str:
        """Adds a function, and returns its name in the program."""
        from ._overloads import function_texts, overloads_of

        known = self.known(function)
        if known is not None:
            return known
        overloads = overloads_of(function)
        if overloads:
            return function_texts(self, function, overloads)
        return self._added(function, function)

    def _added(self, function: types.FunctionType, key: Any, cls: type | None = None) -> str:
        """Adds a function under a new name; the first parameter of a class method is the class."""
        source = Source(function)
        node = source.function()
        name = self.reserve(function.__name__, key)
        if self.is_candidate or self.rewritten:
            # A branch that programs do not take may be what refers to it.
            self.optional.add(name)
        edits = Edits(source)
        edits.rename(node, name)
        rewriter = Rewriter(self, edits, scope_of(function))
        if cls is not None:
            make_static(cls, node, rewriter)
        at = len(self.functions)
        if kind_of(function) == "unused":
            raise_instead(edits, node, rewriter)
        else:
            rewriter.function(node, function)
        last = node.end_lineno or len(source.lines)
        self.add(function, edits.text(node.lineno, last), source, at)
        return name

    def reached(self, value: types.FunctionType | types.MethodType | type, place: Place) -> str:
        """Adds a function, a class method or a class that a definition refers to at a place, and returns its name in the program.
        Errors in it name the place."""
        range = self.refer(value.__func__ if isinstance(value, types.MethodType) else value, place)
        try:
            if isinstance(value, type):
                return self.class_name(value)
            return self.class_method(value) if isinstance(value, types.MethodType) else self.function(value)
        except UnsupportedError as error:
            raise reached_from(error, range) from None

    def refer(self, value: Any, place: Place) -> errors.Range:
        """Notes that a definition refers to a function or class at a place, and returns the place with a remark for errors."""
        name, caller = self.rewritten[-1] if self.rewritten else ("", None)
        since = f" since it was called from '{name}'" if name else ""
        range = place.range(f"'{value.__name__}' is being compiled{since}")
        self._reached_from.setdefault(id(value), (range, caller))
        return range

    def compiled_function(self, function: Any, place: Place) -> str:
        """Adds a function that was not compiled from a function of Python, such as a trace, as printed source."""
        known = self.known(function)
        if known is not None:
            return known
        # With the functions that it calls.
        text, values = function.inlined_graph.function().code_with_constants()
        try:
            node = ast.parse(text).body[0]
        except (SyntaxError, IndexError):
            node = None
        if not isinstance(node, ast.FunctionDef) or "__torch__." in text:
            raise place.error(f"a call of the compiled function `{function.__name__}`, which has classes of its own")
        name = self.reserve(function.__name__, function)
        text = text.replace(f"def {node.name}(", f"def {name}(", 1)
        constants = [self.default(value, place) for value in values]
        text = re.sub(r"\bCONSTANTS\.c(\d+)\b", lambda found: constants[int(found[1])], text)
        self.texts.append(MappedText(f"<{name}>", 1, text))
        return name

    def class_name(self, cls: type) -> str:
        """Adds a class, and returns its name in the program."""
        known = self.known(cls)
        if known is not None:
            return known
        if issubclass(cls, BaseException):
            return self._exception(cls)
        from ._classes import class_text

        return class_text(self, cls)

    def _exception(self, cls: type[BaseException]) -> str:
        """Returns the name of an exception class; one of the user raises an exception that is an instance of it as well."""
        if cls.__module__ == "builtins":
            return cls.__name__
        name = self.reserve(cls.__name__, cls)
        self.exceptions[name] = qualified = f"{cls.__module__}.{cls.__name__}"
        errors.note_exception(qualified, cls)
        return name

    def annotation_text(self, annotation: Any, place: Place, forward: Callable[[str], Any] | None = None) -> str:
        """Returns the text of an annotation; ``forward`` evaluates the references in it that are texts."""
        try:
            return annotation_text(annotation, lambda cls: self.reached(cls, place), forward)
        except Unknown as unknown:
            raise place.error(unknown.message, AnnotationError) from None

    def default(self, value: Any, place: Place) -> str:
        """Returns a constant, such as the default of a parameter, as an expression: a literal, or the name of a tensor."""
        if isinstance(value, _native.Tensor) or not hasattr(value, "__dlpack__"):
            tensor = value if isinstance(value, _native.Tensor) else None
        else:
            tensor = _native.from_dlpack(value.detach() if hasattr(value, "detach") else value)
            if type(value).__module__.split(".")[0] == "torch":
                self.use_torch()
        if tensor is None:
            return literal(self, value, place)
        known = self.known(value)
        if known is None:
            known = self.reserve("default", value)
            self.constants[known] = tensor
        return known

    def _defer(self, value: Any, name: str, error: UnsupportedError) -> str:
        """Returns a name for an object that cannot be compiled. The compiler does not know the name, so that a statement that it compiles
        raises the error."""
        # Not the name of a builtin function, which the compiler knows.
        unique = self.reserve(f"deferred_{name}", value)
        self.deferred[unique] = error, self.rewritten[-1][1] if self.rewritten else None
        return unique

    def _deferred_error(self, error: errors.Error) -> errors.Error | None:
        """Returns the error of the first object that cannot be compiled and that a compiled statement refers to."""
        names = re.findall(r"undefined value (\w+)", str(error)) if self.deferred else []
        for name in names:
            if name in self.deferred:
                deferred, caller = self.deferred[name]
                # A method is reached with its class, which the lines of the text name.
                return reached_from(deferred, *(self.calls(caller) or self.calls(self.origin(error.file or "", error.line or 0))))
        return None

    def value_text(self, value: Any, path: str, place: Place) -> str:
        """Returns the expression for an object of Python that a function refers to by ``path``."""
        if isinstance(value, types.FunctionType) and hasattr(value, "__prepare_scriptable__"):
            value = value.__prepare_scriptable__()
        if isinstance(value, types.FunctionType) and kind_of(value) == "ignore":
            return self.leave_ignored(value, value, value.__name__, place)
        if hasattr(value, "__script_if_tracing_wrapper"):
            value = getattr(value, "__original_fn")  # noqa: B009 - the name must not be mangled
        name = getattr(value, "__name__", path.rpartition(".")[2])
        name = name if isinstance(name, str) else "object"
        if id(value) in self.refused:
            return self.leave(value, name, place, self.refused[id(value)][1])
        known = self.known(value)
        if known is not None and known in self.deferred:
            return known
        texts, functions, names, fallbacks = len(self.texts), len(self.functions), len(self._names), len(self.fallbacks)
        declarations, overloads = len(self.declarations), len(self.overloads)
        try:
            return reference(self, value, path, place)
        except UnsupportedError as error:
            # What was added for a function that turned out to need Python is incomplete. A later use of it adds it again.
            del self.texts[texts:], self.functions[functions:], self.fallbacks[fallbacks:]
            for key in list(self._names)[names:]:
                self._used.discard(self._names.pop(key))
            for key in list(self.declarations)[declarations:]:
                self.optional.discard(self.declarations.pop(key))
            for overloaded in list(self.overloads)[overloads:]:
                del self.overloads[overloaded]
            if not self.fallback:
                return self._defer(value, name, error)
            return self.leave(value, name, place, error.message)
