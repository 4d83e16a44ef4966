"""The thread that answers owners: `requests.<owner>` in, `filters` and `answers.<owner>` out.

A request's offset is committed after its answer is acknowledged.  So after a crash it is answered
again, and `Catalog.accept` gives it the same version again.

Every request is answered.  One that makes the engine fail is answered as refused, kept with its
text in `dead-letters`, and the next is taken; only while Kafka is away do requests wait.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core import kafka
from nightwire.core.accounting import send_message_to_dead_letters
from nightwire.core.kafka import DeliveryError, TopicPartition
from nightwire.core.runtime import Stop
from nightwire.filters.admission.answers import MAX_NAME, answer_record, cut, identified
from nightwire.filters.admission.service import SubmissionService
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.schemas import DecodeError, records
from nightwire.schemas.topics import NAME, NameError_, answers, check_name

log = logging.getLogger("nightwire.filters.requests")

GROUP = "nightwire-filters-requests"
TOPIC_PREFIX = "requests."
OWNER_POLL_S = 0.5
"""Pause between two searches for new owners. [s]"""

MAX_REMEMBERED = 1000
"""Latest requests known by their ids: one that comes twice is answered once."""

RETRY_PAUSE_S = 1.0
"""Pause while Kafka is away. [s]"""

ANSWER_S = 30.0
"""After this no new attempt is made at a request while Kafka answers: it is refused. [s]"""

MAX_LOGGED = 500
"""Longest error that is logged and dead-lettered. [character]"""

KEPT = "it is kept with its text in dead-letters, for whoever runs this engine"

ACCEPTED, REFUSED, FAILED = "accepted", "refused", "failed"
"""What became of a request; *failed*: it made the engine fail, and is a dead letter."""


class RequestConsumer:
    """Reads requests and sends answers, until it is stopped.

    Args:
        bootstrap: Kafka's address.
        service: Decides about requests.
        stop: Ends the thread.
        count: Is called with what became of each request.
    """

    def __init__(
        self,
        bootstrap: str,
        service: SubmissionService,
        stop: Stop,
        count: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._bootstrap, self._service, self._stop, self._count = bootstrap, service, stop, count
        self._producer = ControlProducer(bootstrap)
        self._answered: deque[tuple[str, str]] = deque(maxlen=MAX_REMEMBERED)
        self._tried: tuple[Any, float] = (None, 0.0)
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
                log.warning("requests wait: %s", cut(str(error), MAX_LOGGED))
                self._start_again()
            except Exception:
                log.exception("reading requests failed; trying again")
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
        """Answer the request in *message*, whatever it does to us.

        Raises:
            KafkaException: Kafka does not answer; the request has time left.
            DeliveryError: Likewise.
        """
        owner = str(message.topic()).removeprefix(TOPIC_PREFIX)
        try:
            check_name(owner)
            self._reply(records.REQUEST.decode(message.value() or b""), owner)
        except (KafkaException, DeliveryError, TimeoutError) as error:
            if not self._is_late(message):
                raise
            self._give_up(message, owner, f"was not done after {ANSWER_S:g} s: {error}")
        except (DecodeError, NameError_) as error:
            self._give_up(message, owner, f"cannot be read: {error}")
        except Exception as error:  # noqa: BLE001 - no request may keep the next from being answered
            self._give_up(message, owner, f"made the engine fail: {type(error).__name__}: {error}")

    def _is_late(self, message: Message) -> bool:
        """Return whether *message* has been tried for too long."""
        which = (message.topic(), message.partition(), message.offset())
        if self._tried[0] != which:
            self._tried = (which, time.monotonic())
        return time.monotonic() - self._tried[1] > ANSWER_S

    def _reply(self, request: Mapping[str, Any], owner: str) -> None:
        if (owner, request["id"]) in self._answered:
            return
        if len(request["id"]) > MAX_NAME:
            raise DecodeError(f"its id has {len(request['id']):,} characters, limit is {MAX_NAME}")
        accepted, version, reasons = self._service.reply(request, owner)
        self._send(answer_record(request, owner, accepted=accepted, version=version, reasons=reasons))
        self._answered.append((owner, request["id"]))
        self._count(ACCEPTED if accepted else REFUSED)

    def _give_up(self, message: Message, owner: str, why: str) -> None:
        """Keep *message* as a dead letter, and answer that it is refused, where it can be."""
        why = cut(f"this request {why}", MAX_LOGGED)
        log.error("%s[%s]@%s: %s", message.topic(), message.partition(), message.offset(), why)
        with self._producer.writer() as writer:
            send_message_to_dead_letters(writer, message, stage="requests", reason=why)
        if NAME.fullmatch(owner) and (request := identified(message.value() or b"")):
            self._send(answer_record(request, owner, accepted=False, version=0, reasons=[why, KEPT]))
        self._count(FAILED)

    def _send(self, answer: Mapping[str, Any]) -> None:
        topic = answers(str(answer["owner"]))
        with self._producer.writer(topic) as writer:
            writer.write(topic, records.ANSWER.encode(answer), key=str(answer["name"]).encode())
