"""The flows of a site: records of the compacted topic `flows`, folded, read and written.

Where Kafka has passwords, only operators may read and write the topic; the directory's process does
it for owners, each for his own flows, since an address that a flow posts to may be a secret.
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

from nightwire.core.kafka import REFUSALS, Writer, ensure_topics, error_code, principal, producer, read_to_end
from nightwire.core.presence import NobodyAnswersError, ask_directory
from nightwire.core.runtime import find_endpoints
from nightwire.schemas import MendableError, records
from nightwire.schemas.topics import FLOWS, settings

MOST_NAMES = 1000
"""Most names of flows, ended ones among them; more are refused."""
MAX_RECORD = 1 << 20
"""Longest record that is decoded. [byte]"""


class FlowDeniedError(MendableError):
    """Kafka denies us the topic `flows`, and no directory answers."""


@dataclass(frozen=True)
class FlowRecord:
    """A flow's record.

    Attributes:
        name: Its name.
        text: Its TOML; empty once it has ended and its name stays its owner's.
        paused: Whether it is paused.
        made_by: The owner, whose rights it has.
        made: When, by the owner's clock.
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
        held: The flows that have not ended.
        owners: Of all names, those of ended flows among them: their queues stay their owner's.
        refused: Malformed records, and those beyond `MOST_NAMES`.
        position: Offset after the last record.
    """

    def __init__(self) -> None:
        self.held: dict[str, tuple[FlowRecord, int]] = {}
        self.owners: dict[str, str] = {}
        self.refused = self.position = 0

    def apply(self, key: str, value: bytes | None, _appended: int, offset: int) -> None:
        """Apply the record at *offset*; None as its *value* is a tombstone."""
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
        """Do nothing: flows have no clock."""

    def wait(self, _seconds: float) -> None:
        """Do nothing: flows have no clock."""


def write_flow(bootstrap: str, name: str, text: str | None, *, paused: bool = False) -> int:
    """Write flow *name*, or its end where *text* is None; return its version: the record's offset.

    Raises:
        FlowDeniedError: Kafka denies us the topic, and no directory answers.
        SiteHttpError: The directory refuses: the flow is another owner's.
    """
    who = principal(bootstrap) or f"{getpass.getuser()}@{socket.gethostname()}"
    made = FlowRecord(name, text or "", paused, who, datetime.now(UTC))
    value = None if text is None else records.FLOW.encode(asdict(made))
    try:
        ensure_topics(bootstrap, [settings(FLOWS)])  # denied where we may not see the topic
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
    """Return the current flows; for owners, where Kafka has passwords, their own.

    Raises:
        FlowDeniedError: Kafka denies us the topic, and no directory answers.
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
    """Return the names of flows; for users who may read `flows`, of ended ones, too.

    Raises:
        FlowDeniedError: Kafka denies us the topic, and no directory answers.
        SiteHttpError: The directory refuses.
    """
    try:
        return {*read_flow_table(bootstrap).owners}
    except KafkaException:
        return {*read_flows(bootstrap)}


def read_flow_table(bootstrap: str) -> FlowTable:
    """Return the table of all owners' flows.

    Raises:
        KafkaException: Kafka does not answer, or denies us the topic.
    """
    table = FlowTable()
    for message in read_to_end(bootstrap, [FLOWS]):
        key = (message.key() or b"").decode(errors="replace")
        table.apply(key, message.value(), 0, message.offset() or 0)
    return table


def ask_for_flows(
    bootstrap: str, error: KafkaException, method: str, path: str, body: bytes | None = None
) -> dict[str, Any]:
    """Return the directory's answer, where *error* is that Kafka denies us the topic."""
    if error_code(error) not in REFUSALS:
        raise error
    try:
        found: dict[str, Any] = ask_directory(find_endpoints(bootstrap), method, path, content=body).json()
    except NobodyAnswersError as away:
        raise FlowDeniedError(
            f"{away}; it reads and writes flows for their owners: name it in NIGHTWIRE_DIRECTORY"
        ) from away
    return found
