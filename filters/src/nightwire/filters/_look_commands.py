"""The verbs with which an owner looks at filters: list, show, log, top, overflow."""

from pathlib import Path

import click

from nightwire.core.options import bootstrap_option, json_option, registry_option
from nightwire.filters._owner_commands import owner_option, whose


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
    from dataclasses import asdict

    from rich.console import Console

    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._listing import lines
    from nightwire.filters._tables import list_table

    found = lines(find_endpoints(bootstrap).kafka)
    if as_json:
        click.echo(json.dumps([asdict(line) for line in found], indent=2))
        return
    Console().print(
        list_table(found) if found else "no filters yet: `nightwire filter submit FILE --name NAME`"
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
    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._listing import described, filters, shown_version

    owner = whose(owner)
    known = filters(find_endpoints(bootstrap).kafka)
    record = known.versions.get((owner, name, version or shown_version(known, owner, name)))
    if record is None:
        raise click.ClickException(f"no filter {owner}/{name}{f' version {version}' if version else ''}")
    for line in described(known, record):
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
@click.option("--every", default=2.0, show_default=True, help="How often. [s]")
@click.option("--once", is_flag=True, help="Print the table once and leave.")
@bootstrap_option
def top(every: float, once: bool, bootstrap: str | None) -> None:
    """Watch the live filters: what they judge, pass and send, the busiest first, until Ctrl-C.

    \b
    Example:
      nightwire filter top
      nightwire filter top --once
    """
    import time
    from contextlib import suppress

    from rich.live import Live

    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._listing import lines
    from nightwire.filters._tables import top_table

    where = find_endpoints(bootstrap).kafka
    before, began = lines(where), time.monotonic()
    with Live(top_table(before), auto_refresh=False) as screen, suppress(KeyboardInterrupt):
        while not once:
            time.sleep(every)
            now, moment = lines(where), time.monotonic()
            screen.update(top_table(now, before, moment - began), refresh=True)
            before, began = now, moment


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
