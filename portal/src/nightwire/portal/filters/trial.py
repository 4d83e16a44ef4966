"""A filter's trial in a child process, which has the owner's rights at Kafka.

The filter's code runs in the sandbox beneath it, and nowhere else.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nightwire.filters.authoring import JudgedAlert, Submission, light_curve_svg, try_on_recent
from nightwire.filters.sandbox import Strength
from nightwire.portal.filters.child_process import call_in_child
from nightwire.portal.filters.owner import Owner
from nightwire.portal.pictures import strip

MAX_PASSED, MAX_MISSED = 8, 8
"""Alerts that are shown: of those that passed, and of those that just missed."""


@dataclass(frozen=True)
class SampleAlert:
    """An alert of the sample, with its verdict, light curve and stamps.

    Attributes:
        survey: Its survey.
        id: Its id.
        object: Id of its object; empty for none.
        says: Band, magnitude and verdict.
        passed: Whether it passed.
        curve: Light curve, as SVG.
        stamps: Its stamps beside each other, as JPEG in base64; empty without any.
    """

    survey: str
    id: str
    object: str
    says: str
    passed: bool
    curve: str
    stamps: str


@dataclass(frozen=True)
class TrialReport:
    """The result of a trial.

    Attributes:
        judged: Number of alerts of the sample.
        passed: Number of those that passed.
        failed: Number of those on which the filter failed.
        cost_us: CPU time for an alert, here. [µs]
        stages: Number of alerts that each condition or failure stopped, largest first.
        remarks: The engine's remarks on a submission, with cost and lane.
        pictures: Some that passed, and some that just missed.
    """

    judged: int
    passed: int
    failed: int
    cost_us: float
    stages: Sequence[tuple[int, str]]
    remarks: Sequence[str]
    pictures: Sequence[SampleAlert]


@dataclass(frozen=True)
class TrialRequest:
    """A filter, and the sample on which it is tried.

    Attributes:
        language: ``python`` or ``sql``.
        source: The filter.
        entry: Its function; empty for SQL.
        survey: The sample's survey.
        last: The sample's size.
        of_last_night: Whether the sample is of the last night, from the archive; else the newest.
        registry: The schema registry's URL.
        archive: The archive's.
        strength: Of the sandbox.
        watchlist: Targets near which alerts must lie, as CSV; empty for none.
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


def run_trial(owner: Owner, request: TrialRequest) -> TrialReport:
    """Run a trial in a child process.

    Raises:
        FilterError: The text is no filter, or takes too long.
        RefusedError: Kafka refuses.
    """
    variables = {"NIGHTWIRE_ARCHIVE_HTTP": request.archive} if request.archive else {}
    found = call_in_child(run_as_owner, asdict(owner), asdict(request), **variables)
    pictures = [SampleAlert(**one) for one in found["pictures"]]
    return TrialReport(**{**found, "pictures": pictures, "stages": [tuple(one) for one in found["stages"]]})


def run_as_owner(owner: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Run a trial in this process, with its owner's rights; return the report as JSON."""
    one = Owner(**owner)
    return asdict(one.ask(_run, TrialRequest(**request), one.bootstrap))


def _run(asked: TrialRequest, bootstrap: str) -> TrialReport:
    """Run a trial in this process."""
    submission = Submission(asked.language, asked.source, asked.entry, watchlist=asked.watchlist.encode())
    where = (asked.survey, asked.last, bootstrap, asked.registry)
    report = try_on_recent(submission, *where, of_last_night=asked.of_last_night, strength=asked.strength)
    failed = sum(one.fault is not None for one in report.judged)
    passed = [one for one in report.judged if one.passed]
    shown = [*passed[:MAX_PASSED], *report.just_missed[:MAX_MISSED]]
    return TrialReport(
        len(report.judged),
        len(passed),
        failed,
        report.cost_us,
        [(number, why) for why, number in report.stages.most_common()],
        list(report.remarks),
        [_sample_alert(asked.survey, one) for one in shown],
    )


def _sample_alert(survey: str, one: JudgedAlert) -> SampleAlert:
    alert = one.alert
    seen = "" if alert.magnitude is None else f"{alert.band or '?'} = {alert.magnitude:.2f} mag, "
    stamps = base64.b64encode(strip(alert.stamps)).decode() if alert.stamps else ""
    named = str(alert.object_id or alert.solar_system_id or "")
    curve = light_curve_svg(alert)
    return SampleAlert(survey, str(alert.id), named, f"{seen}{one.why}", one.passed, curve, stamps)
