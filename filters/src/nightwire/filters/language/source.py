"""What a filter may be: a Python function of one alert, as source text.

Pure: source in, objections or a callable out.  This is no sandbox.  `objections` refuses what a
filter has no business with and says so in plain words, but whoever wants to get around it can.
"""

import ast
import math
import sys
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from nightwire.filters.language.columns import NAMED, TABLE, column_arguments

FILENAME = "<filter>"
"""File name of a filter's code in tracebacks."""

MODULE = "nightwire_filter"
"""Module name of a filter's code."""

MODULES = frozenset(
    {
        *(
            "math",
            "cmath",
            "statistics",
            "decimal",
            "fractions",
            "datetime",
            "re",
            "typing",
            "dataclasses",
            "enum",
        ),
        *("itertools", "functools", "collections", "operator", "bisect", "heapq", "__future__"),
        *("numpy", "scipy", "pandas", "astropy", "healpy"),
    }
)
"""Packages that a filter may import: they compute, and reach for nothing outside the alert."""

FORBIDDEN = frozenset(
    {
        *("open", "exec", "eval", "compile", "input", "breakpoint", "exit", "quit", "help"),
        *("__import__", "__builtins__", "__loader__", "__spec__", "globals", "locals", "vars"),
        *("memoryview", "setattr", "delattr"),
    }
)
"""Built-ins that a filter may not name."""

DUNDERS = frozenset(
    {
        "__init__",
        "__post_init__",
        "__name__",
        "__doc__",
        "__len__",
        "__iter__",
        "__call__",
        "__eq__",
        "__repr__",
    }
)
"""Special names that ordinary classes need; all others are refused."""

MAX_SOURCE = 2_500_000
"""Longest source accepted. [character]"""

Predicate = Callable[[Any], Any]


def without_surrogates(text: str) -> str:
    """Return *text* in characters that can be sent; a lone surrogate of a source's is none."""
    return text.encode("utf-8", "replace").decode()


class FilterError(Exception):
    """A filter cannot be used; *reasons* say why, one line each."""

    def __init__(self, *reasons: str) -> None:
        self.reasons = [*map(without_surrogates, reasons)]
        super().__init__("; ".join(self.reasons))


def objections(source: str, entry: str) -> list[str]:
    """Return what is wrong with *source* as a filter whose function is *entry*, if anything."""
    try:
        tree = parsed(source)
    except FilterError as error:
        return error.reasons
    return [*_entry_objections(tree, entry), *(line for node in ast.walk(tree) for line in _refusals(node))]


def parsed(source: str) -> ast.Module:
    """Return the syntax tree of *source*.

    Raises:
        FilterError: It is too long, or no Python.
    """
    if len(source) > MAX_SOURCE:
        raise FilterError(f"the source has {len(source):,} characters, limit is {MAX_SOURCE:,}")
    try:
        return ast.parse(source, FILENAME)
    except SyntaxError as error:
        raise FilterError(f"line {error.lineno}: {error.msg} (column {error.offset})") from error
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes, nested too deeply
        raise FilterError(f"the source cannot be parsed: {str(error) or type(error).__name__}") from error


def compile_filter(source: str, entry: str) -> Predicate:
    """Return the function *entry* of *source*, ready to be called with an alert.

    Runs the source's top level: imports and constants.

    Raises:
        FilterError: The source is refused, or its top level fails.
    """
    if found := objections(source, entry):
        raise FilterError(*found)
    namespace: dict[str, Any] = {"__name__": MODULE}
    sys.modules.setdefault(MODULE, ModuleType(MODULE))  # dataclasses look their module up
    try:
        exec(compile(source, FILENAME, "exec"), namespace)  # noqa: S102 - this is what a filter is
    except Exception as error:
        raise FilterError(fault_text(error, source)) from error
    function: Predicate = namespace[entry]
    return function


def fault_text(error: BaseException, source: str, filename: str = FILENAME) -> str:
    """Describe *error*, raised by *source*, with the line where it happened."""
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()
    text = without_surrogates(said[-1][:300])
    lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == filename]
    if not lines or lines[-1] is None:
        return text
    code = source.splitlines()[lines[-1] - 1].strip() if lines[-1] <= source.count("\n") + 1 else ""
    return f"{text} (line {lines[-1]}: {code[:120]})"


def _entry_objections(tree: ast.Module, entry: str) -> Iterator[str]:
    function = next((node for node in _functions(tree) if node.name == entry), None)
    if function is None:
        names = ", ".join(node.name for node in _functions(tree)) or "none"
        yield f"there is no function {entry}(alert); functions found: {names}"
    elif column_arguments(tree, entry) is None and len(function.args.args) - len(function.args.defaults) != 1:
        many = f"; or {TABLE}, or the columns that {NAMED} names, as many as these"
        yield f"line {function.lineno}: {entry} must take one argument, the alert{many}"


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def _refusals(node: ast.AST) -> Iterator[str]:
    line = f"line {getattr(node, 'lineno', 0)}"
    if isinstance(node, ast.Import):
        yield from (_no_import(line, item.name) for item in node.names if not _may_import(item.name))
    elif isinstance(node, ast.ImportFrom):
        if node.level or not _may_import(node.module or ""):
            yield _no_import(line, "." * node.level + (node.module or ""))
    elif isinstance(node, ast.Name) and node.id in FORBIDDEN:
        yield f"{line}: a filter may not use {node.id}"
    elif isinstance(node, ast.Attribute) and _special(node.attr):
        yield f"{line}: a filter may not reach for .{node.attr}"
    elif isinstance(node, ast.Global):
        yield f"{line}: a filter may not change globals ({', '.join(node.names)})"
    elif isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.Yield | ast.YieldFrom):
        yield f"{line}: a filter is a plain function; no async, await or yield"


def _special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in DUNDERS


def _may_import(module: str) -> bool:
    return module.split(".")[0] in MODULES


def _no_import(line: str, module: str) -> str:
    allowed = ", ".join(sorted(MODULES - {"__future__"}))
    return f"{line}: a filter may not import {module}; it may import {allowed}"


def rank_of(result: Any) -> float:
    """Return the number that a filter's *result* ranks by; NaN where it is none.

    A truth value, NumPy's too, says that the alert passes, and no more.
    """
    if isinstance(result, bool) or type(result).__name__.startswith("bool"):
        return math.nan
    try:
        return float(result)
    except (TypeError, ValueError, OverflowError):
        return math.nan
