"""The positions of subscribers: how many are remembered, and which are forgotten."""

from typing import Any

from nightwire.gateway.fanout.positions import KafkaClients, Peer, PositionStore, to_record
from nightwire.schemas.records import POSITION

LOG = "cluster/topic"
AT = {("voevents", 0): 7}


def no_client() -> Any:
    raise AssertionError("nothing is asked of Kafka here")


def store(max_peers: int = 3) -> PositionStore:
    return PositionStore(KafkaClients("", no_client, no_client), LOG, max_peers)


def peer(number: int) -> Peer:
    return ("voevents", f"ivo://peer/{number}")


class Record:
    """A record of the topic."""

    def __init__(self, who: Peer, offset: int, *, tombstone: bool = False) -> None:
        self._who, self._offset, self._tombstone = who, offset, tombstone

    def key(self) -> bytes:
        return "/".join(self._who).encode()

    def value(self) -> bytes | None:
        return None if self._tombstone else POSITION.encode(to_record(self._who, AT, LOG))

    def offset(self) -> int:
        return self._offset


def visit(positions: PositionStore, number: int) -> None:
    """Have a peer come, be remembered, and go."""
    positions.claim(peer(number), number)
    positions.store(peer(number), number, AT)
    positions.release(peer(number), number)


def test_made_up_names_cost_bounded_memory_and_leave_tombstones_in_kafka() -> None:
    positions = store(max_peers=3)
    for number in range(10):
        visit(positions, number)
    changed = positions.take_changed()
    assert {who for who, at in changed.items() if at is None} == {peer(n) for n in range(7)}
    assert [positions.claim(peer(n), 99) for n in (6, 7, 9)] == [None, AT, AT]


def test_whoever_is_connected_is_not_forgotten() -> None:
    positions = store(max_peers=2)
    positions.claim(peer(0), 0)
    positions.store(peer(0), 0, AT)
    for number in range(1, 9):
        visit(positions, number)
    assert positions.claim(peer(0), 1) == AT


def test_a_topic_that_holds_too_many_is_shortened_at_the_start() -> None:
    positions = store(max_peers=2)
    for number in range(5):
        positions.note(Record(peer(number), number))  # type: ignore[arg-type]
    assert positions.take_changed() == {peer(n): None for n in range(3)}


def test_a_tombstone_of_another_gateway_is_believed_unless_the_peer_is_here() -> None:
    positions = store()
    for number in range(2):
        positions.note(Record(peer(number), number))  # type: ignore[arg-type]
    positions.claim(peer(1), 1)
    for number in range(2):
        positions.note(Record(peer(number), 2 + number, tombstone=True))  # type: ignore[arg-type]
    assert [positions.claim(peer(number), 9) for number in range(2)] == [None, AT]
