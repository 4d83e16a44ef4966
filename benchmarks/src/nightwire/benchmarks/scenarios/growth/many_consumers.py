"""A process of many librdkafka consumers, each of which reads a whole topic and ignores the bytes.

``python -m nightwire.benchmarks.scenarios.growth.many_consumers '{"bootstrap": …, "topic": …,
"consumers": N, "expect": M}'`` prints a line when all are in place, ends when each has M records,
and prints a line with when that was.
"""

import time
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from nightwire.benchmarks import RunError
from nightwire.benchmarks.workers.alerts.reader import PATIENCE, is_record
from nightwire.benchmarks.workers.worker import emit, first_order
from nightwire.core.kafka import consumer

BATCH = 500
"""Most messages taken from one consumer at once."""
SMALL: dict[str, Any] = {"queued_max_messages_kbytes": 4096, "fetch_wait_max_ms": 25}
"""Of each: there are many."""


def assigned(bootstrap: str, topic: str) -> Consumer:
    """Return a consumer of all that *topic* has and will have."""
    client = consumer(bootstrap, **SMALL)
    parts = client.list_topics(topic, timeout=30).topics[topic].partitions
    client.assign([TopicPartition(topic, part, 0) for part in parts])
    client.poll(0)
    return client


def read(clients: list[Consumer], expect: int) -> float:
    """Return when each of *clients* had *expect* records. [s, monotonic]

    Raises:
        RunError: Nothing came for too long.
        KafkaException: Kafka reports an error.
    """
    left = dict.fromkeys(range(len(clients)), expect)
    last = time.monotonic()
    while left:
        for number in list(left):
            got = sum(map(is_record, clients[number].consume(BATCH, 0.001)))
            left[number] -= got
            last = time.monotonic() if got else last
            if left[number] <= 0:
                del left[number]
        if time.monotonic() - last > PATIENCE:
            raise RunError(f"nothing came for {PATIENCE:g} s; {len(left)} consumers wait")
    return last


def main() -> None:
    """Read the order, read the topic, and tell."""
    order = first_order()
    clients = [assigned(order["bootstrap"], order["topic"]) for _ in range(order["consumers"])]
    emit({"ready": True})
    emit({"last": read(clients, order["expect"])})
    for client in clients:
        client.close()


if __name__ == "__main__":
    main()
