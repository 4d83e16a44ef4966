"""The verb ``nightwire send``: an author of VOEvents."""

import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.cli import json_option
from nightwire.gateway.cli.tls_options import read_address_option, tls_options, tls_to

if TYPE_CHECKING:
    from nightwire.gateway.net.addresses import Address
    from nightwire.gateway.signing.signing_key import SigningKey
    from nightwire.gateway.vtp.submission import Receipt, Submission


to_option = click.option(
    "--to",
    metavar="HOST:PORT",
    help="VTP broker that takes events from authors.  [default: the running embedded stack's gateway]",
)


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@to_option
@click.option("--samples", type=click.IntRange(1), metavar="N", help="Send N made-up events, new each time.")
@click.option(
    "--first-sample",
    type=click.IntRange(0),
    metavar="N",
    help="Send the samples from number N on that are the same each time: copies, if they were sent before.",
)
@click.option(
    "--connections",
    type=click.IntRange(1, 256),
    default=4,
    show_default=True,
    help="Connections at once; each carries one event, or many with --bulk.",
)
@click.option(
    "--bulk",
    is_flag=True,
    help="Send many events on a connection, before earlier ones are answered, where the broker takes that.",
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
@click.option(
    "--sign",
    "key_file",
    metavar="KEY",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Sign each event with the OpenPGP key in this file; its password: NIGHTWIRE_SIGN_PASSWORD.",
)
@tls_options
@json_option
@click.option("--quiet", "-q", is_flag=True, help="No line for an event that was accepted, no progress.")
def send(
    files: tuple[Path, ...],
    to: str | None,
    samples: int | None,
    first_sample: int | None,
    connections: int,
    bulk: bool,
    timeout: float,
    patience: float,
    key_file: Path | None,
    as_json: bool,
    quiet: bool,
    **tls: Any,
) -> None:
    """Send VOEvents to a broker, as their author: files, folders of files, or - for standard input.

    Says of each whether the broker took it (ack) or refused it (nak) and why.  Exit status 1 when
    any was refused or could not be sent.

    \b
    Examples:
      nightwire send event.xml
      nightwire send --to voevent.example.org:8098 night-1/ - < last.xml
      nightwire send --samples 100
      nightwire send --bulk archive/
    """
    if not files and samples is None:
        raise click.UsageError("name FILEs, or --samples N")
    from nightwire.gateway.client.author import Author

    address = author_address(to)
    author = Author(address, timeout, patience, _signing_key(key_file), tls_to(address, tls))
    submissions, total = _submissions(files, samples, first_sample)
    receipts = _send(author, submissions, total, connections, bulk=bulk, as_json=as_json, quiet=quiet)
    if as_json:
        click.echo(json.dumps({**_counts(receipts), "results": [vars(one) for one in receipts]}, indent=2))
    else:
        counts = _counts(receipts)
        click.echo(", ".join(f"{number} {word}" for word, number in counts.items()), err=True)
    sys.exit(0 if all(one.verdict == "ack" for one in receipts) else 1)


def _submissions(
    files: tuple[Path, ...], count: int | None, first: int | None
) -> "tuple[Iterator[Submission], int]":
    from nightwire.gateway.client.author import find_files, read_submissions
    from nightwire.gateway.voevent.samples import samples
    from nightwire.gateway.vtp.submission import Submission

    found = find_files(files)
    missing = [str(file) for file in found if str(file) != "-" and not file.is_file()]
    if missing:
        raise click.UsageError(f"no such file: {', '.join(missing)}")

    def each() -> "Iterator[Submission]":
        yield from read_submissions(found, sys.stdin.buffer.read)
        run = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-" if first is None else ""
        for name, document in samples(count or 0, first or 0, run):
            yield Submission(name, document)

    return each(), len(found) + (count or 0)


def _send(
    author: Any,
    submissions: "Iterator[Submission]",
    total: int,
    connections: int,
    *,
    bulk: bool,
    as_json: bool,
    quiet: bool,
) -> "list[Receipt]":
    from nightwire.core.cli import progress
    from nightwire.gateway.client.author import send_all
    from nightwire.gateway.client.bulk_author import send_bulk

    deliver, receipts = send_bulk if bulk else send_all, []
    with progress(total, "sending", quiet=quiet or as_json or total < 10) as meter:
        for receipt in deliver(author, submissions, connections):
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


def _signing_key(path: Path | None) -> "SigningKey | None":
    if path is None:
        return None
    from nightwire.gateway.signing.signing_key import PASSWORD_VARIABLE, open_signing_key

    return open_signing_key(path, os.environ.get(PASSWORD_VARIABLE))


def author_address(to: str | None) -> "Address":
    """Return the address *to*, or that of the running stack's gateway.

    Raises:
        click.ClickException: There is none.
    """
    if to is not None:
        return read_address_option(to, 8098)
    from nightwire.core.runtime import NoStackError, find_endpoints

    try:
        found = find_endpoints().vtp_authors
    except NoStackError:
        found = None
    if found is None:
        raise click.ClickException(
            "no gateway: start one with `nightwire up`, or name one with --to HOST:PORT"
        )
    return read_address_option(found, 8098)
