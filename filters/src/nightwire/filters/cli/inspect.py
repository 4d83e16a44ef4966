"""The verbs with which an owner looks at filters: list, show, log, top, overflow."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.cli import bootstrap_option, json_option, registry_option, wide_option
from nightwire.filters.cli.options import echo_json, kafka_at, name_argument, owner_option, owner_or_default

if TYPE_CHECKING:
    from nightwire.filters.cli.summaries import Snapshot

WINDOW_S = 30.0
"""Time over which `top` takes cost and rate. [s]"""


@click.command("list")
@wide_option
@json_option
@bootstrap_option
def list_(wide: bool, as_json: bool, bootstrap: str | None) -> None:
    """List the filters, and what became of the alerts they judged.

    \b
    Example:
      nightwire filter list --json
    """
    from datetime import UTC, datetime

    from nightwire.core.cli import show_tables
    from nightwire.filters.cli.queries import listed_filters
    from nightwire.filters.cli.summaries import summary_of, take_snapshot
    from nightwire.filters.cli.tables import list_table, listed_json

    where = kafka_at(bootstrap)
    filters = listed_filters(where)
    summaries = {key: summary_of(record) for key, record in take_snapshot(where, None).records.items()}
    if as_json:
        echo_json([listed_json(one, summaries) for one in filters])
        return
    show_tables(
        list_table(filters, summaries, datetime.now(UTC), wide=wide)
        if filters
        else "no filters yet: `nightwire filter submit FILE --name NAME`"
    )


@click.command()
@name_argument
@owner_option
@click.option("--version", type=int, help="Which version.  [default: the live one, else the newest]")
@bootstrap_option
def show(name: str, owner: str | None, version: int | None, bootstrap: str | None) -> None:
    """Print the source of filter NAME as it runs, with the line numbers that faults refer to.

    \b
    Example:
      nightwire filter show bright
    """
    from datetime import UTC, datetime

    from nightwire.filters.cli.queries import read_filters, shown_version, version_lines
    from nightwire.filters.cli.summaries import summary_lines, summary_of
    from nightwire.filters.stats.publish import read_stats

    owner, where = owner_or_default(owner), kafka_at(bootstrap)
    known = read_filters(where)
    record = known.versions.get((owner, name, version or shown_version(known, owner, name)))
    if record is None:
        raise click.ClickException(f"no filter {owner}/{name}{f' version {version}' if version else ''}")
    stats = [
        one for one in read_stats(where, owner) if (one["name"], one["version"]) == (name, record["version"])
    ]
    at_work = (line for one in stats for line in summary_lines(summary_of(one), datetime.now(UTC)))
    for line in (*version_lines(known, record), *at_work):
        click.echo(f"# {line}")
    for number, line in enumerate(record["source"].splitlines(), 1):
        click.echo(f"{number:4}  {line}")


@click.command()
@name_argument
@owner_option
@json_option
@bootstrap_option
def log(name: str, owner: str | None, as_json: bool, bootstrap: str | None) -> None:
    """Print the requests for filter NAME, their answers, and the engine's notices, by time.

    \b
    Example:
      nightwire filter log bright
    """
    from dataclasses import asdict

    from nightwire.filters.cli.queries import filter_log

    entries = filter_log(kafka_at(bootstrap), owner_or_default(owner), name)
    if as_json:
        echo_json([asdict(entry) for entry in entries])
        return
    for entry in entries:
        click.echo(f"{entry.time:%Y-%m-%d %H:%M:%S} UTC  {entry.kind:8}  {entry.text}")
    if not entries:
        click.echo(f"nothing was asked for {owner_or_default(owner)}/{name} yet")


@click.command()
@click.option(
    "--every", default=2.0, show_default=True, type=click.FloatRange(min=0.1), help="How often. [s]"
)
@click.option("--once", is_flag=True, help="Print the table once and leave.")
@click.option("--all", "everybody", is_flag=True, help="Of all owners, as far as Kafka lets you read them.")
@owner_option
@json_option
@bootstrap_option
def top(
    every: float, once: bool, everybody: bool, owner: str | None, as_json: bool, bootstrap: str | None
) -> None:
    """Watch the cost and counts of your live filters, the dearest first, until Ctrl-C.

    Numbers come from the engine, every five seconds, and count since the filter's version, or the
    engine, began; cost and rate are of the last half minute.  Delays are from Kafka's timestamp of
    the alert to the copy in your topic.  What stopped most is found on samples.

    \b
    Example:
      nightwire filter top
      nightwire filter top --once --all
    """
    from nightwire.filters.cli.summaries import summaries_of, take_snapshot

    where, whom = kafka_at(bootstrap), None if everybody else owner_or_default(owner)
    first = take_snapshot(where, whom)
    if as_json:
        from dataclasses import asdict

        echo_json([asdict(one) for one in summaries_of(first)])
    elif once:
        from datetime import UTC, datetime

        from nightwire.core.cli import show_tables
        from nightwire.filters.cli.tables import top_view

        show_tables(*top_view(summaries_of(first), datetime.now(UTC)))
    else:
        watch_top(first, lambda: take_snapshot(where, whom), every)


def watch_top(first: "Snapshot", take: "Callable[[], Snapshot]", every: float) -> None:
    """Show the table of filters at work anew every so many seconds, until Ctrl-C."""
    import time
    from collections import deque
    from contextlib import suppress
    from datetime import UTC, datetime

    from rich.console import Group
    from rich.live import Live

    from nightwire.filters.cli.summaries import summaries_of
    from nightwire.filters.cli.tables import top_view

    def view(now: "Snapshot", before: "Snapshot | None" = None) -> Any:
        return Group(*top_view(summaries_of(now, before), datetime.now(UTC)))

    with Live(auto_refresh=False) as screen, suppress(KeyboardInterrupt):
        screen.update(view(first), refresh=True)
        snapshots = deque([first], maxlen=max(2, round(WINDOW_S / every)))
        while True:
            time.sleep(every)
            snapshots.append(take())
            screen.update(view(snapshots[-1], snapshots[0]), refresh=True)


@click.command()
@name_argument
@owner_option
@click.option("--visit", type=int, help="Of this visit alone.")
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Fetch the alerts, one Avro file each.",
)
@json_option
@bootstrap_option
@registry_option
def overflow(
    name: str, owner: str | None, visit: int | None, save: Path | None, as_json: bool,
    bootstrap: str | None, registry: str | None,
) -> None:  # fmt: skip
    """List, or fetch, alerts that passed filter NAME and were cut off by its cap.

    They can be fetched as long as their source topic has them.

    \b
    Example:
      nightwire filter overflow bright --visit 2026112100123
      nightwire filter overflow bright --visit 2026112100123 --save missed/
      nightwire replay missed/*.avro --survey lsst
    """
    from nightwire.core.cli import show_tables
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.filters.cli.tables import overflow_table
    from nightwire.filters.delivery.overflow import read_overflow, save_overflow

    at = find_endpoints(bootstrap, registry)
    found = read_overflow(enter(at.kafka), owner_or_default(owner), name, visit)
    if as_json:
        echo_json(found)
    elif save is None:
        show_tables(
            overflow_table(found) if found else f"nothing was cut off of {owner_or_default(owner)}/{name}"
        )
    if save is not None:
        saved = save_overflow(at.kafka, at.schema_registry, found, save)
        click.echo(f"{saved} of {len(found)} alerts are in {save}", err=as_json)
