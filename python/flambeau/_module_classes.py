"""The class of a module (``torch.nn.Module``) in a program: its attributes, constants, methods and hooks."""

from __future__ import annotations

import ast
import enum
import types
import typing
from collections.abc import Sequence
from typing import Any

from . import _native
from ._annotations import Unknown, is_bare, is_interface, type_of_value
from ._classes import place_of
from ._edits import Edits
from ._ignored import IgnoredMethod
from ._source_map import MappedText
from ._markers import is_attribute, kind_of
from ._module_kinds import container_name, is_module, overrides
from ._module_methods import MethodRewriter
from ._names import qualified_name, scope_of, scope_of_names
from ._objects import literal
from ._overloads import implementation_text, overloads_of
from ._signatures import raise_instead
from ._sources import Place, Source, definition
from ._texts import Texts
from ._types import ModuleType
from .errors import CompileError, Error, UnsupportedError, misuse, reached_from, wrong
from .jit import ScriptMethod

if typing.TYPE_CHECKING:
    from ._modules import Modules

_OWN = {
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_backward_hooks", "_forward_hooks", "training",
    "_is_full_backward_hook", "_backward_pre_hooks", "_forward_pre_hooks", "_load_state_dict_pre_hooks",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
}  # fmt: skip


def _hints(cls: type) -> dict[str, Any]:
    import typing

    try:
        return typing.get_type_hints(cls)
    except Exception:  # An annotation that cannot be evaluated says nothing about the attribute.
        return {}


def interface_of(module: Any, name: str) -> Any:
    """Returns the interface that a class of modules annotates for an attribute, ``None`` if it does not."""
    hint = _hints(type(module)).get(name)
    return hint if is_interface(hint) else None


def _states_result(function: types.FunctionType) -> bool:
    """Returns whether a function has a return annotation or a type comment."""
    return "return" in function.__annotations__ or any("# type:" in line for line in definition(function)[0])


class ModuleClass:
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
        # Texts of compiled methods, and names of methods that are reached and not rewritten yet.
        self._done: dict[str, MappedText] = {}
        self._wanted: list[str] = []
        # Candidates that cannot be compiled.
        self.refused: dict[str, Error] = {}
        # Names of the methods that are compiled in any case.
        self._roots: set[str] = set()
        self._hook_functions: dict[str, Any] = {}
        # Names of the hooks before and behind `forward`.
        self._hooks: dict[str, list[str]] = {}
        self._collect()

    def _collect(self) -> None:
        module, place = self.module, place_of(self.cls)
        if "_parameters" not in vars(module):
            raise misuse(f"'{self.cls.__name__}' has not been initialized, did you forget to call 'super()'?")
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
                self._add(name, child, self.texts.annotation_text(interface, place))
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
                self._add(name, held.value, self.texts.annotation_text(held.type, place))
                continue
            self._plain(name, value, hints.get(name), name in constant_names, place)

    def _plain(self, name: str, value: Any, hint: Any, is_constant: bool, place: Place) -> None:
        import typing

        if is_constant:
            _check_constant(f"{self.cls.__name__}.{name}", value)
        try:
            final = _is_final(hint)
            text = None
            if is_constant or final:
                try:
                    # Of a constant the value counts, which need not be of the annotated type (`stride: Final[int] = None`).
                    text = type_of_value(value, self._class_name)
                except (Unknown, NotImplementedError):
                    text = None
            if text is None and hint is not None and hint is not typing.Final and not is_bare(hint):
                try:
                    text = self.texts.annotation_text(hint, place)
                    if is_interface(hint) and value is not None:
                        self._check_object(value, hint)
                except NotImplementedError:
                    # The annotation is not a type of TorchScript, such as a tuple of any length; the value may have one.
                    text = None
            if text is None:
                text = type_of_value(value, self._class_name)
        except (Unknown, NotImplementedError) as unknown:
            self.absent[name] = str(unknown)
            return
        if (is_constant or final) and not isinstance(value, dict) and not hasattr(value, "__dlpack__"):
            self.constants[name] = (text, literal(self.texts, value, place))
        else:
            self._add(name, value, text)

    def _check_object(self, value: Any, interface: type) -> None:
        """Adds the class of an object that an attribute of an interface has."""
        cls, wanted = type(value), qualified_name(interface)
        methods = [n for n, part in vars(interface).items() if isinstance(part, types.FunctionType)]
        lacking = [name for name in methods if not hasattr(cls, name)]
        if len(lacking) == len(methods):
            raise wrong(
                f"Expected an object of the interface {wanted}, but the value is not a TorchScript compatible type: its class "
                f"`{cls.__name__}` has none of the methods"
            )
        if lacking:
            raise wrong(
                f"Object of type {qualified_name(cls)} is not compatible with interface {wanted}\nClass '{qualified_name(cls)}' does "
                f"not have method '{lacking[0]}' but '{wanted}' does."
            )
        self.texts.class_name(cls)

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

    def text(self, name: str) -> MappedText:
        """Returns the text of the class: its methods in the order of their lines, its attributes behind them."""
        place = place_of(self.cls)
        text = place.mapped(f"class {name}(Module):\n")
        for method in sorted(self._done.values(), key=lambda method: (method.file, method.first)):
            text.extend(method)
        lines = []
        for attribute, names in self._hooks.items():
            listed = ", ".join(f'"{name}"' for name in names)
            lines.append(f"{attribute} = [{listed}]")
        lines.append(f"__parameters__ = [{''.join(f'{n!r}, ' for n in self.parameters)}]".replace("'", '"'))
        lines.append(f"__buffers__ = [{''.join(f'{n!r}, ' for n in self.buffers)}]".replace("'", '"'))
        if container_name(self.module) in ("ModuleList", "Sequential") and not overrides(self.origin, "__iter__"):
            lines.append(f"__elements__ = [{''.join(f'{n!r}, ' for n in self.module._modules)}]".replace("'", '"'))
        for attribute, type_text in self.types.items():
            if attribute.isidentifier():
                lines.append(f"{attribute} : {type_text}")
            else:
                lines.append(f'__annotations__["{attribute}"] = {type_text}')
        for constant, (type_text, value) in self.constants.items():
            lines.append(f"{constant} : Final[{type_text}] = {value}")
        text.extend(place.mapped("".join(f"    {line}\n" for line in lines)))
        return text

    def start(self) -> None:
        """Adds the methods that are compiled in any case, and those that they reach."""
        cls, done = self.cls, self._done
        if self.modules.traced:
            return
        if container_name(self.module) == "Sequential" and getattr(cls.forward, "__qualname__", "") == "Sequential.forward":
            done["forward"] = place_of(cls).mapped(self._sequential())
        wanted = self._wanted
        if cls.__module__ != "torch.nn.modules.container":
            exported = [name for name in dir(cls) if kind_of(getattr(cls, name, None)) == "export"]
            wanted += dict.fromkeys(["forward", *self.methods, *exported])
        if hasattr(cls, "_wraps_native"):
            # A class that derives from `ScriptModule` states which methods are compiled.
            wanted[:] = [n for n in wanted if isinstance(getattr(cls, n, None), ScriptMethod)]
            for text, names in vars(self.module).get("_flambeau_defined", {}).items():
                done.update(self._defined(text, names, wanted))
        # The others are compiled if the program calls them: only a branch that it does not take may refer to them.
        self._roots.update(wanted)
        before = {*done}
        self._advance()
        self._add_hooks()
        self._advance()
        self._mark_optional([name for name in done if name not in before and name.removesuffix(".setter") not in self._roots])

    def _add_hooks(self) -> None:
        """Adds the hooks of `forward`. Only the methods that are compiled by then are in their way: a hook may have the name of
        another attribute of the class, such as `double` of `torch.nn.Module`."""
        cls, done = self.cls, self._done
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
                if name in done and name not in self._hook_functions:
                    raise self._hook_exists(name)
                if kind == "_forward_pre_hooks" and not _states_result(hook):
                    raise place_of(cls).error(
                        f"Pre-hook '{name}' on module '{cls.__name__}' is missing a return annotation. Return annotations are "
                        "required, please add one."
                    )
                self._hook_functions[name] = hook
                self._roots.add(name)
                self._hooks.setdefault(f"_{kind}__", []).append(name)
                done[name] = self._method(hook, False, self._wanted)

    def _hook_exists(self, name: str) -> Error:
        """Returns the error for a hook and a method of one name."""
        return place_of(self.cls).error(
            f"Can't define hook: {name} on class: {self.cls.__name__} because a method or hook with that name already exists."
        )

    def add_candidate(self, name: str) -> None:
        """Adds a method or property of this name, if the class has one, which is compiled if a program uses it."""
        cls, before = self.cls, len(self._done)
        is_hook = name in self._hook_functions
        if name in self._done and not is_hook or name in self.refused or name in self.values or self.modules.traced:
            return
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        member = vars(owner).get(name)
        function = member.fget if isinstance(member, property) else member
        is_own = owner.__module__ not in ("builtins", "torch.nn.modules.module", "torch.nn.modules.container")
        if not is_own or not isinstance(function, types.FunctionType) or hasattr(cls, "_wraps_native"):
            return
        if is_hook:
            raise self._hook_exists(name)
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
        self._mark_optional(list(self._done)[before:])

    def _mark_optional(self, names: list[str]) -> None:
        """States that methods are compiled only if the program calls them."""
        cls, own = self.cls, self.texts.type_name(self.name)
        for added in names:
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
            if name in self._hook_functions and isinstance(function, types.FunctionType):
                raise self._hook_exists(name)
            if name in done or name in self.refused or not isinstance(function, types.FunctionType):
                continue
            if name == "forward" and function.__qualname__ == "_forward_unimplemented":
                continue
            overloads = [] if is_property else overloads_of(function, cls)
            if overloads:
                names = [f"{name}__{i}" for i in range(len(overloads))]
                own = self.texts.type_name(self.name)
                self.texts.overloads[f"{own}.{name}"] = [f"{own}.{n}" for n in names]
                for unique, overload in zip(names, overloads, strict=True):
                    done[unique] = self._method(function, "", wanted, (unique, overload))
                continue
            try:
                done[name] = self._method(function, "property" if is_property else "", wanted, name=name)
            except UnsupportedError as error:
                reached = reached_from(error, *self.texts.calls(function))
                if name in self._roots:
                    raise reached from None
                self.refused[name] = reached
                continue
            setter = getattr(member, "fset", None) if is_property else None
            if setter is not None:
                done[f"{name}.setter"] = self._method(setter, f"{name}.setter", wanted)

    def _defined(self, text: str, names: dict[str, Any], wanted: list[str]) -> dict[str, MappedText]:
        """Returns the methods of a text that `define` was given."""
        import textwrap

        dedented = textwrap.dedent(text)
        try:
            tree = ast.parse(dedented)
        except SyntaxError:
            # The compiler reports the error.
            return {text: MappedText("<string>", 1, textwrap.indent(dedented, "    "))}
        source = Source.of_text(dedented, "<string>", tree, text)
        found = {}
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef):
                raise source.place(node).error("only methods that `def` defines can be compiled")
            edits = Edits(source)
            rewriter = MethodRewriter(self, edits, scope_of_names(names), wanted)
            rewriter.text = True
            rewriter.function(node, None)
            found[node.name] = MappedText("<string>", node.lineno)
            found[node.name].extend(edits.text(node.lineno, node.end_lineno or len(source.lines)), "    ")
        return found

    def _method(
        self,
        function: types.FunctionType,
        decorator: str,
        wanted: list[str],
        overload: tuple[str, Any] | None = None,
        name: str = "",
    ) -> MappedText:
        source = Source(function)
        node = source.function("methods")
        _check_self(source, node)
        edits = Edits(source)
        rewriter = MethodRewriter(self, edits, scope_of(function), wanted)
        rewriter.receiver = [*node.args.posonlyargs, *node.args.args][0].arg
        if name:
            # A method under a second name, such as `forward = _forward`.
            edits.rename(node, name)
        if kind_of(function) == "unused":
            raise_instead(edits, node, rewriter)
        elif overload is None:
            rewriter.function(node, function)
        if overload is None:
            text = edits.text(node.lineno, node.end_lineno or len(source.lines))
        else:
            text = implementation_text(rewriter, overload[0], function, overload[1])
        self.texts.note_origin(function, source)
        method = MappedText(text.file, text.first)
        if decorator:
            method.extend(source.place(node).mapped(f"    @{decorator}\n"))
        method.extend(text, "    ")
        return method

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
                return self.texts.leave_ignored(known, known.function, name, place)
            if isinstance(function, types.FunctionType):
                self.texts.refer(function, place)
            wanted.append(name)
            return None
        if isinstance(member, types.MethodType) and member.__self__ is self.cls:
            return self.texts.value_text(member, name, place) + rest
        if member is not None and self._is_constant(name):
            return literal(self.texts, member, place) + rest
        return None

    def _is_constant(self, name: str) -> bool:
        """Whether an attribute is declared to be a constant, so that programs see it although only the class has it."""
        return name in getattr(self.cls, "__constants__", ()) or _is_final(_hints(self.cls).get(name))


def _is_final(hint: Any) -> bool:
    """Whether an annotation is ``Final``, with or without a type."""
    import typing

    return hint is typing.Final or typing.get_origin(hint) is typing.Final


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
        raise misuse(
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


def _check_self(source: Source, node: ast.FunctionDef) -> None:
    if not [*node.args.posonlyargs, *node.args.args]:
        raise source.place(node).error(f"methods must have a self argument: `{node.name}`")
