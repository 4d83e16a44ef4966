"""Dead letters: what they say of themselves, and what goes back to where they came from.  Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Message

from nightwire.core.accounts import Account
from nightwire.core.dead_letters import ORIGINAL
from nightwire.core.kafka import Headers, headers_of
from nightwire.schemas.topics import DEAD_LETTERS

STAGE = "dead-letters"
"""The stage of replayed letters in `accounts`."""

MARK = "dead-letter"
"""Header of a replayed record: the number of its letter."""

PLACE = re.compile(r"(?P<topic>[\w.-]+)\[(?P<partition>\d+)\]@(?P<offset>\d+)", re.ASCII)

ROW = 16
"""Bytes on a line of a dump."""


@dataclass(frozen=True)
class Letter:
    """One dead letter.

    Attributes:
        number: Its offset in `dead-letters`.
        value: The bytes that could not be used, as they came.
        key: The record's key.
        stage: Which stage could not use them.
        source: Where they came from: a file, or ``topic[partition]@offset``.
        reason: Why.
        time: When. [UTC]
        headers: The record's own headers, where the stage kept them.
    """

    number: int
    value: bytes = field(repr=False)
    key: bytes | None
    stage: str
    source: str
    reason: str
    time: datetime
    headers: Headers

    @property
    def origin(self) -> tuple[str, int, int] | None:
        """Topic, partition and offset of the record that it was; None where it came from a file."""
        if (place := PLACE.fullmatch(self.source)) is None:
            return None
        return place["topic"], int(place["partition"]), int(place["offset"])


def letter(message: Message) -> Letter:
    """Return the letter that a record of `dead-letters` is; what a header does not tell is empty."""
    named = headers_of(message)
    told = {name: named.get(name, b"").decode(errors="replace") for name in ("stage", "source", "reason")}
    written = named.get("time", b"")
    moment = int(written) if written.isdigit() else message.timestamp()[1]
    pairs: Any = message.headers() or ()
    return Letter(
        number=message.offset() or 0,
        value=message.value() or b"",
        key=message.key(),
        time=datetime.fromtimestamp(moment / 1000, UTC),
        headers=[
            (name.removeprefix(ORIGINAL), content or b"")
            for name, content in pairs
            if name.startswith(ORIGINAL)
        ],
        **told,
    )


def return_headers(one: Letter) -> Headers:
    """Return the headers that a letter is replayed with.

    Its own; where it first lay, if they do not tell, so that readers find its copies
    (`ReceivedAlert.origin`); and the number of the letter.
    """
    own = [(name, content) for name, content in one.headers if name != MARK]
    placed = {name for name, _ in own} >= {"topic", "partition", "offset"}
    if one.origin is not None and not placed:
        names = ("topic", "partition", "offset")
        own = [(name, content) for name, content in own if name not in names]
        own += [(name, str(value).encode()) for name, value in zip(names, one.origin, strict=True)]
    return [*own, (MARK, str(one.number).encode())]


def receipt(one: Letter) -> Account:
    """Return the account of a replayed letter: read, and delivered."""
    source = f"{DEAD_LETTERS}/{one.number}"
    return Account(STAGE, source, 0, one.number, one.number, read=1, delivered=1)


def dump(value: bytes, *, most: int = 256) -> Iterator[str]:
    """Yield the first *most* bytes of *value*, a line of offset, hexadecimal and text for each sixteen."""
    for start in range(0, min(len(value), most), ROW):
        row = value[start : min(start + ROW, most)]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        yield f"{start:08x}  {row.hex(' '):<{3 * ROW}} {text}"
    if len(value) > most:
        yield f"… {len(value) - most:,} bytes more"
