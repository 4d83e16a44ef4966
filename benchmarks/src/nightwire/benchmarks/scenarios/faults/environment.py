"""What a fault strikes: a Kafka, the engine, the gateway; each can be killed and restarted."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from nightwire.benchmarks import Closeable, Context
from nightwire.benchmarks.environment.alert_pool import Alert, save_pool
from nightwire.benchmarks.environment.filter_engine import EngineOptions, FilterEngine
from nightwire.benchmarks.environment.filter_mixture import MixedFilter, mixture
from nightwire.benchmarks.environment.processes import Child, server_process
from nightwire.benchmarks.environment.vtp_brokers import OPTIONS
from nightwire.core.kafka import end_offsets_at, ensure_topics
from nightwire.core.stack import free_port
from nightwire.schemas import topics

EVERYTHING = MixedFilter.passing_all("bench", "everything")
"""A filter that passes all alerts, so that each of them can be missed."""
OWNED = topics.filter_topic(EVERYTHING.owner, EVERYTHING.name)
BESIDE = "ivo://bench/beside"
"""Our gateway beside others on the same Kafka."""
OTHERS, CODE = 5, 1
"""Live filters beside it, and how many of them cannot be compiled."""


class Gateway(Closeable):
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
        state = self._context.folder / "gateway"
        words = ["gateway", "serve", "--bootstrap", bootstrap, *OPTIONS]
        # of two replays the later holds
        words += ["--replay", "1h", "--state", str(state), *options]
        words += ["--authors", f"127.0.0.1:{self.authors}", "--subscribers", f"127.0.0.1:{self.subscribers}"]
        self._child = self.exits.enter_context(server_process(self._context, "gateway", *words))

    def kill(self) -> None:
        """Kill it with -9."""
        if self._child is not None:
            self._child.kill()


class FaultsEnvironment(Closeable):
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
        self.context, self._pool, self._others = context, pool, others
        self.engine = self.closing(FilterEngine(context, EngineOptions(light=light)))
        self.gateway = self.closing(Gateway(context))
        self._started = False

    @property
    def bootstrap(self) -> str:
        """Kafka's address."""
        return self.engine.bootstrap

    @property
    def has_engine(self) -> bool:
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
        names = [topics.VOEVENTS, topics.ACCOUNTS, topics.DEAD_LETTERS]
        ensure_topics(self.bootstrap, [topics.settings(name) for name in names])
        if self.has_engine:
            others = mixture(self._others, min(CODE, self._others), self._pool) if self._others else []
            self.engine.live([EVERYTHING, *others])
        self.context.say("starting the gateway")
        self.start_gateway()

    def start_gateway(self) -> None:
        """Start the gateway; it keeps accounts where Kafka is ours, and it is the only one."""
        alone = [] if self.engine.own else ["--no-accounts", f"--ivorn={BESIDE}"]
        self.gateway.start(self.bootstrap, *alone)

    def forget(self, ends: Mapping[int, int]) -> None:
        """Let Kafka delete the alerts before *ends*, and their copies: the disk is bounded."""
        self.engine.forget(ends)
        self.engine.delete_before(end_offsets_at(self.bootstrap, [OWNED]))
