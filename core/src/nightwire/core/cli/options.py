"""Options that many verbs share, and how a verb gets many."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nightwire.core.cli.parameter_types import Duration

if TYPE_CHECKING:
    from nightwire.core.runtime import Endpoints

Verb = TypeVar("Verb", bound=Callable[..., Any])

bootstrap_option = click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help="Kafka's address.  [default: KAFKA_BOOTSTRAP_SERVERS, else the running embedded stack]",
)
registry_option = click.option(
    "--registry",
    metavar="URL",
    help="Schema registry.  [default: NIGHTWIRE_SCHEMA_REGISTRY, else the running embedded stack]",
)
metrics_port_option = click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port of the metrics page; 0 = no page.",
)
wide_option = click.option(
    "--wide", is_flag=True, help="Show every column and number in full, however narrow the terminal."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
DOOR_OPTIONS = (
    click.option("--tls", metavar="HOST:PORT", help="Listen by HTTPS too, for other machines."),
    click.option("--tls-cert", type=FILE, help="Certificate, with the chain behind it (PEM)."),
    click.option("--tls-key", type=FILE, help="Its private key.  [default: in the same file]"),
    click.option(
        "--tokens", metavar="HOST:PORT", default="", help="Where Kafka judges the site's own tokens."
    ),
)
"""Options of servers that other machines reach, who show a name and a password, or a token."""


def reached(bootstrap: str | None, registry: str | None = None) -> "Endpoints":
    """Return the addresses of a Kafka that lets us in, and of what belongs to it.

    Raises:
        KafkaException: It does not, or nobody answers.
    """
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints

    found = find_endpoints(bootstrap, registry)
    enter(found.kafka)
    return found


def service_options(port: int) -> Sequence[Callable[[Any], Any]]:
    """Return the options of an HTTP service of the site, by default at *port*; see `service_of`."""
    return (
        bootstrap_option,
        registry_option,
        click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen."),
        click.option("--port", type=click.IntRange(0, 65535), default=port, show_default=True, help="Port."),
        metrics_port_option,
        *DOOR_OPTIONS,
    )


def service_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return *options*, of them those of `service_options` as `core.presence.HttpService` has them.

    Raises:
        TLSError: The door's address is none, or it has no certificate.
    """
    from nightwire.core.runtime import find_endpoints
    from nightwire.schemas.serving import tls_door

    where = find_endpoints(options.pop("bootstrap"), options.pop("registry", None))
    door = tls_door(*(options.pop(name) for name in ("tls", "tls_cert", "tls_key")))
    return {**options, "where": where, "door": door}


def with_options(options: Sequence[Callable[[Any], Any]]) -> Callable[[Verb], Verb]:
    """Return a decorator that gives a verb *options*; its help names them in this order."""

    def decorate(verb: Verb) -> Verb:
        for option in reversed(options):
            verb = option(verb)
        return verb

    return decorate


def duration_option(name: str, default: str, text: str) -> Callable[[Verb], Verb]:
    """Return the option *name* of a duration, such as ``30s``, with *text* as its help."""
    return click.option(name, type=Duration(), default=default, show_default=True, help=text)
