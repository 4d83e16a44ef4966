"""What a run has: a Kafka, the engine, the gateway; each can be killed and started again."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
from confluent_kafka import TopicPartition

from nightwire.benchmarks.environment.alert_pool import Alert, save_pool
from nightwire.benchmarks.environment.filter_engine import FilterEngine
from nightwire.benchmarks.environment.filter_mixture import MixedFilter, mixture
from nightwire.benchmarks.environment.processes import Child, nightwire
from nightwire.benchmarks.environment.vtp_brokers import OPTIONS
from nightwire.benchmarks.model.scenario import Context
from nightwire.benchmarks.scenarios.filters.first_alert import PASS_ALL
from nightwire.core.kafka import admin, end_offsets_at, ensure_topics
from nightwire.core.stack import Broker, free_port
from nightwire.schemas import topics

EVERYTHING = MixedFilter("bench", "everything", PASS_ALL, PASS_ALL.source.replace("LIMIT", "0"), 1.0)
"""A filter that passes all alerts, so that each of them can be missed."""
OWNED = topics.filter_topic(EVERYTHING.owner, EVERYTHING.name)
BESIDE = "ivo://bench/beside"
"""Our gateway beside others on the same Kafka."""
OTHERS, CODE = 5, 1
"""Live filters beside it, and how many of them cannot be compiled."""


class Gateway:
    """Our gateway, always at the same ports and with the same state.

    Args:
        context: Gives a folder and names processes.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.authors, self.subscribers = free_port(), free_port()
        self._child: Child | None = None

    def start(self, bootstrap: str, *options: str) -> None:
        """Start it with more *options*, and wait until it is healthy.

        Raises:
            ChildError: It did not start.
        """
        page, state = free_port(), self._context.folder / "gateway"
        words = ["gateway", "serve", "--bootstrap", bootstrap, "--metrics-port", str(page), *OPTIONS]
        words += ["--replay", "1h", "--state", str(state), *options]  # of two replays the later holds
        words += ["--authors", f"127.0.0.1:{self.authors}", "--subscribers", f"127.0.0.1:{self.subscribers}"]
        self._child = Child(nightwire(*words), self._context.folder / "gateway.log")
        self._context.role(self._child.process.pid, "gateway")
        self._child.await_health(page)

    def kill(self) -> None:
        """Kill it with -9."""
        if self._child is not None:
            kill_group(self._child)

    def end(self) -> None:
        """End it, where it runs."""
        if self._child is not None:
            self._child.end()


class FaultsEnvironment:
    """Kafka, engine and gateway, started by `start` and ended by `close`.

    Args:
        context: Says how much, and which Kafka: only one that is started here can be killed.
        pool: Alerts to begin with.
        others: Live filters beside the one that passes everything.
        light: Run the engine without Spark.
    """

    def __init__(
        self, context: Context, pool: Sequence[Alert], *, others: int = OTHERS, light: bool = False
    ) -> None:
        self.broker = None if context.bootstrap else _broker(context)
        where = context.bootstrap or f"{self.broker.bootstrap if self.broker else ''}"
        self.context = replace(context, bootstrap=where)
        self.bootstrap = where
        self.engine, self.gateway = FilterEngine(self.context, light=light), Gateway(self.context)
        self._pool, self._others, self._started = pool, others, False

    @property
    def alone(self) -> bool:
        """Whether Kafka is ours, so that all that is in it is of this benchmark."""
        return self.broker is not None

    @property
    def judging(self) -> bool:
        """Whether there is a filter engine, ours or another."""
        return self.context.engine != "none"

    @property
    def pool(self) -> Path:
        """File of the alerts that senders go through in turn."""
        path = self.context.folder / "pool.pickle"
        if not path.exists():
            save_pool(self._pool, path)
        return path

    def start(self) -> None:
        """Start everything, unless that was done.

        Raises:
            BrokerError: Kafka did not start.
            ChildError: Another did not.
        """
        if self._started:
            return
        self._started = True
        self.start_broker()
        names = [topics.VOEVENTS, topics.ACCOUNTS, topics.DEAD_LETTERS]
        ensure_topics(self.bootstrap, [topics.settings(name) for name in names])
        if self.judging:
            self.context.say("starting the filter engine")
            others = mixture(self._others, min(CODE, self._others), self._pool) if self._others else []
            self.engine.live([EVERYTHING, *others])
        self.context.say("starting the gateway")
        self.start_gateway()

    def start_broker(self) -> None:
        """Start Kafka on the data that it has, where it is ours."""
        if self.broker is None:
            return
        before = {child.pid for child in psutil.Process().children()}
        self.broker.start()
        for child in psutil.Process().children():
            if child.pid not in before:
                self.context.role(child.pid, "kafka")

    def kill_broker(self) -> None:
        """Kill Kafka with -9, where it is ours."""
        if self.broker is not None:
            self.broker.kill()

    def start_gateway(self) -> None:
        """Start the gateway; it keeps accounts where Kafka is ours, for there it is the only one."""
        self.gateway.start(self.bootstrap, *([] if self.alone else ["--no-accounts", f"--ivorn={BESIDE}"]))

    def forget(self, ends: Mapping[int, int]) -> None:
        """Let Kafka delete the alerts before *ends*, and the copies of them: the disk is bounded."""
        self.engine.forget(ends)
        copies = end_offsets_at(self.bootstrap, [OWNED])
        client = admin(self.bootstrap)  # it must outlive its futures
        for future in client.delete_records(
            [TopicPartition(*spot, end) for spot, end in copies.items()]
        ).values():
            future.result(30)

    def close(self) -> None:
        """End everything, Kafka last."""
        ends: list[Callable[[], object]] = [self.gateway.end, self.engine.close]
        for end in [*ends, *([self.broker.stop] if self.broker is not None else [])]:
            end()


def kill_group(child: Child) -> None:
    """Kill *child* and all that it started with -9, as a power cut would."""
    with suppress(ProcessLookupError):
        os.killpg(child.process.pid, signal.SIGKILL)
    child.process.wait()
    child.end()  # closes the pipes to it


def _broker(context: Context) -> Broker:
    return Broker(context.folder / "kafka", port=free_port(), controller=free_port(), heap="768m")
