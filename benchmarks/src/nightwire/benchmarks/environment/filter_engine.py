"""The engine with many filters: their records are written straight into the topic `filters`."""

import math
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
from confluent_kafka import TopicPartition

from nightwire.benchmarks.environment.cluster import PARTITIONS
from nightwire.benchmarks.environment.filter_mixture import MixedFilter
from nightwire.benchmarks.environment.processes import Child
from nightwire.benchmarks.environment.services import ALERTS, CONTROL, Services
from nightwire.benchmarks.model.scenario import Context
from nightwire.core.kafka import Writer, admin, ensure_topics, producer
from nightwire.filters.language import compile_python, compile_sql
from nightwire.schemas import records, topics
from nightwire.schemas.topics import TopicSettings

SENDING = 'nightwire_filters_phase_seconds_sum{phase="send"}'
CAP = 20
"""Most alerts of a visit that each filter is sent."""


class ManyFilters(Services):
    """A Kafka, a registry and the engine, judging by just those filters that were given to `live` last."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._topics: set[str] = set()
        self._engine: Child | None = None

    def engine(self) -> None:
        """Start the engine, unless it runs.

        Raises:
            ChildError: It did not start.
        """
        if self._engine is None and self._context.engine == "own":
            self._engine = self._start_engine()

    def kill(self) -> None:
        """Kill the engine and its Java with -9, as a power cut would."""
        if self._engine is not None:
            os.killpg(self._engine.process.pid, signal.SIGKILL)
            self._engine.process.wait()
            self._engine = None

    def live(self, filters: Sequence[MixedFilter]) -> None:
        """Make *filters* live, and no others; start the engine unless it runs.

        Raises:
            ChildError: It did not start.
        """
        topics_of = self.make_topics(filters)
        wanted = {one.key: one for one in filters}
        self._write(one for key, one in wanted.items() if key not in self.filters)
        self._drop(key for key in self.filters if key not in wanted)
        self.filters = topics_of
        self.engine()

    def forget(self, ends: Mapping[int, int]) -> None:
        """Let Kafka delete the alerts before *ends* (by partition): the disk is bounded."""
        spots = [TopicPartition(ALERTS, part, end) for part, end in ends.items()]
        client = admin(self.bootstrap)  # it must outlive its futures
        for future in client.delete_records(spots).values():
            future.result(30)

    def sending(self) -> float:
        """Return how long the engine has been sending, as it says itself; NaN where it is not ours. [s]"""
        if "filters" not in self._pages:
            return math.nan
        page = httpx.get(f"http://127.0.0.1:{self._pages['filters']}/metrics", timeout=10).text
        said = (line.rpartition(" ") for line in page.splitlines())
        return sum(float(value) for name, _, value in said if name == SENDING)

    def make_topics(self, filters: Iterable[MixedFilter]) -> dict[str, str]:
        """Make what *filters* need; return the topics of what passes them, by ``owner/name``."""
        # all that a visit holds must be there until it is judged, so this topic is not cut by its size
        sim = topics.settings(ALERTS)
        kept = TopicSettings(sim.name, PARTITIONS, {**sim.config, "retention.bytes": "-1"})
        filters = list(filters)
        named = (topics.filter_topic, topics.overflow)
        owned = {name(one.owner, one.name) for one in filters for name in named}
        owned |= {topics.answers(one.owner) for one in filters}
        fresh = sorted({*CONTROL, *owned} - self._topics)
        if fresh:
            ensure_topics(self.bootstrap, [kept, *map(topics.settings, fresh)], timeout=240)
            self._topics |= set(fresh)
        return {one.key: topics.filter_topic(one.owner, one.name) for one in filters}

    def _write(self, filters: Iterable[MixedFilter]) -> None:
        writer = Writer(producer(self.bootstrap))
        for one in filters:
            body = records.FILTER.encode(record(one))
            for key in (f"{one.key}/1", one.key):
                writer.write(topics.FILTERS, body, key=key.encode())
        writer.flush()

    def _drop(self, keys: Iterable[str]) -> None:
        writer = Writer(producer(self.bootstrap))
        for key in keys:
            writer.write(topics.FILTERS, None, key=key.encode())
        writer.flush()


def record(one: MixedFilter) -> dict[str, Any]:
    """Return the record of a filter, as the engine would write it on accepting it."""
    program = ""
    if one.kind.compiles:
        compiled = compile_sql(one.source, "sim") if one.kind.sql else compile_python(one.source)
        program = compiled.dumps()
    return {
        "owner": one.owner,
        "name": one.name,
        "version": 1,
        "live": True,
        "survey": "sim",
        "language": "sql" if one.kind.sql else "python",
        "source": one.source,
        "entry": "" if one.kind.sql else "keep",
        "cap": CAP,
        "program": program,
        "submitted": datetime.now(UTC),
    }


class FilterEngine(ManyFilters):
    """The filter engine.

    Args:
        context: Of the run.
        light: Without Spark and Java, for a quick start.
    """

    def __init__(self, context: Context, *, light: bool = False) -> None:
        super().__init__(context)
        self._light = light

    def close(self) -> None:
        """End what was started, and leave no filter of ours in an engine that goes on running."""
        if self._context.engine == "there" and self.filters:
            self.live([])
        super().close()

    def _child(self, role: str, *words: str) -> Child:
        return super()._child(role, *words, *(["--light"] if self._light and role == "filters" else []))
