"""The thread of a bridge: copies the events of its queue to another site's Kafka, each once.

The position in the queue is committed in the remote Kafka, in the transaction of the events that it
counts, and read from there: a kill anywhere loses and doubles nothing.  A worker that takes the
bridge over uses the same transactional id, and so fences off its predecessor.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicCollection
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.accounting import OffsetAccounts, send_message_to_dead_letters, write_account
from nightwire.core.kafka import (
    GroupOffsets,
    Writer,
    admin,
    cluster_id,
    consumer,
    error_code,
    produce,
    producer,
)
from nightwire.flows.engine.queue_reading import (
    BATCH,
    POLL,
    TRANSACTION_TIMEOUT,
    first_retained,
    queue_accounts,
    resume_queues,
    transactional_producer,
    without_errors,
)
from nightwire.flows.model import Flow, FlowError, Stone
from nightwire.flows.restarting_thread import RestartingThread
from nightwire.flows.terminals import Unavailable, secret

SITE_HEADERS = ("site", "site-partition", "site-offset")
"""Headers with the cluster id and the queue's partition and offset of an event.

Each bridge appends its own, so the `site`s are the event's path.
"""
CYCLE = "cycle"
"""Reason for which an event is rejected that crossed between the same two sites before."""
log = logging.getLogger("nightwire.flows")


class Bridge(RestartingThread):
    """The thread of one bridge.

    Args:
        bootstrap: Address of our Kafka.
        flow: The bridge's flow.
        stone: The bridge.
        takeover: Session timeout: so long after a crash another worker goes on. [s]
    """

    def __init__(self, bootstrap: str, flow: Flow, stone: Stone, takeover: float) -> None:
        super().__init__(f"flow-{flow.name}-{stone.name}")
        self._kafka, self._takeover = bootstrap, takeover
        self._queue, self.stone = flow.queue(stone.name), stone

    def session(self, reset_backoff: Callable[[], None]) -> None:
        """Copy events until `leaving` is set, or the bridge's options change."""
        stone = self.stone
        try:
            session = BridgeSession(self._kafka, self._queue, stone)
        except Unavailable as error:
            raise FlowError([str(error)]) from error
        source = consumer(
            self._kafka,
            group=self._queue,
            auto_offset_reset="earliest",
            session_timeout_ms=int(self._takeover * 1000),
        )
        source.subscribe([self._queue], on_assign=session.assigned, on_revoke=session.revoked)
        try:
            while self.stone is stone and not self.leaving.is_set():
                if messages := without_errors(source.consume(BATCH, POLL)):
                    session.copy(source, messages)
                    reset_backoff()
                if messages or session.is_idle(source):
                    self.problem = ""
        finally:
            source.close()
            session.close()


class BridgeSession:
    """Clients in both Kafkas, and the positions between them.

    Args:
        bootstrap: Address of our Kafka.
        queue: The bridge's queue.
        stone: The bridge.
    """

    def __init__(self, bootstrap: str, queue: str, stone: Stone) -> None:
        self._bootstrap, self._queue, self._remote = bootstrap, (queue, 0), stone.options["kafka"]
        self._site, self._client = str(cluster_id(bootstrap)), remote_client_config(stone)
        self._remote_group = f"{queue}.{_topic_id(bootstrap, queue)}"
        self._target = (stone.options["topic"], 0)  # the position is committed for a topic that exists there
        self._group_offsets, self._writer = GroupOffsets(bootstrap), Writer(producer(bootstrap))
        self._member = consumer(self._remote, group=self._remote_group, client=self._client)
        self._remote_site = self._checked_site(stone.name)
        self._accounts = OffsetAccounts(queue)
        self._is_assigned = self._is_standby = self._has_logged_cycle = False
        self._position = self._remote_position = 0

    def _checked_site(self, bridge: str) -> str:
        """Return the remote Kafka's cluster id.

        Raises:
            FlowError: It is our own, or has no such topic.
        """
        metadata, topic = self._member.list_topics(self._target[0], timeout=15), self._target[0]
        if metadata.cluster_id == self._site:
            raise FlowError([f"bridge {bridge} leads to this Kafka itself: end in a topic"])
        if error := metadata.topics[topic].error:
            why = f"{error.str()}; make the topic there"
            raise FlowError([f"bridge {bridge}: {self._remote} has no topic {topic} for it: {why}"])
        return str(metadata.cluster_id)

    def assigned(self, source: Consumer, partitions: list[TopicPartitionOffset]) -> None:
        """Fence off a predecessor; begin at the offsets that both Kafkas have committed."""
        self._is_standby = not partitions
        if self._is_standby:
            return  # another worker has the bridge: do not fence it off
        self._sink, self._is_assigned = self._new_sink(), True
        known = source.committed(partitions, timeout=15)
        resume_queues(self._group_offsets, known)
        for one in known:
            low, high = source.get_watermark_offsets(one, timeout=10)
            self._position = one.offset = first_retained(one, low)
            self._accounts = queue_accounts(self._bootstrap, one.topic, one.offset, high)
        [there] = self._member.committed([TopicPartitionOffset(*self._target)], timeout=15)
        self._remote_position = max(0, there.offset)
        source.assign(known)

    def is_idle(self, source: Consumer) -> bool:
        """Whether there is nothing to copy: another worker has the queue, or it was copied."""
        high = source.get_watermark_offsets(TopicPartitionOffset(*self._queue), cached=True)[1]
        return self._is_standby or (self._is_assigned and 0 <= high <= self._position)

    def revoked(self, source: Consumer, _partitions: list[TopicPartitionOffset]) -> None:
        """Give up the queue."""
        self._is_assigned = False
        source.unassign()

    def copy(self, source: Consumer, messages: list[Message]) -> None:
        """Write *messages* from the remote position on to the remote Kafka; then commit here."""
        if self._is_assigned:
            known = [one for one in messages if (one.offset() or 0) < self._remote_position]
            self._commit(source, known)
            self._copy(source, messages[len(known) :])

    def close(self) -> None:
        """Close the clients."""
        self._group_offsets.keep(())
        self._member.close()

    def _copy(self, source: Consumer, messages: list[Message]) -> None:
        """Write *messages* to the remote Kafka; those too large for it go to dead letters."""
        if not messages:
            return
        try:
            self._transact(messages)
        except KafkaException as error:
            if error_code(error) != KafkaError.MSG_SIZE_TOO_LARGE:
                raise
            self._sink = self._new_sink()  # the old one has gaps in its sequence numbers now
            if half := len(messages) // 2:
                self._copy(source, messages[:half])
                self._copy(source, messages[half:])
                return
            send_message_to_dead_letters(self._writer, messages[0], stage=self._queue[0], reason=str(error))
            self._commit(source, messages, dead=True)
        else:
            self._commit(source, messages)

    def _commit(self, source: Consumer, messages: list[Message], *, dead: bool = False) -> None:
        """Count *messages* as delivered, rejected or *dead*, and commit the position here."""
        if not messages:
            return
        for one in messages:
            again = not dead and has_crossed(one, self._site, self._remote_site)
            self._accounts.count(
                self._queue,
                one.offset() or 0,
                delivered=not (dead or again),
                dead_lettered=dead,
                rejected={CYCLE: 1} if again else None,
            )
        for account in self._accounts.changed():
            write_account(self._writer, account)
        self._writer.flush()
        self._position = (messages[-1].offset() or 0) + 1
        self._remote_position = max(self._remote_position, self._position)
        after = TopicPartitionOffset(*self._queue, self._position)
        source.commit(offsets=[after], asynchronous=False)

    def _transact(self, messages: list[Message]) -> None:
        """Write *messages* and the position after them in one remote transaction.

        Raises:
            KafkaException: Nothing is written; its code says where a record was too large.
        """
        refused, sink = list[KafkaError](), self._sink
        sink.begin_transaction()
        try:
            for one in messages:
                if not has_crossed(one, self._site, self._remote_site):
                    self._write(sink, one, refused)
                elif not self._has_logged_cycle:
                    self._has_logged_cycle = True
                    log.warning(
                        "%s: a cycle over sites: what crossed here before is rejected", self._remote_group
                    )
            sink.flush(TRANSACTION_TIMEOUT / 1000)
            here = [TopicPartitionOffset(*self._target, (messages[-1].offset() or 0) + 1)]
            sink.send_offsets_to_transaction(here, self._member.consumer_group_metadata())
            sink.commit_transaction()
        except KafkaException as error:
            with suppress(KafkaException):
                sink.abort_transaction(10)
            large = [one for one in refused if one.code() == KafkaError.MSG_SIZE_TOO_LARGE]
            raise (KafkaException(large[0]) if large else error) from error

    def _write(self, sink: Producer, message: Message, refused: list[KafkaError]) -> None:
        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                refused.append(error)

        headers = [*(message.headers() or ()), *self._site_headers(message)]
        key = message.key()
        produce(sink, self._target[0], message.value(), key, on_delivery=delivered, headers=headers)
        sink.poll(0)

    def _new_sink(self) -> Producer:
        return transactional_producer(self._remote, self._remote_group, self._client)

    def _site_headers(self, message: Message) -> list[tuple[str, bytes]]:
        values = (self._site, message.partition(), message.offset())
        return [(name, str(value).encode()) for name, value in zip(SITE_HEADERS, values, strict=True)]


def has_crossed(message: Message, here: str, there: str) -> bool:
    """Return whether *message*, at site *here*, went *there* before, as its headers say."""
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    sites = [(value or b"").decode(errors="replace") for name, value in headers if name == SITE_HEADERS[0]]
    return (here, there) in pairwise([*sites, here])


def _topic_id(bootstrap: str, topic: str) -> str:
    """Return the id of *topic*, which differs from that of a deleted topic of its name."""
    client = admin(bootstrap)
    return str(client.describe_topics(TopicCollection([topic]))[topic].result(30).topic_id)


def remote_client_config(stone: Stone) -> dict[str, Any]:
    """Return librdkafka's properties for the remote Kafka, which gets no login of our own.

    Raises:
        Unavailable: The worker lacks the variable that holds the password.
    """
    given = stone.options
    tls = "SSL" if given.get("tls", "user" in given) else "PLAINTEXT"
    if "user" not in given:
        return {"security.protocol": tls}
    return {
        "security.protocol": f"SASL_{tls}",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": given["user"],
        "sasl.password": secret(given.get("password", "")),
    }
