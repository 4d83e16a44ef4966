"""Names of a package that are imported when they are first asked for.

A package whose `__init__` lists names of heavy modules (NumPy, Arrow, rich, pyspark) gives itself
``__getattr__ = on_demand(__name__, {"Name": "module"})``, and imports them under `TYPE_CHECKING`.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``.

    Args:
        package: The package's ``__name__``.
        homes: Each name's module, relative to the package.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return attribute
