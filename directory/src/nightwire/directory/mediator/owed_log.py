"""The topic `owed`: alerts that groups behind slow links did not get whole yet."""

import logging
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaException, Producer

from nightwire.core.congestion import BLOCK, Block
from nightwire.core.kafka import fenced_producer, read_to_end
from nightwire.directory.mediator.kafka_access import kafka_refusal
from nightwire.schemas import SchemaError
from nightwire.schemas.records import OWED as RECORD
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import OWED

log = logging.getLogger("nightwire.directory")

PATIENCE = 30.0
"""Longest wait for Kafka. [s]"""
LONGEST_TRANSACTION = 10_000
"""A transaction of a stopped directory is aborted after so long; till then no record behind it is
read. [ms]"""


class OwedLog:
    """Writes what *group* is owed of *topic*, each time in a transaction.

    Each partition has a transactional id: by it Kafka fences its previous reader, as a directory
    that was stopped for longer than its session and goes on.

    Args:
        bootstrap: Kafka's address.
        group: The consumer group.
        topic: The topic that it reads.
    """

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._bootstrap, self._group, self._topic = bootstrap, group, topic
        self._producers: dict[int, Producer] = {}

    def acquire(self, partitions: Iterable[int]) -> dict[Block, bytes]:
        """Fence the previous readers of *partitions*; return the blocks owed of the topic.

        Raises:
            KafkaException: Kafka does not answer, or refuses.
        """
        for one in partitions:
            name = f"{OWED}-{self._group}|{self._topic}|{one}"
            self._producers[one] = fenced_producer(
                self._bootstrap, name, longest_ms=LONGEST_TRANSACTION, patience=PATIENCE, linger_ms=0
            )
        return self._read()

    def release(self, partitions: Iterable[int]) -> None:
        """Close the producers of *partitions*."""
        for one in partitions:
            self._producers.pop(one, None)

    def write(self, blocks: Mapping[Block, bytes | None]) -> None:
        """Write *blocks*; None deletes one of which nothing is owed.

        Raises:
            RefusedError: Kafka refuses them, or another directory reads the partition now.
        """
        for one in sorted({partition for (_, partition), _ in blocks}):
            mine = {first: sent for ((_, where), first), sent in blocks.items() if where == one}
            try:
                self._write(one, mine)
            except KeyError as error:
                raise RefusedError(409, f"partition {one} of {self._topic} is read elsewhere") from error
            except KafkaException as error:
                raise kafka_refusal(error.args[0], OWED) from error

    def _write(self, partition: int, blocks: Mapping[int, bytes | None]) -> None:
        client, record = self._producers[partition], {"group": self._group, "topic": self._topic}
        client.begin_transaction()
        for first, sent in blocks.items():
            value = sent and RECORD.encode({**record, "partition": partition, "first": first, "sent": sent})
            key = f"{self._group}|{self._topic}|{partition}|{first}"
            client.produce(OWED, value, key.encode(), partition=0)
        client.commit_transaction(PATIENCE)

    def _read(self) -> dict[Block, bytes]:
        """Return the blocks owed of the topic, once open transactions have ended."""
        found: dict[Block, bytes] = {}
        for message in read_to_end(self._bootstrap, [OWED], settled=True):
            where, _, first = (message.key() or b"").decode(errors="replace").rpartition("|")
            name, _, partition = where.rpartition("|")
            if name != f"{self._group}|{self._topic}" or not (partition.isdecimal() and first.isdecimal()):
                continue
            block = (self._topic, int(partition)), int(first)
            if (value := message.value()) is None:
                found.pop(block, None)
                continue
            try:
                found[block] = RECORD.decode(value)["sent"]
            except SchemaError as error:
                log.warning("%s: what group %s is owed cannot be read: %s", OWED, self._group, error)
        return {block: sent for block, sent in found.items() if block[1] % BLOCK == 0}
