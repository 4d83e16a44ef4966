"""The verbs of writing a filter: new, test."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from nightwire.core.cli import bootstrap_option, registry_option
from nightwire.filters.cli.options import exit_refused, filter_file, function_option, sql_option
from nightwire.schemas import survey
from nightwire.schemas.topics import check_name


@click.command()
@click.argument("name")
@click.option("--survey", default="sim", show_default=True, metavar="S", help="The survey it is for.")
@click.option("--force", is_flag=True, help="Replace a notebook that is there.")
def new(name: str, survey: str, force: bool) -> None:
    """Write NAME.ipynb, a notebook with a filter to begin with.

    Run from top to bottom it tries the filter on recent alerts, submits it, and reads what passes.

    \b
    Example:
      nightwire filter new bright --survey lsst
    """
    from nightwire.schemas import SchemaError
    from nightwire.schemas.topics import NameError_

    file = Path(f"{name}.ipynb")
    try:
        text = template_notebook(name, survey)
    except (NameError_, SchemaError) as error:
        raise click.ClickException(str(error)) from error
    if file.exists() and not force:
        raise click.ClickException(f"{file} is there already; --force replaces it")
    file.write_text(text, encoding="utf-8")
    click.echo(
        f"{file} is written: open it in Jupyter, or change its function and `nightwire filter test {file}`"
    )


@click.command()
@click.argument("file", type=filter_file, required=False)
@click.option("--survey", default="sim", show_default=True, metavar="S", help="Whose alerts to try it on.")
@click.option(
    "--last", default=200, show_default=True, type=click.IntRange(1), help="How many, the newest ones."
)
@function_option
@sql_option
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PAGE",
    help="Write a page with light curves and stamps.",
)
@click.option("--each", is_flag=True, help="Print the verdict on every alert.")
@bootstrap_option
@registry_option
def test(
    file: Path | None, survey: str, last: int, entry: str, sql: str | None, html: Path | None, each: bool,
    bootstrap: str | None, registry: str | None,
) -> None:  # fmt: skip
    """Try the filter in FILE (.ipynb, .py or .sql), or --sql, on recent alerts, here; nothing is submitted.

    Prints how many pass, how many alerts each of its conditions stopped, its failures with their lines, and
    what an alert costs.

    \b
    Example:
      nightwire filter test bright.ipynb --survey lsst --last 500
      nightwire filter test bright.ipynb --html bright.html
      nightwire filter test --sql "WHERE magnitude < 19" --each
    """
    from nightwire.filters.authoring.api import try_on_recent
    from nightwire.filters.authoring.client import file_source_map, submission
    from nightwire.filters.authoring.page import html_document
    from nightwire.filters.authoring.report import with_owner_lines
    from nightwire.filters.language import FilterError
    from nightwire.schemas import SchemaError

    try:
        text = submission(file, sql, entry)
        found = with_owner_lines(
            try_on_recent(text, survey, last, bootstrap, registry), file_source_map(file, text["source"])
        )
    except FilterError as error:
        exit_refused(f"{file.name if file else 'this'} is no filter:", error.reasons)
    except SchemaError as error:
        raise click.ClickException(str(error)) from error
    for one in found.judged if each else ():
        click.echo(f"{one.alert.id}  {one.why}")
    click.echo(str(found))
    if html is not None:
        html.write_text(html_document(found), encoding="utf-8")
        click.echo(f"{html} shows it")


TEMPLATE = files("nightwire.filters") / "templates" / "filter.ipynb"


def template_notebook(name: str, of_survey: str) -> str:
    """Return a notebook (nbformat 4.5, as JSON text) for a filter of that name.

    Raises:
        NameError_: It is no name for a filter.
        SchemaError: There is no such survey.
    """
    check_name(name)
    described = survey(of_survey).description
    words = {
        "@NAME@": name,
        "@SURVEY@": of_survey,
        "@TITLE@": described.title,
        "@RECORD@": described.source.path,
        "@FIELD@": described.source.flux or described.source.magnitude or described.source.time,
    }
    return json.dumps(_filled(json.loads(TEMPLATE.read_text(encoding="utf-8")), words), indent=1) + "\n"


def _filled(part: Any, words: dict[str, str]) -> Any:
    if isinstance(part, dict):
        return {key: _filled(value, words) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(value, words) for value in part]
    if isinstance(part, str):
        for mark, word in words.items():
            part = part.replace(mark, word)
    return part
