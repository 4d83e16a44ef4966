"""Read alerts: in Python, on the command line, in a notebook.

Names are imported when they are asked for, so that `nightwire --help` need not wait for NumPy.
"""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

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

__getattr__ = on_demand(__name__)


def __dir__() -> list[str]:
    return __all__
