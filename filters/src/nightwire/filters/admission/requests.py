"""The thread that answers owners: `requests.<owner>` in, `filters` and `answers.<owner>` out.

A request's offset is committed after its answer is acknowledged.  So after a crash it is answered
again, and `Catalog.accept` gives it the same version again.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core import kafka
from nightwire.core.accounting import send_message_to_dead_letters
from nightwire.core.kafka import DeliveryError, TopicPartition
from nightwire.core.runtime import Stop, now_ms
from nightwire.filters.admission.service import SubmissionService
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.schemas import DecodeError, records
from nightwire.schemas.topics import NameError_, answers, check_name

log = logging.getLogger("nightwire.filters.requests")

GROUP = "nightwire-filters-requests"
TOPIC_PREFIX = "requests."
OWNER_POLL_S = 0.5
"""Pause between two searches for new owners. [s]"""

MAX_REMEMBERED = 1000
"""Latest requests known by their ids: one that comes twice is answered once."""

RETRY_PAUSE_S = 1.0
"""Pause while Kafka is away. [s]"""


class RequestConsumer:
    """Reads requests and sends answers, until it is stopped.

    Args:
        bootstrap: Kafka's address.
        service: Decides about requests.
        stop: Ends the thread.
    """

    def __init__(self, bootstrap: str, service: SubmissionService, stop: Stop) -> None:
        self._bootstrap, self._service, self._stop = bootstrap, service, stop
        self._producer = ControlProducer(bootstrap)
        self._answered: deque[str] = deque(maxlen=MAX_REMEMBERED)
        self._consumer: Consumer | None = None
        self._next: dict[TopicPartition, int] = {}
        self._searched = -OWNER_POLL_S

    def start(self) -> threading.Thread:
        """Serve in a thread of its own."""
        thread = threading.Thread(target=self.serve, name="requests", daemon=True)
        thread.start()
        return thread

    def serve(self) -> None:
        """Answer requests; wait while Kafka is away."""
        while not self._stop.is_set():
            try:
                self.step()
            except (KafkaException, DeliveryError, TimeoutError) as error:
                log.warning("requests wait: %s", error)
                self._start_again()
            except Exception:
                log.exception("a request could not be handled; trying again")
                self._start_again()
        self._close()
        self._service.close()

    def _start_again(self) -> None:
        self._close()
        self._stop.wait(RETRY_PAUSE_S)

    def _close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._next, self._searched = None, {}, -OWNER_POLL_S

    def step(self) -> None:
        """Wait a moment for a request, and answer it."""
        consumer = self._assigned()
        message = consumer.poll(0.3) if self._next else None
        if not self._next:
            self._stop.wait(0.3)
        if message is None:
            return
        if (error := message.error()) is not None:
            if error.code() not in kafka.TRANSIENT_ERRORS:
                raise KafkaException(error)
            return
        self._answer(message)
        self._commit(consumer, message)

    def _assigned(self) -> Consumer:
        """Return the consumer, which reads the requests of new owners as well."""
        if self._consumer is None:
            self._consumer = kafka.consumer(self._bootstrap, group=GROUP, fetch_wait_max_ms=200)
        if time.monotonic() - self._searched >= OWNER_POLL_S:
            self._assign(self._consumer, self._new_partitions(self._consumer))
            self._searched = time.monotonic()
        return self._consumer

    def _assign(self, consumer: Consumer, added: Sequence[TopicPartition]) -> None:
        """Read the *added* partitions too, from their committed offsets or their beginnings."""
        if not added:
            return
        committed = consumer.committed([TopicPartitionOffset(*partition) for partition in added], timeout=10)
        for one in committed:
            self._next[one.topic, one.partition] = one.offset if one.offset >= 0 else OFFSET_BEGINNING
        consumer.assign(
            [TopicPartitionOffset(*partition, offset) for partition, offset in self._next.items()]
        )

    def _new_partitions(self, consumer: Consumer) -> list[TopicPartition]:
        """Return the partitions of the owners' topics that are not read yet."""
        topics = consumer.list_topics(timeout=10).topics
        partitions = [
            (name, number)
            for name in topics
            if name.startswith(TOPIC_PREFIX)
            for number in topics[name].partitions
        ]
        return [partition for partition in partitions if partition not in self._next]

    def _commit(self, consumer: Consumer, message: Message) -> None:
        partition = (str(message.topic()), message.partition() or 0)
        self._next[partition] = (message.offset() or 0) + 1
        consumer.commit(offsets=[TopicPartitionOffset(*partition, self._next[partition])], asynchronous=False)

    def _answer(self, message: Message) -> None:
        owner = str(message.topic()).removeprefix(TOPIC_PREFIX)
        try:
            request = records.REQUEST.decode(message.value() or b"")
            check_name(owner)
        except (DecodeError, NameError_) as error:
            with self._producer.writer() as writer:
                send_message_to_dead_letters(writer, message, stage="requests", reason=str(error))
            return
        if request["id"] in self._answered:
            return
        accepted, version, reasons = self._service.reply(request, owner)
        answer = {
            "request": request["id"], "accepted": accepted, "owner": owner, "name": request["name"],
            "version": version, "reasons": reasons, "time": now_ms(),
        }  # fmt: skip
        with self._producer.writer(answers(owner)) as writer:
            writer.write(answers(owner), records.ANSWER.encode(answer), key=request["name"].encode())
        self._answered.append(request["id"])
