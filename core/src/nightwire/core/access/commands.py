"""The verbs of `nightwire broker`, and those of `nightwire user` that are like them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from nightwire.core.cli import completion
from nightwire.core.cli.options import Verb, bootstrap_option, json_option, reached, with_options
from nightwire.core.cli.parameter_types import Size, SurveyName

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")


def adding_options(usual: str) -> Callable[[Verb], Verb]:
    """Return the options of a verb that adds a principal; the help names the *usual* quota."""
    options = [
        click.option(
            "--quota",
            type=Size(),
            metavar="SIZE",
            help="Bytes a second that it may read, and write; 0B for no limit.  "
            f"[default: as it is; first {usual}]",
        ),
        click.option("--no-quota", is_flag=True, help="Leave quotas alone: only they take Kafka's own Java."),
        click.option("--new-password", is_flag=True, help="Replace the password of one that is there."),
        click.option(
            "--no-password", is_flag=True, help="Rights alone, for who comes with tokens (`up --oidc`)."
        ),
        dry_run_option,
        bootstrap_option,
        json_option,
    ]
    return with_options(options)


def add_remove_and_list(group: click.Group, kind: str, example: str) -> None:
    """Give *group* the verbs `remove`, `revoke` and `list` for principals of a *kind* of
    `access.rights`.
    """

    known = completion.brokers if kind == "broker" else completion.owners

    @group.command(
        "remove",
        help=f"""Take password, rights and quota from the {kind} NAME; the records in its topics stay.

        \b
        Example:
          nightwire {group.name} remove {example}
        """,
    )
    @click.argument("name", shell_complete=known)
    @dry_run_option
    @bootstrap_option
    @json_option
    def remove(name: str, bootstrap: str | None, dry_run: bool, as_json: bool) -> None:
        from nightwire.core.access import operations
        from nightwire.core.access.rights import Kind

        operations.remove(reached(bootstrap).kafka, name, Kind(kind), dry_run=dry_run, as_json=as_json)

    @group.command(
        "revoke",
        help=f"""Lock the {kind} NAME out at once, also from open connections and with tokens.

        Its rights stay: `nightwire {group.name} add {example}` lets it in again.

        \b
        Example:
          nightwire {group.name} revoke {example}
        """,
    )
    @click.argument("name", shell_complete=known)
    @dry_run_option
    @bootstrap_option
    @json_option
    def revoke(name: str, bootstrap: str | None, dry_run: bool, as_json: bool) -> None:
        from nightwire.core.access import operations
        from nightwire.core.access.rights import Kind

        operations.revoke(reached(bootstrap).kafka, name, Kind(kind), dry_run=dry_run, as_json=as_json)

    @group.command(
        "list",
        help=f"""List {kind}s, with their rights and quotas.

        \b
        Example:
          nightwire {group.name} list --json
        """,
    )
    @bootstrap_option
    @json_option
    def list_(bootstrap: str | None, as_json: bool) -> None:
        from nightwire.core.access import operations
        from nightwire.core.access.rights import Kind

        operations.show(reached(bootstrap).kafka, Kind(kind), as_json=as_json)


@click.command("add")
@click.argument("name", shell_complete=completion.owners)
@adding_options("20MB")
def add_user(name: str, bootstrap: str | None, **how: Any) -> None:
    """Let the owner NAME in.

    It may ask for filters, read what passes them, the alerts and what filters there are, and join
    groups whose names begin with "NAME.".  The password is made and printed once, unless
    NIGHTWIRE_NEW_PASSWORD gives it.  What is as it should be is left alone, so it can be run again.

    \b
    Examples:
      nightwire user add ann --dry-run
      nightwire user add ann --quota 50MB
      nightwire user add ann --new-password > ann.env
    """
    from nightwire.core.access import operations, rights

    operations.add(reached(bootstrap), named(rights.owner, name), **how)


@click.group()
def broker() -> None:
    """Community brokers: let them in with a password, rights and a quota, or out again.

    It is for the operator of a Kafka that asks who is there (`nightwire up --auth scram`).

    \b
    Example:
      nightwire broker add fink --survey lsst
    """


@broker.command("add")
@click.argument("name", shell_complete=completion.brokers)
@click.option(
    "--survey",
    "surveys",
    type=SurveyName(),
    multiple=True,
    required=True,
    metavar="NAME",
    help="Whose alerts; repeatable.",
)
@click.option(
    "--filter",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A stream of what passes this filter (.ipynb, .py or .sql), uncapped; repeatable.",
)
@click.option(
    "--lite",
    is_flag=True,
    help="A stream without stamps and histories, of all alerts or of those that pass each filter.",
)
@adding_options("200MB")
def add_broker(
    name: str,
    surveys: tuple[str, ...],
    files: tuple[Path, ...],
    lite: bool,
    bootstrap: str | None,
    **how: Any,
) -> None:
    """Let the community broker NAME in.

    It may read the alerts of its surveys, ask for filters and read their streams "broker.NAME.*",
    write what it finds to "returns.NAME", and join groups whose names begin with "NAME.".  The
    password is made and printed once, unless NIGHTWIRE_NEW_PASSWORD gives it.  Run again, it gives
    what is missing.

    Each --filter is submitted in its name: what passes is its stream "broker.NAME.FILE".  With
    --lite its alerts come without stamps, and without a filter the stream "broker.NAME.lite" has
    all of them.

    \b
    Examples:
      nightwire broker add fink --survey lsst --dry-run
      nightwire broker add fink --survey lsst --survey ztf --quota 200MB
      nightwire broker add fink --survey lsst --filter bright.py --lite
    """
    from nightwire.core.access import operations, rights
    from nightwire.core.access.streams import stream_filters

    where = reached(bootstrap)
    wanted = named(lambda who: list(stream_filters(who, surveys, files, lite=lite)), name)
    operations.add(where, named(lambda who: rights.broker(who, surveys), name), **how)
    operations.order(where.kafka, wanted, dry_run=how["dry_run"])


def named(rights: Callable[[str], Any], name: str) -> Any:
    """Return the rights of *name*; a name that cannot be is an error of the command line."""
    from nightwire.schemas.topics import NameError_

    try:
        return rights(name)
    except NameError_ as error:
        raise click.UsageError(str(error)) from error


add_remove_and_list(broker, "broker", "fink")
