"""Growing numbers of receivers: subscribers of the gateway, and consumers of Kafka."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from nightwire.benchmarks import Closeable, Context, Kind, RunError
from nightwire.benchmarks.environment.alert_pool import ReadyMessage
from nightwire.benchmarks.environment.filter_engine import EngineOptions, FilterEngine
from nightwire.benchmarks.environment.vtp_brokers import VtpBrokers
from nightwire.benchmarks.scenarios.growth.curve import Cost, Curve
from nightwire.benchmarks.workers.alerts.feed import RawProducer
from nightwire.benchmarks.workers.alerts.sender import Load
from nightwire.benchmarks.workers.alerts.transfer import BYTES, DICTS, Transfer, TransferRunner
from nightwire.benchmarks.workers.client import worker_process
from nightwire.benchmarks.workers.vtp.exchange import exchange
from nightwire.benchmarks.workers.vtp.packets import listing_5


class GrowthEnvironment(Closeable):
    """One Kafka and what runs on it; `close` ends all of it.

    Args:
        context: Of the run.
        light: Run the engine without Spark.
    """

    def __init__(self, context: Context, *, light: bool = False) -> None:
        self._context = context
        self.engine = self.closing(FilterEngine(context, EngineOptions(light=light)))

    @cached_property
    def brokers(self) -> VtpBrokers:
        """Our gateway."""
        return self.closing(VtpBrokers(self._on_its_kafka))

    @cached_property
    def transfers(self) -> TransferRunner:
        """Runs transfers of visits."""
        return self.closing(TransferRunner(self._on_its_kafka))

    @property
    def _on_its_kafka(self) -> Context:
        return replace(self._context, bootstrap=self.engine.bootstrap)


DELIVERIES = 20_000
"""Deliveries of one point, about."""
EVENTS = (50, 500)
"""Fewest and most events of a point."""
CLIENTS = 100
"""Most librdkafka clients of one process: each has threads of its own."""
WARM_UP = 300
MANY_CONSUMERS = "nightwire.benchmarks.scenarios.growth.many_consumers"


class Subscribers(Curve):
    """Events through the gateway to VTP subscribers; the baseline is as many consumers of a topic.

    CPU time is that of what serves them: gateway and Kafka, or Kafka alone.
    """

    axis = "subscribers"

    def __init__(self, context: Context, points: Sequence[int], environment: GrowthEnvironment) -> None:
        super().__init__(context, points)
        self._environment = environment

    def prepare(self) -> None:
        """Warm the gateway up."""
        exchange(self._context, self._environment.brokers.ours, events=WARM_UP, connections=4)

    def cost(self, kind: Kind, count: int) -> Cost | None:
        """Send events to so many."""
        if kind is Kind.SUBJECT:
            return self._through_gateway(count)
        return self._through_kafka(count) if count <= CLIENTS else None

    def _through_gateway(self, count: int) -> Cost:
        """Send them by authors.

        Raises:
            RunError: A delivery was lost, or happened twice.
        """
        events, before = events_for(count), self._environment.engine.cpu()
        result = exchange(
            self._context,
            self._environment.brokers.ours,
            events=events,
            subscribers=count,
            connections=4,
            real=False,
        )
        if result.missing or result.extra or result.naked:
            raise RunError(
                f"of {events} events to {count:,} subscribers {result.missing} deliveries lost, "
                f"{result.extra} twice, {result.naked} events refused"
            )
        return Cost(events, events / result.rate, result.broker_cpu + self._environment.engine.cpu() - before)

    def _through_kafka(self, count: int) -> Cost:
        events = events_for(count)
        bootstrap = self._environment.engine.bootstrap
        with self._environment.engine.topic("crowd") as topic:
            order = {"bootstrap": bootstrap, "topic": topic, "consumers": count, "expect": events}
            with worker_process(self._context, MANY_CONSUMERS, order, role="crowd") as crowd:
                crowd.await_ready()
                raw, documents = RawProducer(bootstrap, topic), listing_5().fresh(events, topic)
                began, before = time.monotonic(), self._environment.engine.cpu()
                raw.send_all(ReadyMessage(b"%d" % number, one) for number, one in enumerate(documents))
                last = crowd.findings()["last"]
                return Cost(events, last - began, self._environment.engine.cpu() - before)


class Consumers(Curve):
    """A visit to consumers, each a process that decodes all; the baseline's take only bytes.

    CPU time is that of all consumers together.
    """

    axis = "consumers"

    def __init__(self, context: Context, points: Sequence[int], environment: GrowthEnvironment) -> None:
        super().__init__(context, points)
        self._environment = environment

    def prepare(self) -> None:
        """Move something."""
        self._environment.transfers.warm_up()

    def cost(self, kind: Kind, count: int) -> Cost:
        """Move a visit to so many."""
        ours = kind is Kind.SUBJECT
        load = Load(self._context.size.alerts, ready=not ours)
        result = self._environment.transfers.run(
            Transfer(load, consumers=(DICTS if ours else BYTES,) * count)
        )
        return Cost(result.alerts, result.seconds, result.reading_cpu * result.readers)


def events_for(subscribers: int) -> int:
    """Return the number of events for *subscribers*, so that a point ends in good time."""
    fewest, most = EVENTS
    return max(fewest, min(most, DELIVERIES // subscribers))
