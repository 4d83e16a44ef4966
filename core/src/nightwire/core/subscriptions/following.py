"""The topic `subscriptions`, followed in a thread: who wants what now."""

import logging
import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka import TRANSIENT_ERRORS, check_rights, consumer, watermarks
from nightwire.core.subscriptions.table import LiveInterest, SubscriptionTable
from nightwire.schemas.topics import SUBSCRIPTIONS

log = logging.getLogger("nightwire.subscriptions")

BATCH = 2000
"""Most records that are noted at once."""
POLL = 0.2
"""Longest wait for records. [s]"""
AGAIN = 1.0
"""Time until Kafka is asked again that did not answer. [s]"""
SILENT = 1.0
"""After so long without a record Kafka is asked whether it is there at all. [s]"""


class Following:
    """Follows who wants what in the Kafka at *bootstrap*, within a ``with`` block.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap, self._table = bootstrap, SubscriptionTable()
        self._changed, self._leave = threading.Condition(), threading.Event()
        self._ready = False
        self._thread = threading.Thread(target=self._forever, name="following-subscriptions", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_failure: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._leave.set()
        self._thread.join()

    def live(self, topic: str | None = None, kind: str = "subscription") -> list[LiveInterest]:
        """Return the interests of *kind* in *topic*, or in any, that hold now."""
        with self._changed:
            return [*self._table.live(topic, kind)]

    @property
    def refused(self) -> int:
        """Records that could not stand there."""
        return self._table.refused

    def wait_until(self, offset: int, timeout: float) -> bool:
        """Wait at most *timeout* [s] for the record at *offset*; return whether it was read."""
        with self._changed:
            return self._changed.wait_for(lambda: self._table.position > offset, timeout)

    def wait(self, timeout: float) -> bool:
        """Wait at most *timeout* [s] for the end of the log; return whether it was reached."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ready, timeout)

    def _forever(self) -> None:
        while not self._leave.is_set():
            try:
                self._follow()
            except KafkaException as error:
                log.warning("Kafka at %s: %s; trying again", self._bootstrap, error.args[0])
                self._leave.wait(AGAIN)

    def _follow(self) -> None:
        """Read the log from its beginning, and on; what was known holds until its end."""
        reader = consumer(self._bootstrap, enable_partition_eof=True)
        try:
            if SUBSCRIPTIONS not in reader.list_topics(timeout=10).topics:
                check_rights(reader, [SUBSCRIPTIONS])
                self._leave.wait(AGAIN)  # nobody has said anything yet
                return
            reader.assign([TopicPartitionOffset(SUBSCRIPTIONS, 0, OFFSET_BEGINNING)])
            table, asked = SubscriptionTable(), time.monotonic()
            while not self._leave.is_set():
                if messages := reader.consume(BATCH, POLL):
                    self._note(table, messages)
                    asked = time.monotonic()
                elif (silent := time.monotonic() - asked) >= SILENT:
                    watermarks(reader, SUBSCRIPTIONS, 0)  # it raises where Kafka is away: no time passes
                    with self._changed:
                        table.wait(silent)
                    asked += silent
        finally:
            reader.close()

    def _note(self, table: SubscriptionTable, messages: list[Message]) -> None:
        with self._changed:
            for message in messages:
                if (error := message.error()) is None:
                    key = (message.key() or b"").decode(errors="replace")
                    table.apply(key, message.value(), message.timestamp()[1], message.offset() or 0)
                elif error.code() == KafkaError._PARTITION_EOF:
                    table.caught_up()
                    self._table, self._ready = table, True
                elif error.code() not in TRANSIENT_ERRORS:
                    raise KafkaException(error)
            self._changed.notify_all()
