"""The positions of subscribers: how many are remembered, and which are forgotten."""

from typing import Any

from nightwire.gateway.fanout.identity import Peer, read_peer
from nightwire.gateway.fanout.positions import Claim, KafkaClients, Namesake, PositionStore, to_record
from nightwire.schemas import Codec
from nightwire.schemas.records import POSITION
from nightwire.schemas.wire import frame

LOG = "cluster/topic"
AT = {("voevents", 0): 7}


def no_client() -> Any:
    raise AssertionError("nothing is asked of Kafka here")


def store(max_peers: int = 3) -> PositionStore:
    return PositionStore(KafkaClients("", no_client, no_client), LOG, max_peers)


def peer(number: int) -> Peer:
    return Peer("voevents", f"ivo://peer/{number}", "192.0.2.1")


class Record:
    """A record of the topic."""

    def __init__(self, who: Peer, offset: int, *, tombstone: bool = False, value: bytes = b"") -> None:
        self._who, self._offset, self._tombstone = who, offset, tombstone
        self._value = value or POSITION.encode(to_record(who, AT, LOG))

    def key(self) -> bytes:
        return self._who.key

    def value(self) -> bytes | None:
        return None if self._tombstone else self._value

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
    assert [positions.claim(peer(n), 99).positions for n in (6, 7, 9)] == [None, AT, AT]


def test_whoever_is_connected_is_not_forgotten() -> None:
    positions = store(max_peers=2)
    positions.claim(peer(0), 0)
    positions.store(peer(0), 0, AT)
    for number in range(1, 9):
        visit(positions, number)
    assert positions.claim(peer(0), 1).positions == AT


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
    assert [positions.claim(peer(number), 9).positions for number in range(2)] == [None, AT]


def test_a_name_is_nobodys_alone_and_the_second_of_one_name_is_told() -> None:
    positions, other = store(), peer(1)._replace(owner="192.0.2.2")
    assert positions.claim(peer(1), 1) == Claim(None, None)
    positions.store(peer(1), 1, AT)
    assert positions.claim(other, 2) == Claim(None, Namesake.OTHER)
    positions.store(other, 2, {("voevents", 0): 99})
    assert positions.claim(peer(1), 3) == Claim(AT, Namesake.OWN)
    for session, who in ((1, peer(1)), (2, other), (3, peer(1))):
        positions.release(who, session)
    assert positions.claim(other, 4) == Claim({("voevents", 0): 99}, None)


def test_positions_of_before_there_were_owners_are_where_each_of_the_name_begins() -> None:
    positions, ours, bare = store(), peer(1), peer(1)._replace(owner="")
    rows = {key: value for key, value in to_record(bare, AT, LOG).items() if key != "owner"}
    old = frame(100_013, Codec(POSITION.schema_of(100_013)).encode(rows))
    assert read_peer(b"voevents/ivo://peer/1") == bare
    positions.note(Record(bare, 0, value=old))  # type: ignore[arg-type]
    assert positions.claim(ours, 1) == Claim(AT, None)
    positions.store(ours, 1, {("voevents", 0): 9})
    assert positions.claim(ours._replace(owner="192.0.2.9"), 2).positions == AT
    assert positions.take_changed() == {ours: {("voevents", 0): 9}}
