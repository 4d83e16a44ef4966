"""The engine with many filters: their records are written straight into the topic `filters`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from nightwire.benchmarks._cluster import PARTITIONS
from nightwire.benchmarks.filters._mixture import Mixed
from nightwire.benchmarks.visit._services import ALERTS, CONTROL, Services
from nightwire.core.kafka import Writer, ensure_topics, producer
from nightwire.filters.language import compile_python, compile_sql
from nightwire.schemas import records, topics
from nightwire.schemas.topics import TopicSettings

CAP = 20
"""Most alerts of a visit that each filter is sent."""


class ManyFilters(Services):
    """A Kafka, a registry and the engine, judging by as many filters as were given to `live`."""

    def live(self, filters: Sequence[Mixed]) -> None:
        """Make *filters* live beside those that are, and start the engine unless it runs.

        Raises:
            ChildError: It did not start.
        """
        running = bool(self.filters)
        fresh = [one for one in filters if one.name not in self.filters]
        self._make_topics(fresh)
        self._write(fresh)
        self.filters |= {one.name: topics.filter_topic(one.owner, one.name) for one in fresh}
        if not running and self._context.engine == "own":
            self._start_engine()

    def _make_topics(self, filters: Sequence[Mixed]) -> None:
        # all that a visit holds must be there until it is judged, so this topic is not cut by its size
        sim = topics.settings(ALERTS)
        kept = TopicSettings(sim.name, PARTITIONS, {**sim.config, "retention.bytes": "-1"})
        named = (topics.filter_topic, topics.overflow)
        owned = [name(one.owner, one.name) for one in filters for name in named]
        owned += sorted({topics.answers(one.owner) for one in filters})
        ensure_topics(
            self.bootstrap, [kept, *(topics.settings(name) for name in (*CONTROL, *owned))], timeout=240
        )

    def _write(self, filters: Sequence[Mixed]) -> None:
        writer = Writer(producer(self.bootstrap))
        for one in filters:
            body = records.FILTER.encode(record(one))
            for key in (f"{one.owner}/{one.name}/1", f"{one.owner}/{one.name}"):
                writer.write(topics.FILTERS, body, key=key.encode())
        writer.flush()


def record(one: Mixed) -> dict[str, Any]:
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
