"""Options and types of options that several verbs of this room share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from nightwire.core.cli import completion

Option = Callable[[Any], Any]

ALERT_FORMATS = ("table", "json", "avro")
"""Formats of whole alerts."""

FIELD_FORMATS = ("json", "csv", "arrow", "parquet")
"""Formats of chosen fields."""


BINARY = ("avro", "arrow")
ENDINGS = {".json": "json", ".jsonl": "json", ".avro": "avro", ".csv": "csv", ".arrow": "arrow"}
"""Formats by the ending of a file's name, beside ``.parquet``."""


def chosen_format(given: str | None, out: Path | None, *, fields: bool) -> str:
    """Return the format that was given, else that of the file's ending, else the usual one."""
    usual = "json" if fields else "table"
    named = ENDINGS | {".parquet": "parquet"}
    return given or named.get(out.suffix.lower() if out else "", usual)


@dataclass(frozen=True)
class OutputOptions:
    """How alerts are to be written.

    Attributes:
        form: One of `ALERT_FORMATS`; with *fields* one of `FIELD_FORMATS`.
        with_bytes: JSON with bytes as base64.
        fields: Read these alone, in batches; none reads whole alerts one by one.
        metadata: With *fields*: columns of where the alerts lay.
        stamps: Folder of stamps.
        out: File instead of standard output.
    """

    form: str
    with_bytes: bool
    fields: Sequence[str]
    metadata: Sequence[str]
    stamps: Path | None
    out: Path | None

    def faults(self, *, group: str | None, terminal: bool) -> list[str]:
        """Return which options exclude each other, or miss another one.

        Args:
            group: The consumer group, if there is one.
            terminal: Whether standard output is one.
        """
        form, faults = self.form, []
        if form in BINARY and terminal and not self.out:
            faults.append(f"--format {form} is not for a terminal: --out FILE writes it, a pipe takes it")
        if form not in (FIELD_FORMATS if self.fields else ALERT_FORMATS):
            without = "goes without --fields" if self.fields else "wants --fields"
            faults.append(f"--format {form} {without}")
        if self.metadata and not self.fields:
            faults.append("--metadata goes with --fields")
        if self.fields and self.stamps:
            faults.append("--stamps goes without --fields: it needs whole alerts")
        if form == "parquet" and not self.out:
            faults.append("--format parquet wants --out")
        if form == "parquet" and group:
            faults.append(
                "--format parquet goes without --group: a file that was not closed is lost; use arrow"
            )
        return faults


class Since(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no arguments there
    """How long ago, or when."""

    name = "since"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what *value* spells; fail with what to write instead."""
        from nightwire.consumers.source import parse_since

        if isinstance(value, timedelta | datetime):
            return value
        try:
            return parse_since(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class ResetTarget(Since):
    """Where a group is to go on: a time as in `Since`, ``beginning``, ``end``, or an offset."""

    name = "to"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what *value* spells; fail with what to write instead."""
        if value in ("beginning", "end"):
            return value
        if str(value).isdecimal():
            return int(value)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(f"{error.message}; or beginning, end, an offset", param, ctx)


class Names(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no arguments there
    """Names, with commas between them."""

    name = "names"

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> Any:
        """Return the names that *value* holds."""
        return (
            value if isinstance(value, list) else [name.strip() for name in value.split(",") if name.strip()]
        )


def since_option(default: str) -> Option:
    """Return the option ``--since`` of a verb that begins at *default* without it."""
    text = "Begin so long ago (30s, 5m, 1h, 2d) or at a time (2026-11-21T03:00, UTC)."
    return click.option("--since", type=Since(), metavar="WHEN", help=f"{text}  [default: {default}]")


def last_option(text: str, default: int | None = None) -> Option:
    """Return the option ``--last``, for the newest N of what *text* says."""
    return click.option(
        "--last",
        type=click.IntRange(1),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=text,
    )


def alerts_survey_option(text: str, *, required: bool = False) -> Option:
    """Return the option ``--survey``, the survey of the alerts; *text* says when it is needed."""
    return click.option(
        "--survey", metavar="NAME", required=required, help=text, shell_complete=completion.surveys
    )


def follow_option(*, default: bool) -> Option:
    """Return the option ``--follow``, which waits for more at the end."""
    return click.option(
        "--follow/--no-follow", default=default, show_default=True, help="Wait for more at the end."
    )
