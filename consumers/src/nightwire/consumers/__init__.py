"""Read alerts: in Python, on the command line, in a notebook.

Names are imported when they are asked for, so that `nightwire --help` need not wait for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nightwire.consumers.alert.alert import ReceivedAlert
    from nightwire.consumers.alert.stamps import Stamp, StampError
    from nightwire.consumers.reader.read_loop import BadRecord
    from nightwire.consumers.reader.reader import AlertReader
    from nightwire.consumers.returns.broker_message import Classification, Return, joined
    from nightwire.consumers.returns.return_reader import BadReturn, ReturnReader
    from nightwire.consumers.source.group import GroupError
    from nightwire.consumers.source.source import TopicError

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
    "AlertReader": "reader.reader",
    "BadRecord": "reader.read_loop",
    "BadReturn": "returns.return_reader",
    "Classification": "returns.broker_message",
    "GroupError": "source.group",
    "ReceivedAlert": "alert.alert",
    "Return": "returns.broker_message",
    "ReturnReader": "returns.return_reader",
    "Stamp": "alert.stamps",
    "StampError": "alert.stamps",
    "TopicError": "source.source",
    "joined": "returns.broker_message",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
