"""Trying and submitting a filter from the notebook or script in which it stands."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nightwire.filters.language import FilterError

if TYPE_CHECKING:
    from nightwire.filters.authoring.client import Submission
    from nightwire.filters.authoring.notebook import Cell, SourceMap
    from nightwire.filters.authoring.report import Report
    from nightwire.filters.sandbox import Strength

Filter = Callable[[Any], Any]


@dataclass(frozen=True)
class Submitted:
    """A filter that is live.

    Attributes:
        owner: Its owner.
        name: Its name.
        version: Its version.
        topic: The topic of the alerts that pass.
        remarks: The engine's remarks on it.
    """

    owner: str
    name: str
    version: int
    topic: str
    remarks: Sequence[str]

    def __repr__(self) -> str:
        remarks = "; ".join(self.remarks)
        live = f"{self.owner}/{self.name} is live in version {self.version}"
        return f"{live} ({remarks}); read {self.topic}"


def submit(
    keep: Filter | str, name: str, *, survey: str = "", owner: str | None = None, cap: int = 20,
    choice: str = "first", source: str | Sequence[str] = (), output: str = "",
    drop: str | Sequence[str] = (), mean: str | Sequence[str] = (), lite: bool = False,
    transform: Filter | None = None, backfill: str = "", trial: bool = True, timeout: float = 60.0,
    bootstrap: str | None = None, columns: Sequence[str] = (),
    watchlist: str | Path = "", radius: float = 2.0,
) -> Submitted:  # fmt: skip
    """Make a function of this notebook or script, or an SQL condition, a live filter.

    Args:
        keep: The function of one alert, of a table ``alerts``, or of *columns*; or a text such as
            ``"WHERE magnitude < 19"``.
        name: The filter's name: small letters, digits, ``-``.
        survey: Whose alerts it judges, ``*`` for all; by default the notebook's ``SURVEY``, else
            the only survey that has alerts.
        owner: Whose it is; by default Kafka's user, else ``me``.
        cap: Most alerts a visit; 0 for all.
        choice: Which ones: the ``first``, or the ``best`` by what the filter returns.
        source: Topics that it judges, such as ``filter.alice.bright``; by default the survey's.
        output: For community brokers: the topic ``broker.<broker>.<stream>`` of passed alerts.
        drop: … and fields that are left out there, such as ``cutoutScience``.
        mean: … and numbers whose mean is added, such as ``prvDiaSources.psfFlux``, and their count.
        lite: … and whether alerts come without stamps and histories, but with the means of these.
        transform: … and a function of one alert whose results are added, as ``ADDS`` declares.
        backfill: How much of the past it judges as well, such as ``1d``.
        trial: Whether it is tried on recent alerts first.
        timeout: Longest wait for the engine's answer. [s]
        bootstrap: Kafka's address; by default the environment's, else the running stack's.
        columns: Columns that are the function's arguments, as pandas Series: canonical names or
            dotted paths; by default what the constant ``COLUMNS`` says.
        watchlist: File of targets (CSV, Parquet, FITS, VOTable): only alerts near them are asked
            about.
        radius: Largest separation from a target. [arcsec]

    Raises:
        FilterError: It is refused; the reasons say why.
        NoAnswerError: The engine did not answer in time.
        NoStackError: There is no Kafka.
        ValueError: *backfill* is no duration.
    """
    from nightwire.core.catalogues import Columns
    from nightwire.core.cli import parse_duration
    from nightwire.core.kafka import enter
    from nightwire.core.runtime import find_endpoints
    from nightwire.filters.authoring.client import default_owner, send_request, shaped
    from nightwire.filters.authoring.default_survey import default_survey
    from nightwire.filters.authoring.watchlist import near_targets, watchlist_text
    from nightwire.schemas.topics import filter_topic

    owner = owner or default_owner()
    submission, kafka = _submission(keep, transform, columns), enter(find_endpoints(bootstrap).kafka)
    if watchlist:
        text, _ = watchlist_text(Path(watchlist), Columns())
        submission = near_targets(submission, f"{owner}/{name}", radius, text)
    survey = survey or _survey_of(keep) or default_survey(kafka, sources=_listed(source))
    past = round(parse_duration(backfill).total_seconds() * 1000) if backfill else 0
    submission = shaped(
        submission, survey, _listed(drop), _listed(mean), lite=lite, cap=cap, choice=choice,
        sources=_listed(source), output=output, backfill=past, trial=trial,
    )  # fmt: skip
    topic = output or filter_topic(owner, name)
    answer = send_request(kafka, "submit", owner, name, timeout=timeout, **submission.fields())
    remarks = _source_map(keep, submission.source).translate(answer["reasons"])
    if not answer["accepted"]:
        raise FilterError(*remarks)
    return Submitted(owner, name, answer["version"], topic, remarks)


def try_filter(
    keep: Filter | str, sample: str | Iterable[Any], *, last: int = 200, bootstrap: str | None = None,
    registry: str | None = None, columns: Sequence[str] = (),
) -> "Report":  # fmt: skip
    """Judge a sample by a function of this notebook or script, as the engine would.

    Args:
        keep: The function, as `submit` takes it, or an SQL condition.
        sample: Alerts (what `nightwire.consumers.AlertReader` gives, or views), or a survey's name.
        last: How many of the survey's newest alerts.
        bootstrap: Kafka's address; by default the environment's, else the running stack's.
        registry: The schema registry's URL; likewise.
        columns: As `submit` takes them.

    Raises:
        FilterError: It is no filter.
        NoStackError: There is no Kafka.
    """
    from nightwire.filters.authoring.report import with_owner_lines
    from nightwire.filters.authoring.samples import messages
    from nightwire.filters.authoring.sandboxed import try_submission

    submission = _submission(keep, columns=columns)
    names = _source_map(keep, submission.source)
    if isinstance(sample, str):
        return with_owner_lines(try_on_recent(submission, sample, last, bootstrap, registry), names)
    if isinstance(keep, str):
        raise FilterError("an SQL condition is tried on a survey's newest alerts: give the survey's name")
    samples = messages(sample)
    of = samples[0][0] if samples else "sim"
    request = replace(submission, survey=of).fields()
    return with_owner_lines(try_submission(request, samples, registry), names)


def try_on_recent(
    submission: "Submission",
    survey: str,
    last: int,
    bootstrap: str | None = None,
    registry: str | None = None,
    *,
    of_last_night: bool = False,
    strength: "Strength" = "weak",
) -> "Report":
    """Judge the newest alerts of *survey*, or some of its last night, by a submitted filter.

    The sandbox has the layers of this machine, or by *strength* all of them: on a server.

    Raises:
        FilterError: It is no filter.
        NoArchiveError: There is no archive, which has the last night.
        NoStackError: There is no Kafka.
        SchemaError: There is no such survey.
    """
    from nightwire.core.kafka import enter, login
    from nightwire.core.runtime import find_endpoints
    from nightwire.filters.authoring.sandboxed import POLICY, try_submission
    from nightwire.filters.reading.recent import last_night, newest_alerts
    from nightwire.schemas import survey as survey_called

    survey_called(survey)
    at = find_endpoints(bootstrap, registry)
    if of_last_night:
        samples = last_night(at.archive, survey, last, login(at.kafka))
    else:
        samples = newest_alerts(enter(at.kafka), [survey], last)
    examined = newest_alerts(at.kafka, [survey], POLICY.alerts)
    request = replace(submission, survey=survey).fields()
    return try_submission(request, samples, at.schema_registry, examined, strength)


def _submission(
    keep: Filter | str, transform: Filter | None = None, columns: Sequence[str] = ()
) -> "Submission":
    """Return the submission of a function or an SQL condition.

    Raises:
        FilterError: It is no filter, or its source cannot be found.
    """
    from nightwire.filters.authoring.client import Submission, python_source, sql_submission
    from nightwire.filters.authoring.constants import values_of_namespace

    name = _name(transform)
    if isinstance(keep, str):
        return replace(sql_submission(keep), transform=name)
    if not inspect.isfunction(keep):
        raise FilterError(f"a filter is a function defined by def, not a {type(keep).__name__}")
    entry, namespace = keep.__name__, keep.__globals__
    values = values_of_namespace(namespace)
    source = python_source(_code(keep, namespace), entry, name, columns, values)
    return Submission("python", source, entry, transform=name)


def _survey_of(keep: Filter | str) -> str:
    """Return the ``SURVEY`` of the notebook or script in which *keep* stands; empty for none."""
    found = getattr(keep, "__globals__", {}).get("SURVEY")
    return found if isinstance(found, str) else ""


def _source_map(keep: Filter | str, source: str) -> "SourceMap":
    """Return the owner's names of the lines of *source*, which is submitted of *keep*."""
    from nightwire.filters.authoring.notebook import SourceMap, source_map

    if isinstance(keep, str):
        return SourceMap()
    return source_map(source, _code(keep, keep.__globals__), _cells(keep.__globals__))


def _cells(namespace: Mapping[str, Any]) -> "list[Cell]":
    """Return the cells run so far in IPython; none elsewhere."""
    from nightwire.filters.authoring.notebook import Cell, is_python

    if "In" not in namespace or "get_ipython" not in namespace:
        return []
    return [Cell(number, cell) for number, cell in enumerate(namespace["In"]) if is_python(cell)]


def _code(keep: Filter, namespace: Mapping[str, Any]) -> str:
    """Return the code around a function: the cells run so far in IPython, else its file."""
    from nightwire.filters.authoring.notebook import join_cells

    if cells := _cells(namespace):
        return join_cells(cell.text for cell in cells)
    file = inspect.getsourcefile(keep) if keep.__module__ in sys.modules else None
    if file is None or not Path(file).is_file():
        raise FilterError(
            f"the source of {keep.__name__} cannot be found: write it into a notebook or a file"
        )
    return Path(file).read_text()


def _name(transform: Filter | None) -> str:
    """Return the name of a transform; empty for none."""
    if transform is None:
        return ""
    if not inspect.isfunction(transform):
        raise FilterError(f"a transform is a function defined by def, not a {type(transform).__name__}")
    return transform.__name__


def _listed(one_or_more: str | Sequence[str]) -> list[str]:
    return [one_or_more] if isinstance(one_or_more, str) else list(one_or_more)
