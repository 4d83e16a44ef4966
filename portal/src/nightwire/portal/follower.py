"""The follower: a thread that reads alerts' topics as a public reader."""

import logging
from collections.abc import Sequence
from threading import Thread

from confluent_kafka import KafkaException

from nightwire.consumers import AlertReader, BadRecord, GroupError, ReceivedAlert, TopicError
from nightwire.consumers.returns import ReturnError, as_return
from nightwire.core.kafka import admin, error_text
from nightwire.core.runtime import Backoff, Endpoints, Stop
from nightwire.core.voevents import post
from nightwire.portal.model import Classification, RecentAlerts, rows_of
from nightwire.portal.records import StampCache
from nightwire.schemas import MendableError
from nightwire.schemas.topics import VOEVENTS

log = logging.getLogger("nightwire.portal")

RETURNS = "returns."
"""Prefix of the topics of community brokers' classifications."""
BATCH, WAIT = 256, 0.5
"""Most alerts of a batch, and the longest wait for so many. [s]"""
FETCH_WAIT = 0.5
"""How long Kafka gathers an answer: pages change twice a second, so that all viewers see the same,
and Kafka sends twice a second instead of each alert by itself. [s]"""


def is_shown(topic: str) -> bool:
    """Whether *topic* holds alerts or VOEvents that pages show, or what brokers sent back."""
    return topic == VOEVENTS or topic.startswith(("alerts.", "filter.", RETURNS))


class Follower:
    """Reads alerts, VOEvents and classifications into *recent*.

    Args:
        where: The site's addresses.
        recent: Takes the rows.
        stamps: Takes the stamps of the newest alerts.
        last: Alerts of each topic to begin with.

    Attributes:
        undecodable: Number of records that could not be read.
        trouble: Why nothing comes in; empty where all is well.
    """

    def __init__(self, where: Endpoints, recent: RecentAlerts, stamps: StampCache, last: int) -> None:
        self._where, self._recent, self._stamps, self._last = where, recent, stamps, last
        self._admin, self._known = admin(where.kafka), list[str]()
        self._stop, self._thread = Stop(), Thread(target=self._run, name="portal-follow", daemon=True)
        self._backoff = Backoff()
        self.undecodable, self.trouble = 0, "Kafka has not answered yet"

    @property
    def topics(self) -> Sequence[str]:
        """Names of the topics that are shown."""
        return self._known

    @property
    def ready(self) -> bool:
        """Whether Kafka answers."""
        return not self.trouble

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; waits 10 s at most."""
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._read()
            except (KafkaException, TopicError, GroupError, MendableError) as error:
                known = error_text(error) if isinstance(error, KafkaException) else error
                self.trouble = f"{known}; trying again"
                log.warning("reading begins anew: %s", known)
            except Exception as error:  # whatever it is: pages show it, and reading goes on
                log.exception("reading begins anew")
                self.trouble = f"{type(error).__name__}: {error}"
            self._stop.wait(self._backoff.next())

    def _read(self) -> None:
        self._recent.expect_repeats()
        reader = AlertReader(
            self._list_topics,
            bootstrap=self._where.kafka,
            registry=self._where.schema_registry,
            last=self._last,
            on_bad=self._on_bad_record,
            fetch_wait=FETCH_WAIT,
            needs_schema=False,  # a survey's alerts do not wait for another's registry
            stopped=self._stop.is_set,
        )
        with reader:
            for batch in reader.batches(size=BATCH, wait=WAIT):
                self._add(batch)
                self._backoff.reset()

    def _add(self, batch: Sequence[ReceivedAlert]) -> None:
        alerts = [alert for alert in batch if not alert.topic.startswith(RETURNS)]
        try:
            rows = rows_of(alerts)
        except Exception:  # whatever a stranger's alert leads to; that alert alone is left out
            if len(batch) > 1:
                for one in batch:
                    self._add([one])
                return
            log.exception("%s cannot be shown", batch[0].place)
            self.undecodable += 1
            return
        for row, alert in zip(rows, alerts, strict=True):
            self._stamps.add(row.record_id, {name: stamp.raw for name, stamp in alert.stamps.items()})
        self._recent.add(rows)
        for alert in batch:
            self._add_extras(alert)

    def _add_extras(self, alert: ReceivedAlert) -> None:
        """Add what is no row: a VOEvent for threads, a community broker's classification."""
        if alert.topic == VOEVENTS:
            self._recent.add_post(post(alert.alert))
        if alert.topic.startswith(RETURNS):
            try:
                self._recent.add_classification(alert.topic, _classification(alert))
            except ReturnError as error:
                self.undecodable += 1
                log.debug("%s is no classification: %s", alert.place, error)

    def _list_topics(self) -> Sequence[str]:
        """Return the topics that are shown; the last known ones while Kafka is unavailable."""
        try:
            self._known = sorted(filter(is_shown, self._admin.list_topics(timeout=5).topics))
            self.trouble = ""
        except KafkaException as error:
            self.trouble = f"Kafka does not answer: {error_text(error)}"
        return self._known

    def _on_bad_record(self, record: BadRecord) -> None:
        self.undecodable += 1
        log.debug("%s holds no alert: %s", record.place, record.reason)


def _classification(alert: ReceivedAlert) -> Classification:
    """Return the classification in a community broker's record.

    Raises:
        ReturnError: It holds none.
    """
    broker = alert.topic.removeprefix(RETURNS)
    found = as_return(alert, broker)
    classes = {str(one.class_id): one.probability for one in found.classifications}
    return Classification(broker, f"{found.classifier} {found.version}", str(found.alert_id), classes)
