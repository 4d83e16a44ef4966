"""Trying and submitting a filter from the notebook or script in which it stands."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nightwire.filters.language import FilterError

if TYPE_CHECKING:
    from nightwire.filters.authoring.notebook import Cell, SourceMap
    from nightwire.filters.authoring.report import Report
    from nightwire.schemas import AlertView

Filter = Callable[[Any], Any]


@dataclass(frozen=True)
class Submitted:
    """A filter that is live.

    Attributes:
        owner: Whose.
        name: Its name.
        version: Its version.
        topic: Where what passes arrives.
        remarks: What the engine said of it.
    """

    owner: str
    name: str
    version: int
    topic: str
    remarks: Sequence[str]

    def __repr__(self) -> str:
        said = "; ".join(self.remarks)
        return f"{self.owner}/{self.name} is live in version {self.version} ({said}); read {self.topic}"


def submit(
    keep: Filter | str, name: str, *, survey: str = "*", owner: str | None = None, cap: int = 20,
    choice: str = "first", source: str | Sequence[str] = (), output: str = "",
    drop: str | Sequence[str] = (), mean: str | Sequence[str] = (), lite: bool = False,
    transform: Filter | None = None, backfill: str = "", trial: bool = True, timeout: float = 60.0,
    bootstrap: str | None = None,
) -> Submitted:  # fmt: skip
    """Make a function of this notebook or script, or an SQL condition, a live filter.

    Args:
        keep: The function of one alert, or a text such as ``"WHERE magnitude < 19"``.
        name: The filter's name: small letters, digits, ``-``.
        survey: Whose alerts it judges; ``*`` for all.
        owner: Whose it is; by default Kafka's user, else ``me``.
        cap: Most alerts a visit; 0 for all.
        choice: Which ones: the ``first``, or the ``best`` by what the filter returns.
        source: Topics that it judges, such as ``filter.alice.bright``; none for the survey's alerts.
        output: For community brokers: the topic ``broker.<broker>.<stream>`` to which what passes goes.
        drop: … and fields that are left out there, such as ``cutoutScience``.
        mean: … and numbers whose mean is added, such as ``prvDiaSources.psfFlux``, and their count.
        lite: … and whether alerts come without stamps and histories, but with the means of these.
        transform: … and a function of one alert: what it computes is added, as ``ADDS`` beside it declares.
        backfill: How much of the past it judges as well, such as ``1d``.
        trial: Whether it is tried on recent alerts first.
        timeout: Longest wait for the engine's answer. [s]
        bootstrap: Kafka's address; by default the environment's, else the running stack's.

    Raises:
        FilterError: It is refused; the reasons say why.
        NoAnswerError: The engine did not answer in time.
        NoStackError: There is no Kafka.
        ValueError: *backfill* is no duration.
    """
    from nightwire.core.cli import parse_duration
    from nightwire.core.runtime import find_endpoints
    from nightwire.filters.authoring.client import default_owner, send_request
    from nightwire.filters.model.transform import with_light_form
    from nightwire.schemas.topics import filter_topic

    owner = owner or default_owner()
    text = _sql(keep) if isinstance(keep, str) else _python(*function_source(keep, transform))
    past = round(parse_duration(backfill).total_seconds() * 1000) if backfill else 0
    about = {**text, "survey": survey, "cap": cap, "choice": choice, "trial": trial, "backfill": past}
    about |= {"sources": _listed(source), "output": output, "transform": _name(transform)}
    about |= with_light_form(survey, _listed(drop), _listed(mean), light=lite)
    topic = output or filter_topic(owner, name)
    answer = send_request(find_endpoints(bootstrap).kafka, "submit", owner, name, timeout=timeout, **about)
    said = function_source_map(keep, text["source"]).told(answer["reasons"])
    if not answer["accepted"]:
        raise FilterError(*said)
    return Submitted(owner, name, answer["version"], topic, said)


def try_filter(
    keep: Filter | str, sample: str | Iterable[Any], *, last: int = 200, bootstrap: str | None = None,
    registry: str | None = None,
) -> "Report":  # fmt: skip
    """Judge a sample by a function of this notebook or script, as the engine would.

    Args:
        keep: The function of one alert, or an SQL condition.
        sample: Alerts (what `nightwire.consumers.AlertReader` gives, or views), or a survey's name.
        last: How many of the survey's newest alerts.
        bootstrap: Kafka's address; by default the environment's, else the running stack's.
        registry: The schema registry's URL; likewise.

    Raises:
        FilterError: It is no filter.
        NoStackError: There is no Kafka.
    """
    from nightwire.filters.authoring.report import report, with_owner_lines
    from nightwire.filters.model.compilation import compile_request

    text = _sql(keep) if isinstance(keep, str) else _python(*function_source(keep))
    where = function_source_map(keep, text["source"])
    if isinstance(sample, str):
        return with_owner_lines(try_on_recent(text, sample, last, bootstrap, registry), where)
    if isinstance(keep, str):
        raise FilterError("an SQL condition is tried on a survey's newest alerts: give the survey's name")
    made = compile_request({**text, "survey": "*"})
    found = report(text["source"], text["entry"], [_view(one) for one in sample], made.said)
    return with_owner_lines(found, where)


def try_on_recent(
    text: Mapping[str, str], survey: str, last: int, bootstrap: str | None = None, registry: str | None = None
) -> "Report":
    """Judge the newest alerts of *survey* by a filter, given as its language, source and entry.

    Raises:
        FilterError: It is no filter.
        NoStackError: There is no Kafka.
        SchemaError: There is no such survey.
    """
    from nightwire.core.runtime import find_endpoints
    from nightwire.filters.authoring.report import report, sql_report
    from nightwire.filters.model.compilation import compile_request
    from nightwire.filters.reading.recent import newest_alerts, views
    from nightwire.schemas import SchemaRegistry
    from nightwire.schemas import survey as survey_called

    survey_called(survey)
    at = find_endpoints(bootstrap, registry)
    with SchemaRegistry(at.schema_registry) as schemas:
        samples = newest_alerts(at.kafka, [survey], last)
        if text["language"] == "sql":
            return sql_report(text["source"], survey, samples, schemas)
        made = compile_request({**text, "survey": survey})
        return report(text["source"], text["entry"], list(views(samples, schemas)), made.said)


def function_source(keep: Filter, transform: Filter | None = None) -> tuple[str, str]:
    """Return the source that would travel for *keep* and its *transform*, and the name of its function.

    Raises:
        FilterError: It is no filter, or its source cannot be found.
    """
    from nightwire.filters.authoring.client import checked, transform_names
    from nightwire.filters.authoring.constants import values_of_namespace
    from nightwire.filters.authoring.extract import extract

    if not inspect.isfunction(keep):
        raise FilterError(f"a filter is a function defined by def, not a {type(keep).__name__}")
    namespace, also = keep.__globals__, transform_names(_name(transform))
    source = extract(_code(keep, namespace), keep.__name__, values_of_namespace(namespace), also)
    return checked(source, keep.__name__), keep.__name__


def function_source_map(keep: Filter | str, source: str) -> "SourceMap":
    """Return where the lines of *source*, which travels for *keep*, stand in its notebook or script."""
    from nightwire.filters.authoring.notebook import SourceMap, source_map

    if isinstance(keep, str):
        return SourceMap()
    return source_map(source, _code(keep, keep.__globals__), _cells(keep.__globals__))


def _cells(namespace: Mapping[str, Any]) -> "list[Cell]":
    """Return the cells run so far in IPython; none elsewhere."""
    from nightwire.filters.authoring.notebook import Cell, python_cells

    if "In" not in namespace or "get_ipython" not in namespace:
        return []
    return [Cell(number, one) for number, cell in enumerate(namespace["In"]) for one in python_cells([cell])]


def _code(keep: Filter, namespace: Mapping[str, Any]) -> str:
    """Return the code around a function: the cells run so far in IPython, else the file it stands in."""
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


def _sql(condition: str) -> dict[str, str]:
    return {"language": "sql", "source": condition.strip(), "entry": ""}


def _python(source: str, entry: str) -> dict[str, str]:
    return {"language": "python", "source": source, "entry": entry}


def _view(one: Any) -> "AlertView":
    from nightwire.schemas import AlertView

    found = one if isinstance(one, AlertView) else getattr(one, "view", None)
    if not isinstance(found, AlertView):
        raise FilterError(f"a sample holds alerts as AlertReader gives them, not a {type(one).__name__}")
    return found
