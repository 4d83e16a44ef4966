"""The verb `nightwire subscribe` and its options."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nightwire.consumers.cli.options import (
    ALERT_FORMATS,
    FIELD_FORMATS,
    Names,
    OutputOptions,
    alerts_survey_option,
    chosen_format,
    follow_option,
    last_option,
    since_option,
)
from nightwire.core.cli import bootstrap_option, completion, registry_option


@click.command()
@click.argument("topics", nargs=-1, metavar="[TOPIC...]", shell_complete=completion.channels)
@click.option(
    "--where",
    metavar="CONDITION",
    help="With TOPIC: those alerts alone on which this SQL condition holds, as filters have it.  "
    "Without: the topics for which it holds in the directory's view channels, now and later: kind, name, "
    "owner, survey, topic, rate, state, ….",
)
@since_option("now; with --no-follow, the oldest")
@last_option("Begin with the newest N of each topic, by time.")
@click.option(
    "--group",
    metavar="NAME",
    shell_complete=completion.groups,
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
@follow_option(default=True)
@click.option(
    "--format",
    "form",
    type=click.Choice([*ALERT_FORMATS, "container", *FIELD_FORMATS[1:]]),
    help="A row an alert, an object a line, or one Avro container (or: container); with --fields an object "
    "a line, CSV, an Arrow stream or Parquet.  [default: by the ending of --out; else table, json]",
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
@alerts_survey_option("The alerts' survey, where neither a header nor the topic's name has it.")
@click.option(
    "--as-version",
    metavar="VERSION",
    help="Read every alert as this version of its schema: 11.0, or an id.  [default: as it was written]",
)
@click.option(
    "--multicast",
    metavar="GROUP:PORT|auto",
    help="Listen to what a relay sends to this group (nightwire relay), or to that of the smallest channel "
    "which covers --where; what is lost is read from Kafka, and all is while nothing is heard.",
)
@click.option(
    "--channel/--no-channel",
    default=True,
    help="With --where beside a TOPIC, read a derived channel that covers it, where there is one.",
)
@click.option("--interface", metavar="NAME", help="Network interface, or its address, to listen on.")
@click.option(
    "--slow-link",
    type=click.FloatRange(0.1, 3600),
    is_flag=False,
    flag_value="10",
    metavar="[SECONDS]",
    help="Read from the directory as much as this link takes: alerts older than SECONDS (10) come without "
    "stamps, then without history, then the first by --rank alone; whole ones follow.  With --group.",
)
@click.option(
    "--rank",
    default="magnitude",
    show_default=True,
    metavar="[-]NAME",
    help="Which alerts a slow link gets first: magnitude, -snr, flux, …; with - the greatest.",
)
@click.option(
    "--first",
    default="",
    metavar="CONDITION|FILE.py",
    callback=lambda _context, _option, text: _text_of(text),
    help="Alerts on which this SQL condition holds come before all others over a slow link; or those for "
    "which the function of Python in FILE.py returns the most.",
)
@click.option(
    "--dedup",
    type=click.Choice(["offset", "alert"]),
    help="Leave out what came before, by where it first lay or by its id.  [default: nothing]",
)
@click.option(
    "--quiet-subscription",
    is_flag=True,
    help="Do not tell others what is read here; with --where beside a TOPIC the directory shows it.",
)
@bootstrap_option
@registry_option
def subscribe(
    topics: tuple[str, ...],
    where: str | None,
    form: str | None,
    bytes_as: str,
    fields: Sequence[str],
    metadata: Sequence[str],
    stamps: Path | None,
    out: Path | None,
    quiet_subscription: bool,
    **reading: Any,
) -> None:
    """Show alerts as they come, or save them.

    Without a group it begins live, sees every alert, and keeps no position.  --where beside a TOPIC
    chooses alerts by what is in them; --last, --since and --visit say which are judged.  Without a
    TOPIC it chooses topics by what the directory says of them; one that comes later is read whole.

    \b
    Examples:
      nightwire subscribe filter.me.bright
      nightwire subscribe alerts.lsst --where "magnitude < 19 AND ABS(galactic_latitude) > 15"
      nightwire subscribe --where "survey = 'lsst' and kind = 'filter' and owner = 'ann'"
      nightwire subscribe alerts.sim --last 20 --no-follow
      nightwire subscribe alerts.sim --since 1h --format json | jq .alert.diaSource.band
      nightwire subscribe filter.me.bright --group archive --out night.avro
      nightwire subscribe filter.me.bright --last 10 --stamps stamps/
      nightwire subscribe alerts.sim --since 1h --no-follow --fields diaSource.ra --format csv
      nightwire subscribe alerts.lsst --multicast 239.10.0.1:5400 --interface eth0
      nightwire subscribe alerts.lsst --group dome --slow-link --rank=-snr
      nightwire subscribe alerts.lsst --group dome --slow-link 5 --first worth.py
      nightwire subscribe alerts.lsst --where "magnitude < 19" --multicast auto --interface eth0
    """
    form = chosen_format("avro" if form == "container" else form, out, fields=bool(fields))
    output = OutputOptions(form, bytes_as == "base64", fields, metadata, stamps, out)
    if faults := output.faults(group=reading["group"], terminal=sys.stdout.isatty()):
        raise click.UsageError("; ".join(faults))
    if not topics and where is None:
        raise click.UsageError("Missing argument 'TOPIC...', or --where CONDITION")
    from nightwire.consumers.cli.follow import follow
    from nightwire.consumers.cli.listed import listed

    try:
        announce = bool(topics and where) and not quiet_subscription
        with listed(topics, reading):
            follow(topics, output, where, announce=announce, **reading)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _text_of(asked: str) -> str:
    """Return a condition, or the text of the file that it names."""
    if not asked.endswith(".py"):
        return asked
    try:
        return Path(asked).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise click.BadParameter(f"{asked}: {error}") from error
