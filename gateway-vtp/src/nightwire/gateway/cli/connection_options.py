"""The options of ``nightwire gateway serve`` that say who may come, how many, and whether by TLS."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.cli import with_options
from nightwire.gateway.net.access import LOCAL

if TYPE_CHECKING:
    from nightwire.gateway.gateway_settings import ConnectionSettings
    from nightwire.gateway.net.tls import TLSSettings

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

TLS_OPTIONS = (
    click.option(
        "--tls-cert",
        "tls_certificate",
        type=_FILE,
        help="Our certificate and its chain (PEM), for addresses that begin with tls://.",
    ),
    click.option(
        "--tls-key", type=_FILE, help="Its private key (PEM).  [default: in the file of --tls-cert]"
    ),
    click.option(
        "--tls-ca",
        type=_FILE,
        help="Certificates (PEM) that must have signed those of the brokers that we call.  "
        "[default: those that this machine trusts]",
    ),
)
"""What whoever calls by TLS needs; other verbs have them as well."""

OPTIONS = (
    click.option(
        "--author-allow",
        metavar="CIDR",
        multiple=True,
        default=LOCAL,
        show_default=True,
        help="Network that authors may connect from; repeatable.",
    ),
    click.option(
        "--author-deny",
        metavar="CIDR",
        multiple=True,
        help="Network that authors may not connect from, even where it is allowed; repeatable.",
    ),
    click.option(
        "--subscriber-allow",
        metavar="CIDR",
        multiple=True,
        default=LOCAL,
        show_default=True,
        help="Network that subscribers may connect from; repeatable.",
    ),
    click.option(
        "--subscriber-deny",
        metavar="CIDR",
        multiple=True,
        help="Network that subscribers may not connect from, even where it is allowed; repeatable.",
    ),
    click.option(
        "--max-connections",
        type=click.IntRange(1),
        default=4096,
        show_default=True,
        help="Most connections at once, for authors and for subscribers each.",
    ),
    click.option(
        "--max-per-address",
        type=click.IntRange(1),
        default=2048,
        show_default=True,
        help="Most of them from one address, or from one /64 of IPv6.",
    ),
    click.option(
        "--frame-timeout",
        type=click.FloatRange(0.1),
        default=20,
        show_default=True,
        help="Longest time that a peer may take from the first byte of a message to its last, "
        "and over a TLS handshake [s].",
    ),
    click.option(
        "--author-memory",
        type=click.IntRange(4),
        default=256,
        show_default=True,
        help="Most memory for incomplete events of all authors, and as much for those on their way to Kafka "
        "[MiB].",
    ),
    click.option(
        "--max-depth",
        type=click.IntRange(8, 64),
        default=64,
        show_default=True,
        help="Deepest nesting of elements in an event; those of the standard have 9 at most.",
    ),
    *TLS_OPTIONS,
    click.option(
        "--tls-client-ca",
        type=_FILE,
        help="Certificates (PEM) that must have signed those of peers that come by TLS.  "
        "[default: they need none]",
    ),
)
CONNECTION_OPTIONS = (
    "author_allow",
    "author_deny",
    "subscriber_allow",
    "subscriber_deny",
    "max_connections",
    "max_per_address",
    "frame_timeout",
    "author_memory",
    "max_depth",
)
"""The names under which a command gets them, but for those of TLS."""


connection_options = with_options(OPTIONS)
"""Gives a command the options of access, limits and TLS."""
tls_options = with_options(TLS_OPTIONS)
"""Gives a command the options of whoever calls by TLS."""


def read_tls_settings(options: dict[str, Any]) -> "TLSSettings":
    """Take the options of TLS out of *options*, and return what they say.

    Raises:
        click.UsageError: A file cannot be used.
    """
    from nightwire.gateway.net.tls import TLSError, TLSSettings, client_context

    said = {name: options.pop(f"tls_{name}", None) for name in ("certificate", "key", "ca", "client_ca")}
    settings = TLSSettings(**said)
    try:
        client_context(settings)
    except TLSError as error:
        raise click.UsageError(str(error)) from error
    return settings


def read_connection_settings(options: dict[str, Any]) -> "ConnectionSettings":
    """Take the options of access, limits and TLS out of *options*, and return what they say.

    Raises:
        ValueError: One of them makes no sense; the message says which.
    """
    from nightwire.gateway.gateway_settings import ConnectionSettings
    from nightwire.gateway.net.access import Access
    from nightwire.gateway.net.limits import Limits

    tls = read_tls_settings(options)
    said = {name: options.pop(name) for name in CONNECTION_OPTIONS}
    return ConnectionSettings(
        authors=Access(said["author_allow"], said["author_deny"]),
        subscribers=Access(said["subscriber_allow"], said["subscriber_deny"]),
        limits=Limits(said["max_connections"], said["max_per_address"], said["frame_timeout"]),
        author_memory=said["author_memory"] << 20,
        max_depth=said["max_depth"],
        tls=tls,
    )
