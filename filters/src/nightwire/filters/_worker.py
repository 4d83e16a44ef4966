"""Reading and judging, in Spark's Python workers.

What is costly to make (consumer, decoder, compiled filters) is kept in this module, which is installed:
a worker process is reused from batch to batch, but a pickled function would bring fresh globals each time.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, Message

from nightwire.filters._fetch import PATIENCE, Gone, fetch, reader
from nightwire.filters._judge import BUDGET, Compiled, Judge, LiveFilter, Tally
from nightwire.filters._limits import time_limit
from nightwire.filters._offsets import Range
from nightwire.filters._rows import DEAD, PASSED, Counts, Fault, Row, to_batch
from nightwire.filters._state import State
from nightwire.schemas import (
    AlertDecoder,
    AlertView,
    DecodeError,
    RegistryAwayError,
    SchemaRegistry,
    UnknownSchemaError,
    survey,
)

CHUNK = 64
"""Alerts decoded at a time: each takes some hundred kB as Python objects."""


@dataclass(frozen=True)
class Task:
    """What one Spark task reads, by which version of the filter set."""

    bootstrap: str
    registry: str
    state: str
    filters: int
    work: tuple[Range, ...]
    budget: float = BUDGET


def run(task: Task) -> Iterator[pa.RecordBatch]:
    """Yield the rows of *task*, one batch per range: what passed, what could not be read, the counts."""
    judges: dict[str, Judge] = {}
    for one in task.work:
        name = one.topic.partition(".")[2]
        judge = judges.setdefault(
            name, Judge(compiled(task.state, task.filters, name), time_limit, task.budget)
        )
        yield to_batch(list(judge_range(task, one, judge)))


def warm(task: Task) -> Iterator[pa.RecordBatch]:
    """Make what this worker will keep, and stay long enough that the other workers start too."""
    _consumer(task.bootstrap)
    _decoder(task.registry, task.state)
    time.sleep(0.3)
    yield from ()


def judge_range(task: Task, work: Range, judge: Judge) -> Iterator[Row]:
    """Read and judge one range; its last row holds its counts."""
    gone, kinds = Gone(), Counter[str]()
    decoder, consumer = _decoder(task.registry, task.state), _consumer(task.bootstrap)
    numbers = {one.key: number for number, one in enumerate(_filters(task.state, task.filters))}
    for messages in fetch(consumer, work, gone):
        kinds["read"] += len(messages)
        for start in range(0, len(messages), CHUNK):
            for row in _judge_chunk(messages[start : start + CHUNK], judge, decoder, numbers):
                kinds[row[0]] += 1
                yield row
    yield _counts(work, kinds, gone.count, judge.restart_counts(), numbers).row()


def _counts(
    work: Range, kinds: Mapping[str, int], gone: int, tallies: Mapping[str, Tally], numbers: Mapping[str, int]
) -> Counts:
    by_number = {numbers[key]: tally for key, tally in tallies.items()}
    return Counts(
        work, kinds["read"], kinds[DEAD], gone, kinds[PASSED],
        judges=list(by_number),
        evaluated=[one.evaluated for one in by_number.values()],
        passed=[one.passed for one in by_number.values()],
        faulted=[one.faulted for one in by_number.values()],
        faults={n: Fault(one.fault, one.culprit) for n, one in by_number.items() if one.fault is not None},
        late=[n for n, one in by_number.items() if one.late],
    )  # fmt: skip


def _judge_chunk(
    messages: Sequence[Message], judge: Judge, decoder: AlertDecoder, numbers: Mapping[str, int]
) -> Iterator[Row]:
    views: list[AlertView] = []
    sound: list[Message] = []
    for message in messages:
        try:
            views.append(view_of(message, decoder))
            sound.append(message)
        except RegistryAwayError:
            raise
        except (DecodeError, UnknownSchemaError, KeyError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            yield (DEAD, *_spot(message), None, None, None, None, None, reason)
    for message, view, passes in zip(sound, views, judge.judge(views), strict=True):
        if passes:
            ranks = [math.nan if one.rank is None else one.rank for one in passes]
            alert = (message.timestamp()[1], view.visit, str(view.id))
            yield (PASSED, *_spot(message), *alert, [numbers[one.key] for one in passes], ranks, None)


def view_of(message: Message, decoder: AlertDecoder) -> AlertView:
    """Return the alert in *message*, as filters see it.

    Raises:
        DecodeError: It is none, or none of its topic's survey.
        UnknownSchemaError: Nobody knows its schema.
    """
    if (value := message.value()) is None:
        raise DecodeError("the record has no value")
    described = survey(str(message.topic()).partition(".")[2])
    alert = _decode(value, decoder)
    described.alert_id(alert)
    described.visit(alert)
    return described.view(alert)


def _decode(value: bytes, decoder: AlertDecoder) -> Mapping[str, Any]:
    """Decode; wait for a registry that is away, since what it knows is not for dead-letters."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return decoder.decode(value).alert
        except RegistryAwayError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _spot(message: Message) -> tuple[str, int, int]:
    return str(message.topic()), message.partition() or 0, message.offset() or 0


def compiled(state: str, version: int, survey_name: str) -> list[Compiled]:
    """Return the filters of one version of the filter set that judge *survey_name*, compiled."""
    return [_compiled(one) for one in _filters(state, version) if one.wants(survey_name)]


@lru_cache(maxsize=4)
def _filters(state: str, version: int) -> list[LiveFilter]:
    return State(Path(state)).filters(version)


@lru_cache(maxsize=4096)
def _compiled(live: LiveFilter) -> Compiled:
    return Compiled(live, time_limit)


@lru_cache(maxsize=4)
def _consumer(bootstrap: str) -> Consumer:
    return reader(bootstrap)


@lru_cache(maxsize=4)
def _decoder(registry: str, state: str) -> AlertDecoder:
    return AlertDecoder(SchemaRegistry(registry, cache_dir=State(Path(state)).schemas))
