"""The counterpart of ``torch.jit``: compiled functions and modules, archives."""

from __future__ import annotations

import builtins
import sys
import types

from . import _native, _ops
from ._markers import Attribute, Future, annotate, export, fork, ignore, interface, is_scripting, isinstance, unused, wait
from ._native import Graph, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ._texts import Fallback, Texts

__all__ = [
    "Attribute", "CompilationUnit", "ExportedProgram", "Future", "ScriptFunction", "ScriptModule", "annotate", "export",
    "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load", "optimize_for_inference", "save",
    "script", "script_if_tracing", "script_method", "trace", "trace_module", "unused", "wait",
]  # fmt: skip


class GradientRequired(Exception):
    """A tensor of PyTorch that requires a gradient came to a call that does not record any: as an argument, before the call
    has effects, or as the result of a function of Python within it."""


class ScriptFunction(_native.FunctionBase):
    """A compiled function."""

    def __init__(
        self, function: _native.Function, python: types.FunctionType | None = None, fallbacks: Iterable[Fallback] = ()
    ) -> None:
        self._fallbacks = list(fallbacks)
        # The function of Python that was compiled: other functions that call it compile it again.
        self._python = python
        self.__name__ = function.name
        self.__doc__ = python.__doc__ if python is not None else None

    def _call_in_trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Records a call in the trace; ``NotImplemented`` if that does not record the calls of this thread now."""
        if _ops.trace is None or not _ops.trace.active:
            return NotImplemented
        from ._trace import call_in_trace

        return call_in_trace(_ops.trace, self._function, args, kwargs, name=self.__name__)

    @property
    def name(self) -> str:
        """The name in the program."""
        return self._function.name

    @property
    def schema(self) -> str:
        """The signature as text."""
        return self._function.schema

    @property
    def graph(self) -> Graph:
        """A copy of the graph as loaded."""
        return self._function.graph()

    @property
    def inlined_graph(self) -> Graph:
        """A copy of the graph with all calls inlined."""
        return self._function.graph("inline")

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        """A copy of the graph that a call with these arguments runs: the optimized one."""
        self(*args, **kwargs)
        return self._function.graph("default")

    @property
    def code(self) -> str:
        """The body as source."""
        return self._function.code

    @property
    def code_with_constants(self) -> tuple[str, types.SimpleNamespace]:
        """The body as source, and an object whose attributes ``c0``, ``c1`` are the values of ``CONSTANTS.c0``, ``CONSTANTS.c1``."""
        text, values = self._function.code_with_constants()
        return text, types.SimpleNamespace(**{f"c{i}": value for i, value in enumerate(values)})

    def optimized_graph(self, pipeline: str = "default") -> Graph:
        """A copy of the graph after a pipeline of passes."""
        return self._function.graph(pipeline)

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes the function as an archive, as the method ``forward`` of a module."""
        _write(self._function.to_module(), f, _extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """Returns the bytes of the archive that ``save`` writes."""
        return self._function.to_module().save_bytes(_files(_extra_files))

    def fallbacks(self) -> list[Fallback]:
        """The uses of objects that are left to Python: name, object, reason and position of each."""
        return list(self._fallbacks)

    def __reduce_ex__(self, protocol: Any) -> Any:
        import pickle

        raise pickle.PickleError("ScriptFunction cannot be pickled")

    def __repr__(self) -> str:
        return f"<ScriptFunction {self.schema}>"


class CompilationUnit:
    """Functions and classes that are compiled from source text."""

    def __init__(self, text: str | None = None, name: str = "<string>", _frames_up: int = 0) -> None:
        self._functions: dict[str, ScriptFunction] = {}
        self._parts: list[tuple[str, str, Any]] = []
        self._program = _native.compile("", name)
        if text:
            self.define(text, name, _frames_up=_frames_up + 1)

    def define(self, text: str, name: str = "<string>", _frames_up: int = 0) -> None:
        """Adds the functions and classes of a text. Names that the text does not define are those of the caller."""
        from ._names import scope_of_names
        from ._texts import Texts

        frame = sys._getframe(1 + _frames_up)
        names = {**frame.f_globals, **frame.f_locals}
        parts = [*self._parts, (text, name, scope_of_names(names))]
        texts = Texts()
        for part in parts:
            texts.source(*part)
        self._program = texts.compile()
        self._parts = parts

    def find_function(self, name: str) -> ScriptFunction | None:
        """Returns a function by name, ``None`` if there is none."""
        if name not in self._program.entries():
            return None
        return self._found(name)

    def _found(self, name: str) -> ScriptFunction:
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = ScriptFunction(self._program.function(name))
        return found

    def __repr__(self) -> str:
        return f"<CompilationUnit {', '.join(self._program.entries()) or 'without functions'}>"

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._program.entries()})

    def __getattr__(self, name: str) -> ScriptFunction:
        program = self.__dict__.get("_program")
        if program is None or name.startswith("__") or name not in program.entries():
            raise AttributeError(f"the unit has no function {name!r}")
        return self._found(name)

    def __getitem__(self, name: str) -> ScriptFunction:
        return self._found(name)

    def functions(self) -> list[ScriptFunction]:
        """Returns all functions, in order of definition."""
        return [self._found(name) for name in self._program.entries()]


class ScriptMethod:
    """A method that ``script_method`` marked: in modules that are compiled it is the compiled method."""

    _flambeau_kind = "export"

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        if "_native" not in instance.__dict__:
            return types.MethodType(self.function, instance)
        return instance._method(self.__name__)


def script_method(function: Any) -> Any:
    """Marks a method of a class that derives from :class:`ScriptModule`, which is compiled after the constructor."""
    return ScriptMethod(function)


class _ModuleType(type):
    """The class of :class:`ScriptModule`: classes of the user that derive from it derive from PyTorch's as well."""

    def __new__(mcs, name: str, bases: tuple[Any, ...], members: dict[str, Any], **options: Any) -> Any:
        own = str(members.get("__module__", "")).startswith("flambeau.")
        if not own and any(base is ScriptModule for base in bases):
            from ._torch_modules import legacy_base

            bases = legacy_base(name, bases)
        return super().__new__(mcs, name, bases, members, **options)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is ScriptModule:
            from ._torch_modules import TorchModule

            return TorchModule()
        made = super().__call__(*args, **kwargs)
        if not str(cls.__module__).startswith("flambeau.") and "_native" not in made.__dict__:
            made._complete()
        return made


class ScriptModule(metaclass=_ModuleType):
    """A module, or an object of another class, of a program. Attributes are the program's: a call sees what was set here.

    If PyTorch is imported, compiled and loaded modules are modules of PyTorch as well.
    """

    _wraps_native = True

    _native: _native.ScriptObject
    _functions: dict[str, ScriptFunction]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._method("__call__")(*args, **kwargs)

    def _method(self, name: str) -> ScriptFunction:
        found: ScriptFunction | None = self._functions.get(name)
        if found is None:
            if name == "__call__" and self._native.is_module:
                methods = self._native.methods()
                if "forward" not in methods:
                    others = f"; it has {', '.join(map(repr, methods))}" if methods else ""
                    raise AttributeError(f"{self.original_name!r} has no compiled method 'forward'{others}")
                # `forward` between the hooks.
                function = self._root().function("__call__")
            else:
                function = self._native.method(name)
            found = self._functions[name] = self._wrap_function(function)
        return found

    def _wrap_function(self, function: _native.Function) -> ScriptFunction:
        return ScriptFunction(function)

    @property
    def original_name(self) -> str:
        """The name of the class that was compiled."""
        return str(self._native.class_name.rpartition(".")[2])

    @property
    def graph(self) -> Graph:
        """A copy of the graph of ``forward`` as loaded."""
        return self._method("forward").graph

    @property
    def inlined_graph(self) -> Graph:
        """A copy of the graph of ``forward`` with all calls inlined."""
        return self._method("forward").inlined_graph

    @property
    def code(self) -> str:
        """The body of ``forward`` as source."""
        return self._method("forward").code

    @property
    def code_with_constants(self) -> tuple[str, types.SimpleNamespace]:
        """The body of ``forward`` as source, and the values of its constants ``CONSTANTS.c0``, ``CONSTANTS.c1`` as attributes."""
        return self._method("forward").code_with_constants

    def _tensors(self, kind: str) -> Iterator[tuple[str, Tensor]]:
        seen: list[Tensor] = []
        for path, module in self.named_modules():
            for name, own, _ in module._native.attributes():
                value = module._native.get(name) if own == kind else None
                if builtins.isinstance(value, Tensor) and not any(value.is_same(tensor) for tensor in seen):
                    seen.append(value)
                    yield (f"{path}.{name}" if path else name), value

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Returns all parameters, each once."""
        return self._tensors("parameter")

    def parameters(self) -> Iterator[Tensor]:
        """Returns all parameters, each once."""
        return (tensor for _, tensor in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Returns all buffers, each once."""
        return self._tensors("buffer")

    def buffers(self) -> Iterator[Tensor]:
        """Returns all buffers, each once."""
        return (tensor for _, tensor in self.named_buffers())

    def named_children(self) -> Iterator[tuple[str, ScriptModule]]:
        """Returns the direct submodules."""
        for name, _, type_text in self._native.attributes():
            if type_text.startswith("__torch__."):
                value = self._native.get(name)
                if builtins.isinstance(value, _native.ScriptObject) and value.is_module:
                    yield name, PlainModule(value)

    def named_modules(self) -> Iterator[tuple[str, ScriptModule]]:
        """Returns this module, with an empty name, and all below it, each once."""
        seen: set[int] = set()
        stack: list[tuple[str, ScriptModule]] = [("", self)]
        while stack:
            path, module = stack.pop()
            if module._native.identity in seen:
                continue
            seen.add(module._native.identity)
            children = [(f"{path}.{name}" if path else name, child) for name, child in module.named_children()]
            stack.extend(reversed(children))
            yield path, module

    def state_dict(self) -> dict[str, Tensor]:
        """Returns parameters and buffers by name."""
        return {**dict(self.named_parameters()), **dict(self.named_buffers())}

    def train(self, mode: bool = True) -> ScriptModule:
        """Sets the attribute ``training`` of this module and those below it."""
        self._native.train(mode)
        return self

    def eval(self) -> ScriptModule:
        """Sets evaluation mode: ``training`` is false."""
        return self.train(False)

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes the module as an archive to a path or a writable file, with extra files by name."""
        _write(self._root(), f, _extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """Returns the bytes of the archive that ``save`` writes."""
        return self._root().save_bytes(_files(_extra_files))

    def fallbacks(self) -> list[Fallback]:
        """The uses of objects that all methods leave to Python, if the module was compiled with ``fallback``."""
        return list(self.__dict__.get("_fallbacks", ()))

    def _root(self) -> _native.Program:
        """Returns the program whose module this is."""
        program = self._native.program()
        root = program.module()
        if root is not None and root.identity == self._native.identity:
            return program
        return self._native.as_module(self.original_name)

    def __repr__(self) -> str:
        children = "".join(f"\n  ({name}): {_indented(repr(child))}" for name, child in self.named_children())
        shown = f"original_name={self.original_name}"
        return f"ScriptModule(\n  {shown}{children}\n)" if children else f"ScriptModule({shown})"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


class PlainModule(ScriptModule):
    """A module of a process without PyTorch, or an object of another class."""

    def __init__(self, native: _native.ScriptObject) -> None:
        object.__setattr__(self, "_native", native)
        object.__setattr__(self, "_functions", {})

    def __getattr__(self, name: str) -> Any:
        native = self._native
        methods = native.methods()
        if name in methods:
            return self._method(name)
        # A property.
        if f"__{name}_getter" in methods:
            return self._method(f"__{name}_getter")()
        return _wrapped(native.get(name))

    def __dir__(self) -> list[str]:
        own = (name for name, _, _ in self._native.attributes())
        return sorted({*object.__dir__(self), *own, *self._native.methods()})

    def __setattr__(self, name: str, value: Any) -> None:
        if f"__{name}_setter" in self._native.methods():
            self._method(f"__{name}_setter")(value)
        else:
            self._native.set(name, value)


def _files(extra: dict[str, Any] | None) -> list[tuple[str, bytes]] | None:
    if extra is None:
        return None
    return [(name, value.encode() if builtins.isinstance(value, str) else bytes(value)) for name, value in extra.items()]


def _write(program: _native.Program, f: Any, extra: dict[str, Any] | None) -> None:
    """Writes an archive to a path or a writable file."""
    if hasattr(f, "write"):
        f.write(program.save_bytes(_files(extra)))
    else:
        program.save(f, _files(extra))


def _wrapped(value: Any) -> Any:
    return PlainModule(value) if builtins.isinstance(value, _native.ScriptObject) else value


class ExportedProgram:
    """A program that ``torch.export`` wrote."""

    def __init__(self, native: _native.ExportedProgram) -> None:
        self._native = native

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._native(*args, **kwargs)

    @property
    def graph(self) -> Graph:
        """A copy of the graph."""
        return self._native.graph()

    def __repr__(self) -> str:
        return f"<ExportedProgram\n{self.graph}>"

    def to_module(self) -> ScriptModule:
        """Returns the program as a TorchScript module, which can be frozen and saved."""
        return _module_of(self._native.to_module())


def _module_of(program: _native.Program) -> ScriptModule:
    module = program.module()
    assert module is not None, "the program has a module"
    if "torch" in sys.modules:
        from ._torch_modules import wrap

        return wrap(module)
    return PlainModule(module)


def script(
    definition: Any = None,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
    *,
    fallback: bool = False,
) -> Any:
    """Compiles a function, a class or a module, or makes a list or dictionary one that programs share with Python.

    A function becomes a :class:`ScriptFunction`, a module of PyTorch a :class:`ScriptModule` with the module's own tensors. A
    class is compiled with the functions that use it; it is returned as it is. An instance of a class becomes an object of the
    compiled class, with copies of its attributes. Functions, methods and classes that are reached
    are compiled as well. A list becomes a ``ScriptList``, a dictionary a ``ScriptDict``: copies that calls take without copying
    again, so that both sides see changes.

    With ``fallback`` what cannot be compiled but can be called is left to Python: members and calls of such objects are
    evaluated in Python while the program runs, and an annotation converts the results. ``fallbacks()`` lists them.

    The other parameters are those of PyTorch's function and have no effect: types are not inferred from ``example_inputs``.

    Raises:
        CompileError: the definition is wrong.
        UnsupportedError: the definition needs something that the compiler does not have.
    """
    from ._texts import Texts

    if optimize is not None or example_inputs:
        _warn_without_effect(optimize is not None)
    if definition is None:
        return lambda given: script(given, fallback=fallback)
    if builtins.isinstance(definition, (ScriptFunction, ScriptModule)):
        return definition
    if builtins.isinstance(definition, (list, dict)):
        from ._containers import ScriptDict, ScriptList

        return ScriptList(definition) if builtins.isinstance(definition, list) else ScriptDict(definition)
    if hasattr(definition, "__script_if_tracing_wrapper"):
        # A function of PyTorch's `script_if_tracing`.
        definition = definition.__original_fn
    from ._module_kinds import is_module

    if not builtins.isinstance(definition, type) and not is_module(definition) and hasattr(definition, "__prepare_scriptable__"):
        # The object that takes the place of this one in programs.
        return script(definition.__prepare_scriptable__(), fallback=fallback)
    from ._torch_paths import is_now_from_source
    from .errors import CompileError, UnsupportedError

    while True:
        try:
            return _script(definition, Texts(fallback))
        except (CompileError, UnsupportedError) as error:
            if not is_now_from_source(error.message):
                raise


def _warn_without_effect(is_optimize: bool) -> None:
    """Gives the caller of ``script`` a warning about a parameter without effect."""
    import warnings

    if is_optimize:
        message = "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead"
        warnings.warn(message, FutureWarning, stacklevel=3)
    else:
        message = "`example_inputs` has no effect: the types of parameters without annotations are not inferred from examples"
        warnings.warn(message, UserWarning, stacklevel=3)


def _script(definition: Any, texts: Texts) -> Any:
    """Compiles a function, a class or a module."""
    if builtins.isinstance(definition, types.FunctionType):
        return _compiled(definition, texts)
    if builtins.isinstance(definition, type):
        from ._classes import check_bases

        check_bases(definition)
        texts.class_name(definition)
        texts.compile()
        return definition
    from ._module_kinds import is_module
    from ._modules import Modules, prepared

    if is_module(definition):
        definition = prepared(definition, {})
        modules = Modules(texts)
        modules.class_of(definition)
        module = modules.adopt(modules.compile(), definition)
        module.__dict__["_fallbacks"] = texts.fallbacks
        return module
    has_code = not callable(definition) or builtins.isinstance(type(definition).__call__, types.FunctionType)
    if type(definition).__module__ == "builtins" or not has_code:
        from .errors import misuse

        raise misuse(f"an object of type `{type(definition).__name__}` is not a function, class or module")
    # An instance of a class: an object of the program with its attributes.
    name = texts.type_name(texts.class_name(type(definition)))
    return PlainModule(_native.new_object(texts.compile(), name, dict(vars(definition))))


def _compiled(function: types.FunctionType, texts: Texts) -> ScriptFunction:
    """Compiles a function. With fallback, functions and classes that it reaches and that do not compile are left to Python as a
    whole."""
    from ._sources import Source
    from ._texts import Texts
    from ._overloads import overloads_of
    from .errors import CompileError, UnsupportedError

    if overloads_of(function):
        source = Source(function)
        raise source.place(source.node).error(
            f"Function {function.__qualname__} cannot be directly compiled because it is overloaded. It must be used in a context "
            "of a function where its inputs can determine which overload to call."
        )
    while True:
        name = texts.function(function)
        try:
            return ScriptFunction(texts.compile().function(name), function, texts.fallbacks)
        except (CompileError, UnsupportedError) as error:
            origin = texts.origin(error.file or "", error.line or 0) if texts.fallback else None
            if origin is None or origin is function:
                raise
            again = Texts(fallback=True)
            again.refused = {**texts.refused, id(origin): (origin, error.message)}
            texts = again


def script_if_tracing(function: Any) -> Any:
    """Makes a function of Python one that traces keep with its control flow: it is compiled when a trace first calls it, and runs in
    Python otherwise."""
    compiled: list[ScriptFunction] = []

    import functools

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return function(*args, **kwargs)
        if not compiled:
            with _ops.trace.pause():
                compiled.append(script(function))
        return compiled[0](*args, **kwargs)

    # By these names programs find the function; PyTorch's decorator sets them as well.
    marked: Any = call
    marked.__original_fn = function
    marked.__script_if_tracing_wrapper = True
    return call


def trace(
    func: Any,
    example_inputs: Any = None,
    check_trace: bool = True,
    check_inputs: Iterable[Any] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    example_kwarg_inputs: dict[str, Any] | None = None,
) -> Any:
    """Runs a function or a module on example arguments and compiles the operators that it calls.

    The trace has no control flow of Python: branches and loops are those that the example takes. Sizes of tensors are those of
    each call. Compiled functions that are called keep their control flow. Where a value leaves the trace, such as by ``int(x)``
    or ``if x``, a :class:`TracerWarning` names the line.

    Example arguments are given by position or, as ``example_kwarg_inputs``, by name; then ``check_inputs`` are as well.

    With ``check_trace`` the function is traced again, also on ``check_inputs``, and the graphs and results are compared. With
    ``strict`` the result may not be a list or a dictionary, whose structure could depend on the arguments.

    Raises:
        MisuseError: an argument or the result is something that a trace cannot have.
        TracingCheckError: a second run records another graph.
        UnsupportedError: the compiler does not have an operator that is called.
    """
    from . import _trace
    from ._module_kinds import is_module

    if builtins.isinstance(func, ScriptModule) or hasattr(type(func), "_wraps_native"):
        import warnings

        warnings.warn(
            "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.", stacklevel=2
        )
        return func
    if example_kwarg_inputs is not None:
        called = func.forward if is_module(func) else func
        example_inputs = _trace.by_name(called, example_kwarg_inputs)
        check_inputs = None if check_inputs is None else [_trace.by_name(called, given) for given in check_inputs]
    inputs = _trace.as_tuple(example_inputs)
    if is_module(func):
        methods = {"forward": inputs}
        checks = [{"forward": given} for given in check_inputs] if check_inputs is not None else None
        return trace_module(func, methods, check_trace, checks, check_tolerance, strict)
    if builtins.isinstance(func, (ScriptFunction, ScriptModule)):
        return func
    if builtins.isinstance(func, types.MethodType) and is_module(func.__self__):
        name = func.__name__
        checks = [{name: given} for given in check_inputs] if check_inputs is not None else None
        traced = trace_module(func.__self__, {name: inputs}, check_trace, checks, check_tolerance, strict)
        return getattr(traced, name)
    traced = _trace.trace_function(func, inputs, strict)
    compiled = ScriptFunction(traced)
    compiled.__name__ = getattr(func, "__name__", traced.name)
    compiled.__doc__ = func.__doc__
    if check_trace:
        checked = _trace.Checked(func, lambda given: _trace.trace_function(func, given, strict).graph())
        _trace.check(compiled, traced.graph(), checked, [inputs, *map(_trace.as_tuple, check_inputs or ())], check_tolerance)
    return compiled


def trace_module(
    mod: Any,
    inputs: dict[str, Any],
    check_trace: bool = True,
    check_inputs: Iterable[dict[str, Any]] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    example_inputs_is_kwarg: bool = False,
) -> ScriptModule:
    """Traces methods of a module of PyTorch, each on its example arguments: see :func:`trace`. The result has the module's
    parameters, buffers and submodules. With ``example_inputs_is_kwarg`` the arguments of each method are a dictionary by name."""
    from . import _trace
    from ._module_kinds import is_module

    if not is_module(mod):
        from .errors import misuse

        raise misuse(f"expected a module of PyTorch but found an object of type `{type(mod).__name__}`")
    modules = _trace.TracedModules(mod)

    def arguments(name: str, given: Any) -> tuple[Any, ...]:
        return _trace.by_name(getattr(mod, name), given) if example_inputs_is_kwarg else _trace.as_tuple(given)

    examples = {name: arguments(name, given) for name, given in inputs.items()}
    graphs = {name: modules.add(name, given, strict) for name, given in examples.items()}
    module = modules.build()
    if check_trace:
        checks = list(check_inputs or ())
        for name, graph in graphs.items():
            given = [examples[name], *(arguments(name, check[name]) for check in checks if name in check)]
            _trace.check(getattr(module, name), graph, modules.checked(name, strict), given, check_tolerance)
    return module


def is_tracing() -> bool:
    """Returns whether the calls of this thread are recorded."""
    return _ops.trace is not None and bool(_ops.trace.active)


_LATE = {
    "_Await": ("_markers", "_Await"),
    "_awaitable": ("_markers", "_awaitable"),
    "_awaitable_nowait": ("_markers", "_awaitable_nowait"),
    "_awaitable_wait": ("_markers", "_awaitable_wait"),
    "_overload": ("_overloads", "overload"),
    "_overload_method": ("_overloads", "overload"),
    "TracerWarning": ("_trace", "TracerWarning"),
    "TracingCheckError": ("_trace", "TracingCheckError"),
}
"""What few programs use: modules that are imported when a name is first used, and the names there."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module, own_name = _LATE[name]
    return getattr(importlib.import_module(f"{__package__}.{module}"), own_name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in _LATE if not name.startswith("_"))})


def load(f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None) -> Any:
    """Loads an archive (``.pt``) as a :class:`ScriptModule`, an exported program (``.pt2``) as an :class:`ExportedProgram`.

    ``f`` is a path, or of an archive a readable file. The values of ``_extra_files`` become the contents of the archive's extra files of the
    same names. Tensors are on the processor, whatever ``map_location`` is.
    """
    if "torch" in sys.modules:
        from ._torch_kernels import register

        register()
    if hasattr(f, "read"):
        program = _native.load_bytes(f.read())
    elif _native.is_exported(f):
        return ExportedProgram(_native.load_exported(f))
    else:
        program = _native.load(f)
    if _extra_files:
        found = dict(program.extra_files())
        _extra_files.update((name, found[name]) for name in list(_extra_files) if name in found)
    return _module_of(program)


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes a module or a function as an archive, which PyTorch can load, to a path or a writable file."""
    m.save(f, _extra_files)


def freeze(mod: ScriptModule, preserved_attrs: Iterable[str] | None = None, optimize_numerics: bool = True) -> Any:
    """Returns a copy of a module in evaluation mode whose attributes are constants, except the named ones. Freezing does not change
    numerics, so ``optimize_numerics`` has no effect.

    Raises:
        MisuseError: the module is not compiled.
    """
    if not hasattr(mod, "_root"):
        from .errors import misuse

        raise misuse("Freezing expects a ScriptModule as input. Please use jit.script or jit.trace to script your 'nn.Module'.")
    return _module_of(mod._root().freeze(list(preserved_attrs or ())))


def optimize_for_inference(mod: ScriptModule, other_methods: Iterable[str] | None = None) -> Any:
    """Returns a frozen copy of a module, which is set to evaluation mode. Calls optimize graphs by themselves."""
    return freeze(mod.eval(), other_methods)
