"""What community brokers send back: read, checked, and joined to the alerts."""

from nightwire.consumers.returns.broker_message import (
    Classification,
    Return,
    ReturnError,
    as_return,
    joined,
    message_faults,
)
from nightwire.consumers.returns.return_reader import (
    STAGE,
    BadReturn,
    DeadLetterSink,
    ReturnReader,
)

__all__ = [
    "STAGE",
    "BadReturn",
    "Classification",
    "DeadLetterSink",
    "Return",
    "ReturnError",
    "ReturnReader",
    "as_return",
    "joined",
    "message_faults",
]
