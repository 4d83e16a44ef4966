"""The verbs `nightwire returns check`, `list` and `join`."""

import json
from typing import TYPE_CHECKING, Any

import click

from nightwire.consumers.cli.options import Since
from nightwire.core.cli import bootstrap_option, json_option, registry_option

if TYPE_CHECKING:
    from nightwire.consumers.returns.broker_message import Return

survey_option = click.option("--survey", metavar="NAME", help="Whose alerts they speak of.  [default: any]")
since_option = click.option(
    "--since",
    type=Since(),
    metavar="WHEN",
    help="Begin so long ago (1h, 2d) or at a time (2026-11-21T03:00, UTC).  [default: the oldest]",
)


@click.group()
def returns() -> None:
    """What community brokers send back: check it, list it, join it to the alerts.

    \b
    Example:
      nightwire returns list fink
    """


@returns.command()
@click.argument("broker")
@survey_option
@click.option("--follow/--no-follow", default=False, show_default=True, help="Wait for more at the end.")
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
    """Check what BROKER has sent since the last check, and send what cannot be used to dead-letters.

    Exits 1 when there was any.

    \b
    Example:
      nightwire returns check fink
    """
    from nightwire.consumers.returns.return_reader import STAGE, BadReturn, DeadLetterSink, ReturnReader

    burial, said = DeadLetterSink(bootstrap), []

    def tell(bad: BadReturn) -> None:
        burial(bad)
        said.append({"place": bad.place, "reason": bad.reason})
        click.echo(f"{bad.place}: {bad.reason}", err=True)

    where: dict[str, Any] = {"bootstrap": bootstrap, "registry": registry, "survey": survey}
    with ReturnReader(
        broker, group=f"nightwire.{STAGE}.{broker}", follow=follow, on_bad=tell, **where
    ) as reader:
        for _ in reader:
            pass
    if as_json:
        click.echo(json.dumps({"broker": broker, "good": reader.good, "bad": said}, indent=2))
    else:
        click.echo(f"{broker}: {reader.good} good, {reader.bad} sent to dead-letters")
    raise SystemExit(1 if reader.bad else 0)


@returns.command("list")
@click.argument("broker")
@click.option("--last", type=click.IntRange(1), metavar="N", help="The newest N, by time.  [default: all]")
@survey_option
@since_option
@bootstrap_option
@registry_option
@json_option
def list_(broker: str, as_json: bool, **how: Any) -> None:
    """List what BROKER sent: alert, classifier, classes; what cannot be used is named on standard error.

    \b
    Examples:
      nightwire returns list fink --last 20
      nightwire returns list fink --since 1h --json
    """
    from nightwire.consumers.returns.return_reader import ReturnReader

    with ReturnReader(broker, on_bad=_complain, **how) as reader:
        for one in reader:
            record = as_record(one)
            click.echo(json.dumps(record) if as_json else _line(record))


@returns.command()
@click.argument("broker")
@click.option("--survey", required=True, metavar="NAME", help="Whose alerts they speak of.")
@since_option
@bootstrap_option
@registry_option
def join(broker: str, survey: str, **how: Any) -> None:
    """Join what BROKER sent to the alerts of a survey: an object a line, alert and classifications.

    \b
    Example:
      nightwire returns join fink --survey lsst --since 1d
    """
    from nightwire.consumers import AlertReader
    from nightwire.consumers.returns.broker_message import joined
    from nightwire.consumers.returns.return_reader import ReturnReader
    from nightwire.schemas.topics import alerts

    with (
        ReturnReader(broker, survey=survey, on_bad=_complain, **how) as sent,
        AlertReader(alerts(survey), follow=False, start=None, **how) as reader,
    ):
        for alert, found in joined(reader, sent):
            line = {"alert": alert.summary.texts(), "returns": [as_record(one) for one in found]}
            click.echo(json.dumps(line))


def as_record(one: "Return") -> dict[str, Any]:
    """Return *one* as what is printed of it."""
    classes = [{"classId": c.class_id, "probability": c.probability} for c in one.classifications]
    return {
        "alert": one.alert_id,
        "broker": one.broker,
        "classifier": one.classifier,
        "version": one.version,
        "classifications": classes,
        "time": one.received.timestamp.isoformat(),
    }


def _line(record: dict[str, Any]) -> str:
    classes = " ".join(f"{one['classId']}:{one['probability']:.3g}" for one in record["classifications"])
    return f"{record['time'][:19]}  {record['alert']}  {record['classifier']} {record['version']}  {classes}"


def _complain(bad: Any) -> None:
    click.echo(f"{bad.place}: {bad.reason}", err=True)
