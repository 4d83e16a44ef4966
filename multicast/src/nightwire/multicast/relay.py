"""A relay at work: records of a topic become datagrams; its group keeps where it is.

Relays of one group share the partitions, and take over those of one that dies.  Each partition has
an epoch, which is counted on by whoever takes it over, so that receivers leave out the old one.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import OffsetAccounts, write_account
from nightwire.core.datagrams import HEARTBEAT_INTERVAL, Beat, Judge
from nightwire.core.kafka import TRANSIENT_ERRORS, DeliveryError, Writer, watermarks
from nightwire.core.runtime import Stop, now_ms
from nightwire.multicast.packing import Packer
from nightwire.multicast.positions import Position, first_epoch, resumed
from nightwire.multicast.sender import Sender
from nightwire.schemas import RegistryAwayError

log = logging.getLogger("nightwire.relay")

Answer = TypeVar("Answer")

AT_ONCE = 256
"""Most records that are taken from Kafka at once."""
COMMIT_INTERVAL = 1.0
"""Time between two commits. [s]"""
TICK = 0.1
"""Longest wait for a record. [s]"""


def _all(values: Sequence[bytes | None]) -> list[bool]:
    return [True] * len(values)


class Relay:
    """Sends the records of a topic.

    Args:
        consumer: A member of the relay's group.
        sender: Sends datagrams.
        packer: Makes them.
        accounts: Writes the accounts.
        judge: Tells which records the channel carries.
    """

    def __init__(
        self, consumer: Consumer, sender: Sender, packer: Packer, accounts: Writer, judge: Judge = _all
    ) -> None:
        self._consumer, self._sender, self.packer, self._judge = consumer, sender, packer, judge
        self._writer, self._accounts = accounts, OffsetAccounts(f"relay.{packer.channel.group}")
        self._topic = packer.channel.topic
        self.positions: dict[int, Position] = {}
        self.sent = self.left_out = self.expired = 0
        self._beat_at = self._commit_at = 0.0
        self._counts: dict[int, list[int]] = {}  # left out and sent since the accounts were written
        self._failure: KafkaException | DeliveryError | None = None

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
                self._relay(self._taken(), stop)
                self._beat_if_due()
                if time.monotonic() - self._commit_at >= COMMIT_INTERVAL:
                    self._commit(wait=False)
                    on_tick()
        finally:
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
            number = message.partition() or 0
            low = watermarks(self._consumer, self._topic, number).low
            position = self.positions[number]
            self._count_expired(number, low - position.next)
            self.positions[number] = position._replace(next=low)
            self._consumer.incremental_unassign([TopicPartitionOffset(self._topic, number)])
            self._consumer.incremental_assign([TopicPartitionOffset(self._topic, number, low)])
        elif error.code() not in TRANSIENT_ERRORS or error.fatal():
            raise KafkaException(error)

    def _relay(self, messages: Sequence[Message], stop: Stop) -> None:
        """Send what the channel carries of *messages*; the rest after *stop* is sent later."""
        carried = self._patiently(lambda: self._judge([one.value() for one in messages]), stop)
        for message, wanted in zip(messages, carried or (), strict=False):
            number, offset = message.partition() or 0, message.offset() or 0
            position = self.positions.get(number)
            if position is None or offset < position.next:
                continue
            if wanted and not self._send(message, position, stop):
                return
            self.positions[number] = position.after(offset, was_sent=wanted)
            self._count(number, wanted=wanted)
            self._beat_if_due()

    def _send(self, message: Message, position: Position, stop: Stop) -> bool:
        """Send *message*; return whether that was done before it was time to leave."""
        made = self._patiently(
            lambda: list(self.packer.datagrams(message, position.epoch, position.sent)), stop
        )
        for raw in made or ():
            self._sender.send(raw)
        return made is not None

    def _patiently(self, work: Callable[[], Answer], stop: Stop) -> Answer | None:
        """Return what *work* returns, tried again while the registry is away; None after *stop*."""
        while not stop.is_set():
            try:
                return work()
            except RegistryAwayError as error:
                log.warning("waiting for the schema registry: %s", error)
                stop.wait(1.0)
        return None

    def _count(self, number: int, *, wanted: bool) -> None:
        self.sent += wanted
        self.left_out += not wanted
        self._counts.setdefault(number, [0, 0])[wanted] += 1

    def _write_accounts(self) -> None:
        for number, (left_out, sent) in self._counts.items():
            rejected = {"condition": left_out} if left_out else None
            last, read = self.positions[number].next - 1, left_out + sent
            self._accounts.count((self._topic, number), last, read, delivered=sent, rejected=rejected)
        self._counts.clear()
        for account in self._accounts.changed():
            write_account(self._writer, account)
        self._writer.flush()

    def _count_expired(self, number: int, count: int) -> None:
        if count > 0:
            self.expired += count
            log.error("%s[%d]: %d records expired before they were sent", self._topic, number, count)

    def _beat_if_due(self) -> None:
        if (now := time.monotonic()) < self._beat_at:
            return
        self._beat_at = now + HEARTBEAT_INTERVAL
        beats = [Beat(number, one.epoch, one.sent) for number, one in self.positions.items()]
        if beats:
            for raw in self.packer.heartbeats(beats, now_ms()):
                self._sender.send(raw)

    def _commit(self, *, wait: bool) -> None:
        """Write the accounts, then commit where each partition is."""
        self._commit_at = time.monotonic()
        places = [
            TopicPartitionOffset(self._topic, number, one.next, one.metadata)
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
            self.positions[at.partition] = position
            self._accounts.begin((at.topic, at.partition), position.next)
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
