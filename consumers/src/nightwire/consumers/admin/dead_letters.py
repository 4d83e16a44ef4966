"""A dead letter: parsed, shown, and the record that is replayed for it.  Pure."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Message

from nightwire.consumers.alert import Decoder
from nightwire.core.accounting import ORIGINAL, Account
from nightwire.core.cli import Cell, Column, Listing
from nightwire.core.kafka import Headers, headers_of
from nightwire.schemas import SchemaError
from nightwire.schemas.topics import DEAD_LETTERS

STAGE = "dead-letters"
"""The stage of replayed letters in `accounts`."""

REPLAY_HEADER = "dead-letter"
"""Header of a replayed record: the number of its dead letter."""

PLACE_PATTERN = re.compile(r"(?P<topic>[\w.-]+)\[(?P<partition>\d+)\]@(?P<offset>\d+)", re.ASCII)

BYTES_A_LINE = 16
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
        if (place := PLACE_PATTERN.fullmatch(self.source)) is None:
            return None
        return place["topic"], int(place["partition"]), int(place["offset"])


def parse_dead_letter(message: Message) -> DeadLetter:
    """Return the letter in a record of `dead-letters`; what has no header is empty."""
    by_name = headers_of(message)
    texts = {name: by_name.get(name, b"").decode(errors="replace") for name in ("stage", "source", "reason")}
    written = by_name.get("time", b"")
    time_ms = int(written) if written.isdigit() else message.timestamp()[1]
    pairs: Any = message.headers() or ()
    return DeadLetter(
        number=message.offset() or 0,
        value=message.value() or b"",
        key=message.key(),
        time=datetime.fromtimestamp(time_ms / 1000, UTC),
        headers=[
            (name.removeprefix(ORIGINAL), content or b"")
            for name, content in pairs
            if name.startswith(ORIGINAL)
        ],
        **texts,
    )


def replay_headers(letter: DeadLetter) -> Headers:
    """Return the headers that a letter is replayed with.

    The record's own; its first place, where its own do not have it, so that readers find copies
    (`ReceivedAlert.origin`); and the number of the letter.
    """
    own = [(name, content) for name, content in letter.headers if name != REPLAY_HEADER]
    placed = {name for name, _ in own} >= {"topic", "partition", "offset"}
    if letter.origin is not None and not placed:
        names = ("topic", "partition", "offset")
        own = [(name, content) for name, content in own if name not in names]
        own += [(name, str(value).encode()) for name, value in zip(names, letter.origin, strict=True)]
    return [*own, (REPLAY_HEADER, str(letter.number).encode())]


def replay_account(letter: DeadLetter) -> Account:
    """Return the account of a replayed letter: read, and delivered."""
    source = f"{DEAD_LETTERS}/{letter.number}"
    return Account(STAGE, source, 0, letter.number, letter.number, read=1, delivered=1)


def hex_dump(value: bytes, *, most: int = 256) -> Iterator[str]:
    """Yield the first *most* bytes of *value*: offset, hexadecimal and text, sixteen a line."""
    for start in range(0, min(len(value), most), BYTES_A_LINE):
        row = value[start : min(start + BYTES_A_LINE, most)]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        yield f"{start:08x}  {row.hex(' '):<{3 * BYTES_A_LINE}} {text}"
    if len(value) > most:
        yield f"… {len(value) - most:,} bytes more"


def letter_record(letter: DeadLetter, replayed: bool) -> dict[str, Any]:
    """Return a letter as what JSON has, without its bytes."""
    return {
        "number": letter.number,
        "time": letter.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "stage": letter.stage,
        "source": letter.source,
        "reason": letter.reason,
        "bytes": len(letter.value),
        "key": _text(letter.key),
        "headers": {name: _text(content) for name, content in letter.headers},
        "replayed": replayed,
    }


LETTER_COLUMNS = (
    Column("N", number=True),
    Column("time (UTC)", 4),
    Column("stage", 3),
    Column("source", 2),
    Column("bytes", 6, number=True),
    Column("replayed", 5),
    Column("reason", 1, max_width=30),
)


def letters_table(letters: Sequence[DeadLetter], replayed: Collection[int], *, wide: bool = False) -> Listing:
    """Return a row a letter."""
    rows: list[list[Cell]] = []
    for letter in letters:
        mark = "yes" if letter.number in replayed else ""
        when, size = f"{letter.time:%Y-%m-%d %H:%M:%S}", len(letter.value)
        rows.append([str(letter.number), when, letter.stage, letter.source, size, mark, letter.reason])
    return Listing(LETTER_COLUMNS, rows, wide)


def letter_lines(letter: DeadLetter, decodability: str) -> Iterator[str]:
    """Yield all that is known of a letter, a line each."""
    yield f"letter   {letter.number}"
    yield f"source   {letter.source}"
    yield f"stage    {letter.stage}"
    yield f"time     {letter.time:%Y-%m-%d %H:%M:%S} UTC"
    yield f"reason   {letter.reason}"
    yield f"key      {_text(letter.key) or '-'}"
    for name, content in letter.headers:
        yield f"header   {name} = {_text(content)}"
    yield f"value    {len(letter.value):,} bytes; {decodability}"
    yield from hex_dump(letter.value)


def decodability(letter: DeadLetter, decoder: Decoder) -> str:
    """Say whether a letter can be decoded as an alert now."""
    try:
        decoded = decoder.decode(letter.value)
    except SchemaError as error:
        return f"cannot be decoded: {error}"
    named = "its own schema" if decoded.schema_id is None else f"schema id {decoded.schema_id}"
    return f"can be decoded now, by {named}, into {len(decoded.alert)} fields"


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="backslashreplace")
