"""The flows that there are: records of the topic `flows`, written, folded and followed."""

import getpass
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache

from nightwire.core.kafka import TableFollower, Writer, ensure_topics, principal, producer, read_to_end
from nightwire.flows.model import Flow, FlowError, parse
from nightwire.schemas import MendableError, records
from nightwire.schemas.topics import FLOWS, settings

MOST = 1000
"""Most flows that are held; what is beyond is refused."""
MAX_RECORD = 1 << 20
"""Longest record that is looked at. [byte]"""


@dataclass(frozen=True)
class FlowRecord:
    """A flow as `flows` has it.

    Attributes:
        name: Its name.
        text: What it is, in TOML.
        paused: Whether it reads nothing for now.
        made_by: Who made it so.
        made: When, by his clock.
    """

    name: str
    text: str
    paused: bool
    made_by: str
    made: datetime


class FlowTable:
    """The flows of the log, record by record.

    Attributes:
        refused: Records that could not stand here.
        position: Offset after the last record.
    """

    def __init__(self) -> None:
        self.held: dict[str, tuple[FlowRecord, int]] = {}
        self.refused = self.position = 0

    def apply(self, key: str, value: bytes | None, _appended: int, offset: int) -> None:
        """Note the record at *offset*; None as its *value* is a tombstone."""
        self.position = offset + 1
        if value is None:
            self.held.pop(key, None)
            return
        with suppress(MendableError):
            found = records.FLOW.decode(value) if len(value) <= MAX_RECORD else {}
            if found.get("name") == key and (key in self.held or len(self.held) < MOST):
                self.held[key] = (FlowRecord(**found), offset)
                return
        self.refused += 1

    def caught_up(self) -> None:
        """Nothing depends on that: flows have no clock."""

    def wait(self, _seconds: float) -> None:
        """Nothing depends on that: flows have no clock."""


class FlowFollower(TableFollower[FlowTable]):
    """Follows which flows there are in the Kafka at *bootstrap*, within a ``with`` block."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap, FLOWS, FlowTable, poll=0.05)

    def flows(self) -> Mapping[str, tuple[FlowRecord, int]]:
        """Return the flows by name, each with the offset of its record: its version."""
        with self._changed:
            return dict(self._table.held)

    def await_change(self, timeout: float) -> None:
        """Wait at most *timeout* [s] for something new in the log."""
        with self._changed:
            self._changed.wait(timeout)


def write_flow(bootstrap: str, name: str, text: str | None, *, paused: bool = False) -> int:
    """Write flow *name*, or that it has ended; return its version, the offset of its record."""
    ensure_topics(bootstrap, [settings(FLOWS)])
    who = principal(bootstrap) or f"{getpass.getuser()}@{socket.gethostname()}"
    made = FlowRecord(name, text or "", paused, who, datetime.now(UTC))
    value = None if text is None else records.FLOW.encode(asdict(made))
    offsets: list[int] = []
    # an idempotent producer asks for its number again after half a second: a change would wait;
    # a record that a retry doubles is the same flow
    writer = Writer(producer(bootstrap, linger_ms=0, enable_idempotence=False))
    writer.write(
        FLOWS, value, key=name.encode(), on_delivered=lambda message: offsets.append(message.offset() or 0)
    )
    writer.flush()
    return offsets[0]


def readable(found: Iterable[FlowRecord]) -> Iterator[Flow]:
    """Yield the flows in the records *found* that hold one, and run."""
    for one in found:
        with suppress(FlowError):
            if not one.paused:
                yield _parsed(one.text)


_parsed = lru_cache(MOST)(parse)
"""All flows are looked at whenever one changes."""


def read_flows(bootstrap: str) -> Mapping[str, tuple[FlowRecord, int]]:
    """Return the flows that there are now, by name, with their versions."""
    table = FlowTable()
    for message in read_to_end(bootstrap, [FLOWS]):
        key = (message.key() or b"").decode(errors="replace")
        table.apply(key, message.value(), 0, message.offset() or 0)
    return table.held
