"""Reading and judging, in Spark's Python workers.

What is costly to make (consumer, decoder, compiled filters) is kept in this module, which is installed:
a worker process is reused from batch to batch, but a pickled function would bring fresh globals each time.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, Message

from nightwire.filters._fetch import PATIENCE, Gone, fetch, reader
from nightwire.filters._judge import BUDGET, Compiled, Judge, LiveFilter
from nightwire.filters._limits import time_limit
from nightwire.filters._offsets import Range
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

PASSED, DEAD, RANGE = "passed", "dead", "range"
"""Kinds of rows: an alert that passed, one that could not be read, the counts of a range."""

COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("visit", pa.int64()),
        ("alert", pa.string()),
        ("detail", pa.string()),
    ]
)
DDL = "kind string, topic string, partition int, offset bigint, visit bigint, alert string, detail string"
"""The same for Spark."""

Row = tuple[str, str, int, int, int | None, str | None, str]


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
        rows = list(judge_range(task, one, judge))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(column, kind)
                for column, kind in zip(zip(*rows, strict=True), COLUMNS.types, strict=True)
            ],
            schema=COLUMNS,
        )


def warm(task: Task) -> Iterator[pa.RecordBatch]:
    """Make what this worker will keep, and stay long enough that the other workers start too."""
    _consumer(task.bootstrap)
    _decoder(task.registry, task.state)
    time.sleep(0.3)
    yield from ()


def judge_range(task: Task, work: Range, judge: Judge) -> Iterator[Row]:
    """Read and judge one range; its last row holds its counts."""
    gone, read, dead = Gone(), 0, 0
    decoder, consumer = _decoder(task.registry, task.state), _consumer(task.bootstrap)
    for messages in fetch(consumer, work, gone):
        for start in range(0, len(messages), CHUNK):
            chunk = messages[start : start + CHUNK]
            rows = list(_judge_chunk(chunk, judge, decoder))
            read += len(chunk)
            dead += sum(row[0] == DEAD for row in rows)
            yield from rows
    counts: dict[str, Any] = {
        "end": work.end,
        "set": task.filters,
        "read": read,
        "dead": dead,
        "gone": gone.count,
    }
    counts["filters"] = {key: tally.as_dict() for key, tally in judge.restart_counts().items()}
    yield (RANGE, work.topic, work.partition, work.first, None, None, json.dumps(counts))


def _judge_chunk(messages: Sequence[Message], judge: Judge, decoder: AlertDecoder) -> Iterator[Row]:
    views: list[AlertView] = []
    sound: list[Message] = []
    for message in messages:
        try:
            views.append(view_of(message, decoder))
            sound.append(message)
        except RegistryAwayError:
            raise
        except (DecodeError, UnknownSchemaError, KeyError, TypeError, ValueError) as error:
            yield (DEAD, *_spot(message), None, None, f"{type(error).__name__}: {error}")
    for message, view, passes in zip(sound, views, judge.judge(views), strict=True):
        if passes:
            detail = json.dumps([(one.key, one.version, one.rank) for one in passes])
            yield (PASSED, *_spot(message), view.visit, str(view.id), detail)


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


def columns_of(batch: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of *batch* as dictionaries."""
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows
