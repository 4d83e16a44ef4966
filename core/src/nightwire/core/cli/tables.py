"""Tables that people read in the terminal."""

from collections.abc import Iterable

from rich.table import Table

from nightwire.core.accounting import StageTotal

COLUMNS = ("in", "delivered", "rejected", "capped", "faulted", "dead")


def stage_table(stages: Iterable[StageTotal]) -> Table:
    """Return one row per stage, with a mark where in = out holds."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stage", overflow="fold")  # a filter's name is never cut off
    for name in COLUMNS:
        table.add_column(name, justify="right")
    table.add_column("in = out")
    for stage in stages:
        numbers = (
            stage.read,
            stage.delivered,
            stage.rejected,
            stage.capped,
            stage.faulted,
            stage.dead_lettered,
        )
        mark = f"[red]{stage.missing:+,} missing[/red]" if stage.missing else "[green]✓[/green]"
        table.add_row(stage.stage, *(f"{number:,}" if number else "·" for number in numbers), mark)
    return table
