"""What all curves share: one Kafka, the engine, the gateway; each started when needed."""

from dataclasses import replace
from functools import cached_property

from nightwire.benchmarks.environment.filter_engine import EngineOptions, FilterEngine
from nightwire.benchmarks.environment.vtp_brokers import VtpBrokers
from nightwire.benchmarks.model.scenario import Context
from nightwire.benchmarks.workers.alerts.transfer import TransferRunner


class GrowthEnvironment:
    """One Kafka and what runs on it; `close` ends all of it.

    Args:
        context: Of the run.
        light: Run the engine without Spark.
    """

    def __init__(self, context: Context, *, light: bool = False) -> None:
        self._context = context
        self.engine = FilterEngine(context, EngineOptions(light=light))
        self._running: list[VtpBrokers | TransferRunner] = []

    @cached_property
    def brokers(self) -> VtpBrokers:
        """Our gateway."""
        self._running.append(brokers := VtpBrokers(self._on_its_kafka))
        return brokers

    @cached_property
    def transfers(self) -> TransferRunner:
        """Runs transfers of visits."""
        self._running.append(runner := TransferRunner(self._on_its_kafka))
        return runner

    def close(self) -> None:
        """End everything, Kafka last."""
        for one in self._running:
            one.close()
        self.engine.close()

    @property
    def _on_its_kafka(self) -> Context:
        return replace(self._context, bootstrap=self.engine.bootstrap)
