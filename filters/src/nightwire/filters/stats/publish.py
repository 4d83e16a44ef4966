"""Telling owners what was seen of their filters, every few seconds, in a thread of its own."""

import logging
import threading
from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaException

from nightwire.core import kafka
from nightwire.core.kafka import DeliveryError, read_to_end
from nightwire.core.runtime import Stop, now_ms
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.filters.stats.collector import StatsCollector
from nightwire.schemas import records
from nightwire.schemas.topics import seen

log = logging.getLogger("nightwire.filters")

INTERVAL_S = 5.0
"""Pause between two writings. [s]"""

TOPIC_PREFIX = seen("o").removesuffix("o")


class StatsPublisher:
    """Writes to `seen.<owner>` what is new of the filters that did something.

    Args:
        bootstrap: Kafka's address.
        ledger: Knows.
        stop: When to end.
    """

    def __init__(self, bootstrap: str, ledger: StatsCollector, stop: Stop) -> None:
        self._bootstrap, self._ledger, self._stop = bootstrap, ledger, stop
        self._outbox = ControlProducer(bootstrap)

    def start(self) -> None:
        """Publish in a thread of its own."""
        threading.Thread(target=self._run, name="seen", daemon=True).start()

    def _run(self) -> None:
        try:
            self._ledger.recall(read_stats(self._bootstrap))
        except (KafkaException, TimeoutError) as error:
            log.warning("when alerts passed last is not remembered: %s", error)
        while True:
            last = self._stop.wait(INTERVAL_S)
            try:
                self.publish()
            except (KafkaException, DeliveryError, TimeoutError) as error:
                log.debug("nothing is told of filters while Kafka is away: %s", error)
            if last:
                return

    def publish(self) -> None:
        """Write what is new.

        Raises:
            DeliveryError: Kafka did not take something; it is told with what is new next time.
            KafkaException: Kafka does not answer.
        """
        news = self._ledger.news(now_ms())
        with self._outbox.writer(*sorted({seen(one["owner"]) for one in news})) as writer:
            for one in news:
                writer.write(seen(one["owner"]), records.SEEN.encode(one), key=one["name"].encode())


def read_stats(bootstrap: str, owner: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the last record of each filter of *owner*; of everybody whose topics we may read without one.

    Raises:
        KafkaException: Kafka does not answer.
    """
    topics = [seen(owner)] if owner else stats_topics(bootstrap)
    latest: dict[tuple[str, bytes], bytes] = {}
    for message in read_to_end(bootstrap, topics):
        if (value := message.value()) is not None:
            latest[str(message.topic()), message.key() or b""] = value
    yield from (records.SEEN.decode(value) for _, value in sorted(latest.items()))


def stats_topics(bootstrap: str) -> list[str]:
    """Return the topics of all owners that Kafka shows us.

    Raises:
        KafkaException: Kafka does not answer.
    """
    known = kafka.admin(bootstrap).list_topics(timeout=10).topics
    return sorted(name for name in known if name.startswith(TOPIC_PREFIX))
