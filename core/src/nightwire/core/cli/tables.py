"""Tables that people read in the terminal, and tab-separated lines where they are piped."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import click
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from nightwire.core.accounting import StageTotal, filters_together

Cell = str | int | Text | None
"""A number is set to the right, with commas or shortened; zero and None are a dot."""

GAP = 2
"""Space between columns. [character]"""

LEAST = 8
"""Least width of a column that is always shown. [character]"""

UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        title: Its heading.
        order: In a narrow terminal the columns of the highest order are left out; 0 never.
        number: Whether it is set to the right.
        max_width: Width beyond which its text may be cut off. [character]
    """

    title: str
    order: int = 0
    number: bool = False
    max_width: int = 200


@dataclass(frozen=True)
class Listing:
    """Rows under columns, which fits itself to the width that it is printed in.

    Too narrow a width first shortens numbers, then leaves out columns, then cuts off texts; never
    a name.

    Attributes:
        columns: The columns.
        rows: A cell per column.
        wide: Whether all is shown in full, however wide.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    wide: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table for a terminal."""
        texts = [[_text(cell) for cell in row] for row in self.rows]
        widths = self._widths(texts)
        width = sum(widths.values()) + GAP * len(widths) if self.wide else options.max_width
        if _total(widths) > width:
            texts = [[_text(cell, shorten=True) for cell in row] for row in self.rows]
            widths = self._widths(texts)
        yield from console.render(
            self._drawn(texts, fitting_columns(widths, width)), options.update(width=width)
        )

    def tab_separated(self) -> str:
        """Return the heading and the rows, each a line, with every number and text in full."""
        rows = [
            [column.title for column in self.columns],
            *([_plain(cell) for cell in row] for row in self.rows),
        ]
        return "\n".join("\t".join(row) for row in rows)

    def _widths(self, texts: Sequence[Sequence[Text]]) -> dict[Column, int]:
        return {
            column: max([len(column.title), *(row[at].cell_len for row in texts)])
            for at, column in enumerate(self.columns)
        }

    def _drawn(self, texts: Sequence[Sequence[Text]], shown: Mapping[Column, int]) -> Table:
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
        for column, width in shown.items():
            table.add_column(
                column.title, justify="right" if column.number else "left", min_width=width, max_width=width,
                no_wrap=bool(column.order), overflow="ellipsis" if column.order else "fold",
            )  # fmt: skip
        for row in texts:
            table.add_row(*(text for column, text in zip(self.columns, row, strict=True) if column in shown))
        left_out = [column.title for column in self.columns if column not in shown]
        if left_out:
            table.caption_justify = "left"
            table.caption = Text(f"without {', '.join(left_out)}", no_wrap=True, overflow="ellipsis")
        return table


def fitting_columns(widths: Mapping[Column, int], width: int) -> dict[Column, int]:
    """Return the columns that fit into *width*, the important ones first, with their widths.

    Args:
        widths: Width that each column needs. [character]
        width: Width of the terminal. [character]
    """
    left, given = width, dict[Column, int]()
    for column in sorted(widths, key=lambda column: column.order):
        needed = min(widths[column], column.max_width)
        if column.order == 0:
            needed = min(needed, max(left, LEAST))
        if needed <= left or column.order == 0:
            given[column] = needed
            left -= needed + GAP
    for column in given:
        more = min(widths[column] - given[column], max(0, left + GAP))
        given[column] += more
        left -= more
    return {column: given[column] for column in widths if column in given}


def show_tables(*parts: RenderableType) -> None:
    """Print *parts*: for a terminal, or for a pipe, where tables are tab-separated."""
    console = Console()
    for part in parts:
        if console.is_terminal:
            console.print(part, crop=not (isinstance(part, Listing) and part.wide))
        else:
            click.echo(
                part.tab_separated() if isinstance(part, Listing) else Text.from_markup(str(part)).plain
            )


def short_number(value: int) -> str:
    """Return *value* in three digits and a unit: ``12.3k``, ``4.56M``; small ones as they are."""
    for size, unit in UNITS:
        if abs(value) >= max(size, 10_000):
            scaled = value / size
            return f"{scaled:.{0 if abs(scaled) >= 100 else 1}f}{unit}"
    return f"{value:,}"


def _text(cell: Cell, *, shorten: bool = False) -> Text:
    if isinstance(cell, Text):
        return cell
    if isinstance(cell, int):
        return Text((short_number(cell) if shorten else f"{cell:,}") if cell else "·")
    return Text("·" if cell is None else " ".join(cell.split()))


def _plain(cell: Cell) -> str:
    return " ".join(str(cell).split()) if cell is not None else ""


def _total(widths: Mapping[Column, int]) -> int:
    return sum(min(width, column.max_width) for column, width in widths.items()) + GAP * (len(widths) - 1)


STAGE_COLUMNS = (
    Column("stage"),
    Column("in", 1, number=True),
    Column("delivered", 2, number=True),
    Column("rejected", 5, number=True),
    Column("capped", 6, number=True),
    Column("faulted", 4, number=True),
    Column("dead", 3, number=True),
    Column("in = out"),
)


def stage_table(stages: Iterable[StageTotal], *, each: bool = False, wide: bool = False) -> Listing:
    """Return one row per stage, with a mark where in = out holds.

    Args:
        stages: The stages.
        each: Whether filters that add up have a row each; else they have one together.
        wide: As of `Listing`.
    """
    found = list(stages)
    rows = found if each else filters_together(found)
    return Listing(STAGE_COLUMNS, [_stage_row(stage) for stage in rows], wide)


def _stage_row(stage: StageTotal) -> list[Cell]:
    missing = stage.missing
    mark = Text(f"{missing:+,} missing", "red") if missing else Text("✓", "green")
    numbers = (stage.read, stage.delivered, stage.rejected, stage.capped, stage.faulted, stage.dead_lettered)
    return [stage.stage, *numbers, mark]
