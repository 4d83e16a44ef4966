"""Up to where a subscriber has acknowledged, while many events are on their way to it.  Pure."""

from collections import OrderedDict, deque
from collections.abc import Mapping

from nightwire.core.kafka import TopicPartition
from nightwire.gateway.eventlog.event import Event, Positions

MAX_UNACKED = 10_000
"""Most events of one subscriber that are remembered as unacknowledged; beyond, the oldest is given up."""

Place = tuple[TopicPartition, int]


class AckTracker:
    """What was sent to one subscriber, what it answered, and where it is to go on when it returns.

    Only places are remembered, no documents, and at most `MAX_UNACKED`: a peer that leaves out one event
    while it gets so many later ones will not answer it any more.

    Args:
        positions: Where its session begins: the next offset, per topic and partition.
    """

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        self._begun: Positions = dict(positions)
        self._next: Positions = dict(positions)
        self._done: Positions = {}
        self._on_their_way: OrderedDict[Place, str] = OrderedDict()
        self._places: dict[str, deque[Place]] = {}

    @property
    def positions(self) -> Positions:
        """Where to go on: all before is answered, or was not to be sent; some of what follows may be."""
        found = dict(self._next)
        for spot, offset in self._on_their_way:
            found[spot] = min(offset, found.get(spot, offset))
        return found

    @property
    def passed_to(self) -> Positions:
        """What comes next, acknowledged or not."""
        return dict(self._next)

    def go_back(self, positions: Mapping[TopicPartition, int]) -> None:
        """Begin again at *positions*; what was passed since this session began need not be sent again."""
        self._done = dict(self._next)
        self._next.update(positions)

    def had(self, event: Event) -> bool:
        """Say whether *event* was dealt with before this session went back."""
        return self._begun.get(event.spot, 0) <= event.offset < self._done.get(event.spot, 0)

    def passed(self, event: Event) -> None:
        """Note that *event* is not to be sent."""
        self._next[event.spot] = max(event.offset + 1, self._next.get(event.spot, 0))

    def sent(self, event: Event) -> None:
        """Note that *event* went out."""
        place = (event.spot, event.offset)
        self._on_their_way[place] = event.ivorn
        self._places.setdefault(event.ivorn, deque()).append(place)
        self.passed(event)
        if len(self._on_their_way) > MAX_UNACKED:
            self._forget(next(iter(self._on_their_way.values())))

    def answered(self, ivorn: str) -> bool:
        """Note an answer to the event *ivorn*; say whether one was due."""
        return self._forget(ivorn)

    def _forget(self, ivorn: str) -> bool:
        places = self._places.get(ivorn)
        if not places:
            return False
        del self._on_their_way[places.popleft()]
        if not places:
            del self._places[ivorn]
        return True


def resume_at(
    acked: Mapping[TopicPartition, int],
    oldest: Mapping[TopicPartition, int],
    live: Mapping[TopicPartition, int],
) -> Positions:
    """Return where a subscriber goes on that was here before.

    Args:
        acked: Up to where it acknowledged, then.
        oldest: As far back as it is served; a partition that is left out has nothing so young.
        live: What comes next; a position beyond it is of another log, and not believed.
    """
    return {
        spot: max(acked[spot], oldest.get(spot, end)) if acked.get(spot, end) < end else end
        for spot, end in live.items()
    }
