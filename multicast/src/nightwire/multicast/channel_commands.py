"""The verb `nightwire channel`."""

import json
from typing import Any

import click

from nightwire.core.cli import bootstrap_option, completion, json_option, wide_option

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
    """


@channel.command()
@topic_argument
@click.argument("name")
@click.option("--where", "condition", required=True, metavar="CONDITION", help="Its alerts, in SQL.")
@bootstrap_option
def add(topic: str, name: str, condition: str, bootstrap: str | None) -> None:
    """Have sources copy the alerts that meet a condition to a channel.

    A channel of the same NAME gets the new condition.

    \b
    Example:
      nightwire channel add alerts.lsst bright --where "magnitude < 19"
    """
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.multicast.derived import make_channel

    made = make_channel(enter(find_endpoints(bootstrap).kafka), topic, name, condition)
    click.echo(f"{made.key}: sources copy alerts where {condition}", err=True)


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


def _cell(value: Any) -> Any:
    return ("yes" if value else "no") if isinstance(value, bool) else value
