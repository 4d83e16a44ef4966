"""Reading and judging, in Spark's Python workers, or in the light engine's own process.

What is costly to make (consumer, decoder, compiled filters, sandbox) is kept in this module, which is
installed: a worker process is reused from batch to batch, but a pickled function would bring fresh globals.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from nightwire.filters._chains import is_fed
from nightwire.filters._columnwise import columnwise
from nightwire.filters._decoding import NoColumn
from nightwire.filters._fed import fetched_of
from nightwire.filters._fetch import reader
from nightwire.filters._judge import BUDGET, LiveFilter
from nightwire.filters._leashes import Leashes
from nightwire.filters._mentions import UNREAD
from nightwire.filters._offsets import Range, chunks
from nightwire.filters._probing import Prober
from nightwire.filters._reading import Alerts, NewSchema, Source, read
from nightwire.filters._rows import Counts, to_batch
from nightwire.filters._rowwise import Rowwise, apart, here, nowhere, some
from nightwire.filters._state import State
from nightwire.filters._verdicts import Verdict, added_rows, counts, of_rows, passed_rows
from nightwire.filters._wishes import Knowledge, Numbered, Wishes, wishes
from nightwire.filters.sandbox import Limits, Sandbox, SandboxError
from nightwire.schemas import AlertDecoder, SchemaRegistry, surveys

AT_ONCE = 2500
"""Alerts judged together: bounds what is held where filters want them whole, and what a filter takes."""


@dataclass(frozen=True)
class Task:
    """What one Spark task reads, by which version of the filter set.

    Of the topics of what passed filters, those are read that were *asked* for; others are passed over.
    """

    bootstrap: str
    registry: str
    state: str
    filters: int
    work: tuple[Range, ...]
    budget: float = BUDGET
    sandbox: str = "strong"
    asked: frozenset[str] = frozenset()


def task(
    options: Mapping[str, str], work: tuple[Range, ...], filters: int, asked: frozenset[str] = frozenset()
) -> Task:
    """Return the task of judging *work* by version *filters* of the filter set."""
    return Task(
        options["bootstrap"], options["registry"], options["state"], filters, work,
        float(options.get("budget", BUDGET)), options.get("sandbox", "strong"), asked,
    )  # fmt: skip


def run(task: Task) -> Iterator[pa.RecordBatch]:
    """Yield the rows of *task*: what passed, what could not be read, the counts of each range."""
    _leashes(task.budget).begin()
    for topic, ranges in groupby(sorted(task.work), key=lambda one: one.topic):
        work = list(ranges)
        if not is_fed(topic):
            source = _source(task.bootstrap, task.registry, task.state)
            for part in chunks(work, AT_ONCE):
                yield from judge(task, source, topic, topic.partition(".")[2], part)
        elif topic in task.asked:
            yield from judge_fed(task, topic, work)
        else:
            yield to_batch([Counts(one, 0).row() for one in work])


def warm(task: Task) -> Iterator[pa.RecordBatch]:
    """Make what this worker will keep, and stay long enough that the other workers start too."""
    _source(task.bootstrap, task.registry, task.state)
    _rowwise(task.sandbox, task.budget)
    time.sleep(0.3)
    yield from ()


def judge_fed(task: Task, topic: str, work: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    """Read and judge some ranges of a topic of what passed filters, group by group."""
    source = _source(task.bootstrap, task.registry, task.state)
    fetched = fetched_of(source, work, surveys())
    for group in fetched.groups:
        yield from judge(task, fetched.of(group), topic, group.survey, work, past=group.past)
    yield to_batch(list(fetched.rest()))


def judge(
    task: Task, source: Source, topic: str, name: str, work: Sequence[Range], *, past: bool = False
) -> Iterator[pa.RecordBatch]:
    """Read and judge the alerts of one survey in some ranges of a topic; *past* if backfills sent them."""
    live = enumerate(_filters(task.state, task.filters))
    filters = [(number, one) for number, one in live if one.wants(name, topic)]
    alerts, verdicts = _judged(task, source, filters, name, work)
    yield passed_rows(verdicts, alerts.known, name if is_fed(topic) else None, past=past)
    ranges = (counts(portion, verdicts, alerts.known.alert) for portion in alerts.portions)
    yield to_batch([*alerts.dead, *added_rows(verdicts, alerts.known), *(one.row() for one in ranges)])


def _judged(
    task: Task, source: Source, filters: Sequence[Numbered], name: str, work: Sequence[Range]
) -> tuple[Alerts, Sequence[Verdict]]:
    """Return the alerts, and what the filters say of them; again, where one asks for what was not read."""
    known = _known(name)
    while True:
        alerts, wanted = _read(source, filters, name, work, known)
        began = time.monotonic()
        verdicts = sorted(_verdicts(task, alerts, wanted), key=lambda one: one.judge)
        spent = time.monotonic() - began
        narrow = {number: (live.key, live.version) for number, live in wanted.narrow}
        surprised = {narrow[one.judge] for one in verdicts if one.judge in narrow and one.asks(UNREAD)}
        if not surprised and not len(alerts.table):
            return alerts, verdicts
        if not surprised:
            able = [*wanted.programs, *wanted.narrow, *wanted.wide]
            rowwise = _rowwise(task.sandbox, task.budget)
            return alerts, _prober(name).ask(alerts, able, verdicts, rowwise, spent)
        known.wide |= surprised


def _read(
    source: Source, filters: Sequence[Numbered], name: str, work: Sequence[Range], known: Knowledge
) -> tuple[Alerts, Wishes]:
    """Return the alerts, with the columns that the filters want, and what those are."""
    while True:
        wanted = wishes(filters, name, known)
        try:
            whole = bool(wanted.wide)
            return read(source, work, name, wanted.fields, whole=whole, met=known.schemas), wanted
        except NewSchema as found:
            known.meet(found.number, found.schema)
        except NoColumn as found:
            if not found.paths - known.unfit:
                raise
            known.unfit |= found.paths


def _verdicts(task: Task, alerts: Alerts, wanted: Wishes) -> Iterator[Verdict]:
    if not len(alerts.table):
        empty = [number for number, _ in (*wanted.programs, *wanted.narrow, *wanted.wide)]
        yield from (Verdict(number) for number in empty)
        return
    rowwise = _rowwise(task.sandbox, task.budget)

    def again(one: Numbered, rows: Any) -> Verdict:
        (verdict,) = rowwise(some(alerts, rows), [one])
        return of_rows(verdict, rows)

    yield from columnwise(wanted.programs, alerts.table, again)
    if wanted.narrow or wanted.wide:
        yield from _contained(rowwise, alerts, [*wanted.narrow, *wanted.wide])


def _contained(rowwise: Rowwise, alerts: Alerts, filters: Sequence[Numbered]) -> list[Verdict]:
    """Judge alert by alert; a sandbox that is broken is not kept."""
    try:
        return rowwise(alerts, filters)
    except SandboxError:
        _rowwise.cache_clear()
        raise


@lru_cache(maxsize=4)
def _filters(state: str, version: int) -> list[LiveFilter]:
    return State(Path(state)).filters(version)


@lru_cache(maxsize=4)
def _source(bootstrap: str, registry: str, state: str) -> Source:
    known = SchemaRegistry(registry, cache_dir=State(Path(state)).schemas)
    return Source(reader(bootstrap), AlertDecoder(known), known)


@lru_cache(maxsize=2)
def _rowwise(strength: str, budget: float) -> Rowwise:
    if strength == "none":
        return here(budget)
    try:
        sandbox = Sandbox("weak" if strength == "weak" else "strong", Limits(cpu_s=budget))
        return apart(sandbox, _leashes(budget))
    except SandboxError as error:
        return nowhere(f"cannot be judged here: {error}")


@lru_cache(maxsize=2)
def _leashes(budget: float) -> Leashes:
    """Return what this process knows of the times that filters take."""
    return Leashes(budget)


@lru_cache
def _prober(name: str) -> Prober:
    """Return who asks what stops the alerts of survey *name*."""
    return Prober(name)


@lru_cache
def _known(name: str) -> Knowledge:
    """Return what this process knows of the alerts of survey *name*."""
    return Knowledge()
