"""Methods of modules: lists and dictionaries of submodules, which programs do not have, are unrolled."""

from __future__ import annotations

import ast
import types
import typing
from collections.abc import Callable
from typing import Any

from ._annotations import is_interface
from ._edits import Edits
from ._markers import kind_of
from ._module_kinds import DICTIONARIES, LISTS, container_name, overrides
from ._names import chain
from ._rewriter import Rewriter

if typing.TYPE_CHECKING:
    from ._module_classes import ModuleClass

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


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return isinstance(node, ast.Slice)
    return True


def _tuple_text(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


class MethodRewriter(Rewriter):
    """Rewrites a method: in addition, uses of lists of modules are unrolled."""

    def __init__(self, facts: ModuleClass, edits: Edits, find: Callable[[str], Any], wanted: list[str]) -> None:
        super().__init__(facts.texts, edits, find, lambda names, at: facts.attribute(names, at, wanted))
        self.facts = facts

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names, root = chain(node)
        of_self = isinstance(root, ast.Name) and root.id == self.receiver
        for name in names[1:] if of_self else names:
            self.facts.modules.members.setdefault(name)
        super().visit_Attribute(node)

    def _container(self, node: ast.expr) -> tuple[str, Any] | None:
        """Returns expression and module for ``self.a.b`` that is a container of modules or parameters."""
        found = self._module(node)
        return found if found is not None and container_name(found[1]) in (*LISTS, *DICTIONARIES) else None

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
        if not (isinstance(at, ast.Name) and at.id == self.receiver):
            return None
        module = self.facts.module
        text = self.receiver
        for part in parts:
            module = getattr(module, "_modules", {}).get(part)
            text += f".{part}"
        return None if module is None else (text, module)

    @staticmethod
    def _items(text: str, module: Any) -> list[tuple[str, str]]:
        held = module._parameters if container_name(module).startswith("Parameter") else module._modules
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
        elif form == "keys" or form == "elements" and container_name(found[1]) in DICTIONARIES:
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
        if not is_interface(self.denoted(ast.parse(named, mode="eval").body)):
            super().visit_AnnAssign(node)
            return
        interface = self.type_text(named, place)
        items = self._items(*found)
        if container_name(found[1]) == "ModuleDict":
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
        with self._loop():
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
                raise place.error(_NO_TEXT if container_name(found[1]) in DICTIONARIES else _NO_LITERAL) from None
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
        if found is None or not is_test or container_name(found[1]) not in DICTIONARIES or overrides(found[1], "__contains__"):
            super().visit_Compare(node)
            return
        assert isinstance(node.left, ast.Constant), "the test has a constant"
        is_in = node.left.value in dict(self._items(*found))
        self.edits.replace(node, str(is_in is isinstance(node.ops[0], ast.In)))

    def visit_Starred(self, node: ast.Starred) -> None:
        self._iterated(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        names = ast.unparse(node.func).split(".") if isinstance(node.func, ast.Attribute) else []
        if len(names) == 2 and names[0] == self.receiver:
            function = getattr(self.facts.cls, names[1], None)
            if kind_of(function) == "ignore":
                self._returns(node, function)
        if self._asks_for_method(node):
            self.edits.replace(node, "True")
            return
        if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
            found = self._container(node.args[0])
            if found is not None and not overrides(found[1], "__len__"):
                self.edits.replace(node, str(len(self._items(*found))))
                return
        super().visit_Call(node)

    def _asks_for_method(self, node: ast.Call) -> bool:
        """Returns whether a call asks if `self` has a method, which may not be compiled otherwise."""
        if not isinstance(node.func, ast.Name) or node.func.id != "hasattr" or len(node.args) != 2 or "hasattr" in self.bound:
            return False
        object, name = node.args
        if getattr(object, "id", "") != self.receiver or not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            return False
        return isinstance(getattr(self.facts.cls, name.value, None), types.FunctionType)
