"""Read alerts: in Python, on the command line, in a notebook.

Names are imported when they are asked for, so that `nightwire --help` need not wait for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nightwire.consumers._group import GroupError
    from nightwire.consumers._reader import AlertReader
    from nightwire.consumers._reading import BadRecord
    from nightwire.consumers._received import ReceivedAlert
    from nightwire.consumers._return_reader import BadReturn, ReturnReader
    from nightwire.consumers._returns import Classification, Return, joined
    from nightwire.consumers._source import TopicError
    from nightwire.consumers._stamps import Stamp, StampError

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

_HOMES = {
    "AlertReader": "_reader",
    "BadRecord": "_reading",
    "BadReturn": "_return_reader",
    "Classification": "_returns",
    "GroupError": "_group",
    "ReceivedAlert": "_received",
    "Return": "_returns",
    "ReturnReader": "_return_reader",
    "Stamp": "_stamps",
    "StampError": "_stamps",
    "TopicError": "_source",
    "joined": "_returns",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
