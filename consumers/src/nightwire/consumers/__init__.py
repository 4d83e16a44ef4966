"""Read alerts: in Python, on the command line, in a notebook.

Names are imported when they are asked for, so that `nightwire --help` need not wait for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nightwire.consumers.alert import ReceivedAlert, Stamp, StampError
    from nightwire.consumers.reader import AlertReader, BadRecord
    from nightwire.consumers.returns import (
        BadReturn,
        Classification,
        Return,
        ReturnReader,
        joined,
    )
    from nightwire.consumers.source import GroupError, TopicError

__all__ = [
    "AlertReader",
    "BadRecord",
    "BadReturn",
    "Classification",
    "GroupError",
    "ReceivedAlert",
    "Return",
    "ReturnReader",
    "Stamp",
    "StampError",
    "TopicError",
    "joined",
]

_PACKAGES = {
    "alert": ("ReceivedAlert", "Stamp", "StampError"),
    "reader": ("AlertReader", "BadRecord"),
    "returns": ("BadReturn", "Classification", "Return", "ReturnReader", "joined"),
    "source": ("GroupError", "TopicError"),
}


def __getattr__(name: str) -> Any:
    for package, names in _PACKAGES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{package}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
