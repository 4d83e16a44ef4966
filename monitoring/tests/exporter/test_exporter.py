"""The exporter on a real Kafka, asked by a real Prometheus."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitoring.tests.processes import await_answer, await_observation, exporting, running
from nightwire.core.accounting import Account, FilterClasses, write_account
from nightwire.core.kafka import Writer, consumer, ensure_topics, producer
from nightwire.core.runtime import Stop
from nightwire.core.stack import Broker, free_port
from nightwire.monitoring.dashboards import ALL, queries
from nightwire.monitoring.exporter import Exporter
from nightwire.schemas.topics import settings

SIM = "alerts.sim"


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Fill a real Kafka of these tests' own with a small night: ten alerts, six of them judged."""
    broker = Broker(tmp_path_factory.mktemp("kafka"), port=free_port(), controller=free_port())
    broker.start()
    names = (SIM, "accounts", "dead-letters", "voevents", "filter.demo.bright")
    ensure_topics(broker.bootstrap, [settings(name) for name in names])
    writer = Writer(producer(broker.bootstrap))
    for number in range(10):
        writer.write(SIM, b"an alert", partition=0, key=str(number).encode())
    writer.flush()
    account = Account("producer", "visit/sim", 0, 1, 1, read=10, delivered=10)
    write_account(writer, account)
    classes = {"demo/bright": FilterClasses(evaluated=6, passed=2, rejected=4)}
    judged = Account("filters", SIM, 0, 0, 5, read=6, delivered=2, rejected={"no": 4}, filters=classes)
    write_account(writer, judged)
    writer.flush()
    yield broker.bootstrap
    broker.stop()


def commit(bootstrap: str, group: str, count: int) -> None:
    reader = consumer(bootstrap, group=group, auto_offset_reset="earliest")
    reader.subscribe([SIM])
    seen = 0
    while seen < count:
        if (message := reader.poll(1.0)) is not None and message.error() is None:
            reader.commit(message, asynchronous=False)
            seen += 1
    reader.close()


@pytest.mark.kafka
def test_the_exporter_sees_accounts_lag_and_brokers(busy: str) -> None:
    commit(busy, "watchers", 4)
    exporter = Exporter(busy)
    exporter.observe()
    state, _at = exporter.latest()
    stages = {total.stage: total for total in state.stages}
    assert state.cluster.brokers == 1
    assert (stages["producer"].delivered, stages["filters"].read) == (10, 6)
    assert stages["filter.demo.bright"].delivered == 2
    assert state.stage_lag == {("filters", SIM): 4}
    assert state.cluster.committed["watchers"][SIM, 0] == 4
    assert list(state.discrepancies) == []
    assert exporter.healthy()


@pytest.mark.kafka
def test_the_exporter_outlives_a_kafka_that_dies_and_returns(fresh_broker: Broker) -> None:
    port = free_port()
    with exporting(fresh_broker.bootstrap, port):
        seen = await_observation(port, 0.0)
        fresh_broker.kill()
        fresh_broker.start()
        assert await_observation(port, seen) > seen


class StopAtWarning(logging.Handler):
    """Ends a loop with its first warning.

    Args:
        stop: What ends it.
    """

    def __init__(self, stop: Stop) -> None:
        super().__init__(logging.WARNING)
        self._stop, self.said = stop, ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what it says."""
        self.said = record.getMessage()
        self._stop.set()


@pytest.mark.slow
def test_a_kafka_that_does_not_answer_is_named() -> None:
    address, stop = f"127.0.0.1:{free_port()}", Stop()
    heard = StopAtWarning(stop)
    log = logging.getLogger("nightwire.exporter")
    log.addHandler(heard)
    try:
        Exporter(address).run(stop)
    finally:
        log.removeHandler(heard)
    assert heard.said.startswith(f"nothing observed: nobody answers at {address}")


OURS = (
    "nightwire_accounts_",
    "nightwire_visit_",
    "nightwire_stage_",
    "nightwire_consumer_",
    "nightwire_topic_",
)
OURS += ("nightwire_kafka_", "nightwire:", "nightwire_broker_")
"""Beginnings of the exporter's metrics; those of other rooms are tested where all rooms run."""


@pytest.mark.kafka
@pytest.mark.prometheus
def test_prometheus_answers_each_panels_query(busy: str, tmp_path: Path) -> None:
    ensure_topics(busy, [settings("returns.fink")])  # a community broker
    commit(busy, "fink.live", 3)
    pages, port = free_port(), free_port()
    with exporting(busy, pages):
        await_observation(pages, 0.0)
        words = ["--state", str(tmp_path), "--port", str(port), "--target", f"exporter=127.0.0.1:{pages}"]
        words += ["--interval", "0.5"]
        with running("prometheus", *words):
            asked = [query for query in queries(ALL, rare=False) if any(name in query for name in OURS)]
            asked = [query for query in asked if "nightwire_filters_" not in query]
            asked += [
                'sum(up{job="nightwire"})',
                *(one for one in queries(ALL) if "nightwire_broker_" in one),
            ]
            assert len(asked) > 10
            for query in asked:
                await_answer(port, query)
