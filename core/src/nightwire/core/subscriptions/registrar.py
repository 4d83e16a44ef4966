"""A process says what it wants of topics, keeps saying it, and takes it back at the end.

Nobody waits for Kafka.  Kafka's rights end at topics, so where it asks for passwords it lets nobody
write the topic but the site's processes; the directory's process does it for others, each under his
own name.  Where that cannot be either, it is said once: whoever reads judges by itself what it
gets, so that nothing but speed depends on what is said here.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from confluent_kafka import KafkaError, KafkaException, Message

from nightwire.core.kafka import principal, producer
from nightwire.core.presence import SiteHttpError, ask_directory
from nightwire.core.runtime import find_endpoints, site_name
from nightwire.core.subscriptions.interest import REFRESH, interest, interest_key, subscriber_name
from nightwire.schemas import records
from nightwire.schemas.topics import SUBSCRIPTIONS

log = logging.getLogger("nightwire.subscriptions")

GOODBYE = 1.0
"""Longest wait at the end for Kafka to take what was taken back. [s]"""
PATIENCE = 5.0
"""Longest wait for the directory's process. [s]"""
TICK = 0.1
"""Time between two looks at what Kafka answered. [s]"""
WHILE_FULL = 5.0
"""Longest wait for room in the client's queue. [s]"""

Effect = Future[int]
"""The offset in `subscriptions` from which something holds; KafkaException where Kafka did not take
it from us."""


class Registrar:
    """Says to the Kafka at *bootstrap* what this process wants, and what it offers.

    It is used within a ``with`` block, or from `start` to `close`, when all is taken back.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        subscriber: Who says so; by default our name in Kafka, else user and machine.
        interval: Time between two refreshes; whoever is silent for two is taken for dead. [s]

    Attributes:
        instance: This run, as records name it.
    """

    def __init__(self, bootstrap: str, subscriber: str | None = None, *, interval: float = REFRESH) -> None:
        self._site = find_endpoints(bootstrap)
        self._who = subscriber or subscriber_name(principal(bootstrap))
        self.instance, self._interval = uuid.uuid4().hex, interval
        self._held: dict[str, bytes] = {}  # records by their keys
        self._lock, self._leave, self._refused = threading.Lock(), threading.Event(), False
        self._told, self._changed = False, threading.Event()
        self._elsewhere = set[str]()  # keys of what the directory's process wrote
        self._client = producer(bootstrap, linger_ms=5, delivery_timeout_ms=10_000)
        self._thread = threading.Thread(target=self._keep_saying, name="subscriptions", daemon=True)

    def subscribe(
        self,
        name: str,
        topic: str,
        condition: str = "TRUE",
        *,
        channel: str | None = None,
        expires: datetime | None = None,
    ) -> Effect:
        """Say that events of *topic* are wanted on which *condition* holds.

        Args:
            name: Unique among this subscriber's; what it was said of before no longer holds.
            topic: Whose events.
            condition: In SQL; TRUE for all.
            channel: The channel by which they are wanted; None where that does not matter.
            expires: When it ends by itself.

        Raises:
            InterestError: That cannot be.
        """
        return self._say(name, topic, condition, kind="subscription", channel=channel, expires=expires)

    def advertise(
        self, name: str, topic: str, condition: str = "TRUE", *, expires: datetime | None = None
    ) -> Effect:
        """Say that what is written to *topic* meets *condition*; see `subscribe`."""
        return self._say(name, topic, condition, kind="advertisement", expires=expires)

    def _say(self, name: str, topic: str, condition: str, **more: Any) -> Effect:
        who = (site_name(), self._who, name, topic, condition)
        found = interest(*who, instance=self.instance, interval=self._interval, **more)
        key, value = interest_key(found), records.SUBSCRIPTION.encode(found)
        self._changed.set()
        with self._lock:
            self._held[key] = value
            return self._write(key, value)

    def take_back(self, name: str) -> Effect:
        """Say that the subscription or advertisement of that name no longer holds."""
        key = interest_key({"site": site_name(), "subscriber": self._who, "name": name})
        self._changed.set()
        with self._lock:
            self._held.pop(key, None)
            return self._write(key, None)

    unsubscribe = unadvertise = take_back

    def start(self) -> None:
        """Begin to keep saying it."""
        self._thread.start()

    def close(self) -> None:
        """Take all back, and wait a moment for Kafka to take that."""
        self._leave.set()
        self._thread.join(GOODBYE)
        deadline = time.monotonic() + PATIENCE
        with self._lock:
            for key in self._held:
                if not self._refused:
                    self._write(key, None)
                elif time.monotonic() < deadline:
                    self._say_elsewhere(key, None)
            self._held.clear()
        self._client.flush(GOODBYE)  # who fails to say so is missed

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_failure: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def _keep_saying(self) -> None:
        due = time.monotonic() + self._interval
        while not self._leave.wait(TICK):
            self._client.poll(0)
            if self._refused and self._changed.is_set():
                due = time.monotonic()
            if time.monotonic() >= due:
                due += self._interval
                self._changed.clear()
                self._refresh()

    def _refresh(self) -> None:
        with self._lock:
            held = dict(self._held)
            if not self._refused:
                for key, value in held.items():
                    self._write(key, value)
                return
        for key in sorted(self._elsewhere - held.keys()):
            self._say_elsewhere(key, None)
        for key, value in held.items():
            self._say_elsewhere(key, value)

    def _say_elsewhere(self, key: str, value: bytes | None) -> None:
        """Have the directory's process write a record."""
        try:
            if value is not None:
                self._elsewhere.add(key)
                ask_directory(self._site, "PUT", "/subscriptions", content=value, timeout=PATIENCE)
            else:
                self._elsewhere.discard(key)
                path = (
                    f"/subscriptions/{quote(key.rpartition('/')[2])}?{urlencode({'subscriber': self._who})}"
                )
                ask_directory(self._site, "DELETE", path, timeout=PATIENCE)
        except SiteHttpError as error:
            self._tell(str(error))

    def _write(self, key: str, value: bytes | None) -> Effect:
        effect: Effect = Future()
        deadline = time.monotonic() + WHILE_FULL
        while True:
            try:
                self._client.produce(SUBSCRIPTIONS, value, key, partition=0, on_delivery=self._settle(effect))
            except BufferError:
                self._client.poll(TICK)
                if time.monotonic() < deadline:
                    continue
                effect.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
            except KafkaException as error:
                effect.set_exception(error)
            return effect

    def _settle(self, effect: Effect) -> Callable[[KafkaError | None, Message], None]:
        def settle(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._told = False
                effect.set_result(message.offset() or 0)
                return
            effect.set_exception(KafkaException(error))
            if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                self._refused = True
                self._changed.set()
            else:
                self._tell(error.str())

        return settle

    def _tell(self, why: str) -> None:
        if not self._told:
            self._told = True
            log.warning("others do not see what is read here: %s", why)
