"""A process that reads nothing: it asks where topics end until they hold what is expected.

``python -m nightwire.benchmarks.workers.alerts.latest_offset
'{"bootstrap": …, "topics": […], "expect": N}'`` finds what a `reader` finds.
"""

import time
from typing import Any

from confluent_kafka import Consumer

from nightwire.benchmarks import RunError
from nightwire.benchmarks.resources.own_traffic import own_traffic
from nightwire.benchmarks.workers.alerts.reader import PATIENCE, ReadStats
from nightwire.benchmarks.workers.worker import emit, first_order
from nightwire.core.kafka import consumer, end_offsets

INTERVAL = 0.05
"""Between two questions. [s]"""


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Ask until the topics hold ``expect`` records more than at first, and return the statistics.

    Raises:
        RunError: They stood still for too long.
    """
    client = consumer(order["bootstrap"])
    try:
        start, found = _latest(client, order["topics"]), ReadStats()
        emit({"ready": True})
        last, began = time.monotonic(), time.process_time()
        while found.records < order["expect"]:
            records = _latest(client, order["topics"]) - start
            if records > found.records:
                found.records, last = records, time.monotonic()
            elif time.monotonic() - last > PATIENCE:
                raise RunError(f"the latest offset stood still for {PATIENCE:g} s, after {records} records")
            time.sleep(INTERVAL)
        found.last, found.cpu = last, time.process_time() - began
        return vars(found) | vars(own_traffic())
    finally:
        client.close()


def _latest(client: Consumer, topics: list[str]) -> int:
    return sum(end_offsets(client, topics).values())


if __name__ == "__main__":
    emit(run(first_order()))
