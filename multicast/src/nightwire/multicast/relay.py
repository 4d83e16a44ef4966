"""The relay: a topic's records become datagrams; its consumer group keeps the positions.

One pass over the topic serves all senders.  Relays of one group share the partitions, and take over
those of one that dies.  Each partition has an epoch, which a takeover increments, so that receivers
ignore the old relay.
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
from nightwire.core.kafka import TRANSIENT_ERRORS, DeliveryError, Writer, error_text, watermarks
from nightwire.core.runtime import Stop, now_ms
from nightwire.multicast.group_sender import NEVER, GroupSender, RateLimiter
from nightwire.multicast.positions import EPOCHS, Position, first_epoch, resume
from nightwire.schemas import RegistryAwayError

log = logging.getLogger("nightwire.relay")

Answer = TypeVar("Answer")
Refresh = Callable[[Mapping[int, Position]], Sequence[GroupSender]]
"""Returns the current senders, those of higher priority first."""
Prepared = tuple[GroupSender, int, Sequence[Entry]]
"""A sender, a partition, and its entries to send."""

MAX_BATCH = 128
"""Most records of one poll."""
COMMIT_INTERVAL = 1.0
"""Time between two commits. [s]"""
TICK = 0.1
"""Longest wait for a record. [s]"""
MAX_BUSY = 3.0
"""How long heartbeats go on while a batch is packed or the registry is away; then receivers go to
Kafka, within 5 s together. [s]"""


class Relay:
    """Sends the records of a topic.

    Args:
        consumer: A member of the relay's group.
        topic: Its name.
        senders: Of the topic's channels.
        limiter: The senders' own.
        accounts: Writes the accounts.
        refresh: Returns the senders before each batch; None: they stay.

    Attributes:
        shed: Records that senders of lower priority left to Kafka, as the rate was short.
    """

    def __init__(
        self, consumer: Consumer, topic: str, senders: Sequence[GroupSender], limiter: RateLimiter,
        accounts: Writer, stage: str, refresh: Refresh | None = None,
    ) -> None:  # fmt: skip
        self._consumer, self._topic, self.senders, self._limiter = consumer, topic, senders, limiter
        self._writer, self._accounts, self._refresh = accounts, OffsetAccounts(stage), refresh
        self.positions: dict[int, Position] = {}
        self.sent = self.left_out = self.expired = self.shed = 0
        self._heartbeat_at = self._commit_at = 0.0
        self._counts: dict[int, Counter[str]] = {}  # since the accounts were written
        self._failure: KafkaException | DeliveryError | None = None
        self._packer_thread = ThreadPoolExecutor(1, "packing")

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
                    self.senders = self._refresh(self.positions)
                self._relay_by_boundaries(self._poll(), stop)
                self._heartbeat_if_due()
                if time.monotonic() - self._commit_at >= COMMIT_INTERVAL:
                    self._commit(wait=False)
                    on_tick()
        finally:
            self._packer_thread.shutdown(wait=False)
            self._commit(wait=True)
            self._consumer.close()

    def _poll(self) -> list[Message]:
        first = self._consumer.poll(TICK)
        if self._failure is not None:
            raise self._failure
        every = [first, *self._consumer.consume(MAX_BATCH - 1, 0)] if first is not None else []
        for message in every:
            if (error := message.error()) is not None:
                self._handle_error(message, error)
        return [one for one in every if one.error() is None and one.partition() in self.positions]

    def _handle_error(self, message: Message, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._resume_at_oldest(message.partition() or 0)
        elif error.code() not in TRANSIENT_ERRORS or error.fatal():
            raise KafkaException(error)

    def _resume_at_oldest(self, number: int) -> None:
        """Go on at the oldest record; in a topic that was made anew, with a new epoch."""
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
        for sender in self.senders:
            sender.begin(number, position)
        self._accounts.begin((self._topic, number), position.next)

    def _relay_by_boundaries(self, messages: Sequence[Message], stop: Stop) -> None:
        """Send *messages*; where a sender begins or ends among them, with heartbeats there."""
        boundaries = {number: self._next_boundary(number, one.next) for number, one in self.positions.items()}
        before, after = list[Message](), list[Message]()
        for one in messages:
            (before if (one.offset() or 0) < boundaries[one.partition() or 0] else after).append(one)
        self._relay(before, stop)
        if after and not stop.is_set():
            for number in {one.partition() or 0 for one in after}:
                self.positions[number] = self.positions[number]._replace(next=boundaries[number])
            self._heartbeat_at = 0.0
            self._heartbeat_if_due()
            self._relay_by_boundaries(after, stop)

    def _next_boundary(self, number: int, begin: int) -> int:
        """Return the next offset after *begin* at which a sender begins or ends."""
        spans = [one.offsets(number) for one in self.senders]
        boundaries = [*(one.start for one in spans), *(one.stop for one in spans)]
        return min((one for one in boundaries if one > begin), default=NEVER)

    def _relay(self, messages: Sequence[Message], stop: Stop) -> None:
        """Send *messages* by their senders; after *stop* the partition's next relay does."""
        parts: dict[int, list[Message]] = {}
        for message in messages:
            number = message.partition() or 0
            if (message.offset() or 0) >= self.positions[number].next:
                parts.setdefault(number, []).append(message)
        if not parts or (prepared := self._await_registry(lambda: self._prepare(parts), stop)) is None:
            return
        sent = self._send(prepared, short=len(messages) >= MAX_BATCH // 2 and self._limiter.waited)
        for number, records in parts.items():
            carried, known = _offsets(prepared, number), _offsets(sent, number)
            last = records[-1].offset() or 0
            self.positions[number] = self.positions[number].after(last, was_sent=last in carried)
            self._count(number, len(known), len(records) - len(carried), len(carried - known))

    def _prepare(self, parts: Mapping[int, Sequence[Message]]) -> list[Prepared]:
        """Return the entries of each sender and partition; each condition is evaluated once.

        Raises:
            RegistryAwayError: The schema registry does not answer.
        """
        every = [one for messages in parts.values() for one in messages]
        verdicts: dict[str, set[tuple[int | None, int | None]]] = {}
        found = list[Prepared]()
        for sender in self.senders:
            condition = sender.packer.channel.condition
            if sender.judge is not None and condition not in verdicts:
                carried = sender.judge([one.value() for one in every])
                verdicts[condition] = {
                    (one.partition(), one.offset()) for one, yes in zip(every, carried, strict=True) if yes
                }
            for number, messages in parts.items():
                offsets, passed = sender.offsets(number), verdicts.get(condition)
                chosen = [
                    one
                    for one in messages
                    if one.offset() in offsets and (passed is None or (number, one.offset()) in passed)
                ]
                if chosen:
                    found.append((sender, number, sender.packer.entries(chosen, sender.last[number])))
        return found

    def _send(self, prepared: Sequence[Prepared], *, short: bool) -> list[Prepared]:
        """Send *prepared*, and return it; if the rate is *short*, the top priority alone."""
        top = max((sender.priority for sender, _, _ in prepared), default=0)
        self._limiter.waited, sent = False, list[Prepared]()
        for sender, number, entries in prepared:
            if short and sender.priority < top:
                sender.last[number] = entries[-1].offset  # the next heartbeat tells of it
                self.shed += len(entries)
                continue
            sent.append((sender, number, entries))
            for _ in sender.send(entries, number, self.positions[number].epoch):
                self._heartbeat_if_due()
        return sent

    def _await_registry(self, work: Callable[[], Answer], stop: Stop) -> Answer | None:
        """Return the result of *work*, retried while the registry is away; None after *stop*."""
        began = time.monotonic()
        while not stop.is_set():
            answer = self._packer_thread.submit(work)
            while not stop.is_set() and not wait([answer], TICK).done:
                self._heartbeat_if_due(began)
            try:
                return answer.result() if answer.done() else None
            except RegistryAwayError as error:
                log.warning("waiting for the schema registry: %s", error)
            for _ in range(2):
                self._heartbeat_if_due(began)
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

    def _heartbeat_if_due(self, busy: float = math.inf) -> None:
        """Send heartbeats if due, but not later than `MAX_BUSY` after *busy*. [s, monotonic]"""
        if (now := time.monotonic()) < self._heartbeat_at or now - busy > MAX_BUSY:
            return
        self._heartbeat_at = now + HEARTBEAT_INTERVAL
        for sender in self.senders:
            sender.heartbeat(self.positions, now_ms())

    def _commit(self, *, wait: bool) -> None:
        """Write the accounts, then commit the positions."""
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
            log.warning("position not committed: %s", error_text(error))

    def _known(self, number: int) -> Position:
        """Return the position to commit for a partition.

        With changing senders the last offset sent is unknown: the last one read stands for it.
        """
        one = self.positions[number]
        sent = self.senders[0].last[number] if self._refresh is None else one.next - 1
        return one._replace(sent=sent)

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartitionOffset]) -> None:
        try:
            self._take_over(consumer, assigned)
        except (KafkaException, DeliveryError) as error:  # raised by the next look at Kafka
            self._failure = error

    def _take_over(self, consumer: Consumer, assigned: list[TopicPartitionOffset]) -> None:
        for at in consumer.committed(assigned, timeout=30) if assigned else ():
            held = watermarks(consumer, at.topic, at.partition)
            position, expired = resume(at.offset, at.metadata, *held, first=first_epoch(now_ms()))
            self._count_expired(at.partition, expired)
            self._begin(at.partition, position)
            log.info(
                "%s[%d]: from offset %d, epoch %d", at.topic, at.partition, position.next, position.epoch
            )
        consumer.incremental_assign(
            [
                TopicPartitionOffset(one.topic, one.partition, self.positions[one.partition].next)
                for one in assigned
            ]
        )
        self._commit(wait=True)  # the epoch is ours, should this process die now

    def _on_revoke(self, _consumer: Consumer, revoked: list[TopicPartitionOffset]) -> None:
        self._commit(wait=True)
        self._drop(revoked)

    def _on_lost(self, _consumer: Consumer, revoked: list[TopicPartitionOffset]) -> None:
        log.warning("the group has given up this relay for a while")
        self._drop(revoked)

    def _drop(self, revoked: list[TopicPartitionOffset]) -> None:
        for one in revoked:
            self.positions.pop(one.partition, None)
            self._counts.pop(one.partition, None)


def _offsets(prepared: Sequence[Prepared], number: int) -> set[int]:
    return {entry.offset for _, of, entries in prepared if of == number for entry in entries}
