"""The verbs ``nightwire gateway`` and ``nightwire send``."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.options import bootstrap_option, json_option, metrics_port_option, registry_option

if TYPE_CHECKING:
    from nightwire.gateway._author import Letter, Receipt
    from nightwire.gateway._settings import Address, Settings

LOCAL = ("127.0.0.0/8", "::1/128")


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
    "--subscribers",
    metavar="HOST:PORT",
    default="127.0.0.1:8099",
    show_default=True,
    help="Where subscribers get events; port 0 takes a free one.",
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
    "--feed",
    "feeds",
    metavar="TOPIC",
    multiple=True,
    help="Give subscribers the alerts of a filter topic, filter.OWNER.NAME, as VOEvents; repeatable.",
)
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
    "--author-allow",
    metavar="CIDR",
    multiple=True,
    default=LOCAL,
    show_default=True,
    help="Network that authors may connect from; repeatable.",
)
@click.option(
    "--subscriber-allow",
    metavar="CIDR",
    multiple=True,
    default=LOCAL,
    show_default=True,
    help="Network that subscribers may connect from; repeatable.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(1),
    default=4096,
    show_default=True,
    help="Most connections at once, for authors and for subscribers each.",
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
@metrics_port_option
def serve(metrics_port: int, **options: Any) -> None:
    """Run a gateway until SIGTERM or Ctrl-C.

    \b
    Example:
      nightwire gateway serve --remote voevent.example.org:8099 --feed filter.demo.bright
    """
    from nightwire.gateway._serve import read_settings, serve_until_stopped

    try:
        settings: Settings = read_settings(**options)
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
def ping(peer: str, timeout: float) -> None:
    """Connect to a VTP broker as a subscriber, and say what it says first.

    A Comet broker or a gateway greets at once; others say nothing before the next iamalive.

    \b
    Example:
      nightwire gateway ping voevent.example.org:8099
    """
    from nightwire.gateway._ping import PingError, ping_broker

    try:
        click.echo(ping_broker(_address(peer, 8099), timeout))
    except PingError as error:
        raise click.ClickException(str(error)) from error


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--to",
    metavar="HOST:PORT",
    help="VTP broker that takes events from authors.  [default: the running embedded stack's gateway]",
)
@click.option("--samples", type=click.IntRange(1), metavar="N", help="Send N made-up sample events.")
@click.option(
    "--connections",
    type=click.IntRange(1, 256),
    default=4,
    show_default=True,
    help="Connections at once; each carries one event.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    default=60,
    show_default=True,
    help="Longest wait for the answer to an event [s].",
)
@click.option(
    "--patience",
    type=click.FloatRange(0),
    default=60,
    show_default=True,
    help="How long to go on trying to reach a broker that is away [s].",
)
@json_option
@click.option("--quiet", "-q", is_flag=True, help="No line for an event that was accepted, no progress.")
def send(
    files: tuple[Path, ...],
    to: str | None,
    samples: int | None,
    connections: int,
    timeout: float,
    patience: float,
    as_json: bool,
    quiet: bool,
) -> None:
    """Send VOEvents to a broker, as their author: files, folders of files, or - for standard input.

    Says of each whether the broker took it (ack) or refused it (nak) and why.  Exit status 1 when any was
    refused or could not be sent.

    \b
    Examples:
      nightwire send event.xml
      nightwire send --to voevent.example.org:8098 night-1/ - < last.xml
      nightwire send --samples 100
    """
    if not files and samples is None:
        raise click.UsageError("name FILEs, or --samples N")
    from nightwire.gateway._author import Author

    author = Author(_author_address(to), timeout, patience)
    letters, total = _letters(files, samples)
    receipts = _send(author, letters, total, connections, as_json=as_json, quiet=quiet)
    if as_json:
        click.echo(json.dumps({**_counts(receipts), "results": [vars(one) for one in receipts]}, indent=2))
    else:
        counts = _counts(receipts)
        click.echo(", ".join(f"{number} {word}" for word, number in counts.items()), err=True)
    sys.exit(0 if all(one.verdict == "ack" for one in receipts) else 1)


def _letters(files: tuple[Path, ...], count: int | None) -> "tuple[Iterator[Letter], int]":
    from nightwire.gateway._author import Letter, find_files, read_letters
    from nightwire.gateway.samples import samples

    found = find_files(files)
    missing = [str(file) for file in found if str(file) != "-" and not file.is_file()]
    if missing:
        raise click.UsageError(f"no such file: {', '.join(missing)}")

    def each() -> "Iterator[Letter]":
        yield from read_letters(found, sys.stdin.buffer.read)
        for name, document in samples(count or 0):
            yield Letter(name, document)

    return each(), len(found) + (count or 0)


def _send(
    author: Any,
    letters: "Iterator[Letter]",
    total: int,
    connections: int,
    *,
    as_json: bool,
    quiet: bool,
) -> "list[Receipt]":
    from nightwire.core.progress import progress
    from nightwire.gateway._author import send_all

    receipts = []
    with progress(total, "sending", quiet=quiet or as_json or total < 10) as meter:
        for receipt in send_all(author, letters, connections):
            receipts.append(receipt)
            meter.advance()
            if not as_json and not (quiet and receipt.verdict == "ack"):
                click.echo(_line(receipt))
    return receipts


def _line(receipt: "Receipt") -> str:
    detail = f": {receipt.reason}" if receipt.reason else ""
    named = f"  {receipt.ivorn}" if receipt.ivorn and receipt.verdict == "ack" else ""
    return f"{receipt.verdict:<6} {receipt.name}{named}{detail}"


def _counts(receipts: "list[Receipt]") -> dict[str, int]:
    verdicts = [receipt.verdict for receipt in receipts]
    return {
        "sent": len(verdicts),
        "acked": verdicts.count("ack"),
        "naked": verdicts.count("nak"),
        "failed": verdicts.count("failed"),
    }


def _author_address(to: str | None) -> "Address":
    if to is not None:
        return _address(to, 8098)
    from nightwire.core.endpoints import NoStackError, find_endpoints

    try:
        found = find_endpoints().vtp_authors
    except NoStackError:
        found = None
    if found is None:
        raise click.ClickException(
            "no gateway: start one with `nightwire up`, or name one with --to HOST:PORT"
        )
    return _address(found, 8098)


def _address(text: str, default_port: int) -> "Address":
    from nightwire.gateway._settings import read_address

    try:
        return read_address(text, default_port)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
