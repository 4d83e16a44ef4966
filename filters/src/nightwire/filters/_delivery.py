"""Sending what was decided: the untouched bytes, fetched again by their offsets."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import Consumer, Message, Producer

from nightwire.core import kafka
from nightwire.core.accounts import Account, write_account
from nightwire.core.clock import now_ms
from nightwire.core.dead_letters import bury_message
from nightwire.core.kafka import Writer, ensure_topics
from nightwire.filters._accounts import NONE, STAGE, Place, Unsent
from nightwire.filters._bulk import Bulk
from nightwire.filters._chains import is_fed
from nightwire.filters._cut import overflow_records
from nightwire.filters._decision import Decision, Pick, headers
from nightwire.filters._fed import origin
from nightwire.filters._fetch import Gone, fetch, reader, runs
from nightwire.filters._judge import Pass
from nightwire.filters._offsets import Range, Spot
from nightwire.filters._outlet import Outlet
from nightwire.filters._rows import Dead, Hit
from nightwire.filters._seen import Copy
from nightwire.schemas import DecodeError
from nightwire.schemas.topics import overflow, settings

log = logging.getLogger("nightwire.filters")

Wanted = dict[int, list[Pick | Dead]]

COMPRESSION = "lz4"
"""zstd gains little on stamps and costs the one core that we have; see docs/decisions/0003."""


@dataclass
class Delivery:
    """Sends decisions, at least once, and writes accounts.

    Args:
        bootstrap: Kafka's address.
        on_sent: Called with each copy that Kafka acknowledged.
        outlet: Makes alerts over for transforms; none where there are no transforms.
    """

    bootstrap: str
    on_sent: Callable[[Copy], None] = lambda _copy: None
    outlet: Outlet | None = None
    _consumer: Consumer | None = None
    _producer: Producer | None = None
    _topics: set[str] = field(default_factory=set)

    def send(self, decision: Decision) -> Unsent:
        """Send *decision*; on return everything is acknowledged.  Return what could not be sent.

        Raises:
            DeliveryError: Kafka did not take something.
            KafkaException: Kafka is away for too long.
        """
        writer = Writer(self._made_producer())
        self._make_topics(decision)
        unsent = NONE
        for work, wanted in spans(decision):
            unsent |= self._send(writer, work, wanted, decision)
        writer.flush()
        self._send_cut(decision)
        return unsent

    def _send_cut(self, decision: Decision) -> None:
        bulk = Bulk(self._made_producer())
        topics = {key: overflow(*key.split("/")) for key, _ in decision.cut.judges}
        for key, visit, record in overflow_records(decision.cut, decision.at):
            bulk.write(topics[key], record, visit)
        bulk.flush()

    def account(self, accounts: Iterable[Account]) -> None:
        """Write *accounts*; on return they are acknowledged.

        Raises:
            DeliveryError: Kafka did not take one.
        """
        writer = Writer(self._made_producer())
        for account in accounts:
            write_account(writer, account)
        writer.flush()

    def _send(self, writer: Writer, work: Range, wanted: Wanted, decision: Decision) -> Unsent:
        """Send what is *wanted* of *work*; return what is gone, or malformed."""
        self._consumer = self._consumer or reader(self.bootstrap)
        left, malformed = dict(wanted), set[tuple[Place, str]]()
        for messages in fetch(self._consumer, work, Gone()):
            for message in messages:
                for one in left.pop(message.offset() or 0, ()):
                    if isinstance(one, Dead):
                        bury_message(writer, message, stage=STAGE, reason=one.reason)
                    else:
                        malformed |= self._write(writer, message, one, decision)
        if left:
            log.error("%d chosen alerts of %s expired before they were sent", len(left), work)
        return Unsent(
            {pick.hit[:3] for some in left.values() for pick in some if isinstance(pick, Pick)}, malformed
        )

    def _write(
        self, writer: Writer, message: Message, one: Pick, decision: Decision
    ) -> set[tuple[Place, str]]:
        """Write an alert to each filter that it passed; return the copies that could not be made."""
        key, malformed = message.key(), set[tuple[Place, str]]()
        carried = origin(message) if is_fed(one.hit.topic) else {}
        for passed in one.passes:
            try:
                value = self._value(message, one.hit, passed, decision)
            except DecodeError as error:
                bury_message(writer, message, stage=STAGE, reason=f"{passed.key}: {error}")
                malformed.add((one.hit[:3], passed.key))
                continue
            said = headers(one, passed, carried)
            noted = partial(self._noted, passed.key, one.hit.timestamp)
            writer.write(decision.topic(passed.key), value, key=key, headers=said, on_delivered=noted)
        return malformed

    def _value(self, message: Message, hit: Hit, passed: Pass, decision: Decision) -> bytes | None:
        """Return what is sent for an alert that passed: itself, or what a transform makes of it.

        Raises:
            DecodeError: It cannot be transformed: it is malformed where no filter looked.
        """
        value, shape = message.value(), decision.shapes.get(passed.key)
        if shape is None or value is None:
            return value
        if self.outlet is None:
            raise RuntimeError(f"{passed.key} is a transform, and has no schema registry to be sent with")
        return self.outlet.value(hit[:3], value, decision.topic(passed.key), hit.survey, shape, passed.added)

    def _noted(self, key: str, came: int, message: Message) -> None:
        self.on_sent(Copy(str(message.topic()), key, (now_ms() - came) / 1000, len(message)))

    def _make_topics(self, decision: Decision) -> None:
        """Make topics that somebody removed; sending to one that is missing would block all."""
        sent = {passed.key for pick in decision.sent() for passed in pick.passes}
        cut = {decision.cut.judges[judge][0] for judge in set(decision.cut.judge)}
        wanted = {decision.topic(key) for key in sent} | {overflow(*key.split("/")) for key in cut}
        if missing := sorted(wanted - self._topics):
            ensure_topics(self.bootstrap, [settings(topic) for topic in missing])
            self._topics |= wanted

    def _made_producer(self) -> Producer:
        if self._producer is None:
            self._producer = kafka.producer(self.bootstrap, compression_type=COMPRESSION)
        return self._producer


def spans(decision: Decision) -> list[tuple[Range, Wanted]]:
    """Return the ranges to fetch and what is wanted of each.  Pure."""
    wanted: dict[Spot, Wanted] = defaultdict(dict)
    for pick in decision.sent():
        wanted[pick.hit.topic, pick.hit.partition].setdefault(pick.hit.offset, []).append(pick)
    for dead in decision.dead:
        wanted[dead.topic, dead.partition].setdefault(dead.offset, []).append(dead)
    return [
        (Range(*spot, near[0], near[-1] + 1), {offset: some[offset] for offset in near})
        for spot, some in sorted(wanted.items())
        for near in runs(sorted(some))
    ]
