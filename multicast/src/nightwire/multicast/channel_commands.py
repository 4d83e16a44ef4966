"""The verb `nightwire channel`."""

import json

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
    """Have sources copy alerts to a channel; one of the same NAME gets the new condition."""
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.multicast.derived import make_channel

    make_channel(enter(find_endpoints(bootstrap).kafka), topic, name, condition)


@channel.command("list")
@click.argument("topic", required=False, shell_complete=completion.topics)
@wide_option
@bootstrap_option
@json_option
def list_(topic: str | None, wide: bool, bootstrap: str | None, as_json: bool) -> None:
    """Show the channels that there are, of TOPIC or of all."""
    from nightwire.core.cli import Column, Listing, show_tables
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.multicast.derived import channels_of

    shown = ("topic", "name", "derived", "group", "made_by", "automatic", "condition")
    found = channels_of(enter(find_endpoints(bootstrap).kafka), topic)
    if as_json:
        click.echo(json.dumps([{name: getattr(one, name) for name in shown} for one in found], indent=2))
        return
    words = {"True": "yes", "False": "no", "None": ""}
    texts = [[str(getattr(one, name)) for name in shown] for one in found]
    rows = [[words.get(text, text) for text in row] for row in texts]
    show_tables(Listing([Column(name) for name in shown], rows, wide))


@channel.command()
@topic_argument
@click.argument("name")
@bootstrap_option
def remove(topic: str, name: str, bootstrap: str | None) -> None:
    """Take a channel out; whoever reads it goes on with the topic."""
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.multicast.derived import take_out

    take_out(enter(find_endpoints(bootstrap).kafka), topic, name)
