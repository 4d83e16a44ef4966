"""The topics `seen.<owner>`: filter statistics, written by the engine, read by owners."""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
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
    """Writes the statistics of filters that changed to `seen.<owner>`, in a thread of its own.

    Args:
        bootstrap: Kafka's address.
        stats: The statistics of all filters.
        stop: Ends the thread.
        producer: Writes the records; by default a new one.
    """

    def __init__(
        self, bootstrap: str, stats: StatsCollector, stop: Stop, producer: ControlProducer | None = None
    ) -> None:
        self._bootstrap, self._stats, self._stop = bootstrap, stats, stop
        self._producer = producer or ControlProducer(bootstrap)

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="seen", daemon=True).start()

    def _run(self) -> None:
        try:
            self._stats.restore(read_stats(self._bootstrap))
        except (KafkaException, TimeoutError) as error:
            log.warning("the times of the last alerts that passed are not restored: %s", error)
        while True:
            last = self._stop.wait(INTERVAL_S)
            try:
                self.publish()
            except (KafkaException, DeliveryError, TimeoutError) as error:
                log.debug("filter statistics are not published while Kafka is away: %s", error)
            if last:
                return

    def publish(self) -> None:
        """Write the statistics that changed.

        Raises:
            DeliveryError: Kafka did not take a record; all are written again next time.
            KafkaException: Kafka does not answer.
        """
        changed = self._stats.changed_records(now_ms())
        try:
            self._write(changed)
        except (KafkaException, DeliveryError, TimeoutError):
            self._stats.mark_changed(f"{one['owner']}/{one['name']}" for one in changed)
            raise

    def _write(self, changed: Sequence[Mapping[str, Any]]) -> None:
        with self._producer.writer(*sorted({seen(one["owner"]) for one in changed})) as writer:
            for one in changed:
                writer.write(seen(one["owner"]), records.SEEN.encode(one), key=one["name"].encode())


def read_stats(bootstrap: str, owner: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the last record of each filter, of *owner* or of all owners we may read.

    Raises:
        KafkaException: Kafka does not answer.
    """
    known = [seen(owner)] if owner else kafka.admin(bootstrap).list_topics(timeout=10).topics
    topics = sorted(name for name in known if name.startswith(TOPIC_PREFIX))
    latest: dict[tuple[str, bytes], bytes] = {}
    for message in read_to_end(bootstrap, topics):
        if (value := message.value()) is not None:
            latest[str(message.topic()), message.key() or b""] = value
    yield from (records.SEEN.decode(value) for _, value in sorted(latest.items()))
