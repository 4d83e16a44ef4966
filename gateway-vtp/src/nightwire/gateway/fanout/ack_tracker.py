"""Which events a subscriber has acknowledged, while many are on their way to it.  Pure."""

from collections import OrderedDict, deque
from collections.abc import Mapping

from nightwire.core.kafka import OffsetTracker, TopicPartition
from nightwire.gateway.eventlog.event import Event, Positions

MAX_UNACKED = 10_000
"""Most unacknowledged events of one subscriber; beyond, the oldest is given up."""

RecordId = tuple[TopicPartition, int]
"""Topic and partition, and the offset."""


class AckTracker:
    """What was sent to one subscriber, what it answered, and where it goes on when it returns.

    Only offsets are kept, no documents, and at most `MAX_UNACKED`: a peer that skips one event
    while it gets so many later ones will not answer it any more.

    Args:
        positions: Where its session begins: the next offset, per topic and partition.
    """

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        self._begun: Positions = dict(positions)
        self._offsets = OffsetTracker(positions)
        self._done: Positions = {}
        self._unacked: OrderedDict[RecordId, str] = OrderedDict()
        self._by_ivorn: dict[str, deque[RecordId]] = {}

    @property
    def acked_to(self) -> Positions:
        """Where to go on: earlier events are answered or withheld; some later ones may be."""
        return self._offsets.positions

    @property
    def next(self) -> Positions:
        """The next event, whether those before it are acknowledged or not."""
        return self._offsets.next

    def go_back(self, positions: Mapping[TopicPartition, int]) -> None:
        """Begin again at *positions*; events of this session need not be sent again."""
        self._done = self._offsets.next
        self._offsets.seek(positions)

    def had(self, event: Event) -> bool:
        """Say whether *event* was dealt with before this session went back."""
        return (
            self._begun.get(event.topic_partition, 0)
            <= event.offset
            < self._done.get(event.topic_partition, 0)
        )

    def withheld(self, event: Event) -> None:
        """Note that *event* is not sent."""
        self._offsets.passed(event.topic_partition, event.offset)

    def sent(self, event: Event) -> None:
        """Note that *event* went out."""
        record = (event.topic_partition, event.offset)
        self._unacked[record] = event.ivorn
        self._by_ivorn.setdefault(event.ivorn, deque()).append(record)
        self._offsets.began(*record)
        if len(self._unacked) > MAX_UNACKED:
            self.answered(next(iter(self._unacked.values())))

    def answered(self, ivorn: str) -> bool:
        """Note an answer to the event *ivorn*; say whether one was due."""
        records = self._by_ivorn.get(ivorn)
        if not records:
            return False
        record = records.popleft()
        del self._unacked[record]
        self._offsets.finished(*record)
        if not records:
            del self._by_ivorn[ivorn]
        return True


def resume_at(
    acked: Mapping[TopicPartition, int],
    oldest: Mapping[TopicPartition, int],
    live: Mapping[TopicPartition, int],
) -> Positions:
    """Return where a subscriber goes on that was here before.

    Args:
        acked: Up to where it acknowledged then.
        oldest: As far back as it is served; a partition that is left out has no event so young.
        live: What comes next; a position beyond it is of another log, and not believed.
    """
    return {
        topic_partition: max(acked[topic_partition], oldest.get(topic_partition, end))
        if acked.get(topic_partition, end) < end
        else end
        for topic_partition, end in live.items()
    }
