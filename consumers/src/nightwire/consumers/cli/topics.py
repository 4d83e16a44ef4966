"""The verb `nightwire topics`, and `nightwire topics apply` of core."""

import click

from nightwire.core.cli import apply, bootstrap_option, json_option, reached, wide_option


@click.group(invoke_without_command=True)
@wide_option
@bootstrap_option
@json_option
@click.pass_context
def topics(ctx: click.Context, wide: bool, bootstrap: str | None, as_json: bool) -> None:
    """List the topics: how many records are in each, and from when.

    \b
    Example:
      nightwire topics --json
    """
    if ctx.invoked_subcommand is not None:
        return
    from nightwire.consumers.admin.topics import list_topics, topics_json, topics_table

    rows = list_topics(reached(bootstrap).kafka)
    if as_json:
        click.echo(topics_json(rows))
    else:
        from nightwire.core.cli import show_tables

        show_tables(topics_table(rows, wide=wide))


topics.add_command(apply)
