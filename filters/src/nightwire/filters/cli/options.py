"""Options that several verbs of `nightwire filter` share, and how a refusal is told."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from nightwire.core.cli import bootstrap_option, completion, with_options

if TYPE_CHECKING:
    from nightwire.filters.authoring.client import Submission

    Near = Callable[[Submission | None], Submission]

owner_option = click.option(
    "--owner", metavar="O", shell_complete=completion.owners,
    help="Whose filter.  [default: KAFKA_SASL_USERNAME, else me]",
)  # fmt: skip
timeout_option = click.option(
    "--timeout", default=60.0, show_default=True, help="Longest wait for the engine's answer. [s]"
)
name_argument = click.argument("name", shell_complete=completion.filters)
request_options = with_options([owner_option, timeout_option, bootstrap_option])
"""Options of the verbs that ask the engine for a change."""

file_argument = click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False
)
function_option = click.option(
    "--function", "entry", metavar="F", help="The function of one alert; by default keep, or the only one."
)
columns_option = click.option(
    "--columns", metavar="A,B,…",
    help="Columns that are the function's arguments, as pandas Series: candidate.drb,magnitude.  "
    "[default: COLUMNS in FILE]",
)  # fmt: skip
survey_option = click.option(
    "--survey", metavar="S", shell_complete=completion.surveys,
    help="Whose alerts.  [default: SURVEY in FILE, else the only one that has some]",
)  # fmt: skip
watchlist_options = with_options(
    [
        click.option(
            "--watchlist", type=click.Path(dir_okay=False, path_type=Path), metavar="TARGETS",
            help="Alerts near the targets in this file alone: CSV, Parquet, FITS or VOTable, with ra and dec "
            "[deg].  Without FILE and --sql all of them.",
        ),
        click.option(
            "--radius", default=2.0, show_default=True, type=float, metavar="ARCSEC",
            help="… and so near. [arcsec]",
        ),
        click.option(
            "--watchlist-columns", default="", metavar="A,B,…", help="… of which these columns go along."
        ),
    ]
)  # fmt: skip
sql_option = click.option("--sql", metavar="WHERE", help="An SQL condition, in place of FILE.")


def listed_columns(columns: str | None) -> list[str]:
    """Return the names in the option ``--columns``."""
    return [name.strip() for name in (columns or "").split(",") if name.strip()]


def kafka_at(bootstrap: str | None) -> str:
    """Return Kafka's address, that of the environment or of the running stack where none is named;
    whoever asks is known there from now on.
    """
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints

    return enter(find_endpoints(bootstrap).kafka)


def owner_or_default(owner: str | None) -> str:
    """Return *owner*; without one, the owner of this machine's filters."""
    from nightwire.filters.authoring.client import default_owner

    return owner or default_owner()


def survey_or_default(
    survey: str | None, bootstrap: str | None, file: Path | None = None, sources: Sequence[str] = ()
) -> str:
    """Return *survey*; without one, that of *file*, else the only one that has alerts.

    Raises:
        UsageError: Several have.
    """
    from nightwire.filters.authoring.default_survey import default_survey
    from nightwire.filters.authoring.notebook import python_of
    from nightwire.filters.language import FilterError

    if survey:
        return survey
    script = file is not None and file.suffix != ".sql"
    code = python_of(file.read_text(), notebook=file.suffix == ".ipynb") if file and script else ""
    try:
        found = default_survey(kafka_at(bootstrap), code, sources)
    except FilterError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"survey: {found} (--survey names another)", err=True)
    return found


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    import json

    click.echo(json.dumps(value, default=str, indent=2))


def exit_refused(what: str, reasons: Sequence[str]) -> NoReturn:
    """Print the reasons of a refusal, and leave with status 1."""
    for line in (what, *(f"  {reason}" for reason in reasons)):
        click.echo(line, err=True)
    raise SystemExit(1)


def near_option(file: Path | None, columns: str, catalogue: str, radius: float) -> "Near | None":
    """Return what has a submission ask for alerts near the targets in *file*; None for no file.

    Raises:
        FilterError: It is no watchlist.
    """
    from nightwire.core.catalogues import Columns
    from nightwire.filters.authoring.watchlist import near_targets, watchlist_text

    if file is None:
        return None
    text, remark = watchlist_text(file, Columns(kept=tuple(listed_columns(columns))))
    if remark:
        click.echo(f"{file.name}: {remark}", err=True)
    return partial(near_targets, catalogue=catalogue, radius=radius, text=text)


def asked_for(
    file: Path | None, near: "Near | None", sql: str | None, *more: Any, **columns: Any
) -> "Submission":
    """Return what FILE or --sql asks of an alert, and *near*: alone, where there is neither.

    Raises:
        FilterError: It is no filter.
    """
    from nightwire.filters.authoring.client import file_submission

    if near is not None and file is None and sql is None:
        return near(None)
    submission = file_submission(file, sql, *more, **columns)
    return near(submission) if near else submission
