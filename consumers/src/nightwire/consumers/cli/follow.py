"""What `nightwire subscribe` does."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nightwire.consumers.formats.container import MixedSchemasError
from nightwire.consumers.formats.output import AlertOutput, open_output
from nightwire.consumers.formats.stamp_folder import StampFolder
from nightwire.consumers.reader.reader import AlertReader
from nightwire.consumers.source.group import GroupError
from nightwire.consumers.source.source import TopicError
from nightwire.core.runtime import setup_logging, stopping

BATCH_WAIT = 0.2
"""Longest wait until a batch that is not full is written. [s]"""


def follow(
    topics: Sequence[str],
    *,
    form: str,
    with_bytes: bool,
    fields: Sequence[str] = (),
    metadata: Sequence[str] = (),
    stamps: Path | None,
    out: Path | None,
    **how: Any,
) -> None:
    """Read alerts until somebody stops it, or it is done; say how many on standard error.

    Args:
        topics: Names of topics.
        form: ``table``, ``json`` or ``avro``; with *fields* ``json``, ``csv``, ``arrow`` or ``parquet``.
        with_bytes: JSON with bytes as base64.
        fields: Read these alone, in batches; none reads whole alerts one by one.
        metadata: With *fields*: columns of where the alerts lay.
        stamps: Folder of stamps.
        out: File instead of standard output.
        how: What else `AlertReader` takes.

    Raises:
        ValueError: Options that exclude each other.
        ClickException: A topic does not exist, or standard output cannot hold two schemas.
    """
    setup_logging("nightwire.consumers", "WARNING")
    began = time.monotonic()
    with stopping() as stop:
        reader = AlertReader(topics, stopped=stop.is_set, **how)
        folder = StampFolder(stamps) if stamps else None
        try:
            if fields:
                _write_tables(reader, fields, metadata, form=form, out=out, with_bytes=with_bytes)
            else:
                with reader, open_output(form, out, topics=len(topics), with_bytes=with_bytes) as sink:
                    _write_all(reader, sink, folder)
        except (TopicError, MixedSchemasError, GroupError) as error:
            raise click.ClickException(str(error)) from error
    click.echo(count_line(reader, folder, topics, time.monotonic() - began), err=True)


def _write_all(reader: AlertReader, sink: AlertOutput, folder: StampFolder | None) -> None:
    for received in reader:
        sink.write(received)
        if folder is not None:
            folder.save(received)


def _write_tables(
    reader: AlertReader,
    fields: Sequence[str],
    metadata: Sequence[str],
    *,
    form: str,
    out: Path | None,
    with_bytes: bool,
) -> None:
    from nightwire.consumers.formats.table_output import open_table_output

    tables = reader.tables(fields, metadata=metadata, wait=BATCH_WAIT)
    with reader, open_table_output(form, out, with_bytes=with_bytes) as sink:
        for table in tables:
            sink.write(table)


def count_line(reader: AlertReader, folder: StampFolder | None, topics: Sequence[str], seconds: float) -> str:
    """Return what came, in one line."""
    noun = "alert" if reader.count == 1 else "alerts"
    parts = [f"{reader.count:,} {noun} from {', '.join(topics)} in {seconds:.1f} s"]
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
