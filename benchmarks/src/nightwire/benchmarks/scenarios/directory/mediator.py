"""Topics over HTTP: beside our reader and bare librdkafka, by many at once, over a slow link."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightwire.benchmarks import Context, Figures, Kind, RunError
from nightwire.benchmarks.environment.alert_pool import make_pool, ready_messages, without_stamps
from nightwire.benchmarks.scenarios.directory.http_worker import MB
from nightwire.benchmarks.scenarios.directory.link import RATE, slow_link
from nightwire.benchmarks.scenarios.directory.living import Living
from nightwire.benchmarks.workers.alerts.feed import RawProducer, cycled
from nightwire.benchmarks.workers.client import worker_process
from nightwire.benchmarks.workers.pool import WorkerPool

WORKER = "nightwire.benchmarks.scenarios.directory.http_worker"
OBJECTS = 64
"""Alerts that those of a topic go through in turn."""
MANY, EACH = 14, 4
"""Who write and who read at once, as in Tycho's figures; and what each writes. [MB]"""
AVRO = {"as": "avro", "max": "10000"}


@dataclass(frozen=True)
class Way:
    """How records are read.

    Attributes:
        work: What is done with an answer, see `http_worker.counting`.
        asked: In which form.
        ready: Whether bare librdkafka is its baseline, not our `AlertReader`.
    """

    work: str
    asked: Mapping[str, str]
    ready: bool


WAYS: Mapping[str, Way] = {
    "alerts": Way("alerts", AVRO, ready=False),
    "json": Way("json", {"as": "json", "max": "10000"}, ready=False),
    "values": Way("values", AVRO, ready=True),
}
TOPICS: Mapping[str, int] = {"small": 5_000, "stamps": 600}
"""Alerts without their stamps, and with them; how many."""


class MediatorExperiment(Living):
    """A mediator, topics of a Kafka of its own, and workers that stay."""

    def __init__(self, context: Context, workers: WorkerPool) -> None:
        super().__init__(context, workers.cluster)
        self._workers = workers
        self._topics: dict[str, str] = {}

    def prepare(self) -> None:
        """Make the topics, and start the mediator."""
        super().prepare()
        port, _process = self.exits.enter_context(self._directory())
        self._address = f"127.0.0.1:{port}"

    def _fill(self, what: str, count: int) -> None:
        """Make the topic of so many alerts without (``small``) or with ``stamps``."""
        pool = make_pool(OBJECTS)
        alerts = pool if what == "stamps" else [without_stamps(alert) for alert in pool]
        topic = self.exits.enter_context(self._cluster.topic(what))
        RawProducer(self._cluster.bootstrap, topic).send_all(cycled(ready_messages(alerts), count))
        self._topics[what] = topic

    def _work(self, order: Mapping[str, Any]) -> dict[str, Any]:
        (found,) = self._workers.results(["consumer"], [order])
        return checked(found, order["expect"])


class Reading(MediatorExperiment):
    """One connection reads a topic, beside Kafka's own clients."""

    name = "mediator"
    at_most: Mapping[Kind, int] = {}

    def prepare(self) -> None:
        """Fill the topics, too."""
        super().prepare()
        for what, count in TOPICS.items():
            self._fill(what, count)

    def run_once(self, kind: Kind) -> Figures:
        """Read each topic in each way."""
        figures: Figures = {}
        for what, count in TOPICS.items():
            for name, way in WAYS.items():
                order: dict[str, Any] = {"part": "take", "ready": way.ready}
                if kind is Kind.SUBJECT:
                    order = {"part": "ask", "address": self._address, "asked": way.asked, "work": way.work}
                found = self._work(order | {"topic": self._topics[what], "expect": count})
                figures[f"http_{what}_{name}_per_second"] = count / (found["last"] - found["began"])
        return figures


class Many(MediatorExperiment):
    """Fourteen write a megabyte again and again, and fourteen read all of them."""

    name = "mediator-many"
    at_most: Mapping[Kind, int] = {Kind.BASELINE: 0, Kind.SUBJECT: 2}
    """A user has 32 readers at most, and one that is idle is kept for a minute."""

    def run_once(self, kind: Kind) -> Figures:
        """Let them write and read."""
        with self._cluster.topic("many") as topic:
            shared: dict[str, Any] = {"address": self._address, "topic": topic, "clients": MANY}
            reading: dict[str, Any] = shared | {"part": "ask many", "asked": AVRO, "expect": MANY * EACH}
            writing = shared | {"part": "write", "each": EACH}
            read, written = self._workers.results(["consumer", "producer"], [reading, writing])
        checked(read, MANY * MANY * EACH)
        rate = read["records"] / (read["last"] - written["began"])
        return {"http_many_megabytes_per_second": rate * MB / 1e6}


class Link(MediatorExperiment):
    """One connection over a link of 100 Mbit/s."""

    name = "mediator-link"
    at_most: Mapping[Kind, int] = {Kind.BASELINE: 0}

    def prepare(self) -> None:
        """Lay the link, with a worker at its far end."""
        super().prepare()
        self._fill("stamps", TOPICS["stamps"])
        link = self.exits.enter_context(slow_link())
        port, _process = self.exits.enter_context(self._directory(link.address))
        self._address, there = f"{link.address}:{port}", link.on(0, ())
        worker = worker_process(self._context, WORKER, {}, role="consumer", log="far", inside=there)
        self._worker = self.exits.enter_context(worker)

    def run_once(self, kind: Kind) -> Figures:
        """Read the topic there."""
        order: dict[str, Any] = {"part": "ask", "address": self._address, "asked": AVRO, "work": "values"}
        order |= {"topic": self._topics["stamps"], "expect": TOPICS["stamps"]}
        self._worker.send(order)
        self._worker.await_ready()
        self._worker.signal()
        found = checked(self._worker.receive(), TOPICS["stamps"])
        return {"http_link_share": 8 * found["size"] / (found["last"] - found["began"]) / RATE}


def checked(found: dict[str, Any], expect: int) -> dict[str, Any]:
    """Return *found*.

    Raises:
        RunError: Records are missing in it, or came twice.
    """
    if found["records"] != expect:
        raise RunError(f"{found['records']:,} records came of {expect:,}")
    return found
