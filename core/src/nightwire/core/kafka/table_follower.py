"""A table that is a fold over a compacted topic of one partition, followed in a thread."""

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.kafka.clients import TRANSIENT_ERRORS, consumer, error_text
from nightwire.core.kafka.offsets import check_rights, watermarks

log = logging.getLogger("nightwire.kafka")

BATCH = 2000
"""Most records that are noted at once."""
POLL = 0.2
"""Longest wait for records. [s]"""
AGAIN = 1.0
"""Time until Kafka is asked again that did not answer. [s]"""
SILENT = 1.0
"""After so long without a record Kafka is asked whether it is there at all. [s]"""


class LogTable(Protocol):
    """What a topic's records add up to.

    Attributes:
        refused: Records that could not stand in the topic.
    """

    refused: int

    @property
    def position(self) -> int:
        """Offset after the last record."""
        ...

    def apply(self, key: str, value: bytes | None, appended: int, offset: int) -> None:
        """Note the record at *offset*; *appended* is Kafka's time of it. [ms since 1970]"""
        ...

    def caught_up(self) -> None:
        """Note that the log was read to its end."""
        ...

    def wait(self, seconds: float) -> None:
        """Note that nothing came for *seconds* [s], though Kafka answered."""
        ...


Table = TypeVar("Table", bound=LogTable)


class TableFollower(Generic[Table]):
    """Follows *topic* in the Kafka at *bootstrap*, within a ``with`` block.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        topic: Its name.
        make: Makes an empty table: the log is read anew after an error.
        poll: Longest time until a record is noted. [s]
    """

    def __init__(self, bootstrap: str, topic: str, make: Callable[[], Table], *, poll: float = POLL) -> None:
        self._bootstrap, self._topic, self._make, self._poll = bootstrap, topic, make, poll
        self._table = make()
        self._changed, self._leave = threading.Condition(), threading.Event()
        self._ready = False
        self._thread = threading.Thread(target=self._forever, name=f"following-{topic}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_failure: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._leave.set()
        self._thread.join()

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
                log.warning("Kafka at %s: %s; trying again", self._bootstrap, error_text(error))
                self._leave.wait(AGAIN)

    def _follow(self) -> None:
        """Read the log from its beginning, and on; what was known holds until its end."""
        with consumer(self._bootstrap, enable_partition_eof=True) as reader:
            if self._topic not in reader.list_topics(timeout=10).topics:
                check_rights(reader, [self._topic])
                self._leave.wait(AGAIN)  # nobody has said anything yet
                return
            reader.assign([TopicPartitionOffset(self._topic, 0, OFFSET_BEGINNING)])
            table, asked = self._make(), time.monotonic()
            while not self._leave.is_set():
                if messages := reader.consume(BATCH, self._poll):
                    self._note(table, messages)
                    asked = time.monotonic()
                elif (silent := time.monotonic() - asked) >= SILENT:
                    watermarks(reader, self._topic, 0)  # it raises where Kafka is away: no time passes
                    with self._changed:
                        table.wait(silent)
                    asked += silent

    def _note(self, table: Table, messages: list[Message]) -> None:
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
