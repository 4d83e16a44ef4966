"""The verb `nightwire relay`."""

import json
from typing import Any

import click

from nightwire.core.cli import (
    Size,
    bootstrap_option,
    completion,
    duration_option,
    json_option,
    metrics_port_option,
    reached,
    registry_option,
    wide_option,
)

MTU_PAYLOAD = 1472
"""As in `nightwire.core.datagrams`, which --help need not wait for. [byte]"""

topic_option = click.option(
    "--topic", required=True, metavar="TOPIC", shell_complete=completion.topics, help="Whose records."
)
GROUP: dict[str, Any] = {
    "metavar": "GROUP:PORT",
    "envvar": "NIGHTWIRE_RELAY_GROUP",
    "help": "Multicast group and UDP port: 239.10.0.1:5400.",
}
interface_option = click.option(
    "--interface",
    metavar="NAME",
    envvar="NIGHTWIRE_RELAY_INTERFACE",
    help="Network interface, or its address.  [default: as the routes say]",
)


@click.group()
def relay() -> None:
    """Send a topic's alerts to a LAN once, however many read them there.

    What a receiver loses it fetches from Kafka; where no multicast is heard, it reads Kafka alone.

    \b
    Examples:
      nightwire relay serve --topic alerts.lsst --group 239.10.0.1:5400 --interface eth0
      nightwire subscribe alerts.lsst --multicast 239.10.0.1:5400 --interface eth0
      nightwire relay status --topic alerts.lsst
    """


@relay.command()
@topic_option
@click.option("--group", **GROUP)
@click.option(
    "--mapped",
    is_flag=True,
    help="Send to the groups of the topic's channels, as `nightwire channel` maps them, and follow that.",
)
@interface_option
@click.option(
    "--where",
    "condition",
    default="",
    metavar="CONDITION",
    help="Send alerts for which this SQL holds alone.",
)
@click.option("--full", is_flag=True, help="Send alerts whole, in parts, not without stamps and history.")
@click.option(
    "--rate", type=Size(), default="50MB", show_default=True, metavar="SIZE", help="Most bytes a second."
)
@click.option(
    "--ttl",
    type=click.IntRange(0, 255),
    default=1,
    show_default=True,
    help="Networks that a datagram may cross; 1 stays in this one, 0 on this machine.",
)
@click.option(
    "--datagram",
    "max_datagram",
    type=click.IntRange(256, 65_507),
    default=MTU_PAYLOAD,
    show_default=True,
    help="Longest datagram in bytes: the default fills a frame of Ethernet; 8972 with jumbo frames.",
)
@bootstrap_option
@registry_option
@metrics_port_option
def serve(
    group: str | None, mapped: bool, bootstrap: str | None, registry: str | None, **options: Any
) -> None:
    """Send what comes in a topic to a multicast group, or to those of its channels.

    An alert that does not fit into a datagram goes without stamps and history, with the header
    ``lite``; one that does not fit even so, as its place, and receivers fetch it from Kafka.  A
    second relay of the same group shares its partitions, and takes them over when it dies.  Where
    Kafka asks for passwords, datagrams are signed; where not, anybody on the LAN can send.

    \b
    Examples:
      nightwire relay serve --topic alerts.lsst --group 239.10.0.1:5400 --interface eth0
      nightwire relay serve --topic alerts.lsst --group 239.10.0.2:5400 --where "magnitude < 19"
      nightwire relay serve --topic alerts.ztf --group 239.10.0.3:5400 --full --rate 10MB
      nightwire relay serve --topic alerts.lsst --mapped --interface eth0
    """
    from nightwire.core.datagrams import parse_group
    from nightwire.core.runtime import find_endpoints
    from nightwire.filters.language import FilterError
    from nightwire.multicast.serve import RelaySettings
    from nightwire.multicast.serve import serve as run

    if mapped == bool(group) or (mapped and (options["condition"] or options["full"])):
        raise click.UsageError("either --group, with --where and --full, or --mapped: channels say all that")
    found = find_endpoints(bootstrap, registry)
    address = parse_group(group, options["interface"]) if group else None
    try:
        run(RelaySettings(address=address, endpoints=found, **options))
    except FilterError as error:
        raise click.UsageError(f"--where: {error}") from error


@relay.command()
@topic_option
@wide_option
@bootstrap_option
@json_option
def status(topic: str, wide: bool, bootstrap: str | None, as_json: bool) -> None:
    """Show on which groups a topic is sent, and how far its relays are.

    \b
    Example:
      nightwire relay status --topic alerts.lsst --json
    """
    from nightwire.core.cli import Column, Listing, show_tables
    from nightwire.multicast.status import progress_of

    rows = progress_of(reached(bootstrap).kafka, topic)
    if as_json:
        click.echo(json.dumps([vars(row) for row in rows], indent=2))
    elif rows:
        titles = vars(rows[0])
        columns = [Column(name, number=isinstance(value, int)) for name, value in titles.items()]
        show_tables(Listing(columns, [[_cell(value) for value in vars(row).values()] for row in rows], wide))
    else:
        click.echo(f"no relay has ever sent {topic}", err=True)


@relay.command()
@topic_option
@click.option("--group", required=True, **GROUP)
@interface_option
@duration_option("--for", "10s", "How long to listen.")
@bootstrap_option
@json_option
def listen(
    topic: str, group: str, interface: str | None, bootstrap: str | None, as_json: bool, **options: Any
) -> None:
    """Listen to a group, and show what is heard: rate, epochs, gaps, and what is dropped and why.

    It repairs nothing and keeps nothing: it tells whether multicast reaches this machine.

    \b
    Example:
      nightwire relay listen --topic alerts.lsst --group 239.10.0.1:5400 --interface eth0
    """
    from nightwire.core.datagrams import parse_group
    from nightwire.multicast.group_monitor import monitor, summary

    kafka, address = reached(bootstrap).kafka, parse_group(group, interface)
    for second in monitor(address, kafka, topic, options["for"]):
        click.echo(json.dumps(second) if as_json else summary(second))


def _cell(value: Any) -> Any:
    return ("yes" if value else "no") if isinstance(value, bool) else value
