"""One hub per set of topics, all of them over one archive."""

from collections.abc import Callable, Iterable, Sequence

from nightwire.gateway._backlog import Archive
from nightwire.gateway._hub import Hub
from nightwire.gateway._judge import Judge
from nightwire.gateway._metrics import GatewayMetrics
from nightwire.gateway._ring import Event, Positions, Ring
from nightwire.schemas.topics import VOEVENTS


class Hubs:
    """Make hubs, and give each the new events.  Feeds of the same topics share one.

    Each hub has a ring of its own, so that what one feed carries makes no subscriber of another fall behind;
    an event in several of them is held once.

    Args:
        live: Where what is new begins, per topic and partition.
        make_ring: Returns a ring that begins at such positions.
        archive: What was before.
        metrics: The process's metrics.
    """

    def __init__(
        self,
        live: Positions,
        make_ring: Callable[[Positions], Ring],
        archive: Archive,
        metrics: GatewayMetrics,
    ) -> None:
        self._live, self._make_ring, self._archive, self._metrics = live, make_ring, archive, metrics
        self._judge = Judge(metrics)
        self._hubs: dict[frozenset[str], Hub] = {}

    def of(self, topics: Iterable[str]) -> Hub:
        """Return the hub of *topics*."""
        wanted = frozenset(topics)
        if wanted not in self._hubs:
            read = wanted | {VOEVENTS}  # where retractions are
            start = {spot: offset for spot, offset in self._live.items() if spot[0] in read}
            self._hubs[wanted] = Hub(sorted(wanted), self._make_ring(start), self._archive, self._judge)
        return self._hubs[wanted]

    def publish(self, events: Sequence[Event]) -> None:
        """Give new events to all hubs."""
        for hub in self._hubs.values():
            hub.publish(events)
        self._metrics.held.set(sum(hub.held for hub in self._hubs.values()))

    def close(self) -> None:
        """Let go of Kafka.  Blocks until a piece that is being read is read."""
        self._archive.close()
