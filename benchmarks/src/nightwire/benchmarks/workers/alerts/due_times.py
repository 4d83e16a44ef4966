"""Sending on time, in an open loop, and delays from when each alert was due."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from confluent_kafka import Message as Sent
from confluent_kafka import Producer

from nightwire.benchmarks import Figures, RunError
from nightwire.benchmarks.model.statistics import quantile
from nightwire.core.runtime import on_time

LEAD = 0.2
"""From the call to the first alert. [s]"""
SPIN = 0.001
"""The end of a wait that librdkafka's milliseconds are too coarse for. [s]"""
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class DueTimes:
    """When each alert was due, by its partition and offset; filled as acknowledgements come in."""

    def __init__(self) -> None:
        self._due: dict[tuple[int, int], float] = {}
        self.publishing: list[float] = []
        self.behind = 0.0

    def of(self, due: float) -> Callable[[Sent], None]:
        """Return the delivery callback of an alert that is *due* then."""

        def acknowledged(message: Sent) -> None:
            self._due[message.partition() or 0, message.offset() or 0] = due
            self.publishing.append(time.monotonic() - due)

        return acknowledged

    def ends(self) -> dict[int, int]:
        """Return the offset after the last record of each partition."""
        ends: dict[int, int] = {}
        for part, offset in self._due:
            ends[part] = max(ends.get(part, 0), offset + 1)
        return ends

    def delays(self, arrivals: Iterable[Any], *topics: str) -> list[float]:
        """Return the delays of *arrivals* (topic, partition, offset, time) by *topics*. [s]"""
        return [
            when - self._due[part, offset]
            for topic, part, offset, when in arrivals
            if topic in topics and (part, offset) in self._due
        ]


def paced(dues: Iterable[float], client: Producer) -> Iterator[tuple[float, float]]:
    """Yield each due time when it has come, and by how much it was missed. [s]"""

    def idle(left: float) -> bool:
        if left > 2 * SPIN:
            client.poll(left - SPIN)  # acknowledgements come in meanwhile
        else:
            time.sleep(left)
        return False

    return on_time(dues, clock=time.monotonic, idle=idle)


def check_complete(arrived: int, sent: int) -> None:
    """Raise unless all arrived.

    Raises:
        RunError: Some did not.
    """
    if arrived != sent:
        raise RunError(f"{arrived} of {sent} alerts arrived")


def percentiles(name: str, delays: Sequence[float]) -> Figures:
    """Return percentiles of *delays* [s] as figures ``<name>_p50_ms`` …, and the maximum."""
    if not delays:
        return {}
    figures = {f"{name}_{key}_ms": quantile(delays, share) * 1e3 for key, share in SHARES.items()}
    return figures | {f"{name}_max_ms": max(delays) * 1e3}
