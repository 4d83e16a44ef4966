"""Reading `returns.<broker>`; what cannot be used is reported, or sent to `dead-letters`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from nightwire.consumers.reader import AlertReader, BadRecord
from nightwire.consumers.returns.broker_message import Return, ReturnError, as_return
from nightwire.core import kafka
from nightwire.core.accounting import send_to_dead_letters
from nightwire.core.kafka import Writer, enter
from nightwire.core.runtime import find_endpoints
from nightwire.schemas.topics import returns

STAGE = "returns"
"""The stage that the dead letters of returns name."""


@dataclass(frozen=True)
class BadReturn:
    """A record that cannot be used: its place, its bytes, and all that is wrong with it."""

    place: str
    value: bytes
    reason: str


class ReturnReader:
    """Read what a community broker sends back; what cannot be used is reported and skipped.

    Without *group* it begins with the oldest, or with *since* or *last*; with one it goes on where
    the group was, as `AlertReader` does.

    Args:
        broker: Name of the broker.
        group: Name of the consumer group.
        bootstrap: Kafka's address; by default as `AlertReader` finds it.
        registry: URL of the schema registry, which knows the broker's schema; likewise.
        survey: Whose alerts they are about; by default by the header ``survey``, else by the ids.
        since: Begin with what was written so long ago, or at that time.
        last: Begin with the newest so many.
        follow: Wait for more at the end.
        on_bad: Called with each record that cannot be used, before it counts as done.

    Raises:
        NameError_: The broker's name can be part of no topic.
        NoStackError: No Kafka is named, and none runs here.
    """

    def __init__(
        self,
        broker: str,
        *,
        group: str | None = None,
        bootstrap: str | None = None,
        registry: str | None = None,
        survey: str | None = None,
        since: timedelta | datetime | None = None,
        last: int | None = None,
        follow: bool = False,
        on_bad: Callable[[BadReturn], None] | None = None,
    ) -> None:
        self._broker, self._on_bad = broker, on_bad
        self.good, self.bad = 0, 0
        self._reader = AlertReader(
            returns(broker),
            group=group,
            bootstrap=bootstrap,
            registry=registry,
            survey=survey,
            since=since,
            last=last,
            follow=follow,
            on_bad=self._reject_undecodable,
        )

    def __enter__(self) -> Self:
        self._reader.open()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._reader.__exit__(*failure)

    def __iter__(self) -> Iterator[Return]:
        """Yield what can be used.

        Raises:
            TopicError: There is no such broker.
            KafkaException: Kafka cannot be reached.
        """
        for alert in self._reader:
            try:
                item = as_return(alert, self._broker)
            except ReturnError as error:
                self._reject(BadReturn(alert.place, alert.value, str(error)))
            else:
                self.good += 1
                yield item

    def _reject_undecodable(self, record: BadRecord) -> None:
        self._reject(BadReturn(record.place, record.value or b"", record.reason))

    def _reject(self, bad: BadReturn) -> None:
        self.bad += 1
        if self._on_bad is not None:
            self._on_bad(bad)


class DeadLetterSink:
    """Sends what cannot be used to `dead-letters`, and returns once it is there.

    Args:
        bootstrap: Kafka's address; by default as `AlertReader` finds it.
    """

    def __init__(self, bootstrap: str | None = None) -> None:
        self._writer = Writer(kafka.producer(enter(find_endpoints(bootstrap).kafka)))

    def __call__(self, bad: BadReturn) -> None:
        """Send *bad*.

        Raises:
            DeliveryError: Kafka did not take it.
        """
        send_to_dead_letters(self._writer, bad.value, stage=STAGE, source=bad.place, reason=bad.reason)
        self._writer.flush()
