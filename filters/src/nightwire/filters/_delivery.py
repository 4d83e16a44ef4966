"""Sending what was decided: the untouched bytes, fetched again by their offsets."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Message, Producer

from nightwire.core import kafka
from nightwire.core.accounts import write_account
from nightwire.core.dead_letters import bury_message
from nightwire.core.kafka import Writer, ensure_topics
from nightwire.filters._decision import STAGE, Dead, Decision, Pick, accounts, headers
from nightwire.filters._fetch import Gone, fetch, reader
from nightwire.filters._offsets import Range, Spot
from nightwire.schemas.topics import filter_topic, settings

log = logging.getLogger("nightwire.filters")

Wanted = dict[int, Pick | Dead]

COMPRESSION = "lz4"
"""zstd gains little on stamps and costs the one core that we have; see docs/decisions/0003."""


@dataclass
class Delivery:
    """Sends decisions, at least once, and writes their accounts.

    Args:
        bootstrap: Kafka's address.
        on_sent: Called with a filter's key for each copy that Kafka acknowledged.
    """

    bootstrap: str
    on_sent: Callable[[str], None] = lambda _key: None
    _consumer: Consumer | None = None
    _producer: Producer | None = None
    _topics: set[str] = field(default_factory=set)

    def deliver(self, decision: Decision) -> None:
        """Send *decision*; on return everything is acknowledged, its accounts too.

        Raises:
            DeliveryError: Kafka did not take something; nothing was accounted.
            KafkaException: Kafka is away for too long.
        """
        writer = Writer(self._made_producer())
        self._make_topics(decision)
        lost = [spot for work, wanted in spans(decision) for spot in self._send(writer, work, wanted)]
        writer.flush()  # outputs first, accounts after
        for account in accounts(decision, lost):
            write_account(writer, account)
        writer.flush()

    def _send(self, writer: Writer, work: Range, wanted: Wanted) -> Iterator[Spot]:
        """Send what is *wanted* of *work*; yield the spot of each that is gone."""
        self._consumer = self._consumer or reader(self.bootstrap)
        left = dict(wanted)
        for messages in fetch(self._consumer, work, Gone()):
            for message in messages:
                if (one := left.pop(message.offset() or 0, None)) is not None:
                    self._write(writer, message, one)
        if left:
            log.error("%d chosen alerts of %s expired before they were sent", len(left), work)
        yield from ((work.topic, work.partition) for one in left.values() if isinstance(one, Pick))

    def _write(self, writer: Writer, message: Message, one: Pick | Dead) -> None:
        value, key = message.value(), message.key()
        if isinstance(one, Dead):
            bury_message(writer, message, stage=STAGE, reason=one.reason)
            return
        for passed in one.passes:
            topic = filter_topic(*passed.key.split("/"))
            noted = self._noting(passed.key)
            writer.write(topic, value, key=key, headers=headers(one, passed), on_delivered=noted)

    def _noting(self, key: str) -> Callable[[Message], None]:
        return lambda _message: self.on_sent(key)

    def _make_topics(self, decision: Decision) -> None:
        """Make filter topics that somebody removed; sending to one that is missing would block all."""
        keys = {passed.key for pick in decision.picks for passed in pick.passes}
        wanted = {filter_topic(*key.split("/")) for key in keys} - self._topics
        if wanted:
            ensure_topics(self.bootstrap, [settings(topic) for topic in sorted(wanted)])
            self._topics |= wanted

    def _made_producer(self) -> Producer:
        if self._producer is None:
            self._producer = kafka.producer(self.bootstrap, compression_type=COMPRESSION)
        return self._producer


def spans(decision: Decision) -> list[tuple[Range, Wanted]]:
    """Return, per partition, the range to fetch and what is wanted of it.  Pure."""
    wanted: dict[Spot, Wanted] = defaultdict(dict)
    all_: list[Pick | Dead] = [*decision.picks, *decision.dead]
    for one in all_:
        wanted[one.topic, one.partition][one.offset] = one
    return [(Range(*spot, min(some), max(some) + 1), some) for spot, some in sorted(wanted.items())]
