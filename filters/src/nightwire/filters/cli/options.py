"""Options that several verbs of `nightwire filter` share, and how a refusal is told."""

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from nightwire.core.cli import bootstrap_option, with_options

owner_option = click.option(
    "--owner", metavar="O", help="Whose filter.  [default: KAFKA_SASL_USERNAME, else me]"
)
timeout_option = click.option(
    "--timeout", default=60.0, show_default=True, help="Longest wait for the engine's answer. [s]"
)
request_options = with_options([owner_option, timeout_option, bootstrap_option])
"""Options of the verbs that ask the engine for a change."""

file_argument = click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False
)
function_option = click.option(
    "--function", "entry", default="keep", show_default=True, metavar="F", help="The function of one alert."
)
sql_option = click.option("--sql", metavar="WHERE", help="An SQL condition, in place of FILE.")


def owner_or_default(owner: str | None) -> str:
    """Return *owner*; without one, the owner of this machine's filters."""
    from nightwire.filters.authoring.client import default_owner

    return owner or default_owner()


def exit_refused(what: str, reasons: Sequence[str]) -> NoReturn:
    """Print the reasons of a refusal, and leave with status 1."""
    for line in (what, *(f"  {reason}" for reason in reasons)):
        click.echo(line, err=True)
    raise SystemExit(1)
