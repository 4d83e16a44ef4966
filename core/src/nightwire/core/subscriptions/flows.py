"""The flows that there are: records of the compacted topic `flows`, folded, read and written.

Where Kafka asks for passwords, the topic is the operator's: the directory's process reads and
writes it for owners, to each his own, since an address that a flow posts to may be a secret.
"""

import getpass
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from confluent_kafka import KafkaException

from nightwire.core.kafka import REFUSALS, Writer, ensure_topics, principal, producer, read_to_end
from nightwire.core.presence import NobodyAnswersError, ask_directory
from nightwire.core.runtime import find_endpoints
from nightwire.schemas import MendableError, records
from nightwire.schemas.topics import FLOWS, settings

MOST_NAMES = 1000
"""Most names that flows have, or had; what is beyond is refused."""
MAX_RECORD = 1 << 20
"""Longest record that is looked at. [byte]"""


class FlowDeniedError(MendableError):
    """Kafka keeps `flows` from us, and no directory speaks for us."""


@dataclass(frozen=True)
class FlowRecord:
    """A flow as `flows` has it.

    Attributes:
        name: Its name.
        text: What it is, in TOML; empty once it has ended, where its name stays its owner's.
        paused: Whether it reads nothing for now.
        made_by: Who made it so, whose rights it has.
        made: When, by his clock.
    """

    name: str
    text: str
    paused: bool
    made_by: str
    made: datetime


Flows = Mapping[str, tuple[FlowRecord, int]]
"""Flows by name, each with the offset of its record: its version."""


class FlowTable:
    """The flows of the log, record by record.

    Attributes:
        held: The flows.
        owners: Who made each, and each that has ended and whose queues are not to be another's.
        refused: Records that could not stand here.
        position: Offset after the last record.
    """

    def __init__(self) -> None:
        self.held: dict[str, tuple[FlowRecord, int]] = {}
        self.owners: dict[str, str] = {}
        self.refused = self.position = 0

    def apply(self, key: str, value: bytes | None, _appended: int, offset: int) -> None:
        """Note the record at *offset*; None as its *value* is a tombstone."""
        self.position = offset + 1
        if value is None:
            self.held.pop(key, None)
            self.owners.pop(key, None)
            return
        with suppress(MendableError):
            found = records.FLOW.decode(value) if len(value) <= MAX_RECORD else {}
            if found.get("name") == key and (key in self.owners or len(self.owners) < MOST_NAMES):
                self._note(FlowRecord(**found), offset)
                return
        self.refused += 1

    def _note(self, found: FlowRecord, offset: int) -> None:
        self.owners[found.name] = found.made_by
        if found.text:
            self.held[found.name] = (found, offset)
        else:
            self.held.pop(found.name, None)

    def caught_up(self) -> None:
        """Nothing depends on that: flows have no clock."""

    def wait(self, _seconds: float) -> None:
        """Nothing depends on that: flows have no clock."""


def write_flow(bootstrap: str, name: str, text: str | None, *, paused: bool = False) -> int:
    """Write flow *name*, or that it has ended; return its version, the offset of its record.

    Raises:
        FlowDeniedError: Kafka keeps `flows` from us, and no directory is known.
        SiteHttpError: The directory refuses: the flow is another's.
    """
    who = principal(bootstrap) or f"{getpass.getuser()}@{socket.gethostname()}"
    made = FlowRecord(name, text or "", paused, who, datetime.now(UTC))
    value = None if text is None else records.FLOW.encode(asdict(made))
    try:
        ensure_topics(bootstrap, [settings(FLOWS)])  # whoever may not even see it, may not make it
    except KafkaException as error:
        path = f"/flows/{quote(name, safe='')}"
        return int(
            ask_for_flows(bootstrap, error, "DELETE" if value is None else "PUT", path, value)["version"]
        )
    return append_flow(bootstrap, name, value)


def append_flow(bootstrap: str, name: str, value: bytes | None) -> int:
    """Append a record to `flows`; return its offset.

    Raises:
        DeliveryError: Kafka does not take it.
    """
    offsets: list[int] = []
    # an idempotent producer asks for its number again after half a second: a change would wait;
    # a record that a retry doubles is the same flow
    writer = Writer(producer(bootstrap, linger_ms=0, enable_idempotence=False))
    writer.write(
        FLOWS, value, key=name.encode(), on_delivered=lambda message: offsets.append(message.offset() or 0)
    )
    writer.flush()
    return offsets[0]


def read_flows(bootstrap: str) -> Flows:
    """Return the flows that there are now; where Kafka asks for passwords, an owner's his own.

    Raises:
        FlowDeniedError: Kafka keeps `flows` from us, and no directory is known.
        SiteHttpError: The directory refuses.
    """
    try:
        return read_flow_table(bootstrap).held
    except KafkaException as error:
        return {
            one["name"]: (FlowRecord(**one | {"made": datetime.fromisoformat(one["made"])}), version)
            for one, version in ask_for_flows(bootstrap, error, "GET", "/flows")["flows"]
        }


def read_names(bootstrap: str) -> set[str]:
    """Return the names that flows have, and for who may read `flows` those that ended ones keep.

    Raises:
        FlowDeniedError: Kafka keeps `flows` from us, and no directory is known.
        SiteHttpError: The directory refuses.
    """
    try:
        return {*read_flow_table(bootstrap).owners}
    except KafkaException:
        return {*read_flows(bootstrap)}


def read_flow_table(bootstrap: str) -> FlowTable:
    """Return everybody's flows, which few may read.

    Raises:
        KafkaException: Kafka does not answer, or keeps them from us.
    """
    table = FlowTable()
    for message in read_to_end(bootstrap, [FLOWS]):
        key = (message.key() or b"").decode(errors="replace")
        table.apply(key, message.value(), 0, message.offset() or 0)
    return table


def ask_for_flows(
    bootstrap: str, error: KafkaException, method: str, path: str, body: bytes | None = None
) -> dict[str, Any]:
    """Return what the directory answers, where *error* is that Kafka keeps `flows` from us."""
    if error.args[0].code() not in REFUSALS:
        raise error
    try:
        found: dict[str, Any] = ask_directory(find_endpoints(bootstrap), method, path, content=body).json()
    except NobodyAnswersError as away:
        raise FlowDeniedError(
            f"{away}; it reads and writes flows for their owners: name it in NIGHTWIRE_DIRECTORY"
        ) from away
    return found
