"""`nightwire ingest`, the survey's Kafka and ours, killed in turn during a night: in = out."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from nightwire.core.accounting import discrepancies
from nightwire.core.kafka import ensure_topics
from nightwire.core.stack import Broker, free_port
from nightwire.schemas import SchemaRegistry
from nightwire.schemas.topics import settings
from producer.tests.ingest.survey_kafka import (
    ID,
    Ingest,
    Running,
    SurveyKafka,
    lsst_schema,
    place,
    wire,
)
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

KILLS = 2
VISITS, ALERTS, AT_ONCE = KILLS + 4, 400, 4
"""How often ingest is killed, each time in another visit; the visits, the alerts in each, and the
alerts that are written at a time."""


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Broker]:
    """Yield the survey's Kafka."""
    one = Broker(tmp_path / "source", port=free_port(), controller=free_port(), heap="256m")
    one.start()
    yield one
    one.stop()


@pytest.fixture
def registry(
    fresh_broker: Broker, serve_registry: Callable[[str], AbstractContextManager[str]], tmp_path: Path
) -> Iterator[str]:
    """Yield our registry, which has the survey's schema; it is on the Kafka that is killed."""
    ensure_topics(fresh_broker.bootstrap, [settings("_schemas")])
    with serve_registry(fresh_broker.bootstrap) as url:
        with SchemaRegistry(url, cache_dir=tmp_path / "survey") as known:
            known.register("alerts.lsst-value", lsst_schema(), schema_id=ID)
        yield url


class Night(threading.Thread):
    """A survey that writes visit after visit, whatever is killed meanwhile.

    Args:
        survey: Its Kafka.
        topic: Where to.
    """

    def __init__(self, survey: SurveyKafka, topic: str) -> None:
        super().__init__(daemon=True)
        self._survey, self._topic = survey, topic
        self._go = [threading.Event() for _ in range(VISITS)]
        self.written = 0

    def let(self, visit: int) -> None:
        """Let it write that visit."""
        self._go[visit].set()

    def run(self) -> None:
        """Write each visit when it is let."""
        for visit, go in enumerate(self._go):
            go.wait()
            numbers = range(1 + visit * ALERTS, 1 + (visit + 1) * ALERTS)
            for first in numbers[::AT_ONCE]:  # so that many transactions hold a visit
                some = range(first, first + AT_ONCE)
                self._survey.send(self._topic, [(wire(n, 100 + visit, pad=b"x" * 2000), n % 3) for n in some])
                self.written += AT_ONCE


def over(one: Running) -> bool:
    """Return whether that process has ended."""
    return one.process.poll() is not None


def test_in_is_out_when_ingest_and_both_kafkas_are_killed_in_turn(
    source: Broker, fresh_broker: Broker, registry: str, tmp_path: Path
) -> None:
    survey = SurveyKafka(source.bootstrap)
    survey.make("night", partitions=3)
    words = ["--topic", "night", "--batch", "100ms", "--visit-quiet", "1h"]
    ours = fresh_broker.bootstrap
    lsst = Ingest("lsst", "source", source.bootstrap, ours, registry, tmp_path, words=words)
    night = Night(survey, "night")
    night.start()

    def mirrored() -> int:
        return len(lsst.mirrored())

    for visit in range(KILLS):
        with lsst.running() as one:
            until(lambda: "reading" in one.said(), one.said)
            before = mirrored()
            night.let(visit)
            until(lambda before=before: mirrored() > before, one.said)  # type: ignore[misc]
            one.kill()
    with lsst.running() as one:
        night.let(KILLS)
        until(lambda: mirrored() > KILLS * ALERTS, one.said)
        fresh_broker.kill()  # ours
        night.let(KILLS + 1)
        fresh_broker.start()
        until(lambda: over(one) or mirrored() >= (KILLS + 2) * ALERTS, one.said)
        # Kafka may have given its transaction up; then it says so, and is started again.
        assert not over(one) or "taken over, or Kafka gave this one up" in one.said()
    with lsst.running() as one:
        until(lambda: mirrored() >= (KILLS + 2) * ALERTS, one.said)
        night.let(KILLS + 2)
        source.kill()  # theirs
        source.start()
        until(lambda: mirrored() >= (KILLS + 3) * ALERTS, one.said)
        night.let(KILLS + 3)
        one.kill()
    night.join()
    status, _counts, log = lsst.to_the_end()
    assert status == 0, log

    places = Counter(place(message) for message in lsst.mirrored())
    ends = Counter(part for _, part, _ in places)
    assert night.written == VISITS * ALERTS
    # the survey may have written one twice when it was killed
    assert sum(ends.values()) >= night.written
    assert set(places.values()) == {1}
    assert set(places) == {("night", part, at) for part, end in ends.items() for at in range(end)}
    assert discrepancies(lsst.accounts()) == []
    assert {one.partition: one.delivered for one in lsst.accounts()} == ends
    visits = lsst.visits()
    assert sum(visits[100 + visit]["written"] for visit in range(VISITS)) == sum(ends.values())
    assert all(record["closed"] is not None for record in visits.values())
