"""The verbs of writing a filter: new, test."""

from pathlib import Path
from typing import Any

import click

from nightwire.core.cli import bootstrap_option, registry_option
from nightwire.filters.cli.options import (
    asked_for,
    columns_option,
    exit_refused,
    file_argument,
    function_option,
    listed_columns,
    near_option,
    sql_option,
    survey_option,
    survey_or_default,
    watchlist_options,
)


@click.command()
@click.argument("name")
@survey_option
@click.option("--columns", is_flag=True, help="With a function of many alerts at once, as columns.")
@click.option("--force", is_flag=True, help="Replace a notebook that is there.")
def new(name: str, survey: str | None, columns: bool, force: bool) -> None:
    """Write NAME.ipynb, a notebook with a filter to begin with.

    Run from top to bottom it tries the filter on recent alerts, submits it, and reads what passes.

    \b
    Example:
      nightwire filter new bright --survey lsst
      nightwire filter new near-the-pole --columns
    """
    from nightwire.schemas import SchemaError
    from nightwire.schemas.topics import NameError_

    file = Path(f"{name}.ipynb")
    try:
        text = template_notebook(name, survey or survey_here(), columns=columns)
    except (NameError_, SchemaError) as error:
        raise click.ClickException(str(error)) from error
    if file.exists() and not force:
        raise click.ClickException(f"{file} is there already; --force replaces it")
    file.write_text(text, encoding="utf-8")
    click.echo(
        f"{file} is written: open it in Jupyter, or change its function and `nightwire filter test {file}`"
    )


def survey_here() -> str:
    """Return the only survey that has alerts here; the simulated one where there is no Kafka.

    Raises:
        UsageError: Several have.
    """
    from confluent_kafka import KafkaException

    from nightwire.core.runtime import NoStackError
    from nightwire.filters.authoring.default_survey import SIMULATED

    try:
        return survey_or_default(None, None)
    except (NoStackError, KafkaException):
        return SIMULATED


def template_notebook(name: str, survey: str, *, columns: bool = False) -> str:
    """Return a valid notebook (nbformat 4.5, as JSON text) for a filter of that name, of one alert
    or of *columns*.

    Raises:
        NameError_: It is no name for a filter.
        SchemaError: There is no such survey.
    """
    import json
    from importlib.resources import files

    from nightwire.schemas import survey as survey_called
    from nightwire.schemas.topics import check_name

    check_name(name)
    description = survey_called(survey).description
    words = {
        "@NAME@": name,
        "@SURVEY@": survey,
        "@TITLE@": description.title,
        "@RECORD@": description.source.path,
        "@FIELD@": description.source.flux or description.source.magnitude or description.source.time,
    }
    templates = files("nightwire.filters") / "templates"
    notebook = json.loads((templates / "filter.ipynb").read_text(encoding="utf-8"))
    if columns:
        others = json.loads((templates / "columns.json").read_text(encoding="utf-8"))
        notebook["cells"] = [{**one, **others.get(one["id"], {})} for one in notebook["cells"]]
    return json.dumps(_filled(notebook, words), indent=1) + "\n"


def _filled(part: Any, words: dict[str, str]) -> Any:
    """Return a part of a JSON document with each placeholder in its texts replaced by its word."""
    if isinstance(part, dict):
        return {key: _filled(value, words) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(value, words) for value in part]
    if isinstance(part, str):
        for placeholder, word in words.items():
            part = part.replace(placeholder, word)
    return part


@click.command()
@file_argument
@survey_option
@click.option(
    "--last", default=200, show_default=True, type=click.IntRange(1), help="How many, the newest ones."
)
@click.option(
    "--last-night", "of_last_night", is_flag=True, help="So many of the last night instead, from the archive."
)
@function_option
@columns_option
@sql_option
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), metavar="PAGE",
    help="Write a page with light curves and stamps.",
)  # fmt: skip
@click.option("--each", is_flag=True, help="Print the verdict on every alert.")
@watchlist_options
@bootstrap_option
@registry_option
def test(
    file: Path | None, sql: str | None, entry: str | None, columns: str | None, html: Path | None,
    each: bool, survey: str | None, watchlist: Path | None, radius: float,
    watchlist_columns: str, **where: Any,
) -> None:  # fmt: skip
    """Try the filter in FILE (.ipynb, .py or .sql), or --sql, on recent alerts; submit nothing.

    Prints how many pass, how many alerts each of its conditions stopped, its failures with their
    lines, and what an alert costs.

    \b
    Example:
      nightwire filter test bright.ipynb --survey lsst --last 500
      nightwire filter test bright.ipynb --last-night --last 2000
      nightwire filter test bright.ipynb --html bright.html
      nightwire filter test --sql "WHERE magnitude < 19" --each
      nightwire filter test --watchlist targets.csv --radius 2 --last 2000
    """
    from nightwire.filters.authoring.api import try_on_recent
    from nightwire.filters.authoring.client import file_source_map
    from nightwire.filters.authoring.page import html_document
    from nightwire.filters.authoring.report import with_owner_lines
    from nightwire.filters.authoring.sandboxed import tried_targets
    from nightwire.filters.language import FilterError
    from nightwire.schemas import SchemaError

    try:
        near = near_option(watchlist, watchlist_columns, tried_targets(), radius)
        submission = asked_for(file, near, sql, entry, columns=listed_columns(columns))
        survey = survey_or_default(survey, where["bootstrap"], file)
        names = file_source_map(file, submission.source)
        report = with_owner_lines(try_on_recent(submission, survey, **where), names)
    except FilterError as error:
        exit_refused(f"{file.name if file else 'this'} is no filter:", error.reasons)
    except SchemaError as error:
        raise click.ClickException(str(error)) from error
    for one in report.judged if each else ():
        click.echo(f"{one.alert.id}  {one.why}")
    click.echo(str(report))
    if html is not None:
        html.write_text(html_document(report), encoding="utf-8")
        click.echo(f"{html} shows it")
