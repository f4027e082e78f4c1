"""Compiled modules as modules of PyTorch.

A :class:`ScriptModule` of a process with PyTorch is a :class:`torch.nn.Module` as well: it can be a part of other modules, its
parameters can be optimized, moved and loaded. Its attributes are those of the program's object. Parameters and buffers are
tensors of PyTorch over the same memory; :class:`_Tensors` looks them up in the object, so that a tensor that a program assigned
is seen at once.

A class of the user that derives from :class:`ScriptModule` is compiled after its constructor: the methods with
``script_method`` and those that ``define`` was given.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from . import _native, _ops
from ._nested import mapped
from ._torch_autograd import call, check_modes, follow, memory_of, of_torch, shared
from ._markers import is_attribute
from ._module_kinds import containers
from ._types import ModuleHandle
from .jit import ScriptFunction, ScriptModule

_Module = torch.nn.Module


class _Tensors(dict):  # type: ignore[type-arg]
    """The parameters or buffers of a module, by name: a view of the attributes of its object."""

    def __init__(self, module: TorchModule, names: list[str]) -> None:
        super().__init__(dict.fromkeys(names))
        self._module = module

    def _updated(self) -> _Tensors:
        for name in dict.keys(self):
            dict.__setitem__(self, name, self._module._tensor(name))
        return self

    def __getitem__(self, name: str) -> Any:
        if not dict.__contains__(self, name):
            raise KeyError(name)
        return self._module._tensor(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._module._set_value(name, value)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if dict.__contains__(self, name) else default

    def items(self) -> Any:
        return dict.items(self._updated())

    def values(self) -> Any:
        return dict.values(self._updated())

    def copy(self) -> dict[str, Any]:
        return dict(self.items())


class _Children(dict):  # type: ignore[type-arg]
    """The submodules of a module, by name. Its program has them as well: an assignment to the attribute exchanges one in both."""

    def _refused(self, *_: Any, **__: Any) -> Any:
        from .errors import misuse

        raise misuse(
            "the submodules of a compiled module cannot be added or removed; assign a compiled module to the attribute to exchange one"
        )

    __setitem__ = __delitem__ = __ior__ = pop = popitem = clear = update = setdefault = _refused


def _requires_gradients(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.requires_grad
    if isinstance(value, (list, tuple)):
        return any(map(_requires_gradients, value))
    return isinstance(value, dict) and any(map(_requires_gradients, value.values()))


def _has_own(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_own, value))
    return isinstance(value, _native.Tensor)


def _elements(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], _native.Tensor]]:
    """Returns the tensors in a value of an attribute, with their indices and keys."""
    if isinstance(value, _native.Tensor):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for at, part in enumerate(value):
            yield from _elements(part, (*path, at))
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _elements(part, (*path, key))


def _exchanged(value: Any, old: _native.Tensor, new: _native.Tensor) -> Any:
    """Returns a value of an attribute with another tensor in place of one; the same object if it does not have the tensor."""
    if isinstance(value, _native.Tensor):
        return new if value.is_same(old) else value
    if type(value) in (list, tuple):
        parts = [_exchanged(part, old, new) for part in value]
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else type(value)(parts)
    if type(value) is dict:
        made = {key: _exchanged(part, old, new) for key, part in value.items()}
        return value if all(made[key] is value[key] for key in value) else made
    return value


class _Walks:
    """Counts the changes of all modules. Lists of tensors that were made before the last change are made again."""

    count = 0


_running = threading.local()
"""The module that was called last in a thread."""


def called_part(origin: Any) -> TorchModule | None:
    """Returns the part of the running module that was compiled from a module of Python."""
    owner = getattr(_running, "owner", None)
    parts = owner.modules() if owner is not None else ()
    return next((part for part in parts if part.__dict__.get("_origin") is origin), None)


def _as_modules(value: Any, owner: TorchModule) -> Any:
    """Returns the result of a method with modules in the place of their objects."""

    def changed(part: Any) -> Any:
        if not (isinstance(part, _native.ScriptObject) and part.is_module):
            return part
        parts = (part for part in owner.modules() if isinstance(part, TorchModule))
        known = next((known for known in parts if known._native.identity == part.identity), None)
        return wrap(part) if known is None else known

    return mapped(value, changed)


class Method(ScriptFunction):
    """A method of a module."""

    def __init__(self, function: _native.Function, owner: TorchModule, name: str) -> None:
        super().__init__(function)
        self._owner = owner
        origin = owner.__dict__.get("_origin")
        self.__doc__ = getattr(getattr(type(origin), name, None), "__doc__", None)
        self._returns_objects = "__torch__." in function.schema.rpartition("->")[2]

    @property
    def owner(self) -> TorchModule:
        return self._owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = getattr(_running, "owner", None)
        _running.owner = self._owner
        try:
            result = self._run(args, kwargs)
            return _as_modules(result, self._owner) if self._returns_objects else result
        finally:
            _running.owner = before

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _ops.trace is not None and _ops.trace.active:
            from ._trace import call_in_trace

            return call_in_trace(_ops.trace, self._function, args, kwargs, self._owner)
        check_modes(args, kwargs)
        held = self._owner._held()
        if torch.is_grad_enabled() and not _has_own(args):
            learned = [pair for pair in held if pair[1].requires_grad]
            if learned or _requires_gradients(args) or _requires_gradients(kwargs):
                return call(self._function, args, kwargs, learned)
            return self._function(*args, **kwargs)
        if _has_own(args):
            return self._function(*args, **kwargs)
        before = _native.set_grad_enabled(False)
        try:
            return self._function(*args, **kwargs)
        finally:
            _native.set_grad_enabled(before)


def _signature(schema: str) -> str:
    """Returns the schema of a method without its first parameter, the module."""
    return re.sub(r"\([^ ]+ self(, )?", "(", schema, count=1)


class TorchModule(_Module, ScriptModule):
    """A compiled module, or during its construction one that will be compiled."""

    _native: _native.ScriptObject

    def __init__(self) -> None:
        _Module.__init__(self)
        self.__dict__["_flambeau_defined"] = {}

    def _complete(self) -> None:
        """Compiles the module after its constructor."""
        from ._texts import Texts
        from ._modules import Modules

        modules = Modules(Texts())
        modules.class_of(self)
        modules.adopt(modules.compile(), self)

    def _adopt(self, native: _native.ScriptObject, origin: Any, tensors: dict[int, Any], wrappers: dict[int, TorchModule]) -> None:
        """Becomes the module of an object of a program. ``tensors`` are the tensors of PyTorch by the identity of the
        object's, ``wrappers`` the modules by the identity of their objects."""
        kinds = {name: (kind, text) for name, kind, text in native.attributes()}
        state = self.__dict__
        plain = {name: state.pop(name) for name in [*kinds, "training"] if name in state}
        if origin is self:
            # A method that is defined later compiles the module again, with these attributes.
            state.setdefault("_plain", {}).update(plain)
        state["_kinds"], state["_origin"], state["_cells"], state["_functions"] = kinds, origin, {}, {}
        for held, own_kind in (("_parameters", "parameter"), ("_buffers", "buffer")):
            # Registered names without a tensor, such as the bias of a layer without one, are plain attributes of the program.
            empty = {n for n, value in getattr(origin, held, {}).items() if value is None}
            names = [name for name, (kind, _) in kinds.items() if kind == own_kind or name in empty]
            state[held] = _Tensors(self, names)
        # The new program may have the class under another name.
        state["_class"] = state.get("_class") or native.class_name.rpartition(".")[2]
        state["_native"] = native
        if origin is not None:
            state["_non_persistent_buffers_set"] = set(origin._non_persistent_buffers_set)
        wrappers[native.identity] = self
        state["_root_of"] = weakref.ref(next(iter(wrappers.values())))
        # Modules that were compiled before keep their identity.
        before = {name: part for name, part in state.get("_modules", {}).items() if isinstance(part, TorchModule)}
        children: dict[str, Any] = {}
        for name in kinds:
            value = native.get(name)
            for path, tensor in _elements(value):
                known = tensors.get(tensor.identity)
                if known is not None:
                    self._keep((name, *path), tensor, known)
            if isinstance(value, _native.ScriptObject) and value.is_module:
                child = wrappers.get(value.identity)
                if child is None:
                    inner = before.get(name) or getattr(origin, "_modules", {}).get(name)
                    child = inner if isinstance(inner, TorchModule) else _blank(type(inner))
                    child._adopt(value, origin_of(inner), tensors, wrappers)
                children[name] = child
            elif origin is not None and name in origin._modules:
                children[name] = None
        # Compiled methods with the names of methods of `torch.nn.Module` take their place, which `__getattr__` would not find.
        for name in native.methods():
            if name != "forward" and isinstance(vars(_Module).get(name), types.FunctionType) and not name.startswith("__"):
                state[name] = self._method(name)
        state["_modules"] = _Children(children)
        state.pop("_is_filled", None)
        _Walks.count += 1

    def _tensor(self, name: str) -> Any:
        """Returns the tensor of PyTorch for an attribute."""
        native = self._native.get(name)
        if not isinstance(native, _native.Tensor):
            return native
        cell = self._cells.get((name,))
        if cell is not None and cell[0].is_same(native):
            if native.data_ptr() != cell[3] and memory_of(cell[1]) == cell[2]:
                # A program gave the tensor other memory, as `set_` does: the tensor of PyTorch follows.
                cell[1].data = of_torch(native)
                follow(cell[1], native)
                self._keep((name,), native, cell[1])
            return cell[1]
        tensor = of_torch(native)
        if self._kinds[name][0] == "parameter":
            tensor = torch.nn.Parameter(tensor, requires_grad=native.requires_grad)
        self._keep((name,), native, tensor)
        return tensor

    def _keep(self, path: tuple[Any, ...], native: _native.Tensor, tensor: torch.Tensor) -> None:
        """Notes which tensor of PyTorch an attribute or an element of one is, with its memory."""
        self._cells[path] = (native, tensor, memory_of(tensor), native.data_ptr())
        _Walks.count += 1

    def _set_value(self, name: str, value: Any) -> None:
        """Sets an attribute, whose tensors are those of PyTorch that the value has."""
        for path in [path for path in self._cells if path[0] == name]:
            del self._cells[path]
        held: dict[int, torch.Tensor] = {}

        def taken(part: Any) -> Any:
            if not isinstance(part, torch.Tensor):
                return part
            native = shared(part)
            held[native.identity] = part
            return native

        made = mapped(value, taken) if isinstance(value, torch.Tensor) or type(value) in (list, tuple, dict) else value
        self._native.set(name, made)
        for path, native in _elements(made):
            if native.identity in held:
                self._keep((name, *path), native, held[native.identity])
        _Walks.count += 1

    def _exchange(self, path: tuple[Any, ...], old: _native.Tensor, new: _native.Tensor, tensor: torch.Tensor) -> bool:
        """Puts a tensor in the place of one, unless the program assigned another; returns whether the place has it."""
        value = self._native.get(path[0])
        made = _exchanged(value, old, new)
        element = dict(_elements(made)).get(path[1:])
        if element is None or not element.is_same(new):
            self._cells.pop(path, None)
            _Walks.count += 1
            return False
        if made is not value:
            self._native.set(path[0], made)
        self._keep(path, new, tensor)
        return True

    def _held(self) -> list[tuple[_native.Tensor, torch.Tensor]]:
        """Returns the parameters and buffers of this module and those below it, as tensors of both libraries. A tensor of
        PyTorch whose memory was exchanged (`p.data = ...`) is taken again."""
        state = self.__dict__
        walk = state.get("_walk")
        if walk is None or walk[0] != _Walks.count:
            walk = state["_walk"] = self._walked()
        found: list[tuple[_native.Tensor, torch.Tensor]] = walk[2]
        for at, (places, native, tensor, memory, _) in enumerate(walk[1]):
            if memory_of(tensor) != memory:
                made = shared(tensor)
                # All places: `any` alone would end at the first.
                if any([module._exchange(path, native, made, tensor) for module, path in places]):
                    found[at] = made, tensor
            elif native.requires_grad != tensor.requires_grad and tensor.is_leaf:
                native.requires_grad = tensor.requires_grad
        return found

    def _walked(self) -> tuple[int, list[Any], list[tuple[_native.Tensor, torch.Tensor]]]:
        """Returns the tensors that a call can use, each once, with the state in which they were found."""
        count = _Walks.count
        cells: dict[int, Any] = {}
        for module in self.modules():
            if not isinstance(module, TorchModule):
                continue
            if not module.__dict__.get("_is_filled"):
                for name in (*dict.keys(module._parameters), *dict.keys(module._buffers)):  # type: ignore[arg-type]
                    module._tensor(name)
                module.__dict__["_is_filled"] = True
            for path, cell in list(module._cells.items()):
                cells.setdefault(cell[0].identity, ([], *cell))[0].append((module, path))
        return count, list(cells.values()), [(cell[1], cell[2]) for cell in cells.values()]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "_native" not in self.__dict__ or self._forward_hooks or self._forward_pre_hooks or self._backward_hooks:
            return _Module.__call__(self, *args, **kwargs)
        overridden = type(self).__dict__.get("forward")
        if isinstance(overridden, types.FunctionType):
            return overridden(self, *args, **kwargs)
        return self._method("__call__")(*args, **kwargs)

    @property
    def forward(self) -> Any:  # type: ignore[override]
        if "_native" not in self.__dict__ or "forward" not in self._native.methods():
            raise AttributeError(f"{type(self).__name__} has no compiled method `forward`")
        return self._method("forward")

    def _no_hook(name: str) -> Any:  # noqa: N805 - makes methods of the class
        register = getattr(_Module, name)

        @functools.wraps(register)
        def refuse(self: TorchModule, *args: Any, **kwargs: Any) -> Any:
            if "_native" not in self.__dict__:
                return register(self, *args, **kwargs)
            from .errors import misuse

            raise misuse(f"{name} is not supported on ScriptModules: programs that call the module would not call the hook")

        return refuse

    register_forward_hook = _no_hook("register_forward_hook")
    register_forward_pre_hook = _no_hook("register_forward_pre_hook")
    register_backward_hook = _no_hook("register_backward_hook")
    register_full_backward_hook = _no_hook("register_full_backward_hook")
    register_full_backward_pre_hook = _no_hook("register_full_backward_pre_hook")

    @property
    def _c(self) -> ModuleHandle:
        """The object of the module by the names that it has in PyTorch."""
        return ModuleHandle(self)

    def _wrap_function(self, function: _native.Function) -> ScriptFunction:
        return Method(function, self, function.name.rpartition(".")[2])

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        native = state.get("_native")
        if native is None:
            return _Module.__getattr__(self, name)
        modules = state["_modules"]
        if name in modules:
            return modules[name]
        if name in state["_kinds"]:
            return self._tensor(name)
        if name in native.methods():
            return self._method(name)
        origin = state["_origin"]
        try:
            return native.get(name)
        except AttributeError:
            if origin is None or name.startswith("__"):
                raise AttributeError(f"{self.original_name!r} object has no attribute {name!r}") from None
        member = getattr(type(origin), name, None)
        bound = vars(origin).get(name)
        if isinstance(bound, types.MethodType) and bound.__self__ is origin and isinstance(member, types.FunctionType):
            # A method that was bound to the module in the place of that of its class.
            member = bound.__func__
        if isinstance(member, property):
            getter = f"__{name}_getter"
            if getter not in native.methods() and _is_unused(type(origin), name, member):
                raise AttributeError(f"{self.original_name!r} object has no attribute {name!r}: the property is not compiled")
            return self._method(getter)() if getter in native.methods() else member.fget(self)  # type: ignore[misc]
        if origin is self:
            return _Module.__getattr__(self, name)
        if name in ("keys", "values", "items") and containers(type(origin)):
            return getattr(modules, name)
        if isinstance(member, types.FunctionType):
            from ._markers import kind_of

            if kind_of(member) in ("ignore", "unused"):
                return types.MethodType(member, self)
            raise AttributeError(f"{self.original_name!r} object has no attribute {name!r}")
        return getattr(origin, name)

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        if is_attribute(value):
            # The class keeps the annotation, the instance the value.
            state.setdefault("_flambeau_types", {})[name] = value.type
            value = value.value
        if "_native" not in state or name.startswith("_") and name not in state["_kinds"]:
            _Module.__setattr__(self, name, value)
        elif name in state["_modules"] and isinstance(value, _Module):
            self._exchange_module(name, value)
        elif name in state["_kinds"]:
            self._set_value(name, value)
        elif f"__{name}_setter" in self._native.methods():
            self._method(f"__{name}_setter")(value)
        elif name in self._native.constants():
            raise ConstantError(f"Cannot mutate TorchScript constant value: '{name}'. Value: '{self._native.get(name)}'")
        else:
            object.__setattr__(self, name, value)

    def _exchange_module(self, name: str, value: Any) -> None:
        """Puts a compiled module in the place of another one: of any class that has the methods of the attribute's interface,
        otherwise of the same class. The program is compiled again, with the class of the new module."""
        from ._texts import Texts
        from ._modules import Modules
        from .errors import misuse

        if not isinstance(value, TorchModule) or "_native" not in value.__dict__:
            raise misuse(
                f"Cannot re-assign modules in a ScriptModule with non-scripted module, tried to replace existing module '{name}': "
                f"{value}. To re-assign a module, compile it first"
            )
        modules = self.__dict__["_modules"]
        old, declared = modules[name], self._kinds[name][1]
        is_same = old is not None and type(origin_of(old)) is type(origin_of(value)) and origin_of(value) is not None
        if not is_same and old is not None and declared == old._native.class_name:
            shown = [_type_of_unit(declared, self), _type_of_unit(value._native.class_name, value)]
            raise misuse(f"Expected a value of type '{shown[0]}' for field '{name}', but found '{shown[1]}'")
        self._check_interface(name, value)
        root = self.__dict__["_root_of"]() or self
        dict.__setitem__(modules, name, value)
        _Walks.count += 1
        try:
            compiled = Modules(Texts())
            compiled.class_of(root)
            compiled.adopt(compiled.compile(), root)
        except Exception:
            dict.__setitem__(self.__dict__["_modules"], name, old)
            _Walks.count += 1
            raise

    def _check_interface(self, name: str, value: TorchModule) -> None:
        """Checks that a compiled module has the methods of the interface of an attribute."""
        from ._module_classes import interface_of
        from ._names import qualified_name
        from .errors import misuse

        interface = interface_of(self._origin, name)
        if interface is None:
            return
        own, wanted = _type_of_unit(value._native.class_name, value), qualified_name(interface)
        for method, part in vars(interface).items():
            if isinstance(part, types.FunctionType) and method not in value._native.methods():
                raise misuse(
                    f"Object of type {own} is not compatible with interface {wanted}\nClass '{own}' does not have method "
                    f"'{method}' but '{wanted}' does. Mark the method with `@torch.jit.export` to compile it"
                )
            # What the attribute holds has the signatures of the interface.
            if isinstance(part, types.FunctionType) and isinstance(old := self._modules.get(name), TorchModule):
                found, expected = (_signature(module._native.method(method).schema) for module in (value, old))
                if found != expected:
                    raise misuse(
                        f"Method on class '{own}' (1) is not compatible with interface '{wanted}' (2)\n  (1) {found}\n  (2) {expected}"
                    )

    def __dir__(self) -> Any:
        if "_native" not in self.__dict__:
            return super().__dir__()
        origin = self._origin
        members = () if origin is None else dir(type(origin))
        return sorted({*object.__dir__(self), *members, *self._kinds, *self._modules, *self._native.methods()})

    def _reconstruct(self, handle: ModuleHandle) -> None:
        """Becomes the module of another compiled one, as PyTorch's method of this name."""
        native = handle._module._native
        self._adopt(native, self._origin, {}, {})

    def define(self, text: str) -> None:
        """Adds the methods of a text, in which ``self`` is this module."""
        frame = sys._getframe(1)
        names: dict[str, Any] = {**frame.f_globals, **frame.f_locals}
        self.__dict__.setdefault("_flambeau_defined", {})[text] = names
        if "_native" in self.__dict__:
            self._complete()

    @property
    def original_name(self) -> str:
        origin = self.__dict__.get("_origin")
        return type(origin).__name__ if origin is not None else str(self.__dict__["_class"])

    def _get_name(self) -> str:
        return type(self).__name__ if type(self) is not TorchModule else "RecursiveScriptModule"

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}" if "_native" in self.__dict__ else ""

    def _container(self, what: str = "is not a container of modules") -> Any:
        origin = self.__dict__.get("_origin")
        names = containers(type(origin))
        if not names:
            raise TypeError(f"{self.original_name!r} object {what}")
        return names

    def __len__(self) -> int:
        if "_native" in self.__dict__ and "__len__" in self._native.methods():
            return int(self._method("__len__")())
        self._container("has no len()")
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        names = self._container("is not iterable")
        return iter(list(self._modules)) if "ModuleDict" in names else iter(list(self._modules.values()))

    def __bool__(self) -> bool:
        return True

    def __contains__(self, key: Any) -> bool:
        if "_native" in self.__dict__ and "__contains__" in self._native.methods():
            return bool(self._method("__contains__")(key))
        self._container()
        return key in self._modules

    def __getitem__(self, key: Any) -> Any:
        if "_native" in self.__dict__ and "__getitem__" in self._native.methods():
            return self._method("__getitem__")(key)
        self._container()
        if isinstance(key, str):
            return self._modules[key]
        return list(self._modules.values())[key]

    def _copied(self, native: _native.ScriptObject) -> TorchModule:
        copy = _blank(None)
        copy._adopt(native, origin_of(self), {}, {})
        return copy

    def __copy__(self) -> TorchModule:
        names = [name for name, _, _ in self._native.attributes()]
        values = {name: self._native.get(name) for name in names}
        native = _native.new_object(self._native.program(), self._native.class_name, values)
        return self._copied(native.as_module(self.original_name).module() or native)

    def __deepcopy__(self, memo: Any) -> TorchModule:
        return self._copied(self._native.deep_clone())

    def __reduce_ex__(self, protocol: Any) -> Any:
        import pickle

        raise pickle.PickleError(
            "ScriptModules cannot be deepcopied using copy.deepcopy or saved using torch.save. Mixed serialization of script "
            "and non-script modules is not supported. For purely script modules use my_script_module.save(<filename>) instead."
        )

    for _name in ("graph", "inlined_graph", "code", "code_with_constants", "save"):
        locals()[_name] = getattr(ScriptModule, _name)


class ConstantError(AttributeError, RuntimeError):
    """An assignment to a constant of a module: an ``AttributeError`` or a ``RuntimeError`` of PyTorch, depending on the class."""


def _type_of_unit(name: str, module: TorchModule) -> str:
    """Returns the name of a type with the program that has it: types of several programs may have one name."""
    root = module.__dict__["_root_of"]() or module
    return f"{name} (of Python compilation unit at: {id(root):#x})"


def _is_unused(cls: type, name: str, member: property) -> bool:
    from ._markers import kind_of

    return name in getattr(cls, "__jit_unused_properties__", ()) or kind_of(member.fget) == "unused"


def origin_of(module: Any) -> Any:
    """Returns the module of Python that a module was compiled from."""
    return module.__dict__.get("_origin") if isinstance(module, TorchModule) and "_origin" in module.__dict__ else module


def _blank(cls: Any) -> TorchModule:
    """Makes a module that waits for its object."""
    made = TorchModule.__new__(TorchModule)
    TorchModule.__init__(made)
    return made


def wrap(native: _native.ScriptObject, origin: Any = None, tensors: dict[int, Any] | None = None) -> TorchModule:
    """Returns the module of an object of a program, which was compiled from ``origin``."""
    made = _blank(None)
    made._adopt(native, origin, tensors or {}, {})
    return made


def legacy_base(name: str, bases: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the bases of a class of the user that derives from :class:`ScriptModule`."""
    return tuple(TorchModule if base is ScriptModule else base for base in bases)
