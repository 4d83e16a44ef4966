"""Workers that stay, and the Kafka between them: each is started when it is first needed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any

from nightwire.benchmarks import Closeable, Context
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.environment.processes import Child, python
from nightwire.benchmarks.workers.client import WorkerClient
from nightwire.core.kafka import end_offsets_at


class WorkerPool(Closeable):
    """Workers and topics between them; `close` ends all of it.

    Args:
        context: Of the run.
        module: What a worker runs: it calls `worker.serve`.
        heap: Of Kafka.
    """

    def __init__(self, context: Context, module: str, heap: str = "768m") -> None:
        self._context, self._module = context, module
        self._children = ExitStack()
        self.cluster = self.closing(Cluster(context, heap))
        self.exits.callback(self._end_workers)
        self._workers: list[WorkerClient] = []

    @contextmanager
    def in_place(
        self, roles: Sequence[str], orders: Sequence[Mapping[str, Any]]
    ) -> Iterator[list[WorkerClient]]:
        """Yield a worker in each of *roles*, in place for its order; all end when one fails.

        Raises:
            ChildError: One failed.
        """
        try:
            workers = self._staffed(roles)
            for worker, order in zip(workers, orders, strict=True):
                worker.send(order)
            for worker in workers:
                worker.await_ready()
            yield workers
        except BaseException:
            self._end_workers()
            raise

    def results(self, roles: Sequence[str], orders: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Let a worker in each of *roles* follow its order, all at once; return what each found.

        Raises:
            ChildError: One failed.
        """
        with self.in_place(roles, orders) as workers:
            for worker in workers:
                worker.signal()
            return [worker.receive() for worker in workers]

    def count_in(self, topic: str) -> int:
        """Return how many records lie in *topic*."""
        return sum(end_offsets_at(self.cluster.bootstrap, [topic]).values())

    @cached_property
    def _shared_order(self) -> str:
        """What is in all orders; asking for it starts Kafka."""
        warm = self.exits.enter_context(self.cluster.topic("warm", partitions=1))
        return json.dumps({"bootstrap": self.cluster.bootstrap, "warm": warm})

    def _staffed(self, roles: Sequence[str]) -> list[WorkerClient]:
        self._workers += [self._started() for _ in roles[len(self._workers) :]]
        for worker, role in zip(self._workers, roles, strict=False):
            self._context.role(worker.pid, role)
        return self._workers[: len(roles)]

    def _started(self) -> WorkerClient:
        command = python(self._module, self._shared_order)
        log = self._context.folder / "workers.log"
        return WorkerClient(self._children.enter_context(Child(command, log, talks=True)))

    def _end_workers(self) -> None:
        self._children.close()
        self._workers.clear()
