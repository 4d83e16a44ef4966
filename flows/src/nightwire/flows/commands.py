"""The verb `nightwire flow`."""

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nightwire.core.cli import (
    bootstrap_option,
    duration_option,
    json_option,
    metrics_port_option,
    registry_option,
    wide_option,
)

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def flow() -> None:
    """Say what happens to events on their way, as a graph that may change while it runs.

    \b
    Examples:
      nightwire flow check bright.toml
      nightwire flow up bright.toml
      nightwire flow show bright --svg bright.svg
      nightwire flow serve
    """


@flow.command()
@click.argument("file", type=FILE)
@bootstrap_option
@registry_option
def check(file: Path, bootstrap: str | None, registry: str | None) -> None:
    """Check whether the flow in FILE can run here: edges, topics, fields; and draw it.

    \b
    Example:
      nightwire flow check bright.toml
    """
    _draw(_checked_flow(file, bootstrap, registry))


@flow.command()
@click.argument("flow_or_file", metavar="FILE|NAME")
@bootstrap_option
@registry_option
def up(flow_or_file: str, bootstrap: str | None, registry: str | None) -> None:
    """Run the flow in FILE, in place of an older one of its name; or flow NAME, which was paused.

    Workers (`nightwire flow serve`) take the new graph between two batches: nothing is lost or
    doubled.

    \b
    Example:
      nightwire flow up bright.toml
    """
    from nightwire.core.subscriptions import write_flow

    kafka = _kafka(bootstrap)
    if Path(flow_or_file).is_file():
        name = _checked_flow(Path(flow_or_file), bootstrap, registry).name
        text = Path(flow_or_file).read_text(encoding="utf-8")
    else:
        name, text = flow_or_file, _read_flow(kafka, flow_or_file)[1].text
    _check_free_names(kafka, name)
    click.echo(f"flow {name} is up in version {write_flow(kafka, name, text)}")
    _warn_of_unread_queues(kafka, text)


@flow.command("list")
@wide_option
@bootstrap_option
@json_option
def list_(wide: bool, bootstrap: str | None, as_json: bool) -> None:
    """Show which flows there are.

    \b
    Example:
      nightwire flow list --json
    """
    from nightwire.core.cli import Column, Listing, show_tables
    from nightwire.core.subscriptions import read_flows

    rows = [
        {
            "name": record.name,
            "version": version,
            "state": "paused" if record.paused else "up",
            "made by": record.made_by,
            "made": f"{record.made:%Y-%m-%d %H:%M:%S}",
        }
        for record, version in read_flows(_kafka(bootstrap)).values()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    elif rows:
        columns = [Column(name, number=name == "version") for name in rows[0]]
        show_tables(Listing(columns, [[*row.values()] for row in rows], wide))
    else:
        click.echo("no flows", err=True)


@flow.command()
@click.argument("name")
@click.option("--svg", "picture", type=click.Path(path_type=Path), help="Write the graph to this file.")
@click.option("--text", is_flag=True, help="Print its text.")
@bootstrap_option
def show(name: str, picture: Path | None, text: bool, bootstrap: str | None) -> None:
    """Draw flow NAME, and print its problems: why, which stone, since when.

    \b
    Example:
      nightwire flow show bright --svg bright.svg
    """
    from nightwire.core.subscriptions import read_problems
    from nightwire.flows.drawing import svg

    found, record, version = _read_flow(_kafka(bootstrap), name)
    if picture is not None:
        picture.write_text(svg(found), encoding="utf-8")
    if text:
        click.echo(record.text)
    else:
        _draw(found)
    for one in read_problems(_kafka(bootstrap)):
        if (one.flow, one.version) == (name, version):
            what = one.stone or f"version {version} does not run"
            click.echo(f"{what} (worker {one.worker}, since {one.since}): {one.why}", err=True)


@flow.command()
@click.argument("name")
@bootstrap_option
def pause(name: str, bootstrap: str | None) -> None:
    """Let flow NAME read nothing until `nightwire flow up NAME`: it goes on where it stopped.

    \b
    Example:
      nightwire flow pause bright
    """
    from nightwire.core.subscriptions import write_flow

    kafka = _kafka(bootstrap)
    write_flow(kafka, name, _read_flow(kafka, name)[1].text, paused=True)
    click.echo(f"flow {name} is paused")


@flow.command()
@click.argument("name")
@click.option("--purge", is_flag=True, help="Delete what it leaves, and the topics broker.… it alone wrote.")
@bootstrap_option
def down(name: str, purge: bool, bootstrap: str | None) -> None:
    """End flow NAME.  Its positions stay: a flow of that name goes on from there.

    So do events that wait in its queues, for a day; then they are dead letters.

    With --purge nothing stays: unread events of its queues go too.  Where Kafka asks for passwords,
    that is the operator's.

    An owner's name stays his when his flow has ended; an operator lets it go.

    \b
    Examples:
      nightwire flow down bright
      nightwire flow down bright --purge
    """
    from nightwire.core.subscriptions import read_flows, read_names, write_flow
    from nightwire.filters.cli import read_filters
    from nightwire.flows.engine import purge as purged
    from nightwire.flows.flow_follower import running_flows

    kafka = _kafka(bootstrap)
    _check_name(name, read_names(kafka))
    flows = {key: record for key, (record, _) in read_flows(kafka).items()}
    write_flow(kafka, name, None)
    click.echo(f"flow {name} is down")
    if purge:
        known = [*running_flows(replace(one, paused=False) for one in flows.values())]
        used = {topic for one in known if one.name != name for topic in one.input_topics | one.output_topics}
        used |= {one["output"] for one in read_filters(kafka).versions.values()}
        written = {topic for one in known if one.name == name for topic in one.output_topics}
        for topic in purged(kafka, name, written, used):
            click.echo(f"{topic} is deleted")


@flow.command()
@click.option("--name", default="", metavar="NAME", help="The worker's name.  [default: host and process]")
@click.option(
    "--files", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="Where flows may write files.  [default: nowhere]",
)  # fmt: skip
@duration_option("--takeover", "6s", "When another worker goes on after a crash; Kafka's least is 6s.")
@click.option(
    "--allow-inside", is_flag=True, help="Webhooks, TOMs, VTP: private networks too, and this machine."
)
@metrics_port_option
@bootstrap_option
@registry_option
def serve(
    name: str,
    files: Path | None,
    takeover: float,
    allow_inside: bool,
    metrics_port: int,
    bootstrap: str | None,
    registry: str | None,
) -> None:
    """Run flows until it is stopped; several workers share them, and one takes over from another.

    \b
    Example:
      nightwire flow serve --name mountain
    """
    from nightwire.core.runtime import find_endpoints
    from nightwire.flows.serve import default_name
    from nightwire.flows.serve import serve as run
    from nightwire.flows.terminals import TerminalLimits
    from nightwire.flows.worker import WorkerSettings

    where, limits = find_endpoints(bootstrap, registry), TerminalLimits(allow_inside, files)
    run(WorkerSettings(where, name or default_name(), limits, takeover, metrics_port))


def _kafka(bootstrap: str | None) -> str:
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints

    return enter(find_endpoints(bootstrap).kafka)


def _checked_flow(file: Path, bootstrap: str | None, registry: str | None) -> Any:
    """Return the flow in *file*, after its check against the site."""
    from nightwire.core.kafka import admin, enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.core.subscriptions import read_flows
    from nightwire.flows.flow_follower import running_flows
    from nightwire.flows.model import FlowError, compile_filter, parse
    from nightwire.flows.model import check as check_flow
    from nightwire.schemas import SchemaRegistry

    ends = find_endpoints(bootstrap, registry)
    try:
        parsed = parse(file.read_text(encoding="utf-8"))
        topics = [*admin(enter(ends.kafka)).list_topics(timeout=10).topics]
        with SchemaRegistry(ends.schema_registry) as schemas:
            others = running_flows(record for record, _ in read_flows(ends.kafka).values())
            types = check_flow(parsed, topics, schemas.of_survey, [*others])
        for one in parsed.stones.values():
            if one.kind == "filter" and (source := one.options.get("python")):
                remarks = compile_filter(source, types[one.inputs[0]].survey).remark_lines
                click.echo(f"{one.name}: {', '.join(remarks)}", err=True)
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file.name} is no UTF-8: {error.reason}") from error
    except FlowError as error:
        raise click.ClickException("\n".join(f"{file.name}, {one}" for one in error.reasons)) from error
    return parsed


def _warn_of_unread_queues(kafka: str, text: str) -> None:
    """Warn of unread events of removed stones of the flow in *text*."""
    from nightwire.flows.engine import unread_counts
    from nightwire.flows.model import parse

    for stone, count in unread_counts(kafka, parse(text)).items():
        warning = (
            f"stone {stone} is no more, and up to {count:,} events wait for it: put it back and they go on"
        )
        click.echo(f"{warning}; after a day they are dead letters (`nightwire dead-letters`)", err=True)


def _read_flow(kafka: str, name: str) -> tuple[Any, Any, int]:
    """Return flow *name*, its record and version."""
    from nightwire.core.subscriptions import read_flows
    from nightwire.flows.model import parse

    flows = read_flows(kafka)
    _check_name(name, flows)
    record, version = flows[name]
    return parse(record.text), record, version


def _check_free_names(kafka: str, name: str) -> None:
    from nightwire.core.subscriptions import MOST_NAMES, read_names

    if name not in (taken := read_names(kafka)) and len(taken) >= MOST_NAMES:
        raise click.ClickException(f"{MOST_NAMES} names of flows are taken: end some (`nightwire flow down`)")


def _check_name(name: str, names: Collection[str]) -> None:
    from nightwire.schemas import meant

    if name not in names:
        raise click.ClickException(f"no flow {name}{meant(name, names)}")


def _draw(found: Any) -> None:
    from rich.console import Console

    from nightwire.flows.drawing import tree

    Console().print(tree(found))
