"""Modules (``torch.nn.Module``) as classes and objects of a program.

A module becomes a class with its parameters, buffers, submodules and other attributes, and with the methods that are reached
from ``forward`` and from exported methods. Modules of one class with attributes of the same types share a class. Lists of
modules are unrolled where programs iterate over them. The objects have the module's own tensors: memory is shared.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from . import _native
from ._ignored import IgnoredMethod
from ._module_classes import ModuleClass
from ._module_kinds import is_module
from ._names import qualified_name
from ._nested import mapped
from ._texts import Texts
from ._types import ModuleType, module_type, program_key
from .errors import CompileError


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
        self._facts: list[ModuleClass] = []
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
        facts = ModuleClass(self, module, methods)
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
            if refused:
                raise refused[0] from None
            origin = self.texts.origin(error.file or "", error.line or 0)
            for facts in self._facts:
                for name, function in facts.functions.items():
                    if function is origin:
                        note = (
                            f"Module '{facts.cls.__name__}' has no attribute '{name}': the function exists as an attribute on the "
                            "Python module, but we failed to compile it to a TorchScript function"
                        )
                        error.args = (f"{error}\n  note: {note}",)
            raise

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
                made = {name: mapped(value, lambda part: _in_program(part, objects, tensors)) for name, value in values.items()}
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


def _in_program(value: Any, objects: dict[int, Any], tensors: dict[int, tuple[Any, Any]]) -> Any:
    """Returns the value of an attribute in the program: modules are their objects, and tensors of PyTorch share their memory with the
    program's, each of which is one."""
    if is_module(value):
        return objects[id(value)]
    if isinstance(value, _native.Tensor) or not hasattr(value, "__dlpack__") or not hasattr(value, "detach"):
        return value
    from ._torch_autograd import shared

    known = tensors.get(id(value))
    if known is None:
        known = tensors[id(value)] = shared(value), value
    return known[0]


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
