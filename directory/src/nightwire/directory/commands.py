"""The verb `nightwire directory`."""

import json
from typing import IO, Any

import click

from nightwire.core.cli import (
    bootstrap_option,
    completion,
    duration_option,
    service_of,
    service_options,
    with_options,
)


@click.group()
def directory() -> None:
    """Ask who is there and alive, by SQL; list what nightwire cannot see by itself."""


@directory.command()
@click.argument("sql")
@bootstrap_option
@click.option(
    "--as",
    "form",
    type=click.Choice(["table", "json", "arrow", "votable"]),
    default="table",
    show_default=True,
    help="Form of the answer; Arrow is an IPC stream.",
)
def query(sql: str, bootstrap: str | None, form: str) -> None:
    """Answer SQL over the views processes, filters, streams, peers and sites.

    \b
    Example:
      nightwire directory query "SELECT name, state, silence FROM processes"
    """
    from nightwire.directory.find import find

    answer = find(sql, bootstrap=bootstrap)
    if form != "table":
        click.echo(answer.encode(form)[1], nl=form == "json")
    elif answer.rows:
        from nightwire.core.cli import Column, Listing, show_tables

        rows = [[None if cell is None else str(cell) for cell in row] for row in answer.rows]
        show_tables(Listing(tuple(Column(name) for name in answer.columns), rows))
    else:
        click.echo("no rows", err=True)


@directory.command()
@click.argument("kind", shell_complete=completion.kinds)
@click.argument("name")
@bootstrap_option
@click.option("--owner", default="", shell_complete=completion.owners, help="Whose it is.")
@click.option("--survey", default="", shell_complete=completion.surveys, help="Its survey.")
@click.option("--topic", default="", shell_complete=completion.topics, help="The topic that it is or writes.")
@click.option(
    "--endpoint", "endpoints", metavar="WHAT=ADDRESS", multiple=True, help="An address; repeatable."
)
@click.option("--capabilities", default="{}", metavar="JSON", help="What else is to be known of it.")
def add(
    kind: str, name: str, bootstrap: str | None, endpoints: tuple[str, ...], capabilities: str, **more: str
) -> None:
    """List NAME as a KIND (stream, producer, consumer, broker, feed, …) of this site.

    \b
    Example:
      nightwire directory add broker antares --owner ann --endpoint https=antares.example:443
    """
    from nightwire.directory.listing import add

    pairs = [text.partition("=")[::2] for text in endpoints]
    try:
        parsed = json.loads(capabilities)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--capabilities is no JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise click.UsageError("--capabilities is no JSON object")
    add(bootstrap, kind, name, capabilities=parsed, endpoints=dict(pairs), **more)


@directory.command()
@click.argument("kind", shell_complete=completion.kinds)
@click.argument("name", shell_complete=completion.entries)
@bootstrap_option
def remove(kind: str, name: str, bootstrap: str | None) -> None:
    """Take NAME, a KIND of this site, out of the directory."""
    from nightwire.directory.listing import remove

    remove(bootstrap, kind, name)


@directory.command("export")
@click.argument("form", type=click.Choice(["asyncapi", "voeventregext", "regtap"]))
@bootstrap_option
@click.option(
    "--out", type=click.File("wb"), default="-", metavar="FILE", help="Where to.  [default: stdout]"
)
def export_(form: str, bootstrap: str | None, out: IO[bytes]) -> None:
    """Write the site's streams as others read them.

    FORM is an AsyncAPI document (JSON), the VOEvent streams as records of the Virtual Observatory's
    registry (VOEventRegExt, XML), or RegTAP's tables (VOTable).

    \b
    Example:
      nightwire directory export asyncapi --out streams.json
    """
    from nightwire.directory.find import export

    out.write(export(form, bootstrap=bootstrap))


@directory.command()
@with_options(service_options(8083))
@click.option(
    "--watch",
    "watched",
    metavar="NAME=HOST:PORT[/PATH]",
    multiple=True,
    help="Keep NAME listed while its page of metrics answers; NAME:JOB= is Prometheus' job.  Repeatable.",
)
@duration_option("--grace", "1d", "How long a process that is gone stays listed.")
@click.option(
    "--site",
    "sites",
    metavar="[NAME=]HOST:PORT",
    multiple=True,
    help="Kafka of another site, which is read too, and those that it lists; NIGHTWIRE_SITE_NAME_KAFKA_X_Y "
    "sets librdkafka's x.y there, such as name and password.  Repeatable.",
)
@click.option(
    "--max-sites",
    type=click.IntRange(0),
    default=300,
    show_default=True,
    help="Most other sites that are followed; 0 = none.",
)
def serve(watched: tuple[str, ...], sites: tuple[str, ...], **more: Any) -> None:
    """Follow the directory's log and answer questions over HTTP, until SIGTERM or Ctrl-C.

    \b
    Examples:
      nightwire directory serve --port 8083
      curl -d '{"sql": "SELECT name, state FROM processes"}' http://127.0.0.1:8083/query
      NIGHTWIRE_ARCHIVE_HTTP=http://127.0.0.1:8085 nightwire directory serve  for slow links
    """
    from nightwire.core.runtime import setup_logging
    from nightwire.directory.serve.health_watch import WatchedProcess
    from nightwire.directory.serve.server import Settings
    from nightwire.directory.serve.server import serve as run
    from nightwire.directory.sites import SiteAddress

    setup_logging("nightwire.directory")
    more["watched"] = [WatchedProcess.parse(text) for text in watched]
    more["sites"] = [SiteAddress.parse(text) for text in sites]
    run(Settings(**service_of(more)))
