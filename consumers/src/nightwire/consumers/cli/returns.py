"""The verbs `nightwire returns check`, `list` and `join`."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from nightwire.consumers.cli.options import (
    alerts_survey_option,
    follow_option,
    last_option,
    since_option,
)
from nightwire.core.cli import bootstrap_option, completion, json_option, registry_option

if TYPE_CHECKING:
    from nightwire.consumers.returns import BadReturn, Return

SURVEY = "Whose alerts they are about."
oldest_option = since_option("the oldest")
any_survey_option = alerts_survey_option(f"{SURVEY}  [default: any]")


@click.group()
def returns() -> None:
    """What community brokers send back: check it, list it, join it to the alerts.

    \b
    Example:
      nightwire returns list fink
    """


@returns.command()
@click.argument("broker", shell_complete=completion.brokers)
@any_survey_option
@follow_option(default=False)
@bootstrap_option
@registry_option
@json_option
def check(
    broker: str,
    survey: str | None,
    follow: bool,
    bootstrap: str | None,
    registry: str | None,
    as_json: bool,
) -> None:
    """Check what BROKER has sent since the last check; what cannot be used goes to dead-letters.

    Exits 1 when there was any.

    \b
    Example:
      nightwire returns check fink
    """
    from nightwire.consumers.returns import STAGE, DeadLetterSink, ReturnReader

    send_to_dead_letters, messages = DeadLetterSink(bootstrap), []

    def reject(bad: "BadReturn") -> None:
        send_to_dead_letters(bad)
        messages.append({"place": bad.place, "reason": bad.reason})
        _complain(bad)

    with ReturnReader(
        broker,
        group=f"nightwire.{STAGE}.{broker}",
        bootstrap=bootstrap,
        registry=registry,
        survey=survey,
        follow=follow,
        on_bad=reject,
    ) as reader:
        for _ in reader:
            pass
    if as_json:
        click.echo(json.dumps({"broker": broker, "good": reader.good, "bad": messages}, indent=2))
    else:
        click.echo(f"{broker}: {reader.good} good, {reader.bad} sent to dead-letters")
    raise SystemExit(1 if reader.bad else 0)


@returns.command("list")
@click.argument("broker", shell_complete=completion.brokers)
@last_option("The newest N, by time.  [default: all]")
@any_survey_option
@oldest_option
@bootstrap_option
@registry_option
@json_option
def list_(broker: str, as_json: bool, **options: Any) -> None:
    """List what BROKER sent: alert, classifier, classes.

    What cannot be used is named on standard error.

    \b
    Examples:
      nightwire returns list fink --last 20
      nightwire returns list fink --since 1h --json
    """
    from nightwire.consumers.returns import ReturnReader

    with ReturnReader(broker, on_bad=_complain, **options) as reader:
        for item in reader:
            record = as_record(item)
            click.echo(json.dumps(record) if as_json else _line(record))


@returns.command()
@click.argument("broker", shell_complete=completion.brokers)
@alerts_survey_option(SURVEY, required=True)
@oldest_option
@bootstrap_option
@registry_option
def join(broker: str, survey: str, **options: Any) -> None:
    """Join what BROKER sent to the alerts of a survey: an object a line, alert and classifications.

    Numbers are numbers, times ISO 8601 in UTC, null what is not known.

    \b
    Example:
      nightwire returns join fink --survey lsst --since 1d
    """
    from nightwire.consumers import AlertReader
    from nightwire.consumers.formats.json import json_value
    from nightwire.consumers.returns import ReturnReader, joined
    from nightwire.schemas.topics import alerts

    with (
        ReturnReader(broker, survey=survey, on_bad=_complain, **options) as sent,
        AlertReader(alerts(survey), follow=False, start=None, **options) as reader,
    ):
        for alert, items in joined(reader, sent):
            summary = json_value(asdict(alert.summary), with_bytes=False)
            del summary["says"]  # of a flow's events alone
            click.echo(json.dumps({"alert": summary, "returns": [as_record(item) for item in items]}))


def as_record(item: "Return") -> dict[str, Any]:
    """Return what is printed of *item*."""
    classes = [{"classId": c.class_id, "probability": c.probability} for c in item.classifications]
    return {
        "alert": item.alert_id,
        "broker": item.broker,
        "classifier": item.classifier,
        "version": item.version,
        "classifications": classes,
        "time": item.received.timestamp.isoformat(),
    }


def _line(record: dict[str, Any]) -> str:
    classes = " ".join(f"{one['classId']}:{one['probability']:.3g}" for one in record["classifications"])
    return f"{record['time'][:19]}  {record['alert']}  {record['classifier']} {record['version']}  {classes}"


def _complain(bad: "BadReturn") -> None:
    click.echo(f"{bad.place}: {bad.reason}", err=True)
