"""Names of a package that are imported when they are first asked for.

A package whose `__init__` lists names of heavy modules (NumPy, Arrow, rich, pyspark) imports them
under `TYPE_CHECKING`, and gives itself ``__getattr__ = on_demand(__name__)``; or, where it is used
by processes that read no files, ``on_demand(__name__, {"Name": "module"})``.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any


def on_demand(package: str, homes: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``.

    Args:
        package: The package's ``__name__``.
        homes: Each name's module, relative to the package; by default as its own source imports it
            under `TYPE_CHECKING`.
    """

    def attribute(name: str) -> Any:
        known = homes if homes is not None else {} if name.startswith("__") else _imported(package)
        if name not in known:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{known[name]}"), name)

    return attribute


@cache
def _imported(package: str) -> Mapping[str, str]:
    """Return the names that a package imports under `TYPE_CHECKING`, each with its module."""
    tree = ast.parse(inspect.getsource(sys.modules[package]))
    steps = [step for node in tree.body if isinstance(node, ast.If) for step in node.body]
    return {
        one.name: str(step.module).removeprefix(f"{package}.")
        for step in steps
        if isinstance(step, ast.ImportFrom) and str(step.module).startswith(f"{package}.")
        for one in step.names
    }
