"""The verb ``nightwire gateway``: serve, ping, status, thread, test."""

import sys
from pathlib import Path
from typing import Any

import click

from nightwire.core.cli import bootstrap_option, json_option, wide_option
from nightwire.gateway.cli.send import author_address, to_option
from nightwire.gateway.cli.serve_options import serve_options
from nightwire.gateway.cli.tls_options import read_address_option, tls_options, tls_to


@click.group()
def gateway() -> None:
    """Speak the VOEvent Transport Protocol to telescopes and brokers, and Kafka to nightwire."""


@gateway.command()
@serve_options
def serve(metrics_port: int, **options: Any) -> None:
    """Run a gateway until SIGTERM or Ctrl-C.

    \b
    Example:
      nightwire gateway serve --remote voevent.example.org:8099 --feed filter.demo.bright
    """
    from nightwire.gateway.cli.serve import read_settings, serve_until_stopped

    try:
        settings = read_settings(options)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    sys.exit(serve_until_stopped(settings, metrics_port))


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
    """Connect to a VTP broker as a subscriber, and print its first message.

    A Comet broker or a gateway greets at once; others are silent until the next iamalive.

    \b
    Example:
      nightwire gateway ping voevent.example.org:8099
    """
    from nightwire.gateway.client.ping import ping_broker

    address = read_address_option(peer, 8099)
    click.echo(ping_broker(address, timeout, tls_to(address, tls)))


@gateway.command()
@click.option(
    "--page",
    metavar="HOST:PORT",
    help="The gateway's metrics page, its --metrics-port.  [default: that of the running embedded stack]",
)
@wide_option
@json_option
def status(page: str | None, wide: bool, as_json: bool) -> None:
    """Say who is connected, with which filters, what came and when, and who was refused and why.

    The same is to be seen in a browser at the address of the metrics page.

    \b
    Example:
      nightwire gateway status --page 127.0.0.1:9400
    """
    from nightwire.gateway.cli.status import show_status

    show_status(page or _stack_page(), as_json, wide=wide)


@gateway.command()
@click.argument("ivorn")
@bootstrap_option
@json_option
def thread(ivorn: str, bootstrap: str | None, as_json: bool) -> None:
    """Show the events that hang together with IVORN: what it cites, and what cites it, and so on.

    \b
    Example:
      nightwire gateway thread ivo://nasa.gsfc.gcn/SWIFT#BAT_GRB_Pos_532871-729
    """
    from nightwire.gateway.cli.thread import show_thread

    show_thread(bootstrap, ivorn, as_json)


@gateway.command()
@to_option
@click.option(
    "--ivorn", default="ivo://nightwire/test", show_default=True, help="IVOID in whose name it is sent."
)
@tls_options
def test(to: str | None, ivorn: str, **tls: Path | None) -> None:
    """Send one event of role *test*, named after the time, as its author.

    \b
    Examples:
      nightwire gateway test
      nightwire gateway test --to voevent.example.org:8098 --ivorn ivo://my.observatory/gateway
    """
    from datetime import UTC, datetime

    from nightwire.gateway.client.author import Author
    from nightwire.gateway.voevent.test_event import test_event
    from nightwire.gateway.vtp.submission import Submission

    address = author_address(to)
    author = Author(address, timeout=60, patience=0, tls=tls_to(address, dict(tls)))
    receipt = author.send(Submission("test event", test_event(ivorn, datetime.now(UTC))))
    if receipt.verdict != "ack":
        raise click.ClickException(f"{receipt.verdict}: {receipt.reason}")
    click.echo(f"ack    {receipt.ivorn}")


def _stack_page() -> str:
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
