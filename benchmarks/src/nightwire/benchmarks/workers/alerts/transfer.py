"""One visit as it is transferred, and what came of it.  Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from nightwire.benchmarks.environment.cluster import PARTITIONS
from nightwire.benchmarks.model.scenario import RunError
from nightwire.benchmarks.workers.alerts.sender import Load, Sent

DICTS, COLUMNS, BYTES = "dicts", "columns", "bytes"
"""Consumers of the first kind take the whole stream, to dictionaries, columns or nothing."""
LATEST = "latest"
"""Consumers of the second kind only ask for the latest offset."""


@dataclass(frozen=True)
class Transfer:
    """One visit from its senders through Kafka to its consumers: all that an experiment may change.

    Attributes:
        load: What is sent, by all senders together.
        producers: How many processes send it; each sends its share.
        consumers: What each consuming process does.
        partitions: Of the topic.
    """

    load: Load
    producers: int = 1
    consumers: tuple[str, ...] = (DICTS,)
    partitions: int = PARTITIONS

    @property
    def loads(self) -> list[Load]:
        """What each producer sends; no alert is sent twice, and none is left out."""
        whole, count = self.load.alerts, self.producers
        edges = [self.load.first + whole * number // count for number in range(count + 1)]
        return [
            replace(self.load, first=first, alerts=after - first)
            for first, after in pairwise(edges)
            if after > first
        ]


@dataclass(frozen=True)
class TransferResult:
    """What came of a transfer; times [s], sizes [byte].

    Attributes:
        alerts: How many went through.
        seconds: From the first dictionary to the last decode in the last consumer.
        sending: From the first dictionary to the last acknowledgement.
        transit: From when librdkafka had the last alert to the last decode in the last consumer.
        reading_cpu: CPU time of a consumer that reads, mean.
        readers: How many read the whole stream.
        size: Of the values, before compression.
        stored: On Kafka's disk; None where that is not known.
        memory: Of Kafka (resident, without its files' pages) afterwards; None where that is not
            known.
    """

    alerts: int
    seconds: float
    sending: float
    transit: float
    reading_cpu: float
    readers: int
    size: int
    stored: int | None = None
    memory: int | None = None


def transfer_result(
    transfer: Transfer,
    sent: Sequence[Sent],
    found: Sequence[Mapping[str, Any]],
    *,
    stored: int | None = None,
    memory: int | None = None,
) -> TransferResult:
    """Put together what senders and consumers (in the order of *transfer*) said.

    Raises:
        RunError: A consumer saw fewer or more alerts than were sent.
    """
    count = transfer.load.alerts
    for number, (kind, one) in enumerate(zip(transfer.consumers, found, strict=True), start=1):
        if (seen := one["records"] + one["left"]) != count:
            raise RunError(f"consumer {number} ({kind}) saw {seen:,} of {count:,} alerts")
    reading = [one for kind, one in zip(transfer.consumers, found, strict=True) if kind != LATEST]
    began, last = min(one.began for one in sent), max(one["last"] for one in reading)
    return TransferResult(
        alerts=count,
        seconds=last - began,
        sending=max(one.acknowledged for one in sent) - began,
        transit=max(0.0, last - max(one.handed for one in sent)),
        reading_cpu=sum(one["cpu"] for one in reading) / len(reading),
        readers=len(reading),
        size=reading[0]["size"],
        stored=stored,
        memory=memory,
    )


def checked_result(
    transfer: Transfer, size: int, sent: Sequence[Sent], found: Sequence[Mapping[str, Any]]
) -> TransferResult:
    """Return the result of *transfer*, all of whose messages must have *size* [byte].

    Raises:
        RunError: A message was lost or doubled, or has another size.
    """
    result = transfer_result(transfer, sent, found)
    if others := [one["size"] for one in found if one["size"] != transfer.load.alerts * size]:
        raise RunError(f"{transfer.load.alerts:,} messages of {size:,} bytes came as {others} bytes")
    return result
