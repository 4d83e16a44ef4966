"""Dead letters for people and for programs."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

from rich.table import Table
from rich.text import Text

from nightwire.consumers._letters import Letter, dump
from nightwire.schemas import Decoded, SchemaError


class Decoder(Protocol):
    """What we need of an `AlertDecoder`."""

    def decode(self, value: bytes) -> Decoded:
        """Return the alert, its Avro body and its schema."""


def as_record(one: Letter, replayed: bool) -> dict[str, Any]:
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


def table(letters: Sequence[Letter], replayed: Collection[int]) -> Table:
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


def lines(one: Letter, verdict: str) -> Iterator[str]:
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


def verdict(one: Letter, decoder: Decoder) -> str:
    """Say whether a letter can be decoded as an alert now."""
    try:
        decoded = decoder.decode(one.value)
    except SchemaError as error:
        return f"cannot be decoded: {error}"
    named = "its own schema" if decoded.schema_id is None else f"schema id {decoded.schema_id}"
    return f"can be decoded now, by {named}, into {len(decoded.alert)} fields"


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="backslashreplace")
