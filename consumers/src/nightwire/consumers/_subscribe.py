"""What `nightwire subscribe` does."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nightwire.consumers._container import MixedSchemasError
from nightwire.consumers._output import Output, output
from nightwire.consumers._reader import AlertReader
from nightwire.consumers._saving import StampFolder
from nightwire.consumers._source import TopicError
from nightwire.core.process import setup_logging, stopping


def follow(
    topics: Sequence[str],
    *,
    form: str,
    with_bytes: bool,
    stamps: Path | None,
    out: Path | None,
    **how: Any,
) -> None:
    """Read alerts until somebody stops it, or it is done; say how many on standard error.

    Args:
        topics: Names of topics.
        form: ``table``, ``json`` or ``avro``.
        with_bytes: JSON with bytes as base64.
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
            with reader, output(form, out, topics=len(topics), with_bytes=with_bytes) as sink:
                _write_all(reader, sink, folder)
        except (TopicError, MixedSchemasError) as error:
            raise click.ClickException(str(error)) from error
    click.echo(count_line(reader, folder, topics, time.monotonic() - began), err=True)


def _write_all(reader: AlertReader, sink: Output, folder: StampFolder | None) -> None:
    for received in reader:
        sink.write(received)
        if folder is not None:
            folder.save(received)


def count_line(reader: AlertReader, folder: StampFolder | None, topics: Sequence[str], seconds: float) -> str:
    """Return what came, in one line."""
    noun = "alert" if reader.count == 1 else "alerts"
    parts = [f"{reader.count:,} {noun} from {', '.join(topics)} in {seconds:.1f} s"]
    if reader.undecodable:
        parts.append(f"{reader.undecodable:,} records could not be decoded")
    if reader.expired:
        parts.append(f"{reader.expired:,} expired before they were read")
    if folder is not None:
        broken = f", {folder.broken:,} broken" if folder.broken else ""
        parts.append(f"{folder.saved:,} stamps saved{broken}")
    return "; ".join(parts)
