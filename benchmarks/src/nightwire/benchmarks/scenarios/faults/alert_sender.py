"""A process that sends alerts at a steady rate, in an open loop, until it is told to stop.

``python -m nightwire.benchmarks.scenarios.faults.alert_sender '{"bootstrap": …}'`` prints a line
when it begins, stops when its standard input is closed or at ``most`` alerts, waits for every
acknowledgement, and prints a line with when each alert was due (by its id), where the topic's
partitions end, and its worst lag.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from nightwire.benchmarks.environment.alert_pool import load_pool, patch
from nightwire.benchmarks.workers.alerts.feed import alert_writer, delivered
from nightwire.benchmarks.workers.worker import emit, first_order, input_ended
from nightwire.core.runtime import on_time

LEAD = 0.2
"""From the first line to the first alert. [s]"""
GLANCE = 0.05
"""Longest wait without a look at whether to stop. [s]"""


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Send as *order* says, and return what was sent.

    *order* has ``bootstrap``, ``topic``, ``pool`` (a file, see `load_pool`), ``rate`` [1/s],
    ``most``, ``first`` (number of the first alert), ``visit`` (of the first visit) and
    ``per_visit`` (alerts in each).
    """
    pool = load_pool(Path(order["pool"]))
    writer, codec, client = alert_writer(order["bootstrap"], order["topic"])
    codec.encode(pool[0])
    due_of: dict[str, float] = {}
    behind, (note, ends) = 0.0, delivered()
    emit({"ready": True})
    for turn, (due, late) in enumerate(_dues(order["rate"], order["most"], client)):
        visit = order["visit"] + turn // order["per_visit"]
        alert = patch(pool[turn % len(pool)], order["first"] + turn, visit)
        writer.write(alert, visit=visit, on_delivered=note)
        due_of[str(alert["diaSourceId"])] = due
        behind = max(behind, late)
    writer.flush()
    return {"due": due_of, "ends": ends, "behind": behind}


def _dues(rate: float, most: int, client: Producer) -> Iterator[tuple[float, float]]:
    """Yield when each alert is due, and by how much it is late [s], until it is time to stop."""
    stop, start = input_ended(), time.monotonic() + LEAD

    def idle(left: float) -> bool:
        client.poll(min(left, GLANCE))  # acknowledgements come in meanwhile
        return stop.is_set()

    for due in on_time((start + turn / rate for turn in range(most)), clock=time.monotonic, idle=idle):
        if stop.is_set():
            return
        yield due


if __name__ == "__main__":
    emit(run(first_order()))
