"""What every verb needs that calls a broker: the options of TLS, and the reading of addresses."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.cli import with_options

if TYPE_CHECKING:
    from nightwire.gateway.net.addresses import Address
    from nightwire.gateway.net.tls import TLSSettings

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

TLS_OPTIONS = (
    click.option(
        "--tls-cert",
        "tls_certificate",
        type=FILE,
        help="Our certificate and its chain (PEM), for addresses that begin with tls://.",
    ),
    click.option("--tls-key", type=FILE, help="Its private key (PEM).  [default: in the file of --tls-cert]"),
    click.option(
        "--tls-ca",
        type=FILE,
        help="Certificates (PEM) that must have signed those of the brokers that we call.  "
        "[default: those that this machine trusts]",
    ),
)

tls_options = with_options(TLS_OPTIONS)
"""Gives a command the options of TLS."""


def read_tls_settings(options: dict[str, Any]) -> "TLSSettings":
    """Take the options of TLS out of *options*, and return them as settings.

    Raises:
        click.UsageError: A file cannot be used.
    """
    from nightwire.gateway.net.tls import TLSSettings, client_context
    from nightwire.schemas.serving import TLSError

    names = ("certificate", "key", "ca", "client_ca")
    settings = TLSSettings(**{name: options.pop(f"tls_{name}", None) for name in names})
    try:
        client_context(settings)
    except TLSError as error:
        raise click.UsageError(str(error)) from error
    return settings


def read_address_option(text: str, default_port: int) -> "Address":
    """Return the address that an option says.

    Raises:
        click.UsageError: It is none.
    """
    from nightwire.gateway.net.addresses import read_address

    try:
        return read_address(text, default_port)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def tls_to(address: "Address", options: dict[str, Any]) -> "TLSSettings":
    """Take the options of TLS for a connection to *address*, and return them as settings.

    Raises:
        click.UsageError: A file cannot be used, or would not be, for TLS is not spoken there.
    """
    given = [name for name in ("certificate", "ca") if options.get(f"tls_{name}")]
    if given and not address.tls:
        raise click.UsageError(
            f"{address} is called without TLS: name tls://{address} for --tls-cert, --tls-ca"
        )
    return read_tls_settings(options)
