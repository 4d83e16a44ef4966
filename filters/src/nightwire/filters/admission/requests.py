"""Answering owners: `requests.<owner>` in, `filters` and `answers.<owner>` out.

A thread of the engine.  A request's offset is committed after its answer is acknowledged, so a crash
answers it again, and `Catalog.accept` gives it the same version again.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core import kafka
from nightwire.core.accounting import send_message_to_dead_letters
from nightwire.core.kafka import DeliveryError, TopicPartition
from nightwire.core.runtime import Stop, now_ms
from nightwire.filters.admission.service import SubmissionService as Engineer
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.schemas import DecodeError, records
from nightwire.schemas.topics import NameError_, answers, check_name

log = logging.getLogger("nightwire.filters.requests")

GROUP = "nightwire-filters-requests"
REQUESTS = "requests."
OWNER_POLL_S = 0.5
"""Pause between looks for new owners. [s]"""

MAX_REMEMBERED = 1000
"""So many requests are known by their ids: one that comes twice is done once."""

RETRY_PAUSE_S = 1.0
"""Pause when Kafka is away. [s]"""


@dataclass
class RequestConsumer:
    """Reads requests and sends answers, until it is told to stop."""

    bootstrap: str
    engineer: Engineer
    stop: Stop
    _outbox: ControlProducer = field(init=False)
    _answered: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_REMEMBERED))
    _next: dict[TopicPartition, int] = field(default_factory=dict)
    _looked: float = -OWNER_POLL_S
    _consumer: Consumer | None = None

    def __post_init__(self) -> None:
        self._outbox = ControlProducer(self.bootstrap)

    def start(self) -> threading.Thread:
        """Serve in a thread of its own."""
        thread = threading.Thread(target=self.serve, name="requests", daemon=True)
        thread.start()
        return thread

    def serve(self) -> None:
        """Answer requests; wait out a Kafka that is away."""
        while not self.stop.is_set():
            try:
                self.step()
            except (KafkaException, DeliveryError, TimeoutError) as error:
                log.warning("requests wait: %s", error)
                self._forget()
                self.stop.wait(RETRY_PAUSE_S)
            except Exception:
                log.exception("a request could not be handled; trying again")
                self._forget()
                self.stop.wait(RETRY_PAUSE_S)
        self._forget()
        self.engineer.close()

    def step(self) -> None:
        """Wait a moment for a request, and answer it."""
        consumer = self._look()
        message = consumer.poll(0.3) if self._next else None
        if not self._next:
            self.stop.wait(0.3)
        if message is None:
            return
        if (error := message.error()) is not None:
            if error.code() not in kafka.TRANSIENT_ERRORS:
                raise KafkaException(error)
            return
        self._answer(message)
        spot = (str(message.topic()), message.partition() or 0)
        self._next[spot] = (message.offset() or 0) + 1
        consumer.commit(offsets=[TopicPartitionOffset(*spot, self._next[spot])], asynchronous=False)

    def _look(self) -> Consumer:
        """Take in owners who asked for the first time."""
        if self._consumer is None:
            self._consumer = kafka.consumer(self.bootstrap, group=GROUP, fetch_wait_max_ms=200)
        if time.monotonic() - self._looked >= OWNER_POLL_S:
            known = self._consumer.list_topics(timeout=10).topics
            spots = [
                (name, part) for name in known if name.startswith(REQUESTS) for part in known[name].partitions
            ]
            self._assign(self._consumer, [spot for spot in spots if spot not in self._next])
            self._looked = time.monotonic()
        return self._consumer

    def _assign(self, consumer: Consumer, fresh: Sequence[TopicPartition]) -> None:
        if not fresh:
            return
        committed = consumer.committed([TopicPartitionOffset(*spot) for spot in fresh], timeout=10)
        for spot in committed:
            self._next[spot.topic, spot.partition] = spot.offset if spot.offset >= 0 else OFFSET_BEGINNING
        consumer.assign([TopicPartitionOffset(*spot, offset) for spot, offset in self._next.items()])

    def _answer(self, message: Message) -> None:
        owner = str(message.topic()).removeprefix(REQUESTS)
        try:
            request = records.REQUEST.decode(message.value() or b"")
            check_name(owner)
        except (DecodeError, NameError_) as error:
            with self._outbox.writer() as writer:
                send_message_to_dead_letters(writer, message, stage="requests", reason=str(error))
            return
        if request["id"] in self._answered:
            return
        accepted, version, reasons = self.engineer.reply(request, owner)
        answer = {
            "request": request["id"], "accepted": accepted, "owner": owner, "name": request["name"],
            "version": version, "reasons": reasons, "time": now_ms(),
        }  # fmt: skip
        with self._outbox.writer(answers(owner)) as writer:
            writer.write(answers(owner), records.ANSWER.encode(answer), key=request["name"].encode())
        self._answered.append(request["id"])

    def _forget(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._next, self._looked = None, {}, -OWNER_POLL_S
