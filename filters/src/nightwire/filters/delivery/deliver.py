"""Delivery of decisions: the untouched bytes of alerts, fetched again by their offsets."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from confluent_kafka import Consumer, Message, Producer

from nightwire.core import kafka
from nightwire.core.accounting import Account, send_message_to_dead_letters, write_account
from nightwire.core.kafka import Record, TopicPartition, Writer, ensure_topics
from nightwire.core.presence import ArchiveClient
from nightwire.core.runtime import now_ms
from nightwire.filters.decision.accounts import ALL_SENT, STAGE, Unsent
from nightwire.filters.decision.decision import Decision, DeliveryItem, copy_headers
from nightwire.filters.delivery.overflow import encode_overflow
from nightwire.filters.delivery.producers import BulkProducer, GatheredCopies
from nightwire.filters.delivery.transform_writer import TransformWriter
from nightwire.filters.model.chains import is_derived
from nightwire.filters.model.messages import Pass, PassedAlert, UndecodableRecord
from nightwire.filters.model.offsets import OffsetRange, RecordPosition
from nightwire.filters.reading.derived import origin_headers
from nightwire.filters.reading.fetch import ExpiredCount, fetch, offset_runs, range_consumer
from nightwire.schemas import DecodeError
from nightwire.schemas.topics import overflow, settings


class AcknowledgedCopy(NamedTuple):
    """A copy that Kafka acknowledged: topic and filter, its alert's age [s], its size [byte]."""

    topic: str
    key: str
    delay: float
    size: int = 0


log = logging.getLogger("nightwire.filters")

Wanted = dict[int, list[DeliveryItem | UndecodableRecord]]

COMPRESSION = "lz4"
"""zstd gains little on stamps and costs the one core that we have; see docs/decisions/0003."""


@dataclass
class Delivery:
    """Sends decisions, at least once, and writes accounts.

    Args:
        bootstrap: Kafka's address.
        on_sent: Called with each copy that Kafka acknowledged.
        transform_writer: Makes alerts over for transforms; none where there are no transforms.
        on_fetched: Called with the time of each wait for alerts that are fetched again. [s]
    """

    bootstrap: str
    on_sent: Callable[[AcknowledgedCopy], None] = lambda _copy: None
    transform_writer: TransformWriter | None = None
    on_fetched: Callable[[float], None] = lambda _seconds: None
    past: ArchiveClient | None = None
    _topics: set[str] = field(default_factory=set)

    def send(self, decision: Decision) -> Unsent:
        """Send *decision*; return its unsent part.  On return everything is acknowledged.

        Raises:
            DeliveryError: Kafka did not take something.
            KafkaException: Kafka is away for too long.
        """
        writer = Writer(self._producer)
        self._make_topics(decision)
        unsent, copies = ALL_SENT, GatheredCopies(writer)
        for work, wanted in fetch_plan(decision):
            unsent |= self._send(copies, work, wanted, decision)
        copies.write_all()
        writer.flush()
        self._send_overflow(decision)
        return unsent

    def _send_overflow(self, decision: Decision) -> None:
        bulk = BulkProducer(self._producer)
        topics = {key: overflow(*key.split("/")) for key, _ in decision.overflow.filters}
        encoded = encode_overflow(decision.overflow, decision.at)
        for key, some in groupby(encoded, key=itemgetter(0)):
            bulk.write(topics[key], ((visit, record) for _, visit, record in some))
        bulk.flush()

    def account(self, accounts: Iterable[Account]) -> None:
        """Write *accounts*; on return they are acknowledged.

        Raises:
            DeliveryError: Kafka did not take one.
        """
        writer = Writer(self._producer)
        for account in accounts:
            write_account(writer, account)
        writer.flush()

    def _send(self, copies: GatheredCopies, work: OffsetRange, wanted: Wanted, decision: Decision) -> Unsent:
        """Send the *wanted* records of *work*; return those that have expired, or are malformed."""
        left, malformed = dict(wanted), set[tuple[RecordPosition, str]]()
        for messages in timed(fetch(self._consumer, work, ExpiredCount(), past=self.past), self.on_fetched):
            for message in messages:
                for one in left.pop(message.offset() or 0, ()):
                    if isinstance(one, UndecodableRecord):
                        send_message_to_dead_letters(copies.writer, message, stage=STAGE, reason=one.reason)
                    else:
                        malformed |= self._write(copies, message, one, decision)
        if left:
            log.error("%d chosen alerts of %s expired before they were sent", len(left), work)
        return Unsent(
            {item.alert[:3] for some in left.values() for item in some if isinstance(item, DeliveryItem)},
            malformed,
        )

    def _write(
        self, copies: GatheredCopies, message: Message, one: DeliveryItem, decision: Decision
    ) -> set[tuple[RecordPosition, str]]:
        """Write an alert to each filter that it passed; return copies that could not be made."""
        key, malformed = message.key(), set[tuple[RecordPosition, str]]()
        carried = origin_headers(message) if is_derived(one.alert.topic) else {}
        for passed in one.passes:
            try:
                value = self._value(message, one.alert, passed, decision)
            except DecodeError as error:
                reason = f"{passed.key}: {error}"
                send_message_to_dead_letters(copies.writer, message, stage=STAGE, reason=reason)
                malformed.add((one.alert.position, passed.key))
                continue
            headers = copy_headers(one, passed, carried)
            noted = partial(self._noted, passed.key, one.alert.timestamp)
            copies.write(Record(decision.topic(passed.key), value, key, headers, on_delivered=noted))
        return malformed

    def _value(self, message: Message, alert: PassedAlert, passed: Pass, decision: Decision) -> bytes | None:
        """Return the value of a copy: the alert itself, or its transformation.

        Raises:
            DecodeError: It cannot be transformed: it is malformed where no filter looked.
        """
        value, transform = message.value(), decision.transforms.get(passed.key)
        if transform is None or value is None:
            return value
        if self.transform_writer is None:
            raise RuntimeError(f"{passed.key} is a transform, and has no schema registry to be sent with")
        return self.transform_writer.value(
            value, decision.topic(passed.key), alert.survey, transform, passed.added
        )

    def _noted(self, key: str, came: int, message: Message) -> None:
        self.on_sent(AcknowledgedCopy(str(message.topic()), key, (now_ms() - came) / 1000, len(message)))

    def _make_topics(self, decision: Decision) -> None:
        """Make topics that were removed: writing to a missing one would block all."""
        sent = {passed.key for item in decision.sent() for passed in item.passes}
        overflowed = {decision.overflow.filters[at][0] for at in set(decision.overflow.filter_index)}
        wanted = {decision.topic(key) for key in sent} | {overflow(*key.split("/")) for key in overflowed}
        if missing := sorted(wanted - self._topics):
            ensure_topics(self.bootstrap, [settings(topic) for topic in missing])
            self._topics |= wanted

    @cached_property
    def _producer(self) -> Producer:
        return kafka.producer(self.bootstrap, compression_type=COMPRESSION)

    @cached_property
    def _consumer(self) -> Consumer:
        return range_consumer(self.bootstrap)


def timed(parts: Iterator[list[Message]], told: Callable[[float], None]) -> Iterator[list[Message]]:
    """Yield *parts*, and tell how long each was waited for, the end of them too. [s]"""
    while True:
        began = time.monotonic()
        part = next(parts, None)
        told(time.monotonic() - began)
        if part is None:
            return
        yield part


def fetch_plan(decision: Decision) -> list[tuple[OffsetRange, Wanted]]:
    """Return the ranges to fetch and the items and undecodable records in each.  Pure."""
    wanted: dict[TopicPartition, Wanted] = defaultdict(dict)
    for item in decision.sent():
        wanted[item.alert.topic, item.alert.partition].setdefault(item.alert.offset, []).append(item)
    for record in decision.undecodable:
        wanted[record.topic, record.partition].setdefault(record.offset, []).append(record)
    return [
        (OffsetRange(*partition, near[0], near[-1] + 1), {offset: some[offset] for offset in near})
        for partition, some in sorted(wanted.items())
        for near in offset_runs(sorted(some))
    ]
