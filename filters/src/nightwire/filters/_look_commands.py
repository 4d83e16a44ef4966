"""The verbs with which an owner looks at filters: list, show, log, top, overflow."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.options import bootstrap_option, json_option, registry_option
from nightwire.filters._owner_commands import owner_option, whose

if TYPE_CHECKING:
    from nightwire.filters._at_work import Look

WINDOW = 30.0
"""Time over which `top` takes cost and rate. [s]"""


def spot(record: Mapping[str, Any]) -> tuple[str, int]:
    """Return of which filter's version of an owner a record is."""
    return record["name"], record["version"]


@click.command("list")
@json_option
@bootstrap_option
def list_(as_json: bool, bootstrap: str | None) -> None:
    """List the filters, and what became of the alerts they judged.

    \b
    Example:
      nightwire filter list --json
    """
    import json
    from datetime import UTC, datetime

    from rich.console import Console

    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._at_work import look
    from nightwire.filters._listing import lines
    from nightwire.filters._sight import sight
    from nightwire.filters._tables import list_table, listed

    where = find_endpoints(bootstrap).kafka
    found = lines(where)
    seen = {key: sight(record) for key, record in look(where, None).records.items()}
    if as_json:
        click.echo(json.dumps([listed(line, seen) for line in found], default=str, indent=2))
        return
    Console().print(
        list_table(found, seen, datetime.now(UTC))
        if found
        else "no filters yet: `nightwire filter submit FILE --name NAME`"
    )


@click.command()
@click.argument("name")
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

    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters import _sight
    from nightwire.filters._listing import described, filters, shown_version
    from nightwire.filters._publish import read_seen

    owner, where = whose(owner), find_endpoints(bootstrap).kafka
    known = filters(where)
    record = known.versions.get((owner, name, version or shown_version(known, owner, name)))
    if record is None:
        raise click.ClickException(f"no filter {owner}/{name}{f' version {version}' if version else ''}")
    seen = [_sight.sight(one) for one in read_seen(where, owner) if spot(one) == spot(record)]
    at_work = (line for one in seen for line in _sight.described(one, datetime.now(UTC)))
    for line in (*described(known, record), *at_work):
        click.echo(f"# {line}")
    for number, line in enumerate(record["source"].splitlines(), 1):
        click.echo(f"{number:4}  {line}")


@click.command()
@click.argument("name")
@owner_option
@json_option
@bootstrap_option
def log(name: str, owner: str | None, as_json: bool, bootstrap: str | None) -> None:
    """Print what was asked for filter NAME, what was answered, and what the engine said since, by time.

    \b
    Example:
      nightwire filter log bright
    """
    import json
    from dataclasses import asdict

    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._history import history

    entries = history(find_endpoints(bootstrap).kafka, whose(owner), name)
    if as_json:
        click.echo(json.dumps([asdict(entry) for entry in entries], default=str, indent=2))
        return
    for entry in entries:
        click.echo(f"{entry.time:%Y-%m-%d %H:%M:%S} UTC  {entry.kind:8}  {entry.text}")
    if not entries:
        click.echo(f"nothing was asked for {whose(owner)}/{name} yet")


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
    """Watch your live filters: what they cost, pass, send and stop, the dearest first, until Ctrl-C.

    Numbers come from the engine, every five seconds, and count since the filter's version, or the engine,
    began; cost and rate are of the last half minute.  Delays are from Kafka's timestamp of the alert to the
    copy in your topic.  What stopped most is found on samples.

    \b
    Example:
      nightwire filter top
      nightwire filter top --once --all
    """
    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._at_work import look, sights

    where, whom = find_endpoints(bootstrap).kafka, None if everybody else whose(owner)
    first = look(where, whom)
    if as_json:
        import json
        from dataclasses import asdict

        click.echo(json.dumps([asdict(one) for one in sights(first)], default=str, indent=2))
    elif once:
        from datetime import UTC, datetime

        from rich.console import Console

        from nightwire.filters._top import top_view

        screen = Console()
        screen.print(top_view(sights(first), datetime.now(UTC), width=screen.width))
    else:
        _watch(first, lambda: look(where, whom), every)


def _watch(first: "Look", look: "Callable[[], Look]", every: float) -> None:
    """Show the table anew every so many seconds, until Ctrl-C."""
    import time
    from collections import deque
    from contextlib import suppress
    from datetime import UTC, datetime

    from rich.live import Live

    from nightwire.filters._at_work import sights
    from nightwire.filters._top import top_view

    def view(now: "Look", before: "Look | None" = None) -> Any:
        return top_view(sights(now, before), datetime.now(UTC), width=screen.console.width)

    with Live(auto_refresh=False) as screen, suppress(KeyboardInterrupt):
        screen.update(view(first), refresh=True)
        looks = deque([first], maxlen=max(2, round(WINDOW / every)))
        while True:
            time.sleep(every)
            looks.append(look())
            screen.update(view(looks[-1], looks[0]), refresh=True)


@click.command()
@click.argument("name")
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
    """List what passed filter NAME and was cut off by its cap; fetch it while its source topic still has it.

    \b
    Example:
      nightwire filter overflow bright --visit 2026112100123
      nightwire filter overflow bright --visit 2026112100123 --save missed/
      nightwire replay missed/*.avro --survey lsst
    """
    import json

    from rich.console import Console

    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._overflow import cut_off, save_all
    from nightwire.filters._tables import overflow_table

    at = find_endpoints(bootstrap, registry)
    found = cut_off(at.kafka, whose(owner), name, visit)
    if as_json:
        click.echo(json.dumps(found, default=str, indent=2))
    elif save is None:
        Console().print(overflow_table(found) if found else f"nothing was cut off of {whose(owner)}/{name}")
    if save is not None:
        saved = save_all(at.kafka, at.schema_registry, found, save)
        click.echo(f"{saved} of {len(found)} alerts are in {save}", err=as_json)
