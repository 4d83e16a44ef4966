"""Transfers: their parts, and the senders and consumers that run one as processes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from nightwire.benchmarks import Closeable, Context, RunError
from nightwire.benchmarks.environment.alert_pool import make_pool, save_pool
from nightwire.benchmarks.environment.cluster import PARTITIONS, Cluster
from nightwire.benchmarks.model.sample import TcpTraffic
from nightwire.benchmarks.workers.alerts.sender import Load, Sent
from nightwire.benchmarks.workers.client import (
    LATEST_OFFSET,
    READER,
    SENDER,
    WorkerClient,
    worker_process,
)

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


WARM_UP = Transfer(Load(200))
POOL = 250
"""Distinct alerts; beyond them stamps and histories repeat, ids, times and positions do not."""


class TransferRunner(Closeable):
    """Runs transfers on one Kafka; `close` ends it."""

    def __init__(self, context: Context) -> None:
        self._context, self._cluster = context, self.closing(Cluster(context))
        self._warmed_up = False

    @cached_property
    def warm(self) -> str:
        """A topic that nobody measures; asking for it starts Kafka."""
        return self.exits.enter_context(self._cluster.topic("warm", partitions=1))

    @cached_property
    def pool(self) -> Path:
        """File of the alerts that all senders go through in turn."""
        path = self._context.folder / "pool.pickle"
        save_pool(make_pool(POOL), path)
        return path

    def warm_up(self) -> None:
        """Start Kafka and move something, unless that was done: Java compiles while it runs."""
        if not self._warmed_up:
            self.run(WARM_UP)
            self._warmed_up = True

    def run(self, transfer: Transfer) -> TransferResult:
        """Move one visit through a new topic, which is deleted afterwards.

        The clock runs from the first dictionary to the last decode; before, every process is in
        place.

        Raises:
            RunError: An alert was lost or doubled.
            ChildError: A process failed.
        """
        where = {"bootstrap": self._cluster.bootstrap, "warm": self.warm, "pool": str(self.pool)}
        with self._cluster.topic("dmtn028", partitions=transfer.partitions) as topic:
            with self._processes(transfer, where | {"topic": topic}) as (senders, consumers):
                for one in (*senders, *consumers):
                    one.await_ready()
                for sender in senders:
                    sender.close_input()
                sent = [Sent(**sender.findings()) for sender in senders]
                found = [consumer.findings() for consumer in consumers]
            self._note_traffic(transfer, sent, found)
            return transfer_result(
                transfer, sent, found, stored=self._cluster.stored(topic), memory=self._cluster.memory()
            )

    @contextmanager
    def _processes(
        self, transfer: Transfer, where: Mapping[str, str]
    ) -> Iterator[tuple[list[WorkerClient], list[WorkerClient]]]:
        """Start all processes of *transfer* at once; they may not be in place yet."""
        reading = {**where, "topics": [where["topic"]], "expect": transfer.load.alerts}
        with ExitStack() as exits:

            def start(module: str, role: str, order: Mapping[str, Any]) -> WorkerClient:
                return exits.enter_context(worker_process(self._context, module, order, role=role))

            senders = [start(SENDER, "producer", {**where, "load": asdict(load)}) for load in transfer.loads]
            consumers = [start(*_consumer(work), reading | {"work": work}) for work in transfer.consumers]
            yield senders, consumers

    def _note_traffic(
        self, transfer: Transfer, sent: Sequence[Sent], found: Sequence[Mapping[str, Any]]
    ) -> None:
        """Note what each process moved; Kafka, where it is ours, moved all of it."""
        moved = [("producer", TcpTraffic(one.sent, one.received)) for one in sent]
        moved += [
            (_consumer(work)[1], TcpTraffic(one["sent"], one["received"]))
            for work, one in zip(transfer.consumers, found, strict=True)
        ]
        for name, traffic in moved:
            self._context.traffic(name, traffic)
            self._context.traffic("kafka", traffic.mirrored)


def _consumer(work: str) -> tuple[str, str]:
    """Return the module that does *work*, and what its process is called."""
    return (LATEST_OFFSET, "asker") if work == LATEST else (READER, "consumer")
