"""Reading and judging, in Spark's Python workers, or in the local engine's own process.

What is costly to make (consumer, decoder, compiled filters, sandbox) is kept in this module, which
is installed: a worker process is reused from batch to batch, but a pickled function would bring
fresh globals.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from nightwire.core.catalogues import CatalogueStore
from nightwire.core.kafka import login
from nightwire.core.presence import ArchiveClient
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.evaluation.cpu_budget import FILTER_CPU_S, CpuBudget
from nightwire.filters.evaluation.in_process import judge_in_process
from nightwire.filters.evaluation.probing import Prober
from nightwire.filters.evaluation.results import Verdict, added_rows, at_rows, count_range, passed_rows
from nightwire.filters.evaluation.rowwise import (
    RowJudge,
    in_rounds,
    judge_in_sandbox,
    judge_nothing,
    take_rows,
)
from nightwire.filters.evaluation.vectorized import judge_vectorized
from nightwire.filters.language.vector import NoColumn
from nightwire.filters.model.chains import is_derived
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import RangeCounts, rows_to_arrow
from nightwire.filters.model.offsets import OffsetRange, chunks
from nightwire.filters.model.text_facts import load_facts
from nightwire.filters.reading.alerts import Alerts, NewSchema, RecordSource, read_alerts, with_batch
from nightwire.filters.reading.derived import fetch_groups
from nightwire.filters.reading.fetch import range_consumer
from nightwire.filters.reading.matches import MatchError, missing, with_matches
from nightwire.filters.reading.requirements import (
    UNREAD,
    ColumnRequirements,
    NumberedFilter,
    SurveyKnowledge,
    column_paths,
    column_requirements,
    load_program,
)
from nightwire.filters.reading.shared_reading import SharedSource
from nightwire.filters.sandbox import Limits, NoSandboxError, Sandbox, SandboxError
from nightwire.schemas import AlertDecoder, SchemaRegistry, surveys

AT_ONCE = 2500
"""Alerts judged together: bounds what is held where filters want them whole, and what a filter
takes."""

SLOW_LIMITS = Limits(total_s=600.0, nice=10)
"""Of filters in slow lanes: they give way, as all that judges there does, so that by the clock a
batch may take long."""

MAX_ERROR = 300
"""Longest error that a filter's owner is told. [character]"""


@dataclass(frozen=True)
class Task:
    """The ranges that one task reads, and the version of the filter set that judges them.

    Of the derived topics, those that are *active* are read; others are passed over.  *owner* is
    whose slow lane it is; empty for the quick one.  *catalogues* is their folder; *archive* the URL
    of what has what Kafka has forgotten; empty for none.
    """

    bootstrap: str
    registry: str
    state: str
    filters: int
    work: tuple[OffsetRange, ...]
    budget: float = FILTER_CPU_S
    sandbox: str = "strong"
    active: frozenset[str] = frozenset()
    owner: str = ""
    catalogues: str = ""
    archive: str = ""

    @property
    def store(self) -> CatalogueStore:
        """The catalogues that filters may ask for."""
        return CatalogueStore(Path(self.catalogues or self.state))


def make_task(
    options: Mapping[str, str],
    work: tuple[OffsetRange, ...],
    filters: int,
    active: frozenset[str] = frozenset(),
) -> Task:
    """Return the task of judging *work* by version *filters* of the filter set."""
    return Task(
        options["bootstrap"], options["registry"], options["state"], filters, work,
        float(options.get("budget", FILTER_CPU_S)), options.get("sandbox", "strong"), active,
        options.get("owner", ""), options.get("catalogues", ""), options.get("archive", ""),
    )  # fmt: skip


def run(task: Task) -> Iterator[pa.RecordBatch]:
    """Yield the rows of *task*: passed alerts, undecodable records, counts of each range."""
    _cpu_budget(task.budget).begin_batch()
    for topic, ranges in groupby(sorted(task.work), key=lambda one: one.topic):
        work = list(ranges)
        if not is_derived(topic):
            source = _source_of(task)
            for part in chunks(work, AT_ONCE):
                yield from judge(task, source, topic, topic.partition(".")[2], part)
        elif topic in task.active:
            yield from judge_derived(task, topic, work)
        else:
            yield rows_to_arrow([RangeCounts(one, 0).row() for one in work])


def preload(task: Task) -> Iterator[pa.RecordBatch]:
    """Make the objects that this worker keeps; stay until the other workers have started, too."""
    prepare(task)
    time.sleep(0.3)
    yield from ()


def prepare(task: Task) -> None:
    """Make the objects that this process keeps.

    Raises:
        SandboxError: The sandbox cannot be had now.
    """
    _source_of(task)
    _rowwise_of(task)


def judge_derived(task: Task, topic: str, work: Sequence[OffsetRange]) -> Iterator[pa.RecordBatch]:
    """Read and judge some ranges of a derived topic, group by group."""
    source = _source_of(task)
    fetched = fetch_groups(source, work, surveys())
    for group in fetched.groups:
        yield from judge(task, fetched.of(group), topic, group.survey, work, backfilled=group.backfilled)
    yield rows_to_arrow(list(fetched.rest()))


def judge(
    task: Task,
    source: RecordSource,
    topic: str,
    name: str,
    work: Sequence[OffsetRange],
    *,
    backfilled: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read and judge a survey's alerts in some ranges of a topic; *backfilled*: backfills sent
    them.
    """
    live = enumerate(_filters(task.state, task.filters, task.owner))
    filters = [(number, one) for number, one in live if one.wants(name, topic)]
    defects = {
        number: _defect(one.program, one.facts, name) or missing(one.text_facts.matches, task.store)
        for number, one in filters
    }
    alerts, verdicts = _judged_by_able(task, source, filters, defects, name, work)
    verdicts = sorted(
        [*verdicts, *(_failed(number, why) for number, why in defects.items() if why)],
        key=lambda one: one.number,
    )
    yield passed_rows(verdicts, alerts.identities, name if is_derived(topic) else None, backfilled=backfilled)
    ranges = (count_range(portion, verdicts, alerts.identities.alert) for portion in alerts.ranges)
    yield rows_to_arrow(
        [*alerts.undecodable, *added_rows(verdicts, alerts.identities), *(one.row() for one in ranges)]
    )


def _judged_by_able(
    task: Task, source: RecordSource, filters: Sequence[NumberedFilter], defects: dict[int, str | None],
    name: str, work: Sequence[OffsetRange],
) -> tuple[Alerts, Sequence[Verdict]]:  # fmt: skip
    """Return what `_judged` does of filters without defects; note those that come to light."""
    while True:
        able = [one for one in filters if not defects[one[0]]]
        try:
            return _judged(task, source, able, name, work)
        except MatchError as error:
            asking = [number for number, one in able if error.match in one.text_facts.matches]
            if not asking:
                raise
            defects |= dict.fromkeys(asking, f"cannot be judged: {error}")


@lru_cache(maxsize=4096)
def _defect(program: str, facts: str, name: str) -> str | None:
    """Return why a filter's record cannot be used for alerts of survey *name*; None if it can."""
    try:
        load_facts(facts)
        column_paths(load_program(program).names if program else (), name)
    except Exception as error:  # noqa: BLE001 - one filter must not take the others along
        return _reason(error)
    return None


def _reason(error: Exception) -> str:
    return f"cannot be judged: {type(error).__name__}: {str(error)[:MAX_ERROR]}"


def _failed(number: int, why: str) -> Verdict:
    return Verdict(number, evaluated=0, late=True, fault=why)


def _judged(
    task: Task,
    source: RecordSource,
    filters: Sequence[NumberedFilter],
    name: str,
    work: Sequence[OffsetRange],
) -> tuple[Alerts, Sequence[Verdict]]:
    """Return the alerts and the verdicts on them; on whole alerts, where a filter needs them."""
    known = _known(name)
    while True:
        alerts, wanted = _read(source, filters, name, work, known)
        alerts = with_batch(alerts, with_matches(alerts.batch, wanted.matches, name, task.store))
        began = time.monotonic()
        verdicts = sorted(_verdicts(task, alerts, wanted), key=lambda one: one.number)
        spent = time.monotonic() - began
        by_rows = [one for one in wanted.narrow if one[1].text_facts.columns is None]
        narrow = {number: (live.key, live.version) for number, live in by_rows}
        wide = {narrow[one.number] for one in verdicts if one.number in narrow and one.asks(UNREAD)}
        if not wide and not len(alerts.table):
            return alerts, verdicts
        if not wide:
            able = [*wanted.programs, *wanted.narrow, *wanted.wide]
            rowwise = _rowwise_of(task)
            return alerts, _prober(name).ask(alerts, able, verdicts, rowwise, spent)
        known.wide |= wide


def _read(
    source: RecordSource,
    filters: Sequence[NumberedFilter],
    name: str,
    work: Sequence[OffsetRange],
    known: SurveyKnowledge,
) -> tuple[Alerts, ColumnRequirements]:
    """Return the alerts with the columns that the filters require, and these requirements."""
    while True:
        wanted = column_requirements(filters, name, known)
        try:
            whole = bool(wanted.wide)
            return read_alerts(
                source, work, name, wanted.fields, whole=whole, known_schemas=known.schemas
            ), wanted
        except NewSchema as found:
            known.meet(found.number, found.schema)
        except NoColumn as found:
            if not found.paths - known.unfit:
                raise
            known.unfit |= found.paths


def _verdicts(task: Task, alerts: Alerts, wanted: ColumnRequirements) -> Iterator[Verdict]:
    if not len(alerts.table):
        empty = [number for number, _ in (*wanted.programs, *wanted.narrow, *wanted.wide)]
        yield from (Verdict(number) for number in empty)
        return
    rowwise = _rowwise_of(task)

    def again(one: NumberedFilter, rows: Any) -> Verdict:
        (verdict,) = rowwise(take_rows(alerts, rows), [one])
        return at_rows(verdict, rows)

    yield from judge_vectorized(wanted.programs, alerts.table, again)
    if wanted.narrow or wanted.wide:
        yield from _contained(rowwise, alerts, [*wanted.narrow, *wanted.wide])


def _contained(rowwise: RowJudge, alerts: Alerts, filters: Sequence[NumberedFilter]) -> list[Verdict]:
    """Judge alert by alert; a sandbox that is broken is not kept, nor a batch lost for a filter."""
    try:
        return rowwise(alerts, filters)
    except SandboxError:
        _rowwise.cache_clear()
        raise
    except Exception:  # noqa: BLE001 - one of them does it: found out one by one
        return [_judged_alone(rowwise, alerts, one) for one in filters]


def _judged_alone(rowwise: RowJudge, alerts: Alerts, one: NumberedFilter) -> Verdict:
    try:
        (verdict,) = rowwise(alerts, [one])
    except SandboxError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this filter's
        return _failed(one[0], _reason(error))
    return verdict


@lru_cache(maxsize=64)
def _filters(state: str, version: int, owner: str) -> list[LiveFilter]:
    return EngineState(Path(state), owner=owner).filters(version)


def _source_of(task: Task) -> RecordSource:
    return _source(task.bootstrap, task.registry, task.state, task.archive, shared=bool(task.owner))


@lru_cache(maxsize=4)
def _source(bootstrap: str, registry: str, state: str, archive: str, *, shared: bool) -> RecordSource:
    """Return a source; one of slow lanes keeps its records for the next owner."""
    known = SchemaRegistry(registry, cache_dir=EngineState(Path(state)).schemas)
    kind = SharedSource if shared else RecordSource
    past = ArchiveClient(archive, login(bootstrap)) if archive else None
    return kind(range_consumer(bootstrap), AlertDecoder(known), known, past=past)


def _rowwise_of(task: Task) -> RowJudge:
    return _rowwise(task.sandbox, task.budget, slow=bool(task.owner))


@lru_cache(maxsize=2)
def _rowwise(strength: str, budget: float, *, slow: bool) -> RowJudge:
    if strength == "none":
        return in_rounds(judge_in_process(budget))
    limits = replace(SLOW_LIMITS if slow else Limits(), cpu_s=budget)
    try:
        sandbox = Sandbox("weak" if strength == "weak" else "strong", limits)
        return in_rounds(judge_in_sandbox(sandbox, _cpu_budget(budget)))
    except NoSandboxError as error:
        return judge_nothing(f"cannot be judged here: {error}")


@lru_cache(maxsize=2)
def _cpu_budget(budget: float) -> CpuBudget:
    """Return the CPU times of filters that this process knows."""
    return CpuBudget(budget)


@lru_cache
def _prober(name: str) -> Prober:
    """Return the prober of survey *name*."""
    return Prober()


@lru_cache
def _known(name: str) -> SurveyKnowledge:
    """Return the knowledge of this process of the alerts of survey *name*."""
    return SurveyKnowledge()
