"""Expiry: entries and interests that are gone for long are deleted."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from nightwire.core.kafka import DeliveryError
from nightwire.core.presence import entry_key
from nightwire.core.runtime import Stop
from nightwire.directory.ingest import write
from nightwire.directory.model import SiteRows
from nightwire.schemas.topics import DIRECTORY, SUBSCRIPTIONS

log = logging.getLogger("nightwire.directory")

EXPIRY_INTERVAL = 60.0
"""Time between two searches for those that are gone. [s]"""


@contextmanager
def expiry(bootstrap: str, rows: SiteRows, grace: float) -> Iterator[None]:
    """Delete entries and interests that are gone for longer than *grace* [s], in a thread."""
    stop = Stop()

    def delete(topic: str, gone: list[str]) -> None:
        with suppress(DeliveryError):  # tried again next time
            write(bootstrap, dict.fromkeys(gone), topic)
            for key in gone:
                log.info("%s is taken out: it has been gone for %.0f h", key, grace / 3600)

    def expire() -> None:
        while not stop.wait(min(EXPIRY_INTERVAL, grace)):
            old = rows.expired_entries(grace)
            gone = [entry_key({"site": rows.site, "kind": kind, "name": name}) for kind, name in old]
            delete(DIRECTORY, gone)
            silent = rows.expired_interests(grace)
            delete(SUBSCRIPTIONS, [f"{rows.site}/{who}/{name}" for who, name in silent])

    Thread(target=expire, name="directory-forget", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
