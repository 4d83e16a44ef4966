"""The verb `nightwire channel`."""

import json
from typing import Any

import click

from nightwire.core.cli import (
    Duration,
    Size,
    bootstrap_option,
    completion,
    duration_option,
    json_option,
    registry_option,
    wide_option,
    with_options,
)

topic_argument = click.argument("topic", shell_complete=completion.topics)


@click.group()
def channel() -> None:
    """Make channels of a topic: the alerts that meet one condition, copied at the source.

    Readers whose condition the channel's covers read it by themselves, and get the same alerts by
    fewer bytes.  The topic itself has everything, as before.

    \b
    Examples:
      nightwire channel add alerts.lsst bright --where "magnitude < 19"
      nightwire subscribe alerts.lsst --where "magnitude < 18 AND band = 'r'"
      nightwire channel list
      nightwire channel plan alerts.lsst --groups 239.10.0.0/24:5400
    """


@channel.command()
@topic_argument
@click.argument("name")
@click.option("--where", "condition", required=True, metavar="CONDITION", help="Its alerts, in SQL.")
@click.option(
    "--group",
    metavar="GROUP:PORT",
    help="Have relays with --mapped send it to this multicast group, instead of copying it.",
)
@click.option("--full", is_flag=True, help="The group carries alerts whole, not in their lite form.")
@click.option(
    "--priority",
    type=int,
    default=0,
    show_default=True,
    help="Channels of a higher one are sent first, and alone where a relay's --rate does not suffice.",
)
@click.option("--derived", is_flag=True, help="With --group, have sources copy it as well.")
@bootstrap_option
def add(
    topic: str,
    name: str,
    condition: str,
    group: str | None,
    derived: bool,
    bootstrap: str | None,
    **more: Any,
) -> None:
    """Have sources copy the alerts that meet a condition to a channel, or relays send them.

    A channel of the same NAME gets the new condition, or goes to the new group: nothing is lost or
    comes twice.

    \b
    Examples:
      nightwire channel add alerts.lsst bright --where "magnitude < 19"
      nightwire channel add alerts.lsst all --where TRUE --group 239.10.0.1:5400
      nightwire channel add alerts.lsst hot --where "snr > 50" --group 239.10.0.2:5400 --priority 1
    """
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.multicast.derived import make_channel

    if not group and (more["full"] or more["priority"]):
        raise click.UsageError("--full and --priority are about a --group")
    carried = {"derived": derived, "group": group, **more} if group else {}
    made = make_channel(enter(find_endpoints(bootstrap).kafka), topic, name, condition, **carried)
    how = [*["sources copy"] * made.derived, *[f"relays send to {made.group}"] * bool(made.group)]
    click.echo(f"{made.key}: {' and '.join(how)} alerts where {condition}", err=True)


@channel.command("list")
@click.argument("topic", required=False, shell_complete=completion.topics)
@wide_option
@bootstrap_option
@json_option
def list_(topic: str | None, wide: bool, bootstrap: str | None, as_json: bool) -> None:
    """Show the channels that there are, of TOPIC or of all.

    \b
    Example:
      nightwire channel list alerts.lsst
    """
    from nightwire.core.cli import Column, Listing, show_tables
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.multicast.derived import channels_of

    rows = [
        {
            "topic": one.topic,
            "name": one.name,
            "derived": one.derived,
            "group": one.group,
            "made_by": one.made_by,
            "automatic": one.automatic,
            "condition": one.condition,
        }
        for one in channels_of(enter(find_endpoints(bootstrap).kafka), topic)
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    elif rows:
        show_tables(
            Listing([*map(Column, rows[0])], [[_cell(one) for one in row.values()] for row in rows], wide)
        )
    else:
        click.echo("there are no channels", err=True)


@channel.command()
@topic_argument
@click.argument("name")
@bootstrap_option
def remove(topic: str, name: str, bootstrap: str | None) -> None:
    """Take a channel out; whoever reads it goes on with the topic.

    \b
    Example:
      nightwire channel remove alerts.lsst bright
    """
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.multicast.derived import take_out

    take_out(enter(find_endpoints(bootstrap).kafka), topic, name)
    click.echo(f"{topic}/{name} is taken out", err=True)


planning = (
    click.option(
        "--groups",
        metavar="NETWORK:PORT",
        help="Give channels multicast groups of this range: 239.10.0.0/24:5400.  [default: none]",
    ),
    click.option("--derived", is_flag=True, help="Have sources copy channels to topics of their own."),
    click.option("--full", is_flag=True, help="Groups carry alerts whole, not in their lite form."),
    click.option("--make", type=Size(), default="100kB", show_default=True, metavar="SIZE",
                 help="A channel that spares its receivers so much a second is made."),
    click.option("--keep", type=Size(), default="50kB", show_default=True, metavar="SIZE",
                 help="One that spares them less is taken out."),
    click.option("--most", type=click.IntRange(1), default=16, show_default=True,
                 help="Most channels that are made so."),
    duration_option("--age", "10m", "None is taken out before."),
    click.option("--sample", type=click.IntRange(1), default=300, show_default=True,
                 help="So many of the newest alerts are judged."),
    duration_option("--over", "10m", "The alerts' rate is that of so long a time."),
)  # fmt: skip


@channel.command()
@topic_argument
@with_options(planning)
@wide_option
@bootstrap_option
@registry_option
@json_option
def plan(topic: str, wide: bool, as_json: bool, **options: Any) -> None:
    """Show which channels would spare receivers most, and what `apply` would do about it.

    A receiver discards what it does not want: rate × size × receivers × the share that does not
    pass.  Wanted is what subscriptions say; conditions that others cover use their channel.
    Channels that people made stay as they are.

    \b
    Example:
      nightwire channel plan alerts.lsst --groups 239.10.0.0/24:5400
    """
    with _planner(topic, options) as planner:
        _show(planner.changes(), wide, as_json)


@channel.command()
@topic_argument
@with_options(planning)
@wide_option
@bootstrap_option
@registry_option
@json_option
def apply(topic: str, wide: bool, as_json: bool, **options: Any) -> None:
    """Do what `plan` shows: all of it holds from the same offsets.

    \b
    Example:
      nightwire channel apply alerts.lsst --groups 239.10.0.0/24:5400
    """
    with _planner(topic, options) as planner:
        planner.apply(changes := planner.changes())
        _show(changes, wide, as_json)


@channel.command()
@topic_argument
@with_options(planning)
@click.option("--every", type=Duration(), default="60s", show_default=True, help="Time between two plans.")
@bootstrap_option
@registry_option
def serve(topic: str, every: float, **options: Any) -> None:
    """Plan and apply again and again, until it is stopped.

    \b
    Example:
      nightwire channel serve alerts.lsst --groups 239.10.0.0/24:5400 --derived
    """
    from nightwire.core.runtime import setup_logging, stopping

    setup_logging("nightwire.channels")
    with _planner(topic, options) as planner, stopping() as stop:
        planner.serve(stop, every)


def _planner(topic: str, options: dict[str, Any]) -> Any:
    from datetime import timedelta

    from nightwire.core.datagrams import parse_groups
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.multicast.planning import Planner, Sample, Settings
    from nightwire.schemas import SchemaRegistry

    if not (options["groups"] or options["derived"]):
        raise click.UsageError("channels need something to carry them: --groups, --derived, or both")
    found = find_endpoints(options["bootstrap"], options["registry"])
    groups = parse_groups(options["groups"]) if options["groups"] else ()
    named = {name: options[name] for name in ("derived", "full", "make", "keep", "most")}
    settings = Settings(groups=groups, age=timedelta(seconds=options["age"]), **named)
    sample = Sample(options["sample"], options["over"])
    return Planner(enter(found.kafka), topic, SchemaRegistry(found.schema_registry), settings, sample)


def _show(changes: Any, wide: bool, as_json: bool) -> None:
    from nightwire.core.cli import Column, Listing, show_tables

    rows = [
        {
            "action": one.action,
            "name": one.mapping.name,
            "receivers": one.receivers,
            "passes": f"{one.share:.1%}",
            "spares": f"{one.spared / 1000:,.1f} kB/s",
            "group": one.mapping.group,
            "derived": one.mapping.derived,
            "condition": one.mapping.condition,
        }
        for one in changes
    ]
    if as_json:
        figures = [{"passes": one.share, "spares": one.spared} for one in changes]
        click.echo(json.dumps([{**row, **exact} for row, exact in zip(rows, figures, strict=True)], indent=2))
    elif rows:
        cells = [[_cell(one) for one in row.values()] for row in rows]
        show_tables(Listing([*map(Column, rows[0])], cells, wide))
    else:
        click.echo("no channel would spare enough", err=True)


def _cell(value: Any) -> Any:
    return ("yes" if value else "no") if isinstance(value, bool) else value
