"""The verb `nightwire directory`."""

import json

import click

from nightwire.core.cli import bootstrap_option


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
    if form == "json":
        click.echo(answer.json())
    elif form == "votable":
        click.echo(answer.votable(), nl=False)
    elif form == "arrow":
        from pyarrow import ipc

        table = answer.arrow()
        with click.open_file("-", "wb") as file, ipc.new_stream(file, table.schema) as out:
            out.write_table(table)
    else:
        from nightwire.core.cli import Column, Listing, show_tables

        rows = [[None if cell is None else str(cell) for cell in row] for row in answer.rows]
        show_tables(Listing(tuple(Column(name) for name in answer.columns), rows))


@directory.command()
@click.argument("kind")
@click.argument("name")
@bootstrap_option
@click.option("--owner", default="", help="Whose it is.")
@click.option("--survey", default="", help="Its survey.")
@click.option("--topic", default="", help="The topic that it is or writes.")
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
    from nightwire.core.presence import EntryError, entry, entry_key
    from nightwire.core.runtime import find_endpoints
    from nightwire.directory.log import write
    from nightwire.schemas.records import ENTRY

    pairs = [text.partition("=")[::2] for text in endpoints]
    try:
        said = json.loads(capabilities)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--capabilities is no JSON: {error}") from error
    if not isinstance(said, dict):
        raise click.UsageError("--capabilities is no JSON object")
    try:
        found = entry(kind, name, capabilities=said, endpoints=dict(pairs), **more)
    except EntryError as error:
        raise click.UsageError(str(error)) from error
    write(find_endpoints(bootstrap).kafka, entry_key(found), ENTRY.encode(found))


@directory.command()
@click.argument("kind")
@click.argument("name")
@bootstrap_option
def remove(kind: str, name: str, bootstrap: str | None) -> None:
    """Take NAME, a KIND of this site, out of the directory."""
    from nightwire.core.presence import entry_key, site_name
    from nightwire.core.runtime import find_endpoints
    from nightwire.directory.log import write

    key = entry_key({"site": site_name(), "kind": kind, "name": name})
    write(find_endpoints(bootstrap).kafka, key, None)
