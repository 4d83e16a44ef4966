"""Where `nightwire subscribe` puts alerts: rows, lines of JSON, Avro containers.

Every alert has left this process before the next one is asked for, so that a group never commits
what a crash could still lose.
"""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from nightwire.consumers.alert import ReceivedAlert
from nightwire.consumers.formats.container import AlertContainers
from nightwire.consumers.formats.json import json_line

PLAIN_WIDTH = 200
"""Width of a table that goes to a file or a pipe. [character]"""

WIDTHS = {"id": 19, "object": 19, "time (UTC)": 19, "ra": 9, "dec": 9, "band": 4, "mag": 5, "S/N": 7}
"""Width of each column. [character]  Rubin's ids have 18 or 19 digits."""

TOPIC_WIDTH = 24
"""Width of the column that names the topic, where several are read. [character]"""

NUMBERS = frozenset({"ra", "dec", "mag", "S/N"})
"""Columns that are aligned to the right."""

NO_NUMBERS = NUMBERS | {"band"}
"""Columns that an event of a flow does not have."""

EXPENDABLE = ("topic", "object", "band", "dec", "ra", "mag")
"""Columns that a narrow terminal does without, the first one first."""

COLOURS = {"u": "magenta", "g": "green", "r": "red", "i": "yellow", "z": "bright_red", "y": "bright_black"}
"""Colours of bands on a terminal."""


class AlertOutput(Protocol):
    """What takes alerts."""

    def write(self, alert: ReceivedAlert) -> None:
        """Put *alert* out.

        Raises:
            MixedSchemasError: A container of another schema was begun on the same stream.
        """

    def close(self) -> None:
        """Close what was opened; standard output stays open."""


class LineOutput:
    """Rows of a table, or JSON, a line each.

    Args:
        file: Where to.
        columns: Names and widths of the table's columns; None writes JSON.
        with_bytes: JSON with bytes as base64.
    """

    def __init__(self, file: TextIO, columns: Mapping[str, int] | None, *, with_bytes: bool = False) -> None:
        self._file, self._columns, self._with_bytes = file, columns, with_bytes
        if columns is not None:
            self._write_line(table_heading(columns))

    def write(self, alert: ReceivedAlert) -> None:
        """Write one line."""
        if self._columns is None:
            self._write_line(json_line(alert, with_bytes=self._with_bytes))
        else:
            self._write_line(table_row(cell_texts(alert), self._columns))

    def close(self) -> None:
        """Close the file, unless it is standard output."""
        if self._file is not sys.stdout:
            self._file.close()

    def _write_line(self, text: str) -> None:
        self._file.write(text + "\n")
        self._file.flush()


class TerminalOutput:
    """Rows on a terminal, above a line that shows how many came and how fast."""

    def __init__(self, console: Console, columns: Mapping[str, int]) -> None:
        self._console, self._columns = console, columns
        self._count, self._began = 0, time.monotonic()
        self._live = Live(get_renderable=self._footer, console=console, refresh_per_second=4, transient=True)
        console.print(Text(table_heading(columns), style="bold"), no_wrap=True)
        self._live.start()

    def write(self, alert: ReceivedAlert) -> None:
        """Print one row."""
        self._count += 1
        self._console.print(self._row(cell_texts(alert)), no_wrap=True, crop=True)

    def close(self) -> None:
        """Take the footer away."""
        self._live.stop()

    def _row(self, cells: dict[str, str]) -> Text:
        row = Text(table_row(cells, self._columns))
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
        elapsed = time.monotonic() - self._began
        rate = self._count / elapsed if elapsed else 0.0
        text = f"{self._count:,} alerts, {rate:,.1f}/s, {elapsed:,.0f} s; Ctrl-C stops"
        return Text(text, style="dim")


def open_output(form: str, path: Path | None, *, topics: int, with_bytes: bool = False) -> AlertOutput:
    """Return where alerts go.

    Args:
        form: ``table``, ``json`` or ``avro``.
        path: A file; None is standard output.
        topics: How many are read; of more than one, a column names the alert's.
        with_bytes: JSON with bytes as base64.
    """
    if form == "avro":
        return AlertContainers(path, None if path else sys.stdout.buffer)
    columns = WIDTHS | ({"topic": TOPIC_WIDTH} if topics > 1 else {})
    console = Console()
    if form == "table" and path is None and console.is_terminal:
        return TerminalOutput(console, columns_for(console.width, columns))
    file = path.open("w", encoding="utf-8") if path else sys.stdout
    shown = None if form == "json" else columns_for(PLAIN_WIDTH, columns)
    return LineOutput(file, shown, with_bytes=with_bytes)


def cell_texts(alert: ReceivedAlert) -> dict[str, str]:
    """Return the texts of a row: those of the alert's summary, and its topic."""
    return alert.summary.texts() | {"topic": alert.topic}


def columns_for(width: int, columns: Mapping[str, int]) -> dict[str, int]:
    """Return the columns that fit on *width* characters, with two between them."""
    kept = dict(columns)
    for name in EXPENDABLE:
        if sum(kept.values()) + 2 * (len(kept) - 1) <= width:
            break
        kept.pop(name, None)
    return kept


def table_heading(columns: Mapping[str, int]) -> str:
    """Return the first row."""
    return table_row({name: name for name in columns}, columns)


def table_row(texts: Mapping[str, str], columns: Mapping[str, int]) -> str:
    """Return one row, numbers to the right.

    What is too long loses its beginning, in which ids are alike.  What an event of a flow says
    stands in the place of the numbers that it does not have, at whatever length.
    """
    if says := texts.get("says"):
        room = sum(width + 2 for name, width in columns.items() if name in NO_NUMBERS) - 2
        named = {"says" if name == "S/N" else name: width for name, width in columns.items()}
        columns = {name: one for name, one in named.items() if name not in NO_NUMBERS}
        columns["says"] = max(room, len(says))
    return "  ".join(_cell(texts.get(name, ""), name, width) for name, width in columns.items()).rstrip()


def _cell(text: str, name: str, width: int) -> str:
    if len(text) > width:
        text = "…" + text[len(text) - width + 1 :]
    return text.rjust(width) if name in NUMBERS else text.ljust(width)
