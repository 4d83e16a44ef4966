"""A filter tried in a process of its own, which asks Kafka as the owner.

The filter's code runs in the sandbox beneath it, and nowhere else.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nightwire.filters.authoring import JudgedAlert, Submission, light_curve_svg, try_on_recent
from nightwire.filters.sandbox import Strength
from nightwire.portal.filters.apart import apart
from nightwire.portal.filters.owner import Owner
from nightwire.portal.pictures import strip

PASSED, MISSED = 8, 8
"""Alerts that are shown: of those that passed, and of those that just missed."""


@dataclass(frozen=True)
class Picture:
    """An alert of the sample, with what there is to see of it.

    Attributes:
        survey: Whose alert.
        id: Its id.
        object: Id of its object; empty for none.
        says: Band and magnitude, and the verdict.
        passed: Whether it passed.
        curve: Light curve, as SVG of our own making.
        stamps: Its stamps beside each other, as PNG in base64; empty without any.
    """

    survey: str
    id: str
    object: str
    says: str
    passed: bool
    curve: str
    stamps: str


@dataclass(frozen=True)
class Tried:
    """What came out of a trial.

    Attributes:
        judged: Alerts of the sample.
        passed: Those that passed.
        failed: Those on which it failed.
        cost_us: CPU time for an alert, here. [µs]
        stages: Alerts that each condition stopped, and each failure, the largest number first.
        remarks: What the engine would say, with cost and lane.
        pictures: Some that passed, and some that just missed.
    """

    judged: int
    passed: int
    failed: int
    cost_us: float
    stages: Sequence[tuple[int, str]]
    remarks: Sequence[str]
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Question:
    """What is tried, on what.

    Attributes:
        language: ``python`` or ``sql``.
        source: The filter.
        entry: Its function; empty for SQL.
        survey: Whose alerts.
        last: How many of them.
        of_last_night: Whether they are of the last night, from the archive; else the newest.
        registry: The schema registry's URL.
        archive: The archive's.
        strength: Of the sandbox.
        watchlist: Targets near which it asks for alerts, as CSV; empty for none.
    """

    language: str
    source: str
    entry: str
    survey: str
    last: int
    of_last_night: bool
    registry: str | None
    archive: str | None
    strength: Strength
    watchlist: str = ""


def tried(owner: Owner, question: Question) -> Tried:
    """Return the trial of a filter.

    Raises:
        FilterError: It is no filter, or takes too long.
        RefusedError: Kafka refuses.
    """
    variables = {"NIGHTWIRE_ARCHIVE_HTTP": question.archive} if question.archive else {}
    found = apart(ask_as, asdict(owner), asdict(question), **variables)
    pictures = [Picture(**one) for one in found["pictures"]]
    return Tried(**{**found, "pictures": pictures, "stages": [tuple(one) for one in found["stages"]]})


def ask_as(owner: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the trial as JSON has it, made by this process, as its owner."""
    one = Owner(**owner)
    return asdict(one.ask(_tried, Question(**question), one.bootstrap))


def _tried(asked: Question, bootstrap: str) -> Tried:
    """Return the trial, made here and now."""
    submission = Submission(asked.language, asked.source, asked.entry, watchlist=asked.watchlist.encode())
    where = (asked.survey, asked.last, bootstrap, asked.registry)
    report = try_on_recent(submission, *where, of_last_night=asked.of_last_night, strength=asked.strength)
    failed = sum(one.fault is not None for one in report.judged)
    passed = [one for one in report.judged if one.passed]
    shown = [*passed[:PASSED], *report.just_missed[:MISSED]]
    return Tried(
        len(report.judged),
        len(passed),
        failed,
        report.cost_us,
        [(number, why) for why, number in report.stages.most_common()],
        list(report.remarks),
        [_picture(asked.survey, one) for one in shown],
    )


def _picture(survey: str, one: JudgedAlert) -> Picture:
    alert = one.alert
    seen = "" if alert.magnitude is None else f"{alert.band or '?'} = {alert.magnitude:.2f} mag, "
    stamps = base64.b64encode(strip(alert.stamps)).decode() if alert.stamps else ""
    named = str(alert.object_id or alert.solar_system_id or "")
    curve = light_curve_svg(alert)
    return Picture(survey, str(alert.id), named, f"{seen}{one.why}", one.passed, curve, stamps)
