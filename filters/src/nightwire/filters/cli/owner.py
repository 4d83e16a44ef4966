"""The verbs that ask the engine for a change: submit, enable, disable, rollback, remove."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.cli import Duration, completion
from nightwire.filters.cli.options import (
    asked_for,
    columns_option,
    exit_refused,
    file_argument,
    function_option,
    kafka_at,
    listed_columns,
    name_argument,
    near_option,
    owner_or_default,
    request_options,
    sql_option,
    survey_option,
    survey_or_default,
    watchlist_options,
)

if TYPE_CHECKING:
    from nightwire.filters.authoring.client import Submission
    from nightwire.filters.cli.options import Near


@click.command()
@file_argument
@click.option("--name", required=True, metavar="NAME", help="The filter's name: small letters, digits, '-'.")
@survey_option
@function_option
@columns_option
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
    "--output", default="", metavar="TOPIC",
    help="For community brokers: broker.<broker>.<stream>, in its place.",
)  # fmt: skip
@click.option(
    "--backfill", type=Duration(), metavar="TIME",
    help="Judge the past as well, such as 1d: outside the cap, but no more than the operator allows.",
)  # fmt: skip
@click.option("--wait", is_flag=True, help="Tell how far the backfill is, until it has ended.")
@click.option(
    "--source", "sources", multiple=True, metavar="TOPIC", shell_complete=completion.channels,
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
    "--lite", is_flag=True,
    help="For community brokers: no stamps, and of each history the number of points and their mean.",
)  # fmt: skip
@click.option(
    "--transform", default="", metavar="F",
    help="… and add what this function of one alert computes, as the constant ADDS beside it declares.",
)  # fmt: skip
@click.option(
    "--behind", default="newest", show_default=True, type=click.Choice(["newest", "suspend"]),
    help="Where it is dear and the slow lane cannot keep up: leave out what is too old, and say so, or "
    "suspend it.",
)  # fmt: skip
@watchlist_options
@click.option(
    "--notify", default="", metavar="URL",
    help="Post each alert that passes to this address, or mail it (mailto:…), by a flow; needs a worker "
    "(`nightwire flow serve`).",
)  # fmt: skip
@click.option(
    "--no-trial", is_flag=True, help="Not to be tried on recent alerts, where the operator allows it."
)
@request_options
def submit(
    file: Path | None, name: str, owner: str | None, timeout: float, bootstrap: str | None, wait: bool,
    survey: str | None, sources: Sequence[str], watchlist: Path | None, radius: float, watchlist_columns: str,
    notify: str, **options: Any,
) -> None:  # fmt: skip
    """Make the function in FILE (.ipynb, .py), or the condition in FILE (.sql) or --sql, live.

    What travels is the function with the helper functions, imports and constants it uses.  A
    constant that only running the file tells is found by running what makes it, here.  The engine
    tries the filter on recent alerts and answers; exits 0 when it is live, 1 when it is refused.

    \b
    Example:
      nightwire filter submit bright.ipynb --name bright --survey lsst
      nightwire filter submit rising.py --name rising --cap 50 --choice best
      nightwire filter submit rising.py --name rising --backfill 1d --wait
      nightwire filter submit --sql "WHERE magnitude < 19 AND snr > 10" --name bright
      nightwire filter submit red.py --name red --source filter.alice.bright
      nightwire filter submit --watchlist targets.csv --radius 2 --name targets
      nightwire filter submit bright.py --name bright --notify https://example.org/hook
    """
    from nightwire.filters.authoring.client import file_source_map
    from nightwire.filters.cli.notify import check_url
    from nightwire.filters.language import FilterError
    from nightwire.schemas.topics import NameError_, filter_topic

    owner = owner_or_default(owner)
    try:
        topic = filter_topic(owner, name)
        if notify:
            check_url(notify)
        survey = survey_or_default(survey, bootstrap, file, sources)
        near = near_option(watchlist, watchlist_columns, f"{owner}/{name}", radius)
        submission = _submission(file, near, survey=survey, sources=sources, **options)
    except (FilterError, NameError_) as error:
        exit_refused(f"{file.name if file else name} is no filter:", getattr(error, "reasons", [str(error)]))
    answer = _ask(bootstrap, "submit", owner, name, timeout, **submission.fields())
    remarks = file_source_map(file, submission.source).translate(answer["reasons"])
    if not answer["accepted"]:
        exit_refused(f"{owner}/{name} is refused:", remarks)
    click.echo(f"{owner}/{name} is live in version {answer['version']} ({'; '.join(remarks)})")
    click.echo(f"read it:  nightwire subscribe {submission.output or topic}")
    if notify:
        _notify(bootstrap, owner, name, submission.output or topic, notify)
    if submission.backfill and wait:
        _await_backfill(bootstrap, owner, name, answer["version"])


def _submission(
    file: Path | None, near: "Near | None", *, sql: str | None,
    entry: str | None, columns: str | None, transform: str, survey: str, drop: Sequence[str],
    means: Sequence[str], lite: bool, backfill: float | None, no_trial: bool, **fields: Any,
) -> "Submission":  # fmt: skip
    """Return what the options of `submit` say; *near* has it ask for alerts near targets.

    Raises:
        FilterError: It is no filter.
        UsageError: Its alerts are to be light, and are not of one survey that there is.
    """
    from nightwire.filters.authoring.client import shaped
    from nightwire.filters.language import FilterError

    submission = asked_for(file, near, sql, entry, transform, listed_columns(columns))
    past = {"backfill": round(1000 * (backfill or 0)), "trial": not no_trial}
    try:
        return shaped(submission, survey, drop, means, lite=lite, **past, **fields)
    except FilterError as error:
        raise click.UsageError(f"--lite: {error}") from error


def _notify(bootstrap: str | None, owner: str, name: str, topic: str, url: str) -> None:
    """Write the flow that posts what passes, and say how to end it."""
    from nightwire.core.runtime import find_endpoints
    from nightwire.filters.cli.notify import doubt, notify_owner

    where = find_endpoints(bootstrap)
    flow = notify_owner(where.kafka, owner, name, topic, url)
    click.echo(f"goes to {url} by a flow, which ends with:  nightwire flow down {flow}")
    if why := doubt(where, url):
        click.echo(f"but {why}", err=True)


def _await_backfill(bootstrap: str | None, owner: str, name: str, version: int) -> None:
    """Print the progress of a backfill until it ends; leave with status 1 if it was stopped."""
    from nightwire.filters.authoring.client import BACKFILL_STOPPED, follow_backfill

    message = ""
    for message in follow_backfill(kafka_at(bootstrap), owner, name, version):
        click.echo(message)
    if message.startswith(BACKFILL_STOPPED):
        raise SystemExit(1)


@click.command()
@name_argument
@click.option("--since", metavar="WHEN", help="From when on: a duration, such as 1d, or a date (UTC).")
@click.option("--stop", is_flag=True, help="End the one that runs; what it has sent stays.")
@click.option("--wait", is_flag=True, help="Tell how far it is, until it has ended.")
@request_options
def backfill(
    name: str, since: str | None, stop: bool, wait: bool, owner: str | None, timeout: float,
    bootstrap: str | None,
) -> None:  # fmt: skip
    """Judge the past by filter NAME, which is live, once more: its next version does that.

    \b
    Example:
      nightwire filter backfill bright --since 2026-11-20 --wait
      nightwire filter backfill bright --since 12h
      nightwire filter backfill bright --stop
    """
    from nightwire.filters.cli.queries import past_again
    from nightwire.filters.language import FilterError

    if (since is None) != stop:
        raise click.UsageError("say from when on (--since), or --stop")
    if stop:
        done = "ends its backfill (version {})"
        _change("stop-backfill", done, name=name, owner=owner, timeout=timeout, bootstrap=bootstrap)
        return
    whose, where = owner_or_default(owner), kafka_at(bootstrap)
    try:
        fields = past_again(where, whose, name, str(since))
    except FilterError as error:
        exit_refused(f"{whose}/{name} has no past:", error.reasons)
    answer = _ask(bootstrap, "submit", whose, name, timeout, **fields)
    if not answer["accepted"]:
        exit_refused(f"{whose}/{name} is refused:", answer["reasons"])
    click.echo(f"{whose}/{name} is live in version {answer['version']} ({'; '.join(answer['reasons'])})")
    if wait:
        _await_backfill(bootstrap, whose, name, answer["version"])


@click.command()
@name_argument
@click.option(
    "--version", default=0, metavar="N", help="Which version.  [default: the one that was live last]"
)
@request_options
def enable(**target: Any) -> None:
    """Make filter NAME live again, after it was disabled, removed or suspended.

    \b
    Example:
      nightwire filter enable bright
    """
    _change("enable", "is live in version {}", **target)


@click.command()
@name_argument
@request_options
def disable(**target: Any) -> None:
    """Stop filter NAME for a while; `enable` brings it back.

    \b
    Example:
      nightwire filter disable bright
    """
    _change("disable", "is disabled; version {} was live", **target)


@click.command()
@name_argument
@click.option("--to", "version", default=0, metavar="N", help="Which version.  [default: the one before]")
@request_options
def rollback(**target: Any) -> None:
    """Make an earlier version of filter NAME live.

    \b
    Example:
      nightwire filter rollback bright
      nightwire filter rollback bright --to 3
    """
    _change("rollback", "is live in version {}", **target)


@click.command()
@name_argument
@request_options
def remove(**target: Any) -> None:
    """Stop filter NAME for good.  What had passed stays in its topic, its versions in the log.

    \b
    Example:
      nightwire filter remove bright
    """
    _change("remove", "is removed; version {} was live", **target)


def _change(
    action: str,
    done: str,
    *,
    name: str,
    owner: str | None,
    timeout: float,
    bootstrap: str | None,
    **fields: Any,
) -> None:
    """Ask for *action*, and print *done* with the version that the engine answers."""
    owner = owner_or_default(owner)
    answer = _ask(bootstrap, action, owner, name, timeout, **fields)
    if not answer["accepted"]:
        exit_refused(f"{owner}/{name}: cannot {action} it:", answer["reasons"])
    remarks = "; ".join(answer["reasons"])
    click.echo(f"{owner}/{name} {done.format(answer['version'])} ({remarks})")


def _ask(
    bootstrap: str | None, action: str, owner: str, name: str, timeout: float, **fields: Any
) -> dict[str, Any]:
    """Return the engine's answer, with a spinner while it is awaited."""
    from rich.console import Console

    from nightwire.filters.authoring.client import NoAnswerError, send_request

    kafka = kafka_at(bootstrap)
    try:
        with Console(stderr=True).status(f"waiting for the engine to {action} {owner}/{name}"):
            return dict(send_request(kafka, action, owner, name, timeout=timeout, **fields))
    except NoAnswerError as error:
        raise click.ClickException(str(error)) from error
