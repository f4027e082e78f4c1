"""Statements and expressions of functions.

The compiler's own parser reads the source of a function as it is in the user's file. What it cannot know is what the free
names of the function mean: globals, variables of enclosing functions, annotations. :class:`Rewriter` finds these names with
Python's :mod:`ast` and replaces each by what it denotes: the name of a compiled function or class, the name of a function of
PyTorch, or a literal.
"""

from __future__ import annotations

import ast
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _native
from ._edits import Edits
from ._ignored import annotations_of
from ._module_kinds import is_module_class
from ._names import MISSING, bound_names, chain, children
from ._objects import MODULES, called_in_python
from ._signatures import SignatureRewriter
from ._sources import Source, is_text_of_several_lines
from .errors import AnnotationError

if typing.TYPE_CHECKING:
    from ._texts import Texts


_UNSUPPORTED = {
    "Match": "match statements", "Import": "import statements", "ImportFrom": "import statements", "Global": "global variables",
    "Nonlocal": "nonlocal variables", "AsyncFunctionDef": "async function definitions", "AsyncFor": "async for loops",
    "AsyncWith": "async with statements",
}  # fmt: skip
"""Statements of functions that TorchScript does not have: the compiler's parser does not know all of them."""


class Rewriter(SignatureRewriter):
    """Replaces the free names of one function."""

    def __init__(
        self, texts: Texts, edits: Edits, find: Callable[[str], Any], attribute: Any = None, text: bool = False
    ) -> None:
        super().__init__(texts, edits, find, text)
        # The name of the object of a method, and the meaning of an attribute of it that is not an attribute of the compiled class.
        self.receiver = "self"
        self.attribute = attribute
        self.bound: set[str] = set()
        # The name of the function.
        self.name = ""
        # The expression whose result the current statement does not use.
        self.unused: ast.expr | None = None
        # The number of loops of the current function around the current statement.
        self.loops = 0

    def visit(self, node: ast.AST) -> None:
        visitor = getattr(self, f"visit_{type(node).__name__}", None)
        if visitor is not None:
            visitor(node)
            return
        unsupported = _UNSUPPORTED.get(type(node).__name__)
        # Texts of compilation units may import.
        if unsupported is not None and self.texts.rewritten:
            raise self.edits.source.place(node).error(f"{unsupported} aren't supported")
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        for part in children(node):
            self.visit(part)

    def function(self, node: ast.FunctionDef, function: types.FunctionType | None) -> None:
        """Rewrites a definition with its annotations and defaults."""
        outer, loops = self.bound, self.loops
        self.bound, self.loops = outer | bound_names(node), 0
        self.name = self.name or node.name
        with self._within(node, function):
            self.comments(node)
            self.signature(node, function)
            self._statements(node.body)
        self.bound, self.loops = outer, loops
        self.name = ""

    def body(self, node: ast.FunctionDef) -> None:
        """Rewrites the body of a definition without its signature."""
        outer = self.bound
        self.bound = outer | bound_names(node)
        with self._within(node, None):
            self.comments(node, node.body[0].lineno)
            self._statements(node.body)
        self.bound = outer

    def _statements(self, body: list[ast.stmt]) -> None:
        """Rewrites statements up to one that always exits in programs. Those behind it may have constructs that TorchScript does not
        support."""
        for at, statement in enumerate(body):
            self.visit(statement)
            if self._exits_in_programs(statement) and at + 1 < len(body):
                self._omit(body[at + 1 :])
                return

    def _exits_in_programs(self, statement: ast.stmt) -> bool:
        taken = isinstance(statement, ast.If) and self._is_true_in_programs(statement.test) is True
        return taken and isinstance(statement.body[-1], (ast.Raise, ast.Return))  # type: ignore[attr-defined]

    def _omit(self, statements: list[ast.stmt]) -> None:
        first, last = statements[0], statements[-1]
        end = last.end_lineno or first.lineno, last.end_col_offset or 0
        self.edits.replace_range((first.lineno, first.col_offset), end, "pass")

    @contextmanager
    def _within(self, node: ast.FunctionDef, function: types.FunctionType | None) -> Iterator[None]:
        """Notes the function that is being rewritten."""
        self.texts.rewritten.append((node.name, function))
        try:
            yield
        finally:
            self.texts.rewritten.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.function(node, None)

    def visit_Constant(self, node: ast.Constant) -> None:
        # The lines of the text are moved with those of the definition.
        if not self.text and is_text_of_several_lines(node):
            self.edits.replace(node, repr(node.value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Visits the expressions of a formatted text. In one of several lines their positions are not those in the file: the text is
        written again in one line."""
        if node.lineno == node.end_lineno:
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    self.visit(part)
            return
        text = ast.unparse(node)
        outer, source = self.edits, self.edits.source
        inner = Source.of_text(text, source.file, None)
        inner.first = source.first + node.lineno - 1
        self.edits = Edits(inner)
        try:
            formatted = ast.parse(text, mode="eval").body
            self.visit(formatted)
            text = self.edits.expression(formatted)
        finally:
            self.edits = outer
        self.edits.replace(node, text)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        target = node.target
        if isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == self.receiver and self.name not in ("", "__init__"):
            declaration = ast.copy_location(ast.Pass(), target)
            declaration.end_lineno, declaration.end_col_offset = node.annotation.end_lineno, node.annotation.end_col_offset
            raise self.edits.source.place(declaration).error(
                f"annotations on instance attributes must be declared in __init__: `{ast.unparse(target)}`", AnnotationError
            )
        self.annotation(node.annotation)
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def _returns(self, node: ast.Call, function: Any) -> None:
        """Converts the result of a call that is left to Python to the type that the function is annotated with. Without annotation it
        is a tensor, if the program uses it."""
        hints = annotations_of(function)
        if node is self.unused and "return" not in hints:
            return
        annotation = hints.get("return", _native.Tensor)
        place = self.edits.source.place(node)
        start, end = (node.lineno, node.col_offset), (node.end_lineno or 1, node.end_col_offset or 0)
        self.edits.replace_range(start, start, f"torch.jit.annotate({self.texts.annotation_text(annotation, place)}, ")
        self.edits.replace_range(end, end, ")")

    def visit_Call(self, node: ast.Call) -> None:
        if self._asks_for_overrides(node):
            self.edits.replace(node, "False")
            return
        head = self.denoted(node.func)
        left = called_in_python(head)
        if left is not None:
            self._returns(node, left)
        name = getattr(head, "__name__", None) or getattr(head, "_torch_path", "").rpartition(".")[2]
        typed = name in ("annotate", "cast", "_cast") and len(node.args) == 2 or name == "Attribute" and len(node.args) == 2
        if typed and head is not MISSING:
            at = 1 if name == "Attribute" else 0
            self.annotation(node.args[at])
            self.visit(node.func)
            self.visit(node.args[1 - at])
            return
        if name == "isinstance" and len(node.args) == 2:
            self.visit(node.func)
            self.visit(node.args[0])
            kinds = node.args[1].elts if isinstance(node.args[1], (ast.Tuple, ast.List)) else [node.args[1]]
            named = self.denoted(node.args[1]) if len(kinds) == 1 else MISSING
            if isinstance(named, tuple):
                # A variable with several classes.
                place = self.edits.source.place(node.args[1])
                texts = [self.texts.annotation_text(kind, place) for kind in _flat(named)]
                self.edits.replace(node.args[1], f"({', '.join(texts)},)")
                return
            if any(isinstance(kind, (ast.Tuple, ast.List)) for kind in kinds):
                place = self.edits.source.place(node.args[1])
                texts = [name if name in ("list", "dict", "tuple") else self.type_text(name, place) for name in _leaves(node.args[1])]
                self.edits.replace(node.args[1], f"({', '.join(texts)},)")
                return
            for kind in kinds:
                if not (isinstance(kind, ast.Name) and kind.id in ("list", "dict", "tuple")):
                    self.annotation(kind)
            return
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        self.unused = node.value
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        # The compiler omits the branch that only Python takes, which may have constructs that TorchScript does not support.
        live = self._is_true_in_programs(node.test)
        self.visit(node.test)
        for branch, is_dead in ((node.body, live is False), (node.orelse, live is True)):
            if not is_dead:
                for statement in branch:
                    self.visit(statement)
            elif branch and not (branch is node.orelse and self._is_elif(branch[0])):
                self._omit(branch)

    def _is_elif(self, statement: ast.stmt) -> bool:
        line = self.edits.source.lines[statement.lineno - 1].encode()
        return line[statement.col_offset :].startswith(b"elif")

    def visit_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.edits.source.place(node.orelse[0]).error("else branches of for loops aren't supported")
        with self._loop():
            self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.edits.source.place(node.orelse[0]).error("else branches of while loops aren't supported")
        with self._loop():
            self.generic_visit(node)

    @contextmanager
    def _loop(self) -> Iterator[None]:
        self.loops += 1
        try:
            yield
        finally:
            self.loops -= 1

    def visit_Break(self, node: ast.Break) -> None:
        self._exit_of_loop(node, "break")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._exit_of_loop(node, "continue")

    def _exit_of_loop(self, node: ast.stmt, name: str) -> None:
        # Python's own compiler checks functions, not texts.
        if not self.loops:
            raise self.edits.source.place(node).error(f"SyntaxError: '{name}' outside loop")

    def visit_Dict(self, node: ast.Dict) -> None:
        if None in node.keys:
            raise self.edits.source.place(node).error("Dict expansion (e.g. `{**dict}`) is not supported")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        live = self._is_true_in_programs(node.test)
        self.visit(node.test)
        if live is not False:
            self.visit(node.body)
        if live is not True:
            self.visit(node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        decisive = isinstance(node.op, ast.Or)
        for value in node.values:
            self.visit(value)
            if self._is_true_in_programs(value) is decisive:
                return

    def _is_true_in_programs(self, test: ast.expr) -> bool | None:
        """Returns the truth of a condition on `is_scripting()`, ``None`` for other conditions."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            truth = self._is_true_in_programs(test.operand)
            return None if truth is None else not truth
        if isinstance(test, ast.BoolOp):
            truths = [self._is_true_in_programs(value) for value in test.values]
            decisive = isinstance(test.op, ast.Or)
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        if isinstance(test, ast.Call) and self._asks_for_overrides(test):
            return False
        if isinstance(test, ast.Call) and not test.args:
            callee = self.denoted(test.func)
            module = getattr(callee, "__module__", None) or ""
            own = module.split(".")[0] in ("torch", "flambeau") or hasattr(callee, "_torch_path")
            if getattr(callee, "__name__", None) == "is_scripting" and own:
                return True
        return None

    def _asks_for_overrides(self, call: ast.Call) -> bool:
        """Returns whether a call asks if an argument overrides functions of PyTorch, which no value of a program does."""
        callee = self.denoted(call.func)
        module = getattr(callee, "__module__", None) or ""
        name = getattr(callee, "__name__", None) or ""
        return module.split(".")[0] == "torch" and name.lstrip("_") in (
            "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
        )  # fmt: skip

    def visit_Compare(self, node: ast.Compare) -> None:
        """Makes a chain the conjunction of its comparisons: in the compiler's own source, as in PyTorch's, comparisons associate to
        the left. As in PyTorch, the operands in the middle are evaluated twice."""
        middle = node.comparators[:-1]
        if middle:
            self.edits.insert((node.lineno, node.col_offset), "(")
        self.generic_visit(node)
        for operand in middle:
            at, is_enclosed = self.edits.source.behind(operand)
            text = self.edits.expression(operand)
            self.edits.insert(at, f" and ({text})" if is_enclosed else f" and {text}", operand)
        if middle:
            self.edits.insert((node.end_lineno or 1, node.end_col_offset or 0), ")")

    def visit_Name(self, node: ast.Name) -> None:
        self.check_name(node, node.id)
        if isinstance(node.ctx, ast.Load):
            self._replace(node, node, [])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names, root = chain(node)
        if isinstance(root, ast.Name) and isinstance(node.ctx, ast.Load):
            if root.id == self.receiver and self.attribute is not None and self.receiver in self.bound:
                text = self.attribute(names, self.edits.source.place(node))
                if text is not None:
                    self.edits.replace(node, text)
                return
            self._replace(node, root, names)
            return
        self.visit(root)

    def denoted(self, node: ast.expr) -> Any:
        """Returns the object of Python that a dotted name denotes."""
        names, root = chain(node)
        if not isinstance(root, ast.Name) or root.id in self.bound:
            return MISSING
        value = self.find(root.id)
        for name in names:
            value = getattr(value, name, MISSING) if value is not MISSING else MISSING
        return value

    def _replace(self, node: Any, root: ast.Name, names: list[str]) -> None:
        if root.id in self.bound:
            return
        value = self.find(root.id)
        if value is MISSING:
            # The compiler reports the undefined name.
            return
        path = getattr(value, "__name__", root.id) if isinstance(value, types.ModuleType) else root.id
        used = 0
        while used < len(names) and isinstance(value, types.ModuleType):
            found = getattr(value, names[used], MISSING)
            path = f"{path}.{names[used]}"
            used += 1
            if found is MISSING:
                if path.split(".")[0] not in MODULES:
                    raise self.edits.source.place(node).error(f"module '{value.__name__}' object has no attribute {names[used - 1]}")
                value = _Path(path)
                break
            value = found
        if isinstance(value, type) and used < len(names):
            member = inspect.getattr_static(value, names[used], None)
            if is_module_class(value) and member is not None and not isinstance(member, (types.FunctionType, property)):
                # A class of modules is compiled with its instances; its static and class methods are functions, its values constants.
                value, used = getattr(value, names[used]), used + 1
        text = self.texts.value_text(value, path, self.edits.source.place(node))
        end = node
        for _ in range(len(names) - used):
            end = end.value
        if text != ast.unparse(end):
            self.edits.replace(end, text)


class _Path:
    """A name of a module that the installed library does not have."""

    def __init__(self, path: str) -> None:
        self._torch_path = path


def _leaves(kinds: ast.expr) -> list[str]:
    """Returns the texts of the expressions in nested tuples."""
    if isinstance(kinds, (ast.Tuple, ast.List)):
        return [leaf for kind in kinds.elts for leaf in _leaves(kind)]
    return [ast.unparse(kinds)]


def _flat(kinds: Any) -> list[Any]:
    """Returns the classes of nested tuples, as `isinstance` takes them."""
    return [part for kind in kinds for part in _flat(kind)] if isinstance(kinds, tuple) else [kinds]
