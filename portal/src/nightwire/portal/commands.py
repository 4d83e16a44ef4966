"""The verb `nightwire portal`."""

from typing import Any

import click

from nightwire.core.cli import service_of, service_options, with_options


@click.group()
def portal() -> None:
    """Look at the night in a browser: what comes in, objects, the sky, your filters."""


@portal.command()
@with_options(service_options(8084))
@click.option(
    "--public",
    is_flag=True,
    help="Show the surveys' alerts and VOEvents to who gives no name, where Kafka asks for names.",
)
@click.option(
    "--proxied",
    is_flag=True,
    help="A proxy in front ends TLS: passwords are taken from it, cookies are for TLS.",
)
@click.option(
    "--local",
    is_flag=True,
    help="Passwords are taken without TLS: a container's port, published to this machine alone.",
)
@click.option(
    "--sandbox",
    "strength",
    type=click.Choice(["strong", "weak"]),
    default="strong",
    show_default=True,
    help="How filters that are tried are contained, as of `nightwire filter run`.",
)
@click.option(
    "--keep",
    type=click.IntRange(100),
    default=20_000,
    show_default=True,
    help="Newest alerts of each topic that are found by id and place; 20,000 take some 25 MB.",
)
@click.option(
    "--last",
    type=click.IntRange(1),
    default=500,
    show_default=True,
    help="Alerts of each topic to begin with.",
)
@click.option(
    "--skymaps-from",
    metavar="HOST[:PORT]",
    multiple=True,
    help="Fetch and draw skymaps that VOEvents name there; repeatable.  [default: none]",
)
@click.option(
    "--archive",
    metavar="URL",
    default="",
    help="Ask this archive for what Kafka has forgotten.  [default: the running stack's, if any]",
)
@click.option(
    "--directory",
    metavar="URL",
    default="",
    help="Ask this directory who is there.  [default: the running stack's, if any]",
)
def serve(skymaps_from: tuple[str, ...], **more: Any) -> None:
    """Serve the pages and the API, until SIGTERM or Ctrl-C.

    \b
    Examples:
      nightwire portal serve --port 8084
      nightwire portal serve --skymaps-from gracedb.ligo.org
      nightwire portal serve --public --tls 0.0.0.0:8444 --tls-cert site.pem
    """
    from nightwire.core.runtime import setup_logging
    from nightwire.portal.serve.server import Settings
    from nightwire.portal.serve.server import serve as run
    from nightwire.portal.skymaps import HostError, SkymapCache

    setup_logging("nightwire.portal")
    try:
        skymaps = SkymapCache(skymaps_from)
    except HostError as error:
        raise click.BadParameter(str(error), param_hint="--skymaps-from") from error
    run(Settings(skymaps=skymaps, **service_of(more)))
