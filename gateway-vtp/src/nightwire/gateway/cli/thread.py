"""The verb ``nightwire gateway thread``: the events that hang together with one."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click

from nightwire.core.cli import progress, reached
from nightwire.core.kafka import read_to_end
from nightwire.core.voevents import Post, missing, post, thread
from nightwire.gateway.eventlog.decoder import element_hash
from nightwire.schemas import DecodeError
from nightwire.schemas.records import VOEVENT
from nightwire.schemas.topics import VOEVENTS


def posts(bootstrap: str) -> Iterator[Post]:
    """Yield the events of `voevents`, each once; a record that is none is left out.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    seen = set[bytes]()
    with progress(None, "events") as meter:
        for message in read_to_end(bootstrap, [VOEVENTS]):
            meter.advance()
            try:
                digest, found = element_hash(message), post(VOEVENT.decode(message.value() or b""))
            except DecodeError:
                continue
            if digest not in seen:  # else it is a copy, by another gateway
                seen.add(digest)
                yield found


def show_thread(bootstrap: str | None, ivorn: str, as_json: bool) -> None:
    """Print the thread of *ivorn*.

    Raises:
        click.ClickException: There is no such event.
    """
    found = thread(posts(reached(bootstrap).kafka), ivorn)
    if not found:
        raise click.ClickException(f"{ivorn} is not in the log, and nothing there cites it")
    if as_json:
        click.echo(
            json.dumps({"events": [_fields(one) for one in found], "missing": missing(found)}, indent=2)
        )
    else:
        _print(found)


def _fields(one: Post) -> dict[str, Any]:
    cited = [{"cite": cite, "ivorn": ivorn} for cite, ivorn in one.citations]
    return {**vars(one), "received": one.received.isoformat(timespec="milliseconds"), "citations": cited}


def _print(found: Sequence[Post]) -> None:
    for one in found:
        click.echo(f"{one.received:%Y-%m-%d %H:%M:%S}  {one.role:<11}  {one.ivorn}")
        for cite, ivorn in one.citations:
            click.echo(f"{'':34}{cite} {ivorn}")
    for ivorn in missing(found):
        click.echo(f"{'not in the log':<32}  {ivorn}")
