"""Modules (``torch.nn.Module``) as classes and objects of a program.

A module becomes a class with its parameters, buffers, submodules and other attributes, and with the methods that are reached
from ``forward`` and from exported methods. Modules of one class with attributes of the same types share a class. Lists of
modules are unrolled where programs iterate over them. The objects have the module's own tensors: memory is shared.
"""

from __future__ import annotations

import ast
import copy
import enum
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _native
from ._annotations import Unknown, is_interface, type_of_value
from ._classes import place_of
from ._frontend import _MISSING, Edits, Place, Rewriter, Source, Texts, _chain, qualified_name, raise_instead, scope_of
from ._markers import is_attribute, kind_of
from ._overloads import implementation_text, overloads_of
from .errors import CompileError, MisuseError, UnsupportedError
from ._types import ModuleType, module_type, program_key
from .jit import ScriptMethod

_LISTS = ("ModuleList", "Sequential", "ParameterList")
_DICTIONARIES = ("ModuleDict", "ParameterDict")
_OWN = {
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_backward_hooks", "_forward_hooks", "training",
    "_is_full_backward_hook", "_backward_pre_hooks", "_forward_pre_hooks", "_load_state_dict_pre_hooks",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
}  # fmt: skip


def is_module(value: Any) -> bool:
    """Returns whether an object is a module of PyTorch, without importing it."""
    return any(base.__module__ == "torch.nn.modules.module" and base.__name__ == "Module" for base in type(value).__mro__)


def _base_name(module: Any) -> str:
    """Returns the name of the container class of PyTorch that a module is, or was compiled from, or ``""``."""
    origin = vars(module).get("_origin")
    for base in type(module if origin is None else origin).__mro__:
        if base.__module__ == "torch.nn.modules.container":
            return base.__name__
    return ""


def _hints(cls: type) -> dict[str, Any]:
    import typing

    try:
        return typing.get_type_hints(cls)
    except Exception:  # An annotation that cannot be evaluated says nothing about the attribute.
        return {}


class Modules:
    """The modules of one program. Those of a traced program have parameters, buffers, other tensors and submodules, and no
    methods."""

    def __init__(self, texts: Texts, traced: bool = False) -> None:
        self.texts = texts
        texts.use_torch()
        self.traced = traced
        self._classes: dict[Any, str] = {}
        self._class_of: dict[int, str] = {}
        self._values: dict[int, dict[str, Any]] = {}
        # The types of modules, which are the same in every program.
        self._types: dict[int, ModuleType] = {}
        self._facts: list[_Facts] = []
        # Names of members that programs use of other objects than `self`, in order: methods of submodules may have them.
        self.members: dict[str, None] = dict.fromkeys(("__contains__", "__getitem__", "__len__"))
        # Tensors of PyTorch by the identity of the program's.
        self._tensors: dict[int, Any] = {}
        # Methods that programs call in Python.
        self.ignored: list[IgnoredMethod] = []

    def class_of(self, module: Any, methods: Sequence[str] = ()) -> str:
        """Adds the class of a module, and returns its name. ``methods`` are compiled in addition to those that are reached."""
        known = self._class_of.get(id(module))
        if known is not None:
            return known
        if self._is_imported(module):
            return self._import(module)
        facts = _Facts(self, module, methods)
        key = facts.key()
        name = self._classes.get(key)
        if name is None:
            name = self._classes[key] = self.texts.reserve_class(qualified_name(facts.cls), facts)
            facts.name = name
            self._facts.append(facts)
        self._class_of[id(module)] = name
        self._values[id(module)] = facts.values
        self._types[id(facts.origin)] = module_type(facts.cls, facts.type_key(self._types), qualified_name(facts.cls))
        return name

    def compile(self) -> _native.Program:
        """Compiles the classes of the modules, with the methods that are reached."""
        for facts in self._facts:
            facts.start()
        # Types of receivers are not known here: a method of a submodule is a candidate if a member of its name is used. The compiler
        # takes those that are called.
        done = -1
        while done != len(self.members):
            done = len(self.members)
            for name in list(self.members):
                for facts in self._facts:
                    facts.add_candidate(name)
        self.texts.texts.extend(facts.text(facts.name) for facts in self._facts)
        try:
            return self.texts.compile()
        except CompileError as error:
            refused = [facts.refused[name] for facts in self._facts for name in facts.refused if f"attribute '{name}'" in error.message]
            raise refused[0] if refused else error

    def _is_imported(self, module: Any) -> bool:
        """Returns whether a module has no source in Python: a loaded or traced one. In a trace, whose classes have no methods,
        this holds for every compiled module."""
        state = vars(module)
        return "_native" in state and (self.traced or state["_origin"] is None)

    def _import(self, module: Any) -> str:
        """Adds the classes of a module without source in Python and of the modules below it."""
        from ._imported import import_classes, values_of

        names = import_classes(self.texts, module)
        for part in module.modules():
            name = names.get(part._native.class_name)
            if name is None:
                # A module that took the place of another one, whose class is that of another program.
                self.class_of(part)
                continue
            self._class_of[id(part)] = name
            self._values[id(part)] = values_of(part)
            # Classes without source in Python are those of their program alone.
            own_name = part._native.class_name
            self._types[id(part)] = module_type(type(part), (program_key(module), own_name), own_name)
        return self._class_of[id(module)]

    def type_name(self, module: Any) -> str:
        """Returns the qualified name of the type of a module."""
        return self.texts.type_name(self.class_of(module))

    def tensors(self, module: Any) -> Iterator[tuple[list[str], Any]]:
        """Returns the tensors of a module and of those below it, with the paths of attributes."""
        for path, part in module.named_modules(remove_duplicate=False):
            for name, value in self._values[id(part)].items():
                if hasattr(value, "__dlpack__"):
                    yield [*path.split("."), name] if path else [name], value

    def build(self, program: _native.Program, module: Any) -> _native.ScriptObject:
        """Makes the object of a module, children first."""
        objects: dict[int, _native.ScriptObject] = {}
        tensors: dict[int, tuple[Any, Any]] = {}
        stack = [module]
        while stack:
            top = stack[-1]
            values = self._values[id(top)]
            waiting = [v for v in values.values() if is_module(v) and id(v) not in objects]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if id(top) not in objects:
                made = {name: self._value(value, objects, tensors) for name, value in values.items()}
                objects[id(top)] = _native.new_object(program, self.type_name(top), made)
        self._tensors = {native.identity: tensor for native, tensor in tensors.values()}
        return objects[id(module)]

    def adopt(self, program: _native.Program, module: Any, traced: bool = False) -> Any:
        """Makes the object of a module, and returns its compiled module. Modules below it that were compiled before become
        the modules of the new objects."""
        from ._torch_modules import TorchModule, origin_of, wrap

        origin = origin_of(module)
        name = type(origin).__name__ if origin is not None else module.original_name
        native = self.build(program, module).as_module(name).module()
        assert native is not None, "the program has a module"
        if isinstance(module, TorchModule):
            module._adopt(native, origin, self._tensors, {})
            made = module
        else:
            made = wrap(native, None if traced else origin, self._tensors)
        made.__dict__["_types"] = self._types
        if self.ignored:
            compiled = {id(origin_of(part)): part for part in made.modules()}
            for method in self.ignored:
                part = compiled.get(id(method.origin()))
                if part is not None:
                    method.bind(part)
        return made

    @staticmethod
    def _value(value: Any, objects: dict[int, Any], tensors: dict[int, Any]) -> Any:
        if is_module(value):
            return objects[id(value)]
        if not isinstance(value, _native.Tensor) and hasattr(value, "__dlpack__") and hasattr(value, "detach"):
            from ._torch_autograd import shared

            known = tensors.get(id(value))
            if known is None:
                known = tensors[id(value)] = shared(value), value
            return known[0]
        if type(value) in (list, tuple):
            return type(value)(Modules._value(part, objects, tensors) for part in value)
        if type(value) is dict:
            return {key: Modules._value(part, objects, tensors) for key, part in value.items()}
        return value


def prepared(module: Any, known: dict[int, Any]) -> Any:
    """Returns a module with the results of `__prepare_scriptable__` in the place of the modules that have this method."""
    if id(module) in known:
        return known[id(module)]
    made = module.__prepare_scriptable__() if hasattr(module, "__prepare_scriptable__") else module
    if "_modules" not in vars(made):
        # A module whose constructor did not call that of its base, an error that is reported later.
        return made
    children = {name: child if child is None else prepared(child, known) for name, child in made._modules.items()}
    if any(children[name] is not child for name, child in made._modules.items()):
        made = copy.copy(made)
        vars(made)["_modules"] = children
    known[id(module)] = made
    return made


class IgnoredMethod:
    """A method that programs call in Python: of the compiled module that is called, whose attributes are those of the program.

    Programs own these objects, so compiled modules, which own programs, are referred to weakly.
    """

    def __init__(self, function: types.FunctionType, module: Any) -> None:
        from ._torch_modules import origin_of

        origin = origin_of(module)
        self.function = function
        self.__name__ = function.__name__
        self.origin: Callable[[], Any] = weakref.ref(origin) if hasattr(type(origin), "_wraps_native") else lambda: origin
        self._compiled: Callable[[], Any] = lambda: None

    def bind(self, module: Any) -> None:
        """Notes the module that the program was compiled for. Calls of other threads, such as those of tasks, are its calls."""
        self._compiled = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from ._torch_modules import called_part

        origin = self.origin()
        module = None if origin is None else called_part(origin)
        if module is None:
            module = self._compiled()
        if module is None:
            # A frozen module has no origin, and may have outlived the compiled module.
            module = origin
        if module is None:
            raise MisuseError(f"the module of the method `{self.__name__}`, which is marked with `@ignore`, does not exist any more")
        return self.function(module, *args, **kwargs)


class _Facts:
    """Attributes, constants and methods of one module."""

    def __init__(self, modules: Modules, module: Any, methods: Sequence[str] = ()) -> None:
        self.modules = modules
        self.methods = methods
        self.texts = modules.texts
        self.module = module
        self.origin = module
        self.native: Any = None
        if "_wraps_native" in dir(type(module)):
            from ._torch_modules import origin_of

            self.origin, self.native = origin_of(module), vars(module).get("_native")
        self.cls = type(self.origin)
        self.values: dict[str, Any] = {}
        self.types: dict[str, str] = {}
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.constants: dict[str, tuple[str, str]] = {}
        self.functions: dict[str, Any] = {}
        self.absent: dict[str, str] = {}
        # Methods that were bound to this module in the place of those of its class.
        self._own_methods: dict[str, types.FunctionType] = {}
        # Methods that are marked with `@ignore`.
        self.bound: dict[str, IgnoredMethod] = {}
        # The name of the class in the program.
        self.name = ""
        # Texts of compiled methods with their lines and files, and names of methods that are reached and not rewritten yet.
        self._done: dict[str, tuple[int, str, str]] = {}
        self._wanted: list[str] = []
        # Candidates that cannot be compiled.
        self.refused: dict[str, UnsupportedError] = {}
        self._hook_functions: dict[str, Any] = {}
        # Names of the hooks before and behind `forward`.
        self._hooks: dict[str, list[str]] = {}
        self._collect()

    def _collect(self) -> None:
        module, place = self.module, place_of(self.cls)
        if "_parameters" not in vars(module):
            raise MisuseError(f"'{self.cls.__name__}' has not been initialized, did you forget to call 'super()'?")
        for name, value in module._parameters.items():
            self._add(name, value, "NoneType" if value is None else "Tensor", self.parameters)
        for name, value in module._buffers.items():
            self._add(name, value, "NoneType" if value is None else "Tensor", self.buffers)
        hints = {} if self.modules.traced else {**_hints(self.cls), **vars(self.origin).get("_flambeau_types", {})}
        if not self.modules.traced:
            for name in {
                *getattr(self.cls, "__jit_ignored_attributes__", ()), *getattr(self.cls, "__jit_unused_properties__", ()),
            }:  # fmt: skip
                self.absent[name] = "This attribute was ignored during compilation."
        for name, child in module._modules.items():
            if child is None and self.modules.traced or name in self.absent:
                continue
            interface = hints.get(name)
            if child is not None and is_interface(interface):
                # Any module with these methods can take the place of this one later.
                methods = [n for n, part in vars(interface).items() if isinstance(part, types.FunctionType)]
                _check_methods(child, interface, methods, place)
                self.modules.class_of(child, methods)
                self._add(name, child, self.texts.type_text(interface, place))
                continue
            self._add(name, child, "NoneType" if child is None else self.modules.class_of(child))
        self._add("training", bool(module.training), "bool")
        if self.modules.traced:
            for name, value in vars(module).items():
                if hasattr(value, "__dlpack__"):
                    self._add(name, value, "Tensor")
            return
        constant_names = set(getattr(self.cls, "__constants__", ()))
        plain = vars(self.origin).get("_plain") or vars(self.origin)
        for name, value in plain.items():
            if name in _OWN or name in self.values or name in self.absent or name.startswith("_flambeau"):
                continue
            if self.native is not None and name in self.module._kinds and not hasattr(value, "type"):
                # What the compiled module has now.
                current = self.native.get(name)
                value = value if isinstance(current, _native.ScriptObject) else current
            if isinstance(value, types.MethodType) and value.__self__ is self.origin and hasattr(self.cls, name):
                self._own_methods[name] = value.__func__  # type: ignore[assignment]
                continue
            if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) or hasattr(value, "_python"):
                self.functions[name] = value
                continue
            if is_attribute(value):
                held: Any = value
                self._add(name, held.value, self.texts.type_text(held.type, place))
                continue
            self._plain(name, value, hints.get(name), name in constant_names, place)

    def _plain(self, name: str, value: Any, hint: Any, is_constant: bool, place: Place) -> None:
        import typing

        if is_constant:
            _check_constant(f"{self.cls.__name__}.{name}", value)
        try:
            final = typing.get_origin(hint) is typing.Final or hint is typing.Final
            text = None
            if is_constant or final:
                try:
                    # Of a constant the value counts, which need not be of the annotated type (`stride: Final[int] = None`).
                    text = type_of_value(value, self._class_name)
                except (Unknown, NotImplementedError):
                    text = None
            if text is None and hint is not None and hint is not typing.Final:
                try:
                    text = self.texts.type_text(hint, place)
                except NotImplementedError:
                    # The annotation is not a type of TorchScript, such as a tuple of any length; the value may have one.
                    text = None
            if text is None:
                text = type_of_value(value, self._class_name)
        except (Unknown, NotImplementedError) as unknown:
            self.absent[name] = str(unknown)
            return
        if (is_constant or final) and not isinstance(value, dict) and not hasattr(value, "__dlpack__"):
            self.constants[name] = (text, self.texts.literal(value, place))
        else:
            self._add(name, value, text)

    def _member(self, name: str) -> Any:
        """Returns a method or another member of the class, or the method that was bound to the module in its place."""
        return self._own_methods.get(name) or getattr(self.cls, name, None)

    def _class_name(self, cls: type) -> str:
        """Returns the name of a class of which an attribute is an instance, which must be one that compiles."""
        if self.texts.known(cls) is None and not issubclass(cls, (tuple, enum.Enum)):
            alone = Texts()
            try:
                alone.class_name(cls)
                alone.compile()
            except (CompileError, NotImplementedError) as error:
                raise Unknown(f"the class `{cls.__name__}` does not compile: {error}") from None
        return self.texts.class_name(cls)

    def _add(self, name: str, value: Any, text: str, kind: list[str] | None = None) -> None:
        self.values[name] = value
        self.types[name] = text
        if kind is not None and value is not None:
            kind.append(name)

    def key(self) -> Any:
        """What modules that share a class of this program have in common."""
        own = [name for name in dir(self.cls) if kind_of(getattr(self.cls, name, None)) == "ignore"]
        instance = id(self.module) if own else None
        return self.cls, tuple(self.types.items()), self._common(), instance

    def type_key(self, types: dict[int, ModuleType]) -> Any:
        """What modules of one type have in common in all programs."""
        from ._torch_modules import origin_of

        attributes = []
        for name, text in self.types.items():
            value = self.values[name]
            origin = origin_of(value) if is_module(value) else None
            kind: Any = types.get(id(value if origin is None else origin)) if is_module(value) else None
            # The names of other classes are those of Python, but not unique.
            classes = [cls for known, cls in self.texts.classes() if known in text] if kind is None else []
            attributes.append((name, kind or text, *classes))
        return tuple(attributes), self._common()

    def _common(self) -> Any:
        hooks = [*self.module._forward_pre_hooks.values(), *self.module._forward_hooks.values()]
        functions = tuple(self.functions.items()), tuple(self._own_methods.items()), tuple(hooks)
        tensors = tuple(self.parameters), tuple(self.buffers)
        return tensors, tuple(self.constants.items()), functions, tuple(self.methods)

    def text(self, name: str) -> tuple[str, str, int]:
        """Returns the text of the class: its methods at their lines in the file, its attributes behind them."""
        place = place_of(self.cls)
        lines = [f"class {name}(Module):"]
        for line, file, text in sorted(self._done.values(), key=lambda method: (method[1], method[0])):
            # Methods of the class's file keep their lines; inherited methods of other files cannot.
            if file == place.file:
                lines.extend([""] * (line - place.line - len(lines)))
            lines.extend(text.rstrip("\n").split("\n"))
        for attribute, names in self._hooks.items():
            listed = ", ".join(f'"{name}"' for name in names)
            lines.append(f"    {attribute} = [{listed}]")
        lines.append(f"    __parameters__ = [{''.join(f'{n!r}, ' for n in self.parameters)}]".replace("'", '"'))
        lines.append(f"    __buffers__ = [{''.join(f'{n!r}, ' for n in self.buffers)}]".replace("'", '"'))
        if _base_name(self.module) in ("ModuleList", "Sequential") and not _overrides(self.origin, "__iter__"):
            lines.append(f"    __elements__ = [{''.join(f'{n!r}, ' for n in self.module._modules)}]".replace("'", '"'))
        for attribute, text in self.types.items():
            if attribute.isidentifier():
                lines.append(f"    {attribute} : {text}")
            else:
                lines.append(f'    __annotations__["{attribute}"] = {text}')
        for constant, (text, value) in self.constants.items():
            lines.append(f"    {constant} : Final[{text}] = {value}")
        return "\n".join(lines) + "\n", place.file, place.line

    def start(self) -> None:
        """Adds the methods that are compiled in any case, and those that they reach."""
        cls, done = self.cls, self._done
        if self.modules.traced:
            return
        if _base_name(self.module) == "Sequential" and getattr(cls.forward, "__qualname__", "") == "Sequential.forward":
            done["forward"] = place_of(cls).line + 1, place_of(cls).file, self._sequential()
        if cls.__module__ == "torch.nn.modules.container":
            return
        self._wanted = wanted = [n for n in ["forward", *self.methods, *dir(cls)] if n in self.methods or n == "forward" or kind_of(getattr(cls, n, None)) == "export"]
        for kind in ("_forward_pre_hooks", "_forward_hooks"):
            for hook in getattr(self.module, kind).values():
                if not isinstance(hook, types.FunctionType):
                    raise place_of(cls).error(f"a hook of `{cls.__name__}` that is not a function")
                name = hook.__name__
                if self._hook_functions.get(name, hook) is not hook:
                    what = "Pre-hook" if kind == "_forward_pre_hooks" else "Hook"
                    raise place_of(cls).error(
                        f"{what} '{name}' on {cls.__name__} has at least two different python definitions. Please use unique "
                        "names for all hooks."
                    )
                if hasattr(cls, name):
                    raise place_of(cls).error(
                        f"Can't define hook: {name} on class: {cls.__name__} because a method or hook with that name already exists."
                    )
                self._hook_functions[name] = hook
                self._hooks.setdefault(f"_{kind}__", []).append(name)
                done[name] = self._method(hook, False, wanted)
        if hasattr(cls, "_wraps_native"):
            # A class that derives from `ScriptModule` states which methods are compiled.
            wanted[:] = [n for n in wanted if isinstance(getattr(cls, n, None), ScriptMethod)]
            for text, names in vars(self.module).get("_flambeau_defined", {}).items():
                done.update(self._defined(text, names, wanted))
        self._advance()

    def add_candidate(self, name: str) -> None:
        """Adds a method or property of this name, if the class has one, which is compiled if a program uses it."""
        cls, before = self.cls, len(self._done)
        if name in self._done or name in self.refused or name in self.values or self.modules.traced:
            return
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        member = vars(owner).get(name)
        function = member.fget if isinstance(member, property) else member
        is_own = owner.__module__ not in ("builtins", "torch.nn.modules.module", "torch.nn.modules.container")
        if not is_own or not isinstance(function, types.FunctionType) or hasattr(cls, "_wraps_native"):
            return
        self._wanted.append(name)
        known = {*self._done}
        self.texts.is_candidate = True
        try:
            self._advance()
        except UnsupportedError as error:
            self.refused[name] = error
            self._wanted.clear()
            for added in {*self._done} - known:
                del self._done[added]
        finally:
            self.texts.is_candidate = False
        own = self.texts.type_name(self.name)
        for added in list(self._done)[before:]:
            is_property = isinstance(getattr(cls, added.removesuffix(".setter"), None), property)
            suffix = "_setter" if added.endswith(".setter") else "_getter" if is_property else ""
            plain = added.removesuffix(".setter")
            self.texts.optional.add(f"{own}.__{plain}{suffix}" if suffix else f"{own}.{added}")

    def _advance(self) -> None:
        """Rewrites the methods that are reached."""
        cls, done, wanted = self.cls, self._done, self._wanted
        while wanted:
            name = wanted.pop(0)
            member = self._member(name)
            is_property = isinstance(member, property)
            function = member.fget if isinstance(member, property) else member
            if hasattr(member, "_flambeau_kind") and hasattr(member, "function"):
                function = member.function
            if name in done or not isinstance(function, types.FunctionType):
                continue
            if name == "forward" and function.__qualname__ == "_forward_unimplemented":
                continue
            overloads = [] if is_property else overloads_of(function, cls)
            if overloads:
                names = [f"{name}__{i}" for i in range(len(overloads))]
                own = self.texts.type_name(self.name)
                self.texts.overloads[f"{own}.{name}"] = [f"{own}.{n}" for n in names]
                for unique, overload in zip(names, overloads, strict=True):
                    done[unique] = self._method(function, False, wanted, (unique, overload))
                continue
            done[name] = self._method(function, is_property, wanted, name=name)
            setter = getattr(member, "fset", None) if is_property else None
            if setter is not None:
                line, file, text = self._method(setter, False, wanted)
                done[f"{name}.setter"] = line - 1, file, f"    @{name}.setter\n{text}"

    def _defined(self, text: str, names: dict[str, Any], wanted: list[str]) -> dict[str, tuple[int, str, str]]:
        """Returns the methods of a text that `define` was given, with their lines behind those of the class's file."""
        import builtins
        import textwrap

        text = textwrap.dedent(text)
        try:
            tree = ast.parse(text)
        except SyntaxError:
            # The compiler reports the error.
            return {text: (1 << 30, "<string>", textwrap.indent(text, "    "))}
        source = Source.of_text(text, "<string>", tree)
        found = {}
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef):
                raise source.place(node).error("only methods that `def` defines can be compiled")
            edits = Edits(source)
            missing = _MISSING

            def find(name: str) -> Any:
                return names.get(name, getattr(builtins, name, missing))

            rewriter = _MethodRewriter(self, edits, find, wanted)
            rewriter.text = True
            rewriter.function(node, None)
            body = edits.text(node.lineno, node.end_lineno or len(source.lines))
            found[node.name] = (1 << 30) + node.lineno, "<string>", textwrap.indent(body, "    ")
        return found

    def _method(
        self,
        function: types.FunctionType,
        is_property: bool,
        wanted: list[str],
        overload: tuple[str, Any] | None = None,
        name: str = "",
    ) -> tuple[int, str, str]:
        source = Source(function)
        node = source.node
        if not isinstance(node, ast.FunctionDef):
            raise source.place(node).error("only methods that `def` defines can be compiled")
        _check_self(source, node)
        edits = Edits(source)
        rewriter = _MethodRewriter(self, edits, scope_of(function), wanted)
        if name:
            # A method under a second name, such as `forward = _forward`.
            edits.rename(node, name)
        if kind_of(function) == "unused":
            raise_instead(edits, node, rewriter)
        elif overload is None:
            rewriter.function(node, function)
        text = edits.text(node.lineno, node.end_lineno or len(source.lines))
        if overload is not None:
            text = implementation_text(rewriter, overload[0], function, overload[1])
        line = source.first + node.lineno - 1
        body = "".join(f"    {part}\n" if part else "\n" for part in text.rstrip("\n").split("\n"))
        if is_property:
            return line - 1, source.file, "    @property\n" + body
        return line, source.file, body

    def _sequential(self) -> str:
        steps = "".join(f'        input = getattr(self, "{name}")(input)\n' for name in self.module._modules)
        return f"    def forward(self, input):\n{steps}        return input\n"

    def attribute(self, names: list[str], place: Place, wanted: list[str]) -> str | None:
        """Returns the text that replaces ``self.a.b``, or None if it stays an attribute access."""
        name = names[0]
        rest = "".join(f".{part}" for part in names[1:])
        if name in self.values or name in self.constants:
            return None
        if name in self.functions:
            return self.texts.value_text(self.functions[name], name, place) + rest
        if name in self.absent:
            if name not in vars(self.origin):
                raise place.error(f"Module '{self.cls.__name__}' has no attribute '{name}' ({self.absent[name]})")
            held = type(vars(self.origin)[name]).__name__
            raise place.error(
                f"Module '{self.cls.__name__}' has no attribute '{name}' (This attribute exists on the Python module, but we failed "
                f"to convert Python type: '{held}' to a TorchScript type. {self.absent[name]})"
            )
        member = self._member(name)
        if isinstance(member, property) or isinstance(member, types.FunctionType) or hasattr(member, "_flambeau_kind"):
            function = member.fget if isinstance(member, property) else member
            static = isinstance(vars(self.cls).get(name), staticmethod)
            if static:
                return self.texts.function(member)  # type: ignore[arg-type]
            if kind_of(function) == "ignore":
                known = self.bound.get(name)
                if known is None and isinstance(function, types.FunctionType) and not function.__code__.co_argcount:
                    raise place.error(f"the method `{name}` does not have a self argument")
                if known is None:
                    known = self.bound[name] = IgnoredMethod(function, self.module)
                    self.modules.ignored.append(known)
                return self.texts.leave(known, name, place, "it is marked with `@ignore`")
            wanted.append(name)
            return None
        if member is not None:
            return self.texts.literal(member, place) + rest
        return None


_TRAVERSALS = {
    "children": "named_children", "named_children": "named_children", "modules": "named_modules", "named_modules": "named_modules",
    "named_parameters": "named_parameters", "parameters": "named_parameters", "named_buffers": "named_buffers",
    "buffers": "named_buffers",
}  # fmt: skip
"""Methods of modules that programs iterate over, with those that have the names."""

_NO_LITERAL = (
    "Expected integer literal for index but got a variable or non-integer. ModuleList/Sequential indexing is only supported with "
    "integer literals. For example, 'i = 4; self.layers[i](x)' will fail because i is not a literal. Enumeration is supported, "
    "e.g. 'for index, v in enumerate(self): out = v(inp)'"
)


_NO_TEXT = (
    "Unable to extract string literal index. ModuleDict indexing is only supported with string literals. For example, 'i = \"a\"; "
    "self.layers[i](x)' will fail because i is not a literal. Enumeration of ModuleDict is supported, e.g. 'for k, v in "
    "self.items(): out = v(inp)'"
)


def _check_constant(path: str, value: Any) -> None:
    """Raises an exception for the value of an attribute in `__constants__` that is not a constant."""
    if isinstance(value, (list, tuple)):
        for part in value:
            _check_constant(path, part)
        return
    plain = (bool, int, float, complex, str, enum.Enum, type(None))
    if not isinstance(value, plain) and type(value).__name__ not in ("device", "dtype", "layout", "memory_format"):
        kind = type(value)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        raise MisuseError(
            f"'{name}' object in attribute '{path}' is not a valid constant. Valid constants are modules, values of the types bool, "
            "int, float, complex, str, None, device, layout and dtype, and lists and tuples of them"
        )


def _check_methods(module: Any, interface: type, methods: list[str], place: Place) -> None:
    state = vars(module)
    if "_native" in state and state["_origin"] is None:
        lacking = sorted({*methods} - {*module._native.methods()})
    else:
        lacking = [name for name in methods if not hasattr(type(state.get("_origin") or module), name)]
    if lacking:
        raise place.error(
            f"a module of the class '{type(module).__name__}' is not compatible with interface '{interface.__name__}': it has no "
            f"method `{lacking[0]}`"
        )


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return isinstance(node, ast.Slice)
    return True


def _check_self(source: Source, node: ast.FunctionDef) -> None:
    if not [*node.args.posonlyargs, *node.args.args]:
        raise source.place(node).error(f"methods must have a self argument: `{node.name}`")


def _overrides(module: Any, method: str) -> bool:
    """Returns whether the class of a container has its own definition of a method."""
    return not str(getattr(getattr(type(module), method), "__module__", "")).startswith("torch.")


def _tuple_text(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


class _MethodRewriter(Rewriter):
    """Rewrites a method: in addition, uses of lists of modules are unrolled."""

    def __init__(self, facts: _Facts, edits: Edits, find: Callable[[str], Any], wanted: list[str]) -> None:
        super().__init__(facts.texts, edits, find, lambda names, at: facts.attribute(names, at, wanted))
        self.facts = facts

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names, root = _chain(node)
        of_self = isinstance(root, ast.Name) and root.id == "self"
        for name in names[1:] if of_self else names:
            self.facts.modules.members.setdefault(name)
        super().visit_Attribute(node)

    def _container(self, node: ast.expr) -> tuple[str, Any] | None:
        """Returns expression and module for ``self.a.b`` that is a container of modules or parameters."""
        found = self._module(node)
        return found if found is not None and _base_name(found[1]) in (*_LISTS, *_DICTIONARIES) else None

    def _module(self, node: ast.expr) -> tuple[str, Any] | None:
        """Returns expression and module for ``self.a.b`` that is a module."""
        parts: list[str] = []
        if isinstance(node, ast.Subscript):
            outer = self._container(node.value)
            if outer is None:
                return None
            try:
                key = ast.literal_eval(node.slice)
            except ValueError:
                return None
            names = [name for name, _ in self._items(*outer)]
            try:
                name = key if isinstance(key, str) else names[key]
            except (IndexError, TypeError):
                return None
            inner = outer[1]._modules.get(name)
            return None if inner is None else (f'getattr({outer[0]}, "{name}")', inner)
        at = node
        while isinstance(at, ast.Attribute):
            parts.insert(0, at.attr)
            at = at.value
        if not (isinstance(at, ast.Name) and at.id == "self"):
            return None
        module = self.facts.module
        text = "self"
        for part in parts:
            module = getattr(module, "_modules", {}).get(part)
            text += f".{part}"
        return None if module is None else (text, module)

    @staticmethod
    def _items(text: str, module: Any) -> list[tuple[str, str]]:
        held = module._parameters if _base_name(module).startswith("Parameter") else module._modules
        return [(name, f'getattr({text}, "{name}")') for name in held]

    def _unrolled(self, node: ast.expr) -> str | None:
        """Returns the tuple of the elements of a container that is iterated over."""
        form = "elements"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
            if node.func.attr in _TRAVERSALS:
                return self._traversal(node.func.value, node.func.attr)
            if node.func.attr in ("values", "keys", "items"):
                form, node = node.func.attr, node.func.value
        if isinstance(node, ast.Subscript):
            part = self._part(node)
            return None if part is None else _tuple_text([text for _, text in part])
        found = self._container(node)
        if found is None:
            return None
        items = self._items(*found)
        if form == "items":
            parts = [f'("{name}", {text})' for name, text in items]
        elif form == "keys" or form == "elements" and _base_name(found[1]) in _DICTIONARIES:
            parts = [f'"{name}"' for name, _ in items]
        else:
            parts = [text for _, text in items]
        return _tuple_text(parts)

    def _traversal(self, node: ast.expr, form: str) -> str | None:
        """Returns the tuple of the modules or tensors that a method such as `named_children` of a module returns."""
        found = self._module(node)
        if found is None:
            return None
        text, module = found
        parts = []
        for path, value in getattr(module, _TRAVERSALS[form])():
            item = text
            for name in path.split(".") if path else ():
                item = f'getattr({item}, "{name}")'
            parts.append(f'("{path}", {item})' if form.startswith("named_") else item)
        return _tuple_text(parts)

    def _part(self, node: ast.Subscript) -> list[tuple[str, str]] | None:
        """Returns the elements of a slice of a container with constant bounds."""
        found = self._container(node.value)
        if found is None or not isinstance(node.slice, ast.Slice):
            return None
        bounds = []
        for bound in (node.slice.lower, node.slice.upper, node.slice.step):
            try:
                bounds.append(None if bound is None else ast.literal_eval(bound))
            except ValueError:
                raise self.edits.source.place(node).error(_NO_LITERAL) from None
        return self._items(*found)[slice(*bounds)]

    def _iterated(self, node: ast.expr) -> None:
        text = self._unrolled(node)
        if text is not None:
            self.edits.replace(node, text)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("enumerate", "zip"):
            for arg in node.args:
                self._iterated(arg)
        else:
            self.visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Indexes a list or dictionary of modules by a variable, if all are of the interface that the annotation names: it becomes
        a list or dictionary of that type."""
        value = node.value
        found = self._container(value.value) if isinstance(value, ast.Subscript) else None
        if found is None or not isinstance(value, ast.Subscript) or _is_literal(value.slice):
            super().visit_AnnAssign(node)
            return
        annotation = ast.unparse(node.annotation)
        named = annotation[1:-1] if isinstance(node.annotation, ast.Constant) else annotation
        place = self.edits.source.place(node.annotation)
        if not is_interface(self._denoted(ast.parse(named, mode="eval").body)):
            super().visit_AnnAssign(node)
            return
        interface = self._type(named, place)
        items = self._items(*found)
        if _base_name(found[1]) == "ModuleDict":
            parts = ", ".join(f'"{name}": {text}' for name, text in items)
            text = f"torch.jit.annotate(Dict[str, {interface}], {{{parts}}})"
        else:
            text = f"torch.jit.annotate(List[{interface}], [{', '.join(text for _, text in items)}])"
        self.annotation(node.annotation)
        self.visit(node.target)
        self.edits.replace(value.value, text)
        self.visit(value.slice)

    def visit_For(self, node: ast.For) -> None:
        self._iterated(node.iter)
        self.visit(node.target)
        for statement in [*node.body, *node.orelse]:
            self.visit(statement)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._iterated(node.iter)
        for condition in node.ifs:
            self.visit(condition)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        found = self._container(node.value)
        index = node.slice
        if found is not None and isinstance(index, ast.Slice):
            self.edits.replace(node, _tuple_text([text for _, text in self._part(node) or ()]))
            return
        if found is not None:
            place = self.edits.source.place(node)
            try:
                key = ast.literal_eval(index)
            except ValueError:
                raise place.error(_NO_TEXT if _base_name(found[1]) in _DICTIONARIES else _NO_LITERAL) from None
            items = self._items(*found)
            texts = dict(items) if isinstance(key, str) else [text for _, text in items]
            try:
                self.edits.replace(node, texts[key])
            except KeyError:
                raise place.error(f"Key Error, {key}") from None
            except IndexError:
                raise place.error(f"Index {key} out of range of length {len(items)}") from None
            return
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Decides whether a container has a name, which is constant."""
        found = self._container(node.comparators[0])
        is_test = len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(node.left, ast.Constant)
        if found is None or not is_test or _base_name(found[1]) not in _DICTIONARIES or _overrides(found[1], "__contains__"):
            super().visit_Compare(node)
            return
        assert isinstance(node.left, ast.Constant), "the test has a constant"
        is_in = node.left.value in dict(self._items(*found))
        self.edits.replace(node, str(is_in is isinstance(node.ops[0], ast.In)))

    def visit_Starred(self, node: ast.Starred) -> None:
        self._iterated(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        names = ast.unparse(node.func).split(".") if isinstance(node.func, ast.Attribute) else []
        if len(names) == 2 and names[0] == "self":
            function = getattr(self.facts.cls, names[1], None)
            if kind_of(function) == "ignore":
                self._returns(node, function)
        if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
            found = self._container(node.args[0])
            if found is not None and not _overrides(found[1], "__len__"):
                self.edits.replace(node, str(len(self._items(*found))))
                return
        super().visit_Call(node)
