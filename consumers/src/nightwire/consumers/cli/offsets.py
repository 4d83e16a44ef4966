"""The verbs `nightwire offsets show` and `nightwire offsets reset`."""

import json
from typing import Any

import click

from nightwire.consumers.cli.options import ResetTarget
from nightwire.core.cli import bootstrap_option, completion, json_option, reached, wide_option


@click.group()
def offsets() -> None:
    """Where a group stands in its topics: show it, or move it.

    \b
    Example:
      nightwire offsets show mybroker.ingest
    """


@offsets.command()
@click.argument("group", shell_complete=completion.groups)
@wide_option
@bootstrap_option
@json_option
def show(group: str, wide: bool, bootstrap: str | None, as_json: bool) -> None:
    """Show how far a group has read, how much is before it, and who reads.

    \b
    Example:
      nightwire offsets show mybroker.ingest --json
    """
    from nightwire.consumers.admin.offsets import GroupAdmin, group_record, group_table
    from nightwire.core.cli import show_tables

    with GroupAdmin(reached(bootstrap).kafka, group) as admin:
        positions, members = admin.positions(), admin.members()
    if as_json:
        click.echo(json.dumps(group_record(group, positions, members), indent=2))
    elif positions:
        show_tables(group_table(positions, members, wide=wide))
    else:
        click.echo(f"group {group} has kept no position", err=True)


@offsets.command()
@click.argument("group", shell_complete=completion.groups)
@click.option(
    "--to",
    "target",
    type=ResetTarget(),
    required=True,
    metavar="WHERE",
    help="beginning, end, so long ago (2h), a time (2026-11-21T03:00, UTC), or an offset in each partition.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    shell_complete=completion.topics,
    help="In this topic alone; may be repeated.  [default: those in which the group has a position]",
)
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@bootstrap_option
def reset(group: str, target: Any, topics: tuple[str, ...], dry_run: bool, bootstrap: str | None) -> None:
    """Move a group, so that it reads again, or skips.  Refused while somebody reads with it.

    \b
    Examples:
      nightwire offsets reset mybroker.ingest --to 2h --dry-run
      nightwire offsets reset mybroker.ingest --to end --topic alerts.lsst
    """
    from nightwire.consumers.admin.offsets import GroupAdmin

    with GroupAdmin(reached(bootstrap).kafka, group) as admin:
        moves = admin.plan(target, topics)
        if not moves:
            raise click.ClickException(f"group {group} has kept no position: name topics with --topic")
        if not dry_run:
            admin.move(moves)
    for move in moves:
        click.echo(str(move))
    if dry_run:
        click.echo("nothing was changed (--dry-run)", err=True)
