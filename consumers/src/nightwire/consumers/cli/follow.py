"""What `nightwire subscribe` does: read until the end or a signal, write, and say how many."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from threading import Timer
from typing import Any, TypeVar

import click

from nightwire.consumers.cli.options import OutputOptions
from nightwire.consumers.formats import StampFolder, open_output
from nightwire.consumers.reader import AlertReader, Topics
from nightwire.core.runtime import setup_logging, stopping

Item = TypeVar("Item")

PATIENCE = 3.0
"""How long nothing comes before that is said. [s]"""
BATCH_WAIT = 0.2
"""Longest wait until a batch that is not full is written. [s]"""


def follow(topics: Sequence[str], output: OutputOptions, where: str | None = None, **reading: Any) -> None:
    """Read alerts until somebody stops it, or it is done; say how many on standard error.

    Args:
        topics: Names of topics; none: *where* chooses them.
        output: How alerts are to be written.
        where: Condition on the alerts of these topics; without topics on the directory.
        reading: What else `AlertReader` takes.

    Raises:
        ValueError: Options that exclude each other, or a condition that the directory refuses.
        MendableError: A topic does not exist, or standard output cannot hold two schemas.
    """
    setup_logging("nightwire.consumers", "WARNING")
    began = time.monotonic()
    title = (", ".join(topics) or "topics") + (f" where {where}" if where else "")
    with stopping() as stop, ExitStack() as exits:
        chosen = topics or _chosen(where or "", exits, reading)
        reader = AlertReader(chosen, where=where if topics else None, stopped=stop.is_set, **reading)
        folder = StampFolder(output.stamps) if output.stamps else None
        with _telling_that_it_waits(reader, title, reading):
            if output.fields:
                _write_tables(reader, output)
            else:
                _write_alerts(reader, output, folder, topics=len(topics) or 2)
    click.echo(count_line(reader, folder, title, time.monotonic() - began), err=True)


def _chosen(where: str, exits: ExitStack, reading: Mapping[str, Any]) -> Topics:
    """Return the topics that the condition *where* chooses: to be followed, or those of now."""
    from nightwire.consumers.cli.topics_where import NoTopicError, TopicsWhere

    chosen = TopicsWhere(where, reading["bootstrap"])
    if reading["follow"]:
        exits.enter_context(chosen.asked_again())
        return chosen
    if not (topics := chosen()):
        raise NoTopicError(f"the directory knows no topic where {where}")
    return topics


@contextmanager
def _telling_that_it_waits(reader: AlertReader, title: str, reading: Mapping[str, Any]) -> Iterator[None]:
    """Say on standard error that nothing came yet, and how the past is seen."""

    def tell() -> None:
        if not reader.count:
            begun = reading.get("since") or reading.get("last") or reading.get("group")
            past = "" if begun else "; --since 1h shows those of the last hour, --last 10 the newest"
            click.echo(f"waiting for alerts in {title}{past}", err=True)

    timer = Timer(PATIENCE, tell)
    if reading.get("follow"):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _write_alerts(
    reader: AlertReader, output: OutputOptions, folder: StampFolder | None, *, topics: int
) -> None:
    with (
        reader,
        closing(open_output(output.form, output.out, topics=topics, with_bytes=output.with_bytes)) as target,
    ):
        for alert in _telling_way(reader, reader):
            target.write(alert)
            if folder is not None:
                folder.save(alert)


def _telling_way(reader: AlertReader, stream: Iterable[Item]) -> Iterator[Item]:
    """Yield what is in *stream*; say on standard error when the way changes by which it comes."""
    way = "kafka"
    for item in stream:
        if reader.way != way:
            way = reader.way
            click.echo(f"alerts come by {'more than one way' if way == 'both' else way} now", err=True)
        yield item


def _write_tables(reader: AlertReader, output: OutputOptions) -> None:
    from nightwire.consumers.formats.table_output import open_table_output

    tables = reader.tables(output.fields, metadata=output.metadata, wait=BATCH_WAIT)
    with (
        reader,
        closing(open_table_output(output.form, output.out, with_bytes=output.with_bytes)) as target,
    ):
        for table in _telling_way(reader, tables):
            target.write(table)


def count_line(reader: AlertReader, folder: StampFolder | None, title: str, seconds: float) -> str:
    """Return what came, in one line."""
    noun = "alert" if reader.count == 1 else "alerts"
    parts = [f"{reader.count:,} {noun} from {title} in {seconds:.1f} s"]
    if reader.filtered:
        parts.append(f"{reader.filtered:,} left out by the condition")
    if reader.faulted:
        parts.append(f"{reader.faulted:,} on which it could not be judged")
    if reader.undecodable:
        parts.append(f"{reader.undecodable:,} records could not be decoded")
    if reader.duplicates:
        parts.append(f"{reader.duplicates:,} duplicates left out")
    if reader.expired:
        parts.append(f"{reader.expired:,} expired before they were read")
    if folder is not None:
        broken = f", {folder.broken:,} broken" if folder.broken else ""
        parts.append(f"{folder.saved:,} stamps saved{broken}")
    return "; ".join(parts)
