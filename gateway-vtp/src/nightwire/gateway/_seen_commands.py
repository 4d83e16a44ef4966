"""The verbs of ``nightwire gateway`` that look: status, thread; and test, which sends an event."""

from pathlib import Path
from typing import Any

import click

from nightwire.core.options import bootstrap_option, json_option
from nightwire.gateway._door_options import read_tls_settings, tls_options


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
    from nightwire.gateway._status_command import say_status

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
    from nightwire.gateway._thread_command import say_thread

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

    from nightwire.gateway._author import Author
    from nightwire.gateway._letters import Letter
    from nightwire.gateway._send_command import read_address_option
    from nightwire.gateway._test_events import test_event

    author = Author(read_address_option(to, 8098), timeout=60, patience=0, tls=read_tls_settings(dict(tls)))
    receipt = author.send(Letter("test event", test_event(ivorn, datetime.now(UTC))))
    if receipt.verdict != "ack":
        raise click.ClickException(f"{receipt.verdict}: {receipt.reason}")
    click.echo(f"ack    {receipt.ivorn}")


def _page_of_the_stack() -> str:
    from nightwire.core.endpoints import NoStackError, find_endpoints

    try:
        pages: Any = find_endpoints().metrics
    except NoStackError:
        pages = {}
    if "gateway" not in pages:
        raise click.ClickException(
            "no gateway: start one with `nightwire up`, or name its metrics page with --page HOST:PORT"
        )
    return str(pages["gateway"])
