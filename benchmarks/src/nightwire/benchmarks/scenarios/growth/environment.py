"""What all curves stand on: one Kafka, the engine, the gateway; each is started when it is asked for."""

from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import psutil

from nightwire.benchmarks.environment.filter_engine import FilterEngine
from nightwire.benchmarks.environment.vtp_brokers import VtpBrokers
from nightwire.benchmarks.model.scenario import Context
from nightwire.benchmarks.workers.alerts.transfer_runner import TransferRunner


class GrowthEnvironment:
    """One Kafka and what runs on it; `close` ends all of it.

    Args:
        context: Of the run.
        light: Run the engine without Spark.
    """

    def __init__(self, context: Context, *, light: bool = False) -> None:
        self._context = context
        self.engine = MeasuredEngine(context, light=light)
        self._running: list[VtpBrokers | TransferRunner] = []

    @cached_property
    def fleet(self) -> VtpBrokers:
        """The gateway."""
        self._running.append(fleet := VtpBrokers(self._there))
        return fleet

    @cached_property
    def player(self) -> TransferRunner:
        """What moves visits."""
        self._running.append(player := TransferRunner(self._there))
        return player

    def close(self) -> None:
        """End everything, Kafka last."""
        for one in self._running:
            one.close()
        self.engine.close()

    @property
    def _there(self) -> Context:
        return replace(self._context, bootstrap=self.engine.bootstrap)


class MeasuredEngine(FilterEngine):
    """The engine, whose CPU time can be asked."""

    def judging_cpu(self) -> float:
        """Return what the engine's processes took so far, those that ended included [s]; 0 where not ours."""
        if self._engine is None:
            return 0.0
        first = psutil.Process(self._engine.process.pid)
        total = 0.0
        for one in (first, *first.children(recursive=True)):
            with suppress(psutil.Error):  # one that just ended is in what its parent says of its children
                times = one.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total
