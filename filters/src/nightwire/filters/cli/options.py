"""Part."""

from pathlib import Path

import click

owner_option = click.option(
    "--owner", metavar="O", help="Whose filter.  [default: KAFKA_SASL_USERNAME, else me]"
)
timeout_option = click.option(
    "--timeout", default=60.0, show_default=True, help="Longest wait for the engine's answer. [s]"
)
filter_file = click.Path(exists=True, dir_okay=False, path_type=Path)
function_option = click.option(
    "--function", "entry", default="keep", show_default=True, metavar="F", help="The function of one alert."
)
sql_option = click.option("--sql", metavar="WHERE", help="An SQL condition, in place of FILE.")


def owner_or_default(owner: str | None) -> str:
    """Return the owner that is meant."""
    from nightwire.filters.authoring.client import default_owner

    return owner or default_owner()


def exit_refused(what: str, reasons: list[str]) -> None:
    """Say why something is refused, and leave with status 1."""
    click.echo(what, err=True)
    for reason in reasons:
        click.echo(f"  {reason}", err=True)
    raise SystemExit(1)
