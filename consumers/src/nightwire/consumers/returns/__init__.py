"""What community brokers send back: read, checked, and joined to the alerts."""

from nightwire.consumers.returns.broker_message import Classification, Return, joined
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
    "ReturnReader",
    "joined",
]
