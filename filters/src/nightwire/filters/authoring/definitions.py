"""The names that a script defines at its top level, and which of them are constants.

Pure: the text alone.  A constant is an expression with the same value wherever it is evaluated; a
name that reads a file, the clock or chance, or is changed later, is *made by running*.
"""

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from nightwire.filters.language import MODULES

FUTURE = "from __future__ import annotations\n"
"""Annotations need not travel: with this they are never evaluated."""

PURE_BUILTINS = {
    *("set", "frozenset", "dict", "tuple", "list", "range", "int", "float", "str", "bool", "complex"),
    *("min", "max", "sum", "abs", "round", "sorted", "len"),
}
"""Built-ins that a constant may call."""

CONSTANT_NODES = (
    ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop,
    ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Call, ast.keyword, ast.expr_context,
)  # fmt: skip
"""Syntax that the expression of a constant may have."""

IMPURE_PREFIXES = (
    *("read", "load", "open", "fromfile", "genfromtxt", "memmap"),
    *("rand", "now", "today", "query", "get_"),
)
"""First letters of functions that read files, the network, the clock, or chance."""

MUTATING_METHODS = {
    *("append", "extend", "insert", "add", "update", "setdefault", "remove", "discard", "pop", "clear"),
    *("sort", "reverse", "fill", "resize"),
}
"""Methods that change a container."""


class Kind(Enum):
    """Kinds of definitions."""

    FUNCTION = "function"
    CLASS = "class"
    IMPORT = "import"
    CONSTANT = "constant"
    COMPUTED = "made by running"


@dataclass(frozen=True)
class Definition:
    """One name at the top level.

    Attributes:
        name: The name.
        order: Number of the statement of the script that defines it.
        line: Its line in the script.
        kind: Its kind.
        code: The code that defines it.
        module: The module of an import; None for others.
    """

    name: str
    order: int
    line: int
    kind: Kind
    code: str
    module: str | None = None


def definitions(tree: ast.Module, code: str) -> Iterator[Definition]:
    """Yield each definition at the top level of a script; of one name the last counts."""
    lines = code.splitlines()
    imported = {alias.asname or alias.name.split(".")[0] for alias in _aliases(tree)}
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    fixed = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} | classes | imported
    for order, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            text = "\n".join(lines[first - 1 : node.end_lineno])
            kind = Kind.FUNCTION if isinstance(node, ast.FunctionDef) else Kind.CLASS
            yield Definition(node.name, order, node.lineno, kind, text)
        elif (function := _named_lambda(node)) is not None:
            yield Definition(function[0], order, node.lineno, Kind.FUNCTION, function[1])
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            kind = Kind.CONSTANT if _is_constant(value, imported | classes) else Kind.COMPUTED
            statement = ast.unparse(node)
            for name in bound_names(node, fixed):
                yield Definition(name, order, node.lineno, kind, statement)
        yield from _imports(node, order)


def bound_names(node: ast.stmt, fixed: set[str]) -> set[str]:
    """Return the names that *node* binds at the top level, and the containers that it changes.

    Args:
        node: A statement of the top level.
        fixed: Functions, classes and modules: those are not changed by calling their methods.
    """
    table = symtable.symtable(ast.unparse(node), "<statement>", "exec")
    names = {item.get_name() for item in table.get_symbols() if item.is_assigned() or item.is_imported()}
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
        return names
    changed = {leftmost(item) for item in ast.walk(node) if _changes(item)}
    return names | {name for name in changed if name and name not in fixed}


def leftmost(node: ast.AST) -> str | None:
    """Return the name that an expression such as ``a.b[0].c(…)`` begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _changes(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute | ast.Subscript):
        return isinstance(node.ctx, ast.Store | ast.Del)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in MUTATING_METHODS
    )


def _aliases(tree: ast.Module) -> Iterator[ast.alias]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and _root(node) in MODULES:
            yield from node.names


def _root(node: ast.Import | ast.ImportFrom) -> str:
    name = node.names[0].name if isinstance(node, ast.Import) else node.module or ""
    return name.split(".")[0]


def _imports(statement: ast.stmt, order: int) -> Iterator[Definition]:
    """Yield the imports of a statement, inside a ``try`` or an ``if`` too."""
    inside = ast.iter_child_nodes(statement) if isinstance(statement, ast.Try | ast.If) else ()
    for node in [statement, *inside]:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            name = alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)
            one: ast.stmt
            if isinstance(node, ast.Import):
                one, module = ast.Import(names=[alias]), alias.name
            else:
                one, module = ast.ImportFrom(node.module, [alias], node.level), node.module or "."
            yield Definition(name, order, node.lineno, Kind.IMPORT, ast.unparse(one), module)


def _named_lambda(node: ast.stmt) -> tuple[str, str] | None:
    """Return the name of ``name = lambda …`` and its code as a function; None for others."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and len(node.targets) == 1):
        return None
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Name):
        return None
    return target.id, f"def {target.id}({ast.unparse(value.args)}):\n    return {ast.unparse(value.body)}"


def _is_constant(value: ast.expr | None, makers: set[str]) -> bool:
    """Return whether *value* means the same anywhere; it may call *makers* and PURE_BUILTINS."""
    if value is None or not all(isinstance(item, CONSTANT_NODES) for item in ast.walk(value)):
        return False
    calls = [item.func for item in ast.walk(value) if isinstance(item, ast.Call)]
    named = {part for call in calls for part in ast.unparse(call).split(".")}
    if any(part.startswith(IMPURE_PREFIXES) for part in named):
        return False
    return all(leftmost(function) in makers | PURE_BUILTINS for function in calls)
