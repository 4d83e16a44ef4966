"""The verbs `nightwire simulate` and `nightwire replay`."""

import re
from pathlib import Path
from typing import Any

import click

from nightwire.core.cli import (
    bootstrap_option,
    duration_option,
    json_option,
    metrics_port_option,
    registry_option,
    survey_option,
)

format_option = click.option(
    "--format",
    "shape",  # it names the variables NIGHTWIRE_INGEST_SHAPE and NIGHTWIRE_REPLAY_SHAPE
    type=click.Choice(["wire", "as-is"]),
    default="wire",
    show_default=True,
    help="Confluent's wire format, or each message as it is.",
)


class Rate(click.ParamType):  # type: ignore[type-arg]
    """Alerts a second, such as ``50`` or ``50/s``."""

    name = "rate"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return *value* in alerts per second."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(?:/s)?", str(value))
        if match is None:
            self.fail(f"{value!r} is no rate: write 50 or 50/s", param, ctx)
        return float(match[1])


class BurstOrRate(Rate):
    """``burst``, ``even``, or a rate."""

    name = "pace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return *value* as it is where it is a word, else in alerts per second."""
        if value in ("burst", "even"):
            return value
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no pace: write burst, even, 50 or 50/s", param, ctx)


def pace_of(pace: str | float, alerts: int, interval: float) -> float:
    """Return how many *alerts* of a visit are due a second; 0 = all at once.

    Args:
        pace: ``burst``, ``even`` or a rate. [1/s]
        alerts: In a visit.
        interval: From visit to visit. [s]
    """
    if isinstance(pace, float):
        return pace
    return alerts / interval if pace == "even" and interval else 0.0


@click.command()
@click.option(
    "--visits", type=click.IntRange(0), default=1, show_default=True, help="How many visits; 0 = for ever."
)
@click.option(
    "--alerts",
    type=click.IntRange(1, 400_000),
    default=1000,
    show_default=True,
    help="Alerts in each visit.",
)
@duration_option(
    "--interval",
    "39s",
    "From the opening of one visit to that of the next; 0s = when the one before has left.",
)
@click.option(
    "--pace",
    type=BurstOrRate(),
    default="burst",
    show_default=True,
    help="burst: all alerts of a visit are due at once, as the telescope makes them.  even: spread over the "
    "interval.  Or a rate, such as 500/s.",
)
@duration_option("--ready", "0s", "From the opening of a visit until its alerts are due.")
@click.option(
    "--pool",
    type=click.IntRange(1, 20_000),
    default=2000,
    show_default=True,
    help="Visits of more alerts than this are copies of so many, made before the clock starts (about 125 kB "
    "each): ids, times, objects and positions are new in each copy; fluxes, histories and stamps repeat.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides everything but the time.")
@click.option(
    "--survey", type=click.Choice(["sim"]), default="sim", show_default=True, help="Survey to simulate."
)
@bootstrap_option
@registry_option
@metrics_port_option
@json_option
def simulate(
    visits: int,
    alerts: int,
    interval: float,
    pace: str | float,
    ready: float,
    pool: int,
    seed: int,
    survey: str,
    bootstrap: str | None,
    registry: str | None,
    metrics_port: int,
    as_json: bool,
) -> None:
    """Play simulated visits into the topic alerts.sim.

    Sizes, histories and picture stamps are like those of real Rubin alerts.  Variable, new and
    moving objects keep their identity from visit to visit, and their history grows.  Each record is
    marked as a test (header _test).

    The schedule waits for nobody: an alert that leaves later than it was due is counted as late,
    from when it was due, in the last table and in the metrics.  With a burst that is how long the
    visit took to leave.

    \b
    Examples:
      nightwire simulate --alerts 1000
      nightwire simulate --visits 0 --alerts 1000 --interval 39s
      nightwire simulate --visits 3 --alerts 100000 --pace even
      nightwire simulate --alerts 10000 --ready 5s --pace 2000/s
    """
    from nightwire.producer.cli.run_simulate import run_simulate
    from nightwire.producer.cli.table import show
    from nightwire.producer.simulation.simulate import Plan

    rate = pace_of(pace, alerts, interval)
    try:
        plan = Plan(visits, alerts, interval, seed, pace=rate, ready=ready, pool=pool)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    counts = run_simulate(plan, (bootstrap, registry), metrics_port=metrics_port, as_json=as_json)
    show(counts, as_json=as_json)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@survey_option
@click.option(
    "--rate", type=Rate(), default="0", show_default=True, help="Alerts a second; 0 = as fast as it goes."
)
@click.option("--realtime", is_flag=True, help="Keep the times between the alerts: --speed 1.")
@click.option(
    "--speed",
    type=click.FloatRange(0.0, min_open=True),
    metavar="X",
    help="Keep the times between the alerts, as the survey dates them, X times as fast.  [default: do not]",
)
@duration_option(
    "--longest-gap",
    "60s",
    "With --speed: shorten longer gaps to this, as they are played.",
)
@format_option
@click.option(
    "--schema",
    "schemas",
    type=click.Path(exists=True, path_type=Path),
    help="Avro schema, or folder of schemas, to register for wire files.",
)
@bootstrap_option
@registry_option
@json_option
def replay(
    files: tuple[Path, ...],
    survey: str,
    rate: float,
    realtime: bool,
    speed: float | None,
    longest_gap: float,
    shape: str,
    schemas: Path | None,
    bootstrap: str | None,
    registry: str | None,
    as_json: bool,
) -> None:
    """Play files of alerts into the topic alerts.SURVEY; their Avro bodies stay as they are.

    FILES are Avro object containers (.avro, one or many alerts), messages in Confluent wire format
    (.cwf), or folders of these.  A file that cannot be read is refused by name, kept in
    dead-letters, and the rest goes on; the exit status is then 1.

    \b
    Examples:
      nightwire replay night/*.avro --survey ztf --rate 50/s
      nightwire replay night/*.avro --survey ztf --speed 10
      nightwire replay captured/ --survey lsst --schema schema/9.0
    """
    from nightwire.producer.cli.run_replay import run_replay
    from nightwire.producer.cli.table import show
    from nightwire.producer.replay.files import SUFFIXES, find
    from nightwire.producer.replay.replay import Pace, Replay

    if rate and (realtime or speed):
        raise click.UsageError("--rate, or --speed and --realtime: not both")
    if not find(files)[0]:
        named = ", ".join(map(str, files))
        raise click.ClickException(f"there are no alerts in {named}: no file ends in {' or '.join(SUFFIXES)}")
    pace = Pace(rate=rate, speed=speed or float(realtime), longest_gap=longest_gap)
    job = Replay(survey=survey, files=files, pace=pace, as_is=shape == "as-is", schemas=schemas)
    counts = run_replay(job, (bootstrap, registry), as_json=as_json)
    show(counts, as_json=as_json)
    raise SystemExit(1 if counts["refused"] else 0)
