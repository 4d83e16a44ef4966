"""Where `nightwire subscribe` puts alerts: rows on a terminal, lines of JSON, Avro containers.

Every alert is out of this process before the next one is asked for, so that a group never commits what a
crash could still lose.
"""

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from nightwire.consumers.alert.alert import ReceivedAlert
from nightwire.consumers.alert.summary import WIDTHS, columns_for, header, line
from nightwire.consumers.formats.container import AlertContainers
from nightwire.consumers.formats.json import json_line

PLAIN_WIDTH = 200
"""Width of a table that goes to a file or a pipe. [character]"""

TOPIC_WIDTH = 24

COLOURS = {"u": "magenta", "g": "green", "r": "red", "i": "yellow", "z": "bright_red", "y": "bright_black"}
"""Colours of bands on a terminal."""


class AlertOutput(Protocol):
    """What takes alerts."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""

    def write(self, received: ReceivedAlert) -> None:
        """Put *received* out."""


class _Plain:
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held open."""


class LineOutput(_Plain):
    """Rows of a table, or JSON, a line each.

    Args:
        file: Where to.
        columns: Names and widths of the table's columns; None writes JSON.
        with_bytes: JSON with bytes as base64.
    """

    def __init__(self, file: TextIO, columns: dict[str, int] | None, *, with_bytes: bool = False) -> None:
        self._file, self._columns, self._with_bytes = file, columns, with_bytes
        if columns is not None:
            self._put(line(header(columns), columns))

    def write(self, received: ReceivedAlert) -> None:
        """Write one line."""
        if self._columns is None:
            self._put(json_line(received, with_bytes=self._with_bytes))
        else:
            self._put(line(texts(received), self._columns))

    def close(self) -> None:
        """Close the file, unless it is standard output."""
        if self._file is not sys.stdout:
            self._file.close()

    def _put(self, text: str) -> None:
        self._file.write(text + "\n")
        self._file.flush()


class TerminalOutput:
    """Rows on a terminal, above a line that tells how many came and how fast."""

    def __init__(self, console: Console, columns: dict[str, int]) -> None:
        self._console, self._columns = console, columns
        self._count, self._began = 0, time.monotonic()
        self._live = Live(get_renderable=self._footer, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._console.print(Text(line(header(self._columns), self._columns), style="bold"), no_wrap=True)
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def write(self, received: ReceivedAlert) -> None:
        """Print one row."""
        self._count += 1
        self._console.print(self._row(texts(received)), no_wrap=True, crop=True)

    def _row(self, cells: dict[str, str]) -> Text:
        row = Text(line(cells, self._columns))
        if colour := COLOURS.get(cells["band"]):
            row.stylize(colour, *self._span("band"))
        row.stylize("dim", *self._span("time (UTC)"))
        return row

    def _span(self, name: str) -> tuple[int, int]:
        if name not in self._columns:
            return 0, 0
        before = list(self._columns)[: list(self._columns).index(name)]
        start = sum(self._columns[one] + 2 for one in before)
        return start, start + self._columns[name]

    def _footer(self) -> Text:
        passed = time.monotonic() - self._began
        rate = self._count / passed if passed else 0.0
        return Text(f"{self._count:,} alerts, {rate:,.1f}/s, {passed:,.0f} s; Ctrl-C stops", style="dim")


class Containers(_Plain):
    """Avro object containers, bodies unchanged.

    Args:
        path: The file; None writes to *stream*.
        stream: Standard output.
    """

    def __init__(self, path: Path | None, stream: BinaryIO | None) -> None:
        self._containers = AlertContainers(path, stream)

    def write(self, received: ReceivedAlert) -> None:
        """Write one alert.

        Raises:
            MixedSchemasError: One stream cannot hold two schemas.
        """
        self._containers.write(received)

    def close(self) -> None:
        """Close the files."""
        self._containers.close()


def texts(received: ReceivedAlert) -> dict[str, str]:
    """Return the texts of a row, those of its summary and the topic."""
    return received.summary.texts() | {"topic": received.topic}


def open_output(form: str, path: Path | None, *, topics: int, with_bytes: bool = False) -> AlertOutput:
    """Return where alerts go.

    Args:
        form: ``table``, ``json`` or ``avro``.
        path: A file; None is standard output.
        topics: How many are read; of more than one, a column tells which.
        with_bytes: JSON with bytes as base64.
    """
    if form == "avro":
        return Containers(path, None if path else sys.stdout.buffer)
    columns = WIDTHS | ({"topic": TOPIC_WIDTH} if topics > 1 else {})
    console = Console()
    if form == "table" and path is None and console.is_terminal:
        return TerminalOutput(console, columns_for(console.width, columns))
    file = path.open("w", encoding="utf-8") if path else sys.stdout
    return LineOutput(
        file, None if form == "json" else columns_for(PLAIN_WIDTH, columns), with_bytes=with_bytes
    )
