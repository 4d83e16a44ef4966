"""The registrar of a process's interests: written, refreshed, and withdrawn at the end.

Calls do not wait for Kafka.  Kafka's rights are by topic, so where it has passwords only the site's
processes may write `subscriptions`; the directory's process writes for others, each under his own
name.  Where that fails too, it is logged once: readers evaluate their conditions themselves, so
nothing but speed depends on a registration.
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

CLOSE_TIMEOUT = 1.0
"""Longest wait at the end for Kafka to take withdrawals. [s]"""
DIRECTORY_TIMEOUT = 5.0
"""Longest wait for the directory's process. [s]"""
TICK = 0.1
"""Time between two polls of Kafka's answers. [s]"""
QUEUE_TIMEOUT = 5.0
"""Longest wait for room in the client's queue. [s]"""

Effect = Future[int]
"""The offset of the record in `subscriptions`; KafkaException where Kafka did not take it."""


class Registrar:
    """Registers this process's subscriptions and advertisements in the Kafka at *bootstrap*.

    It is used within a ``with`` block, or from `start` to `close`, which withdraws them.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        subscriber: By default our name in Kafka, else user and machine.
        interval: Time between two refreshes; after two missed ones an interest is dead. [s]

    Attributes:
        instance: The id of this run in records.
    """

    def __init__(self, bootstrap: str, subscriber: str | None = None, *, interval: float = REFRESH) -> None:
        self._site = find_endpoints(bootstrap)
        self._subscriber = subscriber or subscriber_name(principal(bootstrap))
        self.instance, self._interval = uuid.uuid4().hex, interval
        self._records: dict[str, bytes] = {}  # by their keys
        self._lock, self._stopping, self._denied = threading.Lock(), threading.Event(), False
        self._warned, self._changed = False, threading.Event()
        self._in_directory = set[str]()  # keys that the directory's process wrote
        self._client = producer(bootstrap, linger_ms=5, delivery_timeout_ms=10_000)
        self._thread = threading.Thread(target=self._run, name="subscriptions", daemon=True)

    def subscribe(
        self,
        name: str,
        topic: str,
        condition: str = "TRUE",
        *,
        channel: str | None = None,
        expires: datetime | None = None,
    ) -> Effect:
        """Subscribe to the events of *topic* for which *condition* holds.

        Args:
            name: Unique among this subscriber's; an earlier interest of the name is replaced.
            topic: Of the events.
            condition: In SQL; TRUE for all.
            channel: The preferred channel; None for any.
            expires: When it ends by itself.

        Raises:
            InterestError: An argument is malformed.
        """
        return self._register(name, topic, condition, kind="subscription", channel=channel, expires=expires)

    def advertise(
        self, name: str, topic: str, condition: str = "TRUE", *, expires: datetime | None = None
    ) -> Effect:
        """Advertise that all events of *topic* meet *condition*; see `subscribe`."""
        return self._register(name, topic, condition, kind="advertisement", expires=expires)

    def _register(self, name: str, topic: str, condition: str, **more: Any) -> Effect:
        identity = (site_name(), self._subscriber, name, topic, condition)
        found = interest(*identity, instance=self.instance, interval=self._interval, **more)
        key, value = interest_key(found), records.SUBSCRIPTION.encode(found)
        self._changed.set()
        with self._lock:
            self._records[key] = value
            return self._write(key, value)

    def withdraw(self, name: str) -> Effect:
        """Withdraw the subscription or advertisement of that name."""
        key = interest_key({"site": site_name(), "subscriber": self._subscriber, "name": name})
        self._changed.set()
        with self._lock:
            self._records.pop(key, None)
            return self._write(key, None)

    unsubscribe = unadvertise = withdraw

    def start(self) -> None:
        """Start the thread that refreshes."""
        self._thread.start()

    def close(self) -> None:
        """Withdraw all, and wait `CLOSE_TIMEOUT` for Kafka."""
        self._stopping.set()
        self._thread.join(CLOSE_TIMEOUT)
        deadline = time.monotonic() + DIRECTORY_TIMEOUT
        with self._lock:
            for key in self._records:
                if not self._denied:
                    self._write(key, None)
                elif time.monotonic() < deadline:
                    self._write_by_directory(key, None)
            self._records.clear()
        self._client.flush(CLOSE_TIMEOUT)  # what is not withdrawn expires

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_failure: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def _run(self) -> None:
        due = time.monotonic() + self._interval
        while not self._stopping.wait(TICK):
            self._client.poll(0)
            if self._denied and self._changed.is_set():
                due = time.monotonic()
            if time.monotonic() >= due:
                due += self._interval
                self._changed.clear()
                self._refresh()

    def _refresh(self) -> None:
        with self._lock:
            current = dict(self._records)
            if not self._denied:
                for key, value in current.items():
                    self._write(key, value)
                return
        for key in sorted(self._in_directory - current.keys()):
            self._write_by_directory(key, None)
        for key, value in current.items():
            self._write_by_directory(key, value)

    def _write_by_directory(self, key: str, value: bytes | None) -> None:
        """Let the directory's process write a record."""
        try:
            if value is not None:
                self._in_directory.add(key)
                ask_directory(self._site, "PUT", "/subscriptions", content=value, timeout=DIRECTORY_TIMEOUT)
            else:
                self._in_directory.discard(key)
                query = urlencode({"subscriber": self._subscriber})
                path = f"/subscriptions/{quote(key.rpartition('/')[2])}?{query}"
                ask_directory(self._site, "DELETE", path, timeout=DIRECTORY_TIMEOUT)
        except SiteHttpError as error:
            self._warn_once(str(error))

    def _write(self, key: str, value: bytes | None) -> Effect:
        effect: Effect = Future()
        deadline = time.monotonic() + QUEUE_TIMEOUT
        while True:
            try:
                settle = self._on_delivery(effect)
                self._client.produce(SUBSCRIPTIONS, value, key, partition=0, on_delivery=settle)
            except BufferError:
                self._client.poll(TICK)
                if time.monotonic() < deadline:
                    continue
                effect.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
            except KafkaException as error:
                effect.set_exception(error)
            return effect

    def _on_delivery(self, effect: Effect) -> Callable[[KafkaError | None, Message], None]:
        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._warned = False
                effect.set_result(message.offset() or 0)
                return
            effect.set_exception(KafkaException(error))
            if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                self._denied = True
                self._changed.set()
            else:
                self._warn_once(error.str())

        return on_delivery

    def _warn_once(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning("others do not see what is read here: %s", why)
