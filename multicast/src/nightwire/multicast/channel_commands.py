"""The verb `nightwire channel`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from nightwire.core.cli import (
    Size,
    bootstrap_option,
    completion,
    duration_option,
    json_option,
    reached,
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
@click.option("--group", metavar="GROUP:PORT", help="Have relays with --mapped send it there, not copy it.")
@click.option("--full", is_flag=True, help="The group carries alerts whole, not in their lite form.")
@click.option(
    "--priority",
    type=int,
    default=0,
    show_default=True,
    help="Higher ones are sent first, and alone where a relay's --rate does not suffice.",
)
@click.option("--derived", is_flag=True, help="With --group, have sources copy it as well.")
@bootstrap_option
def add(topic: str, name: str, condition: str, group: str | None, bootstrap: str | None, **more: Any) -> None:
    """Have sources copy alerts to a channel, or relays send them to a group.

    A channel of the same NAME gets the new condition, or goes to the new group: nothing is lost or
    comes twice.
    """
    from nightwire.multicast.channel_admin import make_channel

    if not group and (more["full"] or more["priority"]):
        raise click.UsageError("--full and --priority are about a --group")
    carried = {"group": group, **more} if group else {}
    make_channel(reached(bootstrap).kafka, topic, name, condition, **carried)


@channel.command("list")
@click.argument("topic", required=False, shell_complete=completion.topics)
@wide_option
@bootstrap_option
@json_option
def list_(topic: str | None, wide: bool, bootstrap: str | None, as_json: bool) -> None:
    """Show the channels that there are, of TOPIC or of all, and which are refused."""
    from nightwire.multicast.channel_admin import channel_table

    shown = ("topic", "name", "derived", "group", "made_by", "automatic", "condition", "refused")
    table = channel_table(reached(bootstrap).kafka)
    rows = [{name: getattr(one.mapping, name, None) for name in shown} for one in table.of(topic)]
    for key, why in table.refusals(topic).items():
        of_topic, _, name = key.rpartition("/")
        rows.append(dict.fromkeys(shown) | {"topic": of_topic, "name": name, "refused": why})
    _show(rows, shown, wide, as_json)


@channel.command()
@topic_argument
@click.argument("name")
@bootstrap_option
def remove(topic: str, name: str, bootstrap: str | None) -> None:
    """Take a channel out; whoever reads it goes on with the topic."""
    from nightwire.multicast.channel_admin import remove_channel

    remove_channel(reached(bootstrap).kafka, topic, name)


planning = (
    click.option("--groups", metavar="NETWORK:PORT", help="Give channels groups of it: 239.10.0.0/24:5400."),
    click.option("--derived", is_flag=True, help="Have sources copy channels to topics of their own."),
    click.option("--full", is_flag=True, help="Groups carry alerts whole, not in their lite form."),
    click.option("--make", type=Size(), default="100kB", show_default=True,
                 help="A channel that spares its receivers so much a second is made."),
    click.option("--keep", type=Size(), default="50kB", show_default=True,
                 help="One that spares them less is taken out."),
    click.option("--most", type=click.IntRange(1), default=16, show_default=True, help="Most that are made."),
    duration_option("--age", "10m", "None is taken out before."),
    click.option("--sample", "count", type=click.IntRange(1), default=300, show_default=True,
                 help="So many of the newest alerts are judged."),
    duration_option("--over", "10m", "The alerts' rate is that of so long a time."),
    bootstrap_option, registry_option,
)  # fmt: skip


@channel.command()
@topic_argument
@with_options(planning)
@wide_option
@json_option
def plan(topic: str, wide: bool, as_json: bool, **options: Any) -> None:
    """Show which channels would spare receivers most, and what `apply` would do about it.

    A receiver discards what it does not want: rate × size × receivers × the share that does not
    pass.  Wanted is what subscriptions say; conditions that others cover use their channel.
    Channels that people made stay as they are.
    """
    with _planner(topic, **options) as planner:
        _show(planner.table(planner.changes()), (), wide, as_json)


@channel.command()
@topic_argument
@with_options(planning)
@wide_option
@json_option
def apply(topic: str, wide: bool, as_json: bool, **options: Any) -> None:
    """Do what `plan` shows: all of it holds from the same offsets."""
    with _planner(topic, **options) as planner:
        planner.apply(changes := planner.changes())
        _show(planner.table(changes), (), wide, as_json)


@channel.command()
@topic_argument
@with_options(planning)
@duration_option("--every", "60s", "Time between two plans.")
def serve(topic: str, every: float, **options: Any) -> None:
    """Plan and apply again and again, until it is stopped."""
    from nightwire.core.runtime import setup_logging, stopping

    setup_logging("nightwire.channels")
    with _planner(topic, **options) as planner, stopping() as stop:
        planner.serve(stop, every)


def _planner(
    topic: str, *, groups: str | None, age: float, count: int, over: float, bootstrap: str | None,
    registry: str | None, **asked: Any,
) -> Any:  # fmt: skip
    from datetime import timedelta

    from nightwire.core.datagrams import parse_groups
    from nightwire.multicast.planning import Planner, Sample, Settings
    from nightwire.schemas import SchemaRegistry

    if not (groups or asked["derived"]):
        raise click.UsageError("channels need something to carry them: --groups, --derived, or both")
    found = reached(bootstrap, registry)
    settings = Settings(parse_groups(groups) if groups else (), age=timedelta(seconds=age), **asked)
    registry_ = SchemaRegistry(found.schema_registry)
    return Planner(found.kafka, topic, registry_, settings, Sample(count, over))


def _show(rows: Sequence[Mapping[str, Any]], titles: Sequence[str], wide: bool, as_json: bool) -> None:
    """Show *rows*; *titles* are of those that may be none."""
    from nightwire.core.cli import Column, Listing, show_tables

    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    words = {"True": "yes", "False": "no", "None": ""}
    texts = [[str(f"{one:,.4g}" if isinstance(one, float) else one) for one in row.values()] for row in rows]
    cells = [[words.get(text, text) for text in row] for row in texts]
    show_tables(Listing([*map(Column, rows[0] if rows else titles)], cells, wide))
