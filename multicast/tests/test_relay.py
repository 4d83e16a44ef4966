"""A relay's batch: what its senders send, where one begins or ends, and what a low rate leaves."""

import select
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer

from nightwire.core.accounting import discrepancies
from nightwire.core.datagrams import (
    HEARTBEAT,
    PACKED,
    Channel,
    Judge,
    decode,
    decode_beats,
    decode_pack,
    open_receiver,
    parse_group,
)
from nightwire.core.kafka import Writer
from nightwire.core.runtime import free_port
from nightwire.multicast.group_sender import GroupSender, RateLimiter
from nightwire.multicast.packing import Packer
from nightwire.multicast.positions import Position
from nightwire.multicast.relay import MAX_BATCH, Relay
from nightwire.schemas import RegistryAwayError

NOBODY: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


class Lan:
    """Outlets on the loopback, and what each sends.

    Args:
        exits: Closes all.
        rate: Most bytes a second.
    """

    def __init__(self, exits: ExitStack, rate: float = 1e9) -> None:
        self._exits, self.rate = exits, RateLimiter(rate)
        self._receivers: dict[int, socket.socket] = {}
        self.senders: list[GroupSender] = []

    def sender(
        self, *, judge: Judge | None = None, priority: int = 0, since: Sequence[int] = ()
    ) -> GroupSender:
        """Return a new one, which begins at the beginning."""
        number = len(self.senders) + 1
        address = parse_group(f"239.255.9.{number}:{free_port()}", "127.0.0.1")
        ear = self._exits.enter_context(open_receiver(address))
        channel = Channel("t", address.name, condition=f"condition {number}" if judge else "")
        one = GroupSender(Packer(channel, 1472), address, self.rate, 0, judge, priority, since)
        self._exits.callback(one.close)
        one.begin(0, Position(1, 0, -1))
        self._receivers[id(one)] = ear
        self.senders.append(one)
        return one

    def relay(self, messages: Sequence[Message], beat_at: float = float("inf")) -> Relay:
        """Return a relay of partition 0 that has sent *messages*; *beat_at* it has a heartbeat."""
        client = Consumer({**NOBODY, "group.id": "g"})
        one = Relay(client, "t", self.senders, self.rate, Writer(Producer(NOBODY)), "relay.t")
        one.positions[0], one._heartbeat_at = Position(1, 0, -1), beat_at
        one._relay_by_boundaries(messages, threading.Event())
        return one

    def heard(self, one: GroupSender, patience: float = 0.2) -> Iterator[tuple[str, Sequence[int]]]:
        """Yield the records that a sender has sent, and its heartbeats: last and done.

        It ends after *patience* without one. [s]
        """
        ear = self._receivers[id(one)]
        while select.select([ear], [], [], patience)[0]:
            found = decode(ear.recv(1 << 16))
            if found.kind == HEARTBEAT:
                yield "beat", next((beat.last, beat.done) for beat in decode_beats(found.body))
            else:
                pack = decode_pack(found) if found.kind == PACKED else [found]
                yield f"after {found.previous}", [entry.offset for entry in pack]


@pytest.fixture
def exits() -> Iterator[ExitStack]:
    """Yield what closes all at the end."""
    with ExitStack() as stack:
        yield stack


def records(count: int) -> list[Message]:
    """Return so many records of ten bytes."""
    return [Message(topic="t", partition=0, offset=at, value=b"%010d" % at) for at in range(count)]


def divisible(by: int) -> Callable[[Sequence[bytes | None]], list[bool]]:
    """Return the judge of what can be divided."""
    return lambda values: [int(value or b"1") % by == 0 for value in values]


def test_each_outlet_gets_what_is_its_own_from_one_pass(exits: ExitStack) -> None:
    lan = Lan(exits)
    every, fourth = lan.sender(), lan.sender(judge=divisible(4))
    one = lan.relay(records(10))
    assert [*lan.heard(every)] == [("after -1", [*range(10)])]
    assert [*lan.heard(fourth)] == [("after -1", [0, 4, 8])]
    assert (one.sent, one.left_out, one.positions[0].next) == (10, 0, 10)


def test_where_one_ends_and_another_begins_both_tell_before_anything_is_sent(exits: ExitStack) -> None:
    """The old one's readers know that 4 was its last, and that there is none up to 5."""
    lan = Lan(exits)
    old, new = lan.sender(judge=divisible(4)), lan.sender(judge=divisible(2), since=(6,))
    old.until = (6,)
    lan.relay(records(10))
    assert [*lan.heard(old)] == [("after -1", [0, 4]), ("beat", (4, 5))]
    assert [*lan.heard(new)] == [("beat", (5, 5)), ("after 5", [6, 8])]


def test_while_the_rate_is_short_the_lower_priority_is_left_to_kafka(exits: ExitStack) -> None:
    lan = Lan(exits, rate=20_000.0)
    urgent, other = lan.sender(priority=1), lan.sender()
    lan.rate.waited = True
    one = lan.relay(records(MAX_BATCH))
    assert [*lan.heard(other)] == []
    assert sum(len(found) for _, found in lan.heard(urgent)) == MAX_BATCH
    assert (one.shed, other.last[0]) == (MAX_BATCH, MAX_BATCH - 1)  # so the next heartbeat tells of it


def test_while_a_batch_is_judged_and_the_registry_is_away_heartbeats_go_on(exits: ExitStack) -> None:
    lan, heard = Lan(exits), list[Sequence[int]]()

    def judge(values: Sequence[bytes | None]) -> list[bool]:
        heard.extend(said for _, said in islice(lan.heard(sender, 10.0), 1))
        if len(heard) == 1:
            raise RegistryAwayError("it is away")
        return [True for _ in values]

    sender = lan.sender(judge=judge)
    lan.relay(records(10), beat_at=0.0)
    assert heard == [(-1, -1), (-1, -1)]


def test_what_no_outlet_has_sent_is_not_counted_as_delivered(exits: ExitStack) -> None:
    """Of 128 records 43 are urgent, 64 the other's: 22 are both, 43 neither."""
    lan = Lan(exits, rate=20_000.0)
    lan.sender(judge=divisible(3), priority=1)
    lan.sender(judge=divisible(2))
    lan.rate.waited = True
    one = lan.relay(records(MAX_BATCH))
    one._count_in_accounts()
    (account,) = one._accounts.changed()
    assert (account.read, account.delivered, account.capped) == (MAX_BATCH, 43, 42)
    assert account.rejected == {"condition": 43}
    assert not discrepancies([account])
