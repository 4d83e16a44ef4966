"""The verbs `nightwire subscribe` and `nightwire topics`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nightwire.consumers.cli.options import Names, Since
from nightwire.consumers.cli.topics import topics
from nightwire.core.cli import apply, bootstrap_option, registry_option

WHOLE = ("table", "json", "avro")
"""Formats of whole alerts."""

OF_FIELDS = ("json", "csv", "arrow", "parquet")
"""Formats of chosen fields."""


def format_faults(form: str, *, fields: Sequence[str], metadata: Sequence[str], **how: Any) -> list[str]:
    """Return what is wrong with how alerts are to be written."""
    faults = []
    if form not in (OF_FIELDS if fields else WHOLE):
        without = "goes without --fields" if fields else "wants --fields"
        faults.append(f"--format {form} {without}")
    if metadata and not fields:
        faults.append("--metadata goes with --fields")
    if fields and how["stamps"]:
        faults.append("--stamps goes without --fields: it needs whole alerts")
    if form == "parquet" and not how["out"]:
        faults.append("--format parquet wants --out")
    if form == "parquet" and how["group"]:
        faults.append("--format parquet goes without --group: a file that was not closed is lost; use arrow")
    return faults


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "--since",
    type=Since(),
    metavar="WHEN",
    help="Begin so long ago (30s, 5m, 1h, 2d) or at a time (2026-11-21T03:00, UTC).  "
    "[default: now; with --no-follow, the oldest]",
)
@click.option(
    "--last", type=click.IntRange(1), metavar="N", help="Begin with the newest N of each topic, by time."
)
@click.option(
    "--group",
    metavar="NAME",
    help="Go on where this group was; a new one begins with the oldest, or at --since.  [default: no group]",
)
@click.option(
    "--member",
    metavar="NAME",
    help="Name of this member of the group: back within 45 s, it gets its partitions back.  [default: none]",
)
@click.option("--visit", type=int, metavar="N", help="Read this visit alone; while it is open, to its end.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Stop after N alerts.  [default: no limit]"
)
@click.option("--follow/--no-follow", default=True, show_default=True, help="Wait for more at the end.")
@click.option(
    "--format",
    "form",
    type=click.Choice([*WHOLE, "container", *OF_FIELDS[1:]]),
    default="table",
    show_default=True,
    help="A row an alert, an object a line, or one Avro container (or: container); with --fields an object "
    "a line, CSV, an Arrow stream or Parquet.",
)
@click.option(
    "--fields",
    type=Names(),
    default="",
    metavar="PATH,...",
    help="Read these fields alone (diaSource.ra,diaSource.dec), in batches: many times faster.",
)
@click.option(
    "--metadata",
    type=Names(),
    default="",
    metavar="NAME,...",
    help="Beside --fields, where alerts lay: any of topic, partition, offset, timestamp, key, survey.",
)
@click.option(
    "--bytes",
    "bytes_as",
    type=click.Choice(["omit", "base64"]),
    default="omit",
    show_default=True,
    help="What JSON does with bytes, such as stamps.",
)
@click.option(
    "--stamps",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Save each stamp there, as FITS and PNG.  [default: none]",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write there.  [default: standard output]",
)
@click.option("--survey", metavar="NAME", help="The alerts' survey, where no header and no topic name tells.")
@click.option(
    "--as-version",
    metavar="VERSION",
    help="Read every alert as this version of its schema: 11.0, or an id.  [default: as it was written]",
)
@click.option(
    "--dedup",
    type=click.Choice(["offset", "alert"]),
    help="Leave out what came before, by where it first lay or by its id.  [default: nothing]",
)
@bootstrap_option
@registry_option
def subscribe(
    topics: tuple[str, ...],
    form: str,
    bytes_as: str,
    **how: Any,
) -> None:
    """Show alerts as they come, or save them.

    Without a group it begins live, sees every alert, and keeps no position.

    \b
    Examples:
      nightwire subscribe filter.me.bright
      nightwire subscribe alerts.sim --last 20 --no-follow
      nightwire subscribe alerts.sim --since 1h --format json | jq .alert.diaSource.band
      nightwire subscribe filter.me.bright --group archive --format avro --out night.avro --stamps stamps/
      nightwire subscribe alerts.sim --since 1h --no-follow --fields diaSource.ra,diaSource.dec --format csv
    """
    form = "avro" if form == "container" else form
    if faults := format_faults(form, **how):
        raise click.UsageError("; ".join(faults))
    from nightwire.consumers.cli.follow import follow

    try:
        follow(topics, form=form, with_bytes=bytes_as == "base64", **how)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


topics.add_command(apply)
