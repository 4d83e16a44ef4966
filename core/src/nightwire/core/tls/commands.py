"""The verbs `nightwire tls init`, `client` and `show`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nightwire.core.cli.options import bootstrap_option, json_option

if TYPE_CHECKING:
    from nightwire.core.tls.site import Site

FOLDER = "tls"
"""Of the state folder."""

folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the certificates are.  [default: tls in the state folder, .nightwire]",
)


@click.group()
def tls() -> None:
    """Certificates of this site: an authority of its own, its server's, and those of clients.

    \b
    Example:
      nightwire tls init broker.example.org
    """


@tls.command()
@click.argument("hosts", metavar="[HOST]...", nargs=-1)
@folder_option
@click.option(
    "--owner",
    type=click.IntRange(0),
    metavar="UID",
    help="User id of who reads it: 10001 for the containers of compose.  [default: as before, else yours]",
)
def init(hosts: tuple[str, ...], folder: Path | None, owner: int | None) -> None:
    """Make the server's certificate for HOSTs, and before the first one the site's authority.

    A HOST is a name or an address by which others reach this machine; without any, those of the
    present certificate, else this machine's name.  Run it again to renew the certificate: what
    runs uses the new one within seconds, and the authority stays, so nobody else has to do
    anything.

    \b
    Examples:
      nightwire tls init broker.example.org 192.0.2.7
      nightwire tls init                                 the same names, for another year
      nightwire tls init --folder tls --owner 10001 broker.example.org     for compose
    """
    with _advice(folder) as site:
        names = site.init(hosts, owner)
        click.echo(f"{site.server}: for {', '.join(names)}, until {site.ends():%Y-%m-%d}")
        click.echo(f"{site.ca}: give it to your users; keep the other files of {site.folder} to yourself")


@tls.command()
@click.argument("name")
@folder_option
def client(name: str, folder: Path | None) -> None:
    """Make a certificate by which NAME, an author or a telescope, proves who it is.

    \b
    Example:
      nightwire tls client lco
    """
    with _advice(folder) as site:
        click.echo(f"{site.add_client(name)}: key and certificate; give it and {site.ca} to {name} alone")


@tls.command()
@folder_option
@json_option
def show(folder: Path | None, as_json: bool) -> None:
    """Show for which names the server's certificate holds, and until when.

    \b
    Example:
      nightwire tls show
    """
    with _advice(folder) as site:
        ends, hosts = site.ends(), site.hosts()
        if as_json:
            click.echo(json.dumps({"ca": str(site.ca), "hosts": hosts, "until": ends.isoformat()}, indent=2))
        else:
            click.echo(f"{site.server}: for {', '.join(hosts)}, until {ends:%Y-%m-%d}; signed by {site.ca}")


@tls.command()
@bootstrap_option
def reload(bootstrap: str | None) -> None:
    """Let the brokers of a Kafka of one's own, as of compose, show a renewed certificate.

    The embedded stack, the registry and the gateway look for themselves.

    \b
    Example:
      nightwire tls reload
    """
    from nightwire.core.runtime import find_endpoints
    from nightwire.core.tls.reload import reload_certificates

    count = reload_certificates(find_endpoints(bootstrap).kafka)
    click.echo(f"{count} brokers have read their certificates again")


@contextmanager
def _advice(folder: Path | None) -> "Iterator[Site]":
    """Yield the site in *folder*; say in one line what is wrong with it."""
    from nightwire.core.runtime.endpoints import STATE_DIR, state_dir
    from nightwire.core.tls.site import Site

    try:
        yield Site(folder or (state_dir() or Path(STATE_DIR)).resolve() / FOLDER)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
