"""Alerts of real size to a plain consumer, each when it is due, and the delays of all."""

import time
from collections.abc import Iterable, Sequence

from nightwire.benchmarks import Context
from nightwire.benchmarks.environment.alert_pool import make_pool, ready_messages
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.workers.alerts.due_times import LEAD, DueTimes, check_complete, paced
from nightwire.benchmarks.workers.alerts.feed import RawProducer, cycled
from nightwire.benchmarks.workers.client import reader_process
from nightwire.core.kafka import ensure_topics
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, DIRECTORY, settings

TOPIC = "alerts.sim"


class PlainStream:
    """The stream that others must not disturb; its topic is made, and those of who serves it.

    Args:
        context: Says where.
        cluster: Kafka.
        pool: Distinct alerts.

    Attributes:
        ends: Offset after the last record of each partition.
    """

    def __init__(self, context: Context, cluster: Cluster, pool: int) -> None:
        self._context, self._cluster, self._sent = context, cluster, 0
        self._ready = ready_messages(make_pool(pool))
        made = (TOPIC, ACCOUNTS, DEAD_LETTERS, DIRECTORY)
        ensure_topics(cluster.bootstrap, [settings(one) for one in made])
        self.ends: dict[int, int] = {}

    def send(self, dues: Sequence[float]) -> DueTimes:
        """Send an alert at each of *dues*, counted from now [s]; return when they were due."""
        raw, noted = RawProducer(self._cluster.bootstrap, TOPIC), DueTimes()
        start, messages = time.monotonic() + LEAD, cycled(self._ready, len(dues), self._sent)
        for message, (due, _late) in zip(
            messages, paced((start + due for due in dues), raw.client), strict=True
        ):
            raw.send(message, noted.of(due))
        raw.flush()
        self.ends = noted.ends()
        self._sent += len(dues)
        return noted

    def delays(self, dues: Iterable[float]) -> Sequence[float]:
        """Send an alert at each of *dues*, counted from now; return the delays. [s]

        Raises:
            RunError: Not all arrived.
        """
        where, wanted = self._cluster.bootstrap, list(dues)
        with reader_process(self._context, where, [TOPIC], "bytes", note=True) as reader:
            noted = self.send(wanted)
            delays = noted.delays(reader.findings()["arrivals"], TOPIC)
        check_complete(len(delays), len(wanted))
        return delays
