"""What of a notebook or script travels to the engine: the filter's function and what it uses.

Runs on the submitter's side, on the text alone: nothing is executed.  Functions, classes, imports and
constants travel when the filter uses them, directly or through one another; prints, plots and the
loading of samples stay at home.
"""

import ast
import builtins
import json
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nightwire.filters.language import MODULES, FilterError

FUTURE = "from __future__ import annotations\n"
"""Annotations need not travel: with this they are never evaluated."""

MAKERS = {"set", "frozenset", "dict", "tuple", "list", "range", "int", "float", "str", "bool", "complex"} | {
    "min", "max", "sum", "abs", "round", "sorted", "len"
}  # fmt: skip
"""Built-ins that a constant may call."""

CONSTANT = (
    ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop,
    ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Call, ast.keyword, ast.expr_context,
)  # fmt: skip
"""What a constant's expression may be made of."""


@dataclass(frozen=True)
class Definition:
    """One name at the top level: its code, and why it cannot travel where it cannot."""

    name: str
    order: int
    line: int
    code: str
    refusal: str | None = None


def code_of(text: str, *, notebook: bool) -> str:
    """Return the Python in a file: all of a script, the code cells of a notebook, without IPython's magics.

    Raises:
        FilterError: It is no notebook.
    """
    if not notebook:
        return text
    try:
        cells = json.loads(text)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise FilterError(f"this is no Jupyter notebook: {type(error).__name__}: {error}") from error
    return "\n".join(_without_magics(source) for source in sources)


def extract(code: str, entry: str = "keep") -> str:
    """Return the source of the function *entry* with all that it uses, in the order it was written.

    Args:
        code: A whole script.
        entry: The filter's function.

    Raises:
        FilterError: The code does not parse, has no such function, or the function uses what cannot travel.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise FilterError(f"line {error.lineno}: {error.msg}") from error
    known = {found.name: found for found in _definitions(tree, code)}  # the last definition counts
    if entry not in known or not known[entry].code.lstrip().startswith(("def ", "@")):
        names = ", ".join(node.name for node in tree.body if isinstance(node, ast.FunctionDef)) or "none"
        raise FilterError(f"there is no function {entry}(alert); functions found: {names}")
    used = _closure(known, entry)
    return FUTURE + "\n".join(found.code for found in sorted(used, key=lambda found: found.order)) + "\n"


def _closure(known: dict[str, Definition], entry: str) -> list[Definition]:
    """Return the definitions that *entry* needs, itself among them."""
    todo, done, reasons = [entry], dict[str, Definition](), list[str]()
    while todo:
        one = known[todo.pop()]
        done[one.name] = one
        if one.refusal:
            reasons.append(one.refusal)
            continue
        for name in sorted(_globals_used(one.code) - done.keys() - set(todo)):
            if name in known:
                todo.append(name)
            elif not hasattr(builtins, name):
                reasons.append(f"{one.name} (line {one.line}) uses {name}, which nothing defines")
    if reasons:
        raise FilterError(*reasons)
    return list(done.values())


def _globals_used(code: str) -> set[str]:
    tables = [symtable.symtable(FUTURE + code, "<filter>", "exec")]
    names: set[str] = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        if table.get_type() not in {"module", "class", "function"}:
            continue  # annotations
        top = table.get_type() == "module"
        names |= {
            item.get_name()
            for item in table.get_symbols()
            if item.is_referenced() and (top or item.is_global())
        }
    return names


def _definitions(tree: ast.Module, code: str) -> Iterator[Definition]:
    lines = code.splitlines()
    imported = {alias.asname or alias.name.split(".")[0] for alias in _aliases(tree)}
    for order, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            text = "\n".join(lines[first - 1 : node.end_lineno])
            yield Definition(node.name, order, node.lineno, text)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node, order)
        else:
            yield from _assignments(node, order, imported)


def _aliases(tree: ast.Module) -> Iterator[ast.alias]:
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and _root(node) in MODULES:
            yield from node.names


def _root(node: ast.Import | ast.ImportFrom) -> str:
    name = node.names[0].name if isinstance(node, ast.Import) else node.module or ""
    return name.split(".")[0]


def _imports(node: ast.Import | ast.ImportFrom, order: int) -> Iterator[Definition]:
    for alias in node.names:
        name = alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)
        one: ast.stmt
        if isinstance(node, ast.Import):
            one = ast.Import(names=[alias])
        else:
            one = ast.ImportFrom(module=node.module, names=[alias], level=node.level)
        yield Definition(name, order, node.lineno, ast.unparse(one))


def _assignments(node: ast.stmt, order: int, imported: set[str]) -> Iterator[Definition]:
    """Yield a definition for each name that *node* binds: a constant, or one that cannot travel."""
    names = {
        item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
    }
    constant = isinstance(node, ast.Assign | ast.AnnAssign) and _constant(node.value, imported)
    for name in names:
        refusal = None if constant else (
            f"line {node.lineno}: the filter uses {name}, which is made by running "
            f"`{ast.unparse(node).splitlines()[0][:80]}`; only functions, imports and constants travel"
        )  # fmt: skip
        yield Definition(name, order, node.lineno, ast.unparse(node), refusal)


def _constant(value: ast.expr | None, imported: set[str]) -> bool:
    if value is None or not all(isinstance(item, CONSTANT) for item in ast.walk(value)):
        return False
    calls = (item.func for item in ast.walk(value) if isinstance(item, ast.Call))
    return all(_leftmost(function) in imported | MAKERS for function in calls)


def _leftmost(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _without_magics(cell: str) -> str:
    if cell.lstrip().startswith("%%"):
        first, _, rest = cell.lstrip().partition("\n")
        return _without_magics(rest) if first.split()[0] in {"%%time", "%%timeit", "%%capture"} else ""
    return "\n".join(_plain(cell.splitlines()))


def _plain(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        stripped = line.lstrip()
        magic = stripped.startswith(("%", "!")) or stripped.rstrip().endswith("?")
        yield f"{line[: len(line) - len(stripped)]}pass" if magic else line
