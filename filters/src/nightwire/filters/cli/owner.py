"""The verbs with which an owner asks the engine for a change: submit, enable, disable, rollback, remove."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nightwire.core.cli import Duration, bootstrap_option
from nightwire.filters.cli.options import (
    exit_refused,
    filter_file,
    function_option,
    owner_option,
    owner_or_default,
    sql_option,
    timeout_option,
)


@click.command()
@click.argument("file", type=filter_file, required=False)
@click.option("--name", required=True, metavar="NAME", help="The filter's name: small letters, digits, '-'.")
@owner_option
@click.option(
    "--survey", default="*", show_default=True, metavar="S", help="Whose alerts it judges; * for all."
)
@function_option
@sql_option
@click.option(
    "--cap", default=20, show_default=True, type=click.IntRange(0), metavar="N",
    help="Most alerts a visit; 0 for all.",
)  # fmt: skip
@click.option(
    "--choice", default="first", show_default=True, type=click.Choice(["first", "best"]),
    help="Which ones: those that come first, at once, or those ranked highest, when the visit ends.",
)  # fmt: skip
@click.option(
    "--output",
    default="",
    metavar="TOPIC",
    help="For community brokers: broker.<broker>.<stream>, in its place.",
)
@click.option(
    "--backfill",
    type=Duration(),
    metavar="TIME",
    help="Judge the past as well, such as 1d: outside the cap, but no more than the operator allows.",
)
@click.option("--wait", is_flag=True, help="Tell how far the backfill is, until it has ended.")
@click.option(
    "--source", "sources", multiple=True, metavar="TOPIC",
    help="What it judges, filter.<owner>.<name>, broker.<broker>.<stream> or alerts.<survey>; repeatable.  "
    "[default: the survey's alerts]",
)  # fmt: skip
@click.option(
    "--drop", multiple=True, metavar="FIELD",
    help="For community brokers: leave this field out, such as cutoutScience.  Repeatable.",
)  # fmt: skip
@click.option(
    "--mean", "means", multiple=True, metavar="FIELD",
    help="… and add the mean of these numbers, such as prvDiaSources.psfFlux, and their count.  Repeatable.",
)  # fmt: skip
@click.option(
    "--lite",
    is_flag=True,
    help="For community brokers: no stamps, and of each history the number of points and their mean.",
)
@click.option(
    "--transform",
    default="",
    metavar="F",
    help="… and add what this function of one alert computes, as the constant ADDS beside it declares.",
)
@click.option(
    "--no-trial", is_flag=True, help="Not to be tried on recent alerts, where the operator allows it."
)
@timeout_option
@bootstrap_option
def submit(
    file: Path | None, name: str, owner: str | None, survey: str, entry: str, sql: str | None, cap: int,
    choice: str, output: str, sources: tuple[str, ...], drop: tuple[str, ...], means: tuple[str, ...],
    lite: bool, transform: str, backfill: float | None, wait: bool, no_trial: bool, timeout: float,
    bootstrap: str | None,
) -> None:  # fmt: skip
    """Make the function in FILE (.ipynb or .py) a live filter, or the condition in FILE (.sql) or --sql.

    What travels is the function with the helper functions, imports and constants it uses.  A constant that
    only running the file tells is found by running what makes it, here.  The engine tries the filter on
    recent alerts and answers; exits 0 when it is live, 1 when it is refused.

    \b
    Example:
      nightwire filter submit bright.ipynb --name bright --survey lsst
      nightwire filter submit rising.py --name rising --cap 50 --choice best
      nightwire filter submit rising.py --name rising --backfill 1d --wait
      nightwire filter submit --sql "WHERE magnitude < 19 AND snr > 10" --name bright
      nightwire filter submit red.py --name red --source filter.alice.bright
    """
    from nightwire.filters.authoring.client import file_source_map, submission
    from nightwire.filters.language import FilterError
    from nightwire.schemas.topics import NameError_, filter_topic

    owner = owner_or_default(owner)
    try:
        topic = filter_topic(owner, name)
        text = submission(file, sql, entry, transform)
    except (FilterError, NameError_) as error:
        exit_refused(f"{file.name if file else name} is no filter:", getattr(error, "reasons", [str(error)]))
    about = {**text, "survey": survey, "cap": cap, "choice": choice, "output": output, "trial": not no_trial}
    about |= {
        "sources": list(sources),
        "transform": transform,
        **_made_light(survey, drop, means, light=lite),
    }
    about["backfill"] = round(1000 * (backfill or 0))
    answer = _ask(bootstrap, "submit", owner, name, timeout, **about)
    said = file_source_map(file, text["source"]).told(answer["reasons"])
    if not answer["accepted"]:
        exit_refused(f"{owner}/{name} is refused:", said)
    click.echo(f"{owner}/{name} is live in version {answer['version']} ({'; '.join(said)})")
    click.echo(f"read it:  nightwire subscribe {output or topic}")
    if backfill and wait:
        _await_backfill(bootstrap, owner, name, answer["version"])


def _made_light(
    survey: str, drop: Sequence[str], means: Sequence[str], *, light: bool
) -> dict[str, list[str]]:
    """Return what is left out of alerts, and the means that are added.

    Raises:
        UsageError: They are to be light, and are not of one survey that there is.
    """
    from nightwire.filters.language import FilterError
    from nightwire.filters.model.transform import with_light_form

    try:
        return with_light_form(survey, drop, means, light=light)
    except FilterError as error:
        raise click.UsageError(f"--lite: {error}") from error


def _await_backfill(bootstrap: str | None, owner: str, name: str, version: int) -> None:
    """Print how far a backfill is until it is over; leave with status 1 where it was stopped."""
    from nightwire.core.runtime import find_endpoints
    from nightwire.filters.authoring.client import STOPPED, follow_backfill

    text = ""
    for text in follow_backfill(find_endpoints(bootstrap).kafka, owner, name, version):
        click.echo(text)
    if text.startswith(STOPPED):
        raise SystemExit(1)


@click.command()
@click.argument("name")
@click.option(
    "--version", default=0, metavar="N", help="Which version.  [default: the one that was live last]"
)
@owner_option
@timeout_option
@bootstrap_option
def enable(name: str, version: int, owner: str | None, timeout: float, bootstrap: str | None) -> None:
    """Make filter NAME live again, after it was disabled, removed or suspended.

    \b
    Example:
      nightwire filter enable bright
    """
    _change("enable", name, owner, timeout, bootstrap, "is live in version {}", version=version)


@click.command()
@click.argument("name")
@owner_option
@timeout_option
@bootstrap_option
def disable(name: str, owner: str | None, timeout: float, bootstrap: str | None) -> None:
    """Stop filter NAME for a while; `enable` brings it back.

    \b
    Example:
      nightwire filter disable bright
    """
    _change("disable", name, owner, timeout, bootstrap, "is disabled; version {} was live")


@click.command()
@click.argument("name")
@click.option("--to", "version", default=0, metavar="N", help="Which version.  [default: the one before]")
@owner_option
@timeout_option
@bootstrap_option
def rollback(name: str, version: int, owner: str | None, timeout: float, bootstrap: str | None) -> None:
    """Make an earlier version of filter NAME live.

    \b
    Example:
      nightwire filter rollback bright
      nightwire filter rollback bright --to 3
    """
    _change("rollback", name, owner, timeout, bootstrap, "is live in version {}", version=version)


@click.command()
@click.argument("name")
@owner_option
@timeout_option
@bootstrap_option
def remove(name: str, owner: str | None, timeout: float, bootstrap: str | None) -> None:
    """Stop filter NAME for good.  What had passed stays in its topic, its versions in the log.

    \b
    Example:
      nightwire filter remove bright
    """
    _change("remove", name, owner, timeout, bootstrap, "is removed; version {} was live")


def _change(
    action: str, name: str, owner: str | None, timeout: float, bootstrap: str | None, done: str, **about: Any
) -> None:
    answer = _ask(bootstrap, action, owner_or_default(owner), name, timeout, **about)
    if not answer["accepted"]:
        exit_refused(f"{owner_or_default(owner)}/{name}: cannot {action} it:", answer["reasons"])
    said = "; ".join(answer["reasons"])
    click.echo(f"{owner_or_default(owner)}/{name} {done.format(answer['version'])} ({said})")


def _ask(
    bootstrap: str | None, action: str, owner: str, name: str, timeout: float, **about: Any
) -> dict[str, Any]:
    from rich.console import Console

    from nightwire.core.runtime import find_endpoints
    from nightwire.filters.authoring.client import NoAnswerError, send_request

    where = find_endpoints(bootstrap).kafka
    try:
        with Console(stderr=True).status(f"waiting for the engine to {action} {owner}/{name}"):
            return dict(send_request(where, action, owner, name, timeout=timeout, **about))
    except NoAnswerError as error:
        raise click.ClickException(str(error)) from error
