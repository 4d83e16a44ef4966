"""Dead letters: what they say of themselves, and what goes back to where they came from.  Pure."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from confluent_kafka import Message
from rich.table import Table
from rich.text import Text

from nightwire.core.accounting import ORIGINAL, Account
from nightwire.core.kafka import Headers, headers_of
from nightwire.schemas import Decoded, SchemaError
from nightwire.schemas.topics import DEAD_LETTERS

STAGE = "dead-letters"
"""The stage of replayed letters in `accounts`."""

MARK = "dead-letter"
"""Header of a replayed record: the number of its letter."""

PLACE = re.compile(r"(?P<topic>[\w.-]+)\[(?P<partition>\d+)\]@(?P<offset>\d+)", re.ASCII)

ROW = 16
"""Bytes on a line of a dump."""


@dataclass(frozen=True)
class DeadLetter:
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


def letter(message: Message) -> DeadLetter:
    """Return the letter that a record of `dead-letters` is; what a header does not tell is empty."""
    named = headers_of(message)
    told = {name: named.get(name, b"").decode(errors="replace") for name in ("stage", "source", "reason")}
    written = named.get("time", b"")
    moment = int(written) if written.isdigit() else message.timestamp()[1]
    pairs: Any = message.headers() or ()
    return DeadLetter(
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


def return_headers(one: DeadLetter) -> Headers:
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


def receipt(one: DeadLetter) -> Account:
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


class Decoder(Protocol):
    """What we need of an `AlertDecoder`."""

    def decode(self, value: bytes) -> Decoded:
        """Return the alert, its Avro body and its schema."""


def as_record(one: DeadLetter, replayed: bool) -> dict[str, Any]:
    """Return a letter as what JSON has, without its bytes."""
    return {
        "number": one.number,
        "time": one.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "stage": one.stage,
        "source": one.source,
        "reason": one.reason,
        "bytes": len(one.value),
        "key": _text(one.key),
        "headers": {name: _text(content) for name, content in one.headers},
        "replayed": replayed,
    }


def table(letters: Sequence[DeadLetter], replayed: Collection[int]) -> Table:
    """Return a row a letter."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    rows.add_column("N", justify="right")
    for name in ("time (UTC)", "stage", "source"):
        rows.add_column(name, overflow="fold")
    rows.add_column("bytes", justify="right")
    rows.add_column("replayed")
    rows.add_column("reason", overflow="fold")
    for one in letters:
        mark = "yes" if one.number in replayed else ""
        when, size = f"{one.time:%Y-%m-%d %H:%M:%S}", f"{len(one.value):,}"
        rows.add_row(str(one.number), when, one.stage, Text(one.source), size, mark, Text(one.reason))
    return rows


def lines(one: DeadLetter, verdict: str) -> Iterator[str]:
    """Yield all there is to tell of a letter."""
    yield f"letter   {one.number}"
    yield f"source   {one.source}"
    yield f"stage    {one.stage}"
    yield f"time     {one.time:%Y-%m-%d %H:%M:%S} UTC"
    yield f"reason   {one.reason}"
    yield f"key      {_text(one.key) or '-'}"
    for name, content in one.headers:
        yield f"header   {name} = {_text(content)}"
    yield f"value    {len(one.value):,} bytes; {verdict}"
    yield from dump(one.value)


def verdict(one: DeadLetter, decoder: Decoder) -> str:
    """Say whether a letter can be decoded as an alert now."""
    try:
        decoded = decoder.decode(one.value)
    except SchemaError as error:
        return f"cannot be decoded: {error}"
    named = "its own schema" if decoded.schema_id is None else f"schema id {decoded.schema_id}"
    return f"can be decoded now, by {named}, into {len(decoded.alert)} fields"


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="backslashreplace")
