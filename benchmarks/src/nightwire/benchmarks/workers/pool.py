"""The peers of a run, and the Kafka between them: each is started when it is first needed, and stays."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from nightwire.benchmarks.environment.alert_pool import Alert, make_pool, save_pool
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.environment.processes import Child, python
from nightwire.benchmarks.model.scenario import Context
from nightwire.benchmarks.scenarios.messages.alerts import alerts_of
from nightwire.benchmarks.workers.client import WorkerClient
from nightwire.core.kafka import end_offsets_at

WORKER = "nightwire.benchmarks.scenarios.messages.worker"
OBJECTS = 16
"""Alerts that those of all sizes are made of."""

Order = Mapping[str, Any]


class Worker(WorkerClient):
    """A process that is given one order after another.

    Args:
        child: It.
    """

    def __init__(self, child: Child) -> None:
        super().__init__(child)
        self.pid = child.process.pid
        self._input = child.process.stdin

    def tell(self, order: Order) -> None:
        """Give it an order."""
        self._write(json.dumps(order))

    def begin(self) -> None:
        """Let it begin; an echo that has begun is told to end."""
        self._write("")

    def hear(self) -> Any:
        """Return what it found.

        Raises:
            ChildError: It ended in an error.
        """
        return self._line()

    def _write(self, line: str) -> None:
        if self._input is not None:
            self._input.write(f"{line}\n".encode())
            self._input.flush()


class WorkerPool:
    """Peers, the alerts that they send, and topics between them; `close` ends all of it.

    Args:
        context: Of the run.
        module: What a peer runs: it calls `_peer.serve`.
    """

    def __init__(self, context: Context, module: str = WORKER) -> None:
        self._context, self._module = context, module
        self._exits, self._staff = ExitStack(), ExitStack()
        self.cluster = Cluster(context)
        self._exits.callback(self.cluster.close)
        self._exits.callback(self.dismiss)
        self._peers: list[Worker] = []
        self._pools: dict[int, str] = {}

    @contextmanager
    def in_place(self, roles: Sequence[str], orders: Sequence[Order]) -> Iterator[list[Worker]]:
        """Yield a peer in each of *roles*, in place for its order; all end when one fails.

        Raises:
            ChildError: One failed.
        """
        try:
            peers = self._cast(roles)
            for peer, order in zip(peers, orders, strict=True):
                peer.tell(order)
            for peer in peers:
                peer.await_ready()
            yield peers
        except BaseException:
            self.dismiss()
            raise

    def pool(self, size: int) -> str:
        """Return the file of alerts of *size* [byte] that senders go through in turn."""
        if size not in self._pools:
            path = self._context.folder / f"pool-{size}.pickle"
            save_pool(alerts_of(size, self._objects), path)
            self._pools[size] = str(path)
        return self._pools[size]

    def held(self, topic: str) -> int:
        """Return how many records lie in *topic*."""
        return sum(end_offsets_at(self.cluster.bootstrap, [topic]).values())

    def dismiss(self) -> None:
        """End all peers; whoever needs some gets new ones."""
        self._staff.close()
        self._peers.clear()

    def close(self) -> None:
        """End peers and Kafka."""
        self._exits.close()

    @cached_property
    def _objects(self) -> list[Alert]:
        return make_pool(OBJECTS)

    @cached_property
    def _home(self) -> str:
        """What is in all orders; asking for it starts Kafka."""
        warm = self._exits.enter_context(self.cluster.topic("warm", partitions=1))
        return json.dumps({"bootstrap": self.cluster.bootstrap, "warm": warm})

    def _cast(self, roles: Sequence[str]) -> list[Worker]:
        self._peers += [self._hired() for _ in roles[len(self._peers) :]]
        for peer, role in zip(self._peers, roles, strict=False):
            self._context.role(peer.pid, role)
        return self._peers[: len(roles)]

    def _hired(self) -> Worker:
        return Worker(
            self._staff.enter_context(Child(python(self._module, self._home), self._log, talks=True))
        )

    @property
    def _log(self) -> Path:
        return self._context.folder / "peers.log"
