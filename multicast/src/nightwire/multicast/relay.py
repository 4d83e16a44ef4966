"""A relay at work: records of a topic become datagrams; its group keeps where it is.

One pass over the topic serves all outlets.  Relays of one group share the partitions, and take over
those of one that dies.  Each partition has an epoch, which is counted on by whoever takes it over,
so that receivers leave out the old one.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import OffsetAccounts, write_account
from nightwire.core.datagrams import HEARTBEAT_INTERVAL, Entry
from nightwire.core.kafka import TRANSIENT_ERRORS, DeliveryError, Writer, watermarks
from nightwire.core.runtime import Stop, now_ms
from nightwire.multicast.outlet import NEVER, Outlet, Pace
from nightwire.multicast.positions import EPOCHS, Position, first_epoch, resumed
from nightwire.schemas import RegistryAwayError

log = logging.getLogger("nightwire.relay")

Answer = TypeVar("Answer")
Refresh = Callable[[Mapping[int, Position]], Sequence[Outlet]]
"""Returns the outlets of now, those of higher priority first."""
Made = tuple[Outlet, int, Sequence[Entry]]
"""What an outlet is to send of a partition."""

AT_ONCE = 128
"""Most records that are taken from Kafka at once."""
COMMIT_INTERVAL = 1.0
"""Time between two commits. [s]"""
TICK = 0.1
"""Longest wait for a record. [s]"""
BUSY = 3.0
"""So long heartbeats go on while a batch is judged or a schema is not to be had; then receivers go
to Kafka, within 5 s together. [s]"""


class Relay:
    """Sends the records of a topic.

    Args:
        consumer: A member of the relay's group.
        topic: Whose records.
        outlets: Send them.
        pace: Of the outlets.
        accounts: Writes the accounts.
        refresh: Asked for the outlets before each batch; None: they stay.

    Attributes:
        shed: Records that outlets of lower priority left to Kafka, while the rate was too low.
    """

    def __init__(
        self, consumer: Consumer, topic: str, outlets: Sequence[Outlet], pace: Pace, accounts: Writer,
        stage: str, refresh: Refresh | None = None,
    ) -> None:  # fmt: skip
        self._consumer, self._topic, self.outlets, self._pace = consumer, topic, outlets, pace
        self._writer, self._accounts, self._refresh = accounts, OffsetAccounts(stage), refresh
        self.positions: dict[int, Position] = {}
        self.sent = self.left_out = self.expired = self.shed = 0
        self._beat_at = self._commit_at = 0.0
        self._counts: dict[int, Counter[str]] = {}  # since the accounts were written
        self._failure: KafkaException | DeliveryError | None = None
        self._packing = ThreadPoolExecutor(1, "packing")

    def run(self, stop: Stop, on_tick: Callable[[], None] = lambda: None) -> None:
        """Send until *stop*; then commit, and leave the group.

        Args:
            stop: Ends it.
            on_tick: Called about once a second.

        Raises:
            KafkaException: Kafka refuses.
            DeliveryError: Kafka does not take the accounts.
        """
        self._consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        try:
            while not stop.is_set():
                if self._refresh is not None:
                    self.outlets = self._refresh(self.positions)
                self._relay_up_to_edges(self._taken(), stop)
                self._beat_if_due()
                if time.monotonic() - self._commit_at >= COMMIT_INTERVAL:
                    self._commit(wait=False)
                    on_tick()
        finally:
            self._packing.shutdown(wait=False)
            self._commit(wait=True)
            self._consumer.close()

    def _taken(self) -> list[Message]:
        first = self._consumer.poll(TICK)
        if self._failure is not None:
            raise self._failure
        every = [first, *self._consumer.consume(AT_ONCE - 1, 0)] if first is not None else []
        for message in every:
            if (error := message.error()) is not None:
                self._go_on_after(message, error)
        return [one for one in every if one.error() is None and one.partition() in self.positions]

    def _go_on_after(self, message: Message, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._resume_at_oldest(message.partition() or 0)
        elif error.code() not in TRANSIENT_ERRORS or error.fatal():
            raise KafkaException(error)

    def _resume_at_oldest(self, number: int) -> None:
        """Go on with the oldest record there is; where the topic was made anew, as a new sender."""
        low, position = watermarks(self._consumer, self._topic, number).low, self.positions[number]
        if low < position.next:
            log.warning("%s[%d] was made anew: from offset %d", self._topic, number, low)
            self._write_accounts()
            self._begin(number, Position((position.epoch + 1) % EPOCHS, low, low - 1))
        else:
            self._count_expired(number, low - position.next)
            self.positions[number] = position._replace(next=low)
        self._consumer.incremental_unassign([TopicPartitionOffset(self._topic, number)])
        self._consumer.incremental_assign([TopicPartitionOffset(self._topic, number, low)])

    def _begin(self, number: int, position: Position) -> None:
        self.positions[number] = position
        for outlet in self.outlets:
            outlet.begin(number, position)
        self._accounts.begin((self._topic, number), position.next)

    def _relay_up_to_edges(self, messages: Sequence[Message], stop: Stop) -> None:
        """Send *messages*; where an outlet begins or ends among them, all tell of it before."""
        edges = {number: self._edge(number, one.next) for number, one in self.positions.items()}
        near, far = list[Message](), list[Message]()
        for one in messages:
            (near if (one.offset() or 0) < edges[one.partition() or 0] else far).append(one)
        self._relay(near, stop)
        if far and not stop.is_set():
            for number in {one.partition() or 0 for one in far}:
                self.positions[number] = self.positions[number]._replace(next=edges[number])
            self._beat_at = 0.0
            self._beat_if_due()
            self._relay_up_to_edges(far, stop)

    def _edge(self, number: int, begin: int) -> int:
        """Return the next offset from *begin* on at which an outlet begins or ends."""
        edges = [
            edge for one in self.outlets for edge in (one.offsets(number).start, one.offsets(number).stop)
        ]
        return min((edge for edge in edges if edge > begin), default=NEVER)

    def _relay(self, messages: Sequence[Message], stop: Stop) -> None:
        """Send what outlets carry of *messages*; after *stop* it is sent by whoever comes next."""
        parts: dict[int, list[Message]] = {}
        for message in messages:
            number = message.partition() or 0
            if (message.offset() or 0) >= self.positions[number].next:
                parts.setdefault(number, []).append(message)
        if not parts or (made := self._patiently(lambda: self._made(parts), stop)) is None:
            return
        sent = self._send(made, short=len(messages) >= AT_ONCE // 2 and self._pace.waited)
        for number, taken in parts.items():
            carried, known = _offsets(made, number), _offsets(sent, number)
            last = taken[-1].offset() or 0
            self.positions[number] = self.positions[number].after(last, was_sent=last in carried)
            self._count(number, len(known), len(taken) - len(carried), len(carried - known))

    def _made(self, parts: Mapping[int, Sequence[Message]]) -> list[Made]:
        """Return what each outlet has to send; each condition is judged once.

        Raises:
            RegistryAwayError: A schema cannot be had just now.
        """
        every = [one for messages in parts.values() for one in messages]
        verdicts: dict[str, set[tuple[int | None, int | None]]] = {}
        found = list[Made]()
        for outlet in self.outlets:
            condition = outlet.packer.channel.condition
            if outlet.judge is not None and condition not in verdicts:
                carried = outlet.judge([one.value() for one in every])
                verdicts[condition] = {
                    (one.partition(), one.offset()) for one, yes in zip(every, carried, strict=True) if yes
                }
            for number, messages in parts.items():
                offsets, passed = outlet.offsets(number), verdicts.get(condition)
                chosen = [
                    one
                    for one in messages
                    if one.offset() in offsets and (passed is None or (number, one.offset()) in passed)
                ]
                if chosen:
                    found.append((outlet, number, outlet.packer.entries(chosen, outlet.last[number])))
        return found

    def _send(self, made: Sequence[Made], *, short: bool) -> list[Made]:
        """Send what is *made*, and return it; if the rate is *short*, without lower priorities."""
        top = max((outlet.priority for outlet, _, _ in made), default=0)
        self._pace.waited, sent = False, list[Made]()
        for outlet, number, entries in made:
            if short and outlet.priority < top:
                outlet.last[number] = entries[-1].offset  # the next heartbeat tells of it
                self.shed += len(entries)
                continue
            sent.append((outlet, number, entries))
            for _ in outlet.send(entries, number, self.positions[number].epoch):
                self._beat_if_due()
        return sent

    def _patiently(self, work: Callable[[], Answer], stop: Stop) -> Answer | None:
        """Return what *work* returns, tried again while the registry is away; None after *stop*."""
        began = time.monotonic()
        while not stop.is_set():
            answer = self._packing.submit(work)
            while not stop.is_set() and not wait([answer], TICK).done:
                self._beat_if_due(began)
            try:
                return answer.result() if answer.done() else None
            except RegistryAwayError as error:
                log.warning("waiting for the schema registry: %s", error)
            for _ in range(2):
                self._beat_if_due(began)
                stop.wait(HEARTBEAT_INTERVAL)
        return None

    def _count(self, number: int, sent: int, left_out: int, capped: int) -> None:
        self.sent += sent
        self.left_out += left_out
        self._counts.setdefault(number, Counter()).update(sent=sent, left_out=left_out, capped=capped)

    def _count_in_accounts(self) -> None:
        for number, counts in self._counts.items():
            last, rejected = self.positions[number].next - 1, counts["left_out"]
            self._accounts.count(
                (self._topic, number), last, counts.total(), delivered=counts["sent"],
                capped=counts["capped"], rejected={"condition": rejected} if rejected else None,
            )  # fmt: skip
        self._counts.clear()

    def _write_accounts(self) -> None:
        self._count_in_accounts()
        for account in self._accounts.changed():
            write_account(self._writer, account)
        self._writer.flush()

    def _count_expired(self, number: int, count: int) -> None:
        if count > 0:
            self.expired += count
            log.error("%s[%d]: %d records expired before they were sent", self._topic, number, count)

    def _beat_if_due(self, busy: float = math.inf) -> None:
        """Tell receivers where all are, but not after `BUSY` since work began that was *busy*."""
        if (now := time.monotonic()) < self._beat_at or now - busy > BUSY:
            return
        self._beat_at = now + HEARTBEAT_INTERVAL
        for outlet in self.outlets:
            outlet.beat(self.positions, now_ms())

    def _commit(self, *, wait: bool) -> None:
        """Write the accounts, then commit where each partition is."""
        self._commit_at = time.monotonic()
        places = [
            TopicPartitionOffset(self._topic, number, one.next, self._known(number).metadata)
            for number, one in self.positions.items()
        ]
        if not places:
            return
        self._write_accounts()
        try:
            if wait:
                self._consumer.commit(offsets=places, asynchronous=False)
            else:
                self._consumer.commit(offsets=places)
        except KafkaException as error:
            log.warning("position not committed: %s", error.args[0].str())

    def _known(self, number: int) -> Position:
        """Return the position of a partition, as whoever comes next has to take it.

        Of outlets that come and go it is not known what was sent last: all that was looked at.
        """
        one = self.positions[number]
        sent = self.outlets[0].last[number] if self._refresh is None else one.next - 1
        return one._replace(sent=sent)

    def _on_assign(self, consumer: Consumer, given: list[TopicPartitionOffset]) -> None:
        try:
            self._take_over(consumer, given)
        except (KafkaException, DeliveryError) as error:  # raised by the next look at Kafka
            self._failure = error

    def _take_over(self, consumer: Consumer, given: list[TopicPartitionOffset]) -> None:
        for at in consumer.committed(given, timeout=30) if given else ():
            held = watermarks(consumer, at.topic, at.partition)
            position, gone = resumed(at.offset, at.metadata, *held, first=first_epoch(now_ms()))
            self._count_expired(at.partition, gone)
            self._begin(at.partition, position)
            log.info(
                "%s[%d]: from offset %d, epoch %d", at.topic, at.partition, position.next, position.epoch
            )
        consumer.incremental_assign(
            [
                TopicPartitionOffset(one.topic, one.partition, self.positions[one.partition].next)
                for one in given
            ]
        )
        self._commit(wait=True)  # the epoch is ours, should this process die now

    def _on_revoke(self, _consumer: Consumer, taken: list[TopicPartitionOffset]) -> None:
        self._commit(wait=True)
        self._forget(taken)

    def _on_lost(self, _consumer: Consumer, taken: list[TopicPartitionOffset]) -> None:
        log.warning("the group has given up this relay for a while")
        self._forget(taken)

    def _forget(self, taken: list[TopicPartitionOffset]) -> None:
        for one in taken:
            self.positions.pop(one.partition, None)
            self._counts.pop(one.partition, None)


def _offsets(made: Sequence[Made], number: int) -> set[int]:
    return {entry.offset for _, of, entries in made if of == number for entry in entries}
