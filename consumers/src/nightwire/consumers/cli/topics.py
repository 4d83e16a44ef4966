"""Part."""

import click

from nightwire.core.cli import bootstrap_option, json_option


@click.group(invoke_without_command=True)
@bootstrap_option
@json_option
@click.pass_context
def topics(ctx: click.Context, bootstrap: str | None, as_json: bool) -> None:
    """List the topics: how many records are in each, and from when.

    \b
    Example:
      nightwire topics --json
    """
    if ctx.invoked_subcommand is not None:
        return
    from nightwire.consumers.admin.topics import as_table, as_text, list_topics
    from nightwire.core.runtime import find_endpoints

    rows = list_topics(find_endpoints(bootstrap).kafka)
    if as_json:
        click.echo(as_text(rows))
    else:
        from rich.console import Console

        Console().print(as_table(rows))
