"""The brokers of a scenario, each started when it is first asked for."""

from contextlib import ExitStack
from functools import cached_property

from nightwire.benchmarks._cluster import Cluster
from nightwire.benchmarks._scenario import Context, Kind
from nightwire.benchmarks.gateway._brokers import Broker, comet, gateway

OPTIONS = (
    "--replay=0s",
    *(f"--feed-role={role}" for role in ("observation", "prediction", "utility", "test")),
)
"""Of our gateway: like Comet, it gives subscribers events of all roles, and nothing of before they came."""


class Fleet:
    """Our gateway on a Kafka, and Comet; `close` ends them.

    Args:
        context: Says where, and which Kafka.
    """

    def __init__(self, context: Context) -> None:
        self.context, self._exits = context, ExitStack()
        self.cluster = Cluster(context)
        self._exits.callback(self.cluster.close)

    def broker(self, kind: Kind) -> Broker:
        """Return the broker of *kind*."""
        return self.ours if kind is Kind.SUBJECT else self.comet

    @cached_property
    def ours(self) -> Broker:
        """Our gateway."""
        self.context.say("starting the gateway")
        return self._exits.enter_context(gateway(self.context, self.cluster, *OPTIONS))

    @cached_property
    def traced(self) -> Broker:
        """A second gateway of ours on the same Kafka, which notes time stamps."""
        trace = self.context.folder / "trace.tsv"
        options = (*OPTIONS, "--no-accounts", "--ivorn=ivo://bench/traced")
        return self._exits.enter_context(gateway(self.context, self.cluster, *options, trace=trace))

    @cached_property
    def comet(self) -> Broker:
        """Comet."""
        self.context.say("starting Comet")
        return self._exits.enter_context(comet(self.context))

    def second(self, kind: Kind) -> Broker:
        """Return a broker that has its events from that of *kind*."""
        return self.traced if kind is Kind.SUBJECT else self._second_comet

    @cached_property
    def _second_comet(self) -> Broker:
        return self._exits.enter_context(comet(self.context, remote=self.comet.subscribers))

    def close(self) -> None:
        """End everything that was started, the last first."""
        self._exits.close()
