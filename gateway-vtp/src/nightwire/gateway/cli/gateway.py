"""The verb ``nightwire gateway``: serve, and ping."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.cli import Duration, bootstrap_option, json_option, metrics_port_option, registry_option
from nightwire.gateway.cli.connection_options import (
    connection_options,
    read_connection_settings,
    read_tls_settings,
    tls_options,
)
from nightwire.gateway.cli.feed_options import FEED_OPTIONS, feed_options, read_feed_options
from nightwire.gateway.cli.gcn_options import GCN_OPTIONS, gcn_options
from nightwire.gateway.cli.handler_options import HANDLER_OPTIONS, handler_options
from nightwire.gateway.cli.send import read_address_option
from nightwire.gateway.cli.signature_options import SIGNATURE_OPTIONS, signature_options

if TYPE_CHECKING:
    from nightwire.gateway.gateway_settings import Settings


@click.command()
@click.option(
    "--page",
    metavar="HOST:PORT",
    help="The gateway's metrics page, its --metrics-port.  [default: that of the running embedded stack]",
)
@json_option
def status(page: str | None, as_json: bool) -> None:
    """Say who is connected, with which filters, what came and when, and who was refused and why.

    The same is to be seen in a browser at the address of the metrics page.

    \b
    Example:
      nightwire gateway status --page 127.0.0.1:9400
    """
    from nightwire.gateway.cli.status import say_status

    say_status(page or _page_of_the_stack(), as_json)


@click.command()
@click.argument("ivorn")
@bootstrap_option
@json_option
def thread(ivorn: str, bootstrap: str | None, as_json: bool) -> None:
    """Show the events that hang together with IVORN: what it cites, and what cites it, and so on.

    \b
    Example:
      nightwire gateway thread ivo://nasa.gsfc.gcn/SWIFT#BAT_GRB_Pos_532871-729
    """
    from nightwire.gateway.cli.thread import say_thread

    say_thread(bootstrap, ivorn, as_json)


@click.command()
@click.option("--to", metavar="HOST:PORT", default="127.0.0.1:8098", show_default=True, help="VTP broker.")
@click.option(
    "--ivorn", default="ivo://nightwire/test", show_default=True, help="IVOID in whose name it is sent."
)
@tls_options
def test(to: str, ivorn: str, **tls: Path | None) -> None:
    """Send one event of role *test*, named after the time, as its author.

    \b
    Example:
      nightwire gateway test --to 127.0.0.1:8098 --ivorn ivo://my.observatory/gateway
    """
    from datetime import UTC, datetime

    from nightwire.gateway.cli.send import read_address_option
    from nightwire.gateway.client.author import Author
    from nightwire.gateway.voevent.test_event import test_event
    from nightwire.gateway.vtp.submission import Submission

    author = Author(read_address_option(to, 8098), timeout=60, patience=0, tls=read_tls_settings(dict(tls)))
    receipt = author.send(Submission("test event", test_event(ivorn, datetime.now(UTC))))
    if receipt.verdict != "ack":
        raise click.ClickException(f"{receipt.verdict}: {receipt.reason}")
    click.echo(f"ack    {receipt.ivorn}")


def _page_of_the_stack() -> str:
    from nightwire.core.runtime import NoStackError, find_endpoints

    try:
        pages: Any = find_endpoints().metrics
    except NoStackError:
        pages = {}
    if "gateway" not in pages:
        raise click.ClickException(
            "no gateway: start one with `nightwire up`, or name its metrics page with --page HOST:PORT"
        )
    return str(pages["gateway"])


@click.group()
def gateway() -> None:
    """Speak VTP, the VOEvent Transport Protocol, to telescopes and brokers, and Kafka to nightwire."""


@gateway.command()
@bootstrap_option
@click.option(
    "--authors",
    metavar="HOST:PORT",
    default="127.0.0.1:8098",
    show_default=True,
    help="Where authors send events; port 0 takes a free one.",
)
@click.option(
    "--remote",
    "remotes",
    metavar="HOST[:PORT]",
    multiple=True,
    help="VTP broker to subscribe to; repeatable.  [default port: 8099]",
)
@click.option(
    "--remote-filter",
    "remote_filters",
    metavar="XPATH",
    multiple=True,
    help="Ask remote brokers for events that match; repeatable, any of them suffices.",
)
@click.option(
    "--remote-replay",
    "remote_replay",
    type=Duration(),
    default="0s",
    show_default=True,
    help="Ask remote brokers, when first connected, for what came so long before; gateways know how.",
)
@feed_options
@registry_option
@click.option(
    "--ivorn", default="ivo://nightwire/gateway", show_default=True, help="IVOID of this gateway as a broker."
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".nightwire/gateway"),
    show_default=True,
    help="Folder of the index of known events; one per gateway.",
)
@click.option(
    "--iamalive",
    type=click.FloatRange(0.1, 90),
    default=60,
    show_default=True,
    help="Time between iamalive messages to subscribers [s].",
)
@click.option(
    "--author-timeout",
    type=click.FloatRange(0.1),
    default=20,
    show_default=True,
    help="Longest time that an author may take over one event [s].",
)
@click.option(
    "--remote-timeout",
    type=click.FloatRange(0.1),
    default=120,
    show_default=True,
    help="A remote broker that is silent for so long is connected to again [s].",
)
@click.option(
    "--max-frame",
    type=click.IntRange(1000, 3 << 20),
    default=1 << 20,
    show_default=True,
    help="Longest event taken [byte].",
)
@click.option(
    "--subscriber-max-frame",
    type=click.IntRange(1000, 3 << 20),
    default=99_999,
    show_default=True,
    help="Longest event sent [byte]; a Comet subscriber hangs up at longer ones.",
)
@click.option(
    "--remember",
    "remembered_days",
    type=click.FloatRange(0.01),
    default=30,
    show_default=True,
    help="How long an event is known, so that its copies are none [d].",
)
@click.option(
    "--ring-events",
    type=click.IntRange(10),
    default=20_000,
    show_default=True,
    help="Recent events held in memory; a subscriber that is further behind is served from Kafka.",
)
@click.option(
    "--accounts/--no-accounts",
    default=True,
    show_default=True,
    help="Account for the records of `voevents`; of several gateways on one Kafka, let one do so.",
)
@click.option(
    "--test-event",
    "test_interval",
    type=Duration(),
    metavar="INTERVAL",
    help="Give subscribers an event of role test at the start and every so often: 1h.  [default: never]",
)
@gcn_options
@connection_options
@handler_options
@signature_options
@metrics_port_option
def serve(metrics_port: int, **options: Any) -> None:
    """Run a gateway until SIGTERM or Ctrl-C.

    \b
    Example:
      nightwire gateway serve --remote voevent.example.org:8099 --feed filter.demo.bright
    """
    from nightwire.gateway.cli import serve as _serve
    from nightwire.gateway.signing.requirements import SignatureSettings

    of_handlers = {name: options.pop(name) for name in HANDLER_OPTIONS}
    of_feeds = {name: options.pop(name) for name in FEED_OPTIONS}
    of_gcn = {name: options.pop(name) for name in GCN_OPTIONS}
    of_signatures = {field: options.pop(name) for name, field in SIGNATURE_OPTIONS.items()}
    try:
        doors = read_connection_settings(options)
        handlers = _serve.read_handler_settings(**of_handlers)
        signatures = _serve.check_signature_settings(SignatureSettings(**of_signatures))
        gcn = _serve.read_gcn_settings(**of_gcn)
        feeds = read_feed_options(of_feeds, doors.subscribers)
        settings: Settings = _serve.read_settings(
            handlers=handlers, signatures=signatures, gcn=gcn, doors=doors, feeds=feeds, **options
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    sys.exit(_serve.serve_until_stopped(settings, metrics_port))


@gateway.command()
@click.argument("peer", metavar="HOST:PORT")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    default=90,
    show_default=True,
    help="Longest wait for the first message [s].",
)
@tls_options
def ping(peer: str, timeout: float, **tls: Any) -> None:
    """Connect to a VTP broker as a subscriber, and say what it says first.

    A Comet broker or a gateway greets at once; others say nothing before the next iamalive.

    \b
    Example:
      nightwire gateway ping voevent.example.org:8099
    """
    from nightwire.gateway.client.ping import PingError, ping_broker

    try:
        click.echo(ping_broker(read_address_option(peer, 8099), timeout, read_tls_settings(tls)))
    except PingError as error:
        raise click.ClickException(str(error)) from error


gateway.add_command(status)
gateway.add_command(test)
gateway.add_command(thread)
