"""Reading `returns.<broker>` from Kafka; what cannot be used goes to `dead-letters`, by name."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from nightwire.consumers.reader.read_loop import BadRecord
from nightwire.consumers.reader.reader import AlertReader
from nightwire.consumers.returns.broker_message import Return, ReturnError, as_return
from nightwire.core import kafka
from nightwire.core.accounting import send_to_dead_letters
from nightwire.core.kafka import Writer
from nightwire.core.runtime import find_endpoints
from nightwire.schemas.topics import returns

STAGE = "returns"
"""Who buries them."""


@dataclass(frozen=True)
class BadReturn:
    """A record that cannot be used: its place, its bytes, and all that is wrong with it."""

    place: str
    value: bytes
    reason: str


class ReturnReader:
    """Read what a community broker sends back: iterate, and what cannot be used is passed over and told.

    Without *group* it begins with the oldest, or with *since* or *last*; with one it goes on where the group
    was, as `AlertReader` does.

    Args:
        broker: Whose.
        group: Name of the consumer group.
        bootstrap: Kafka's address; by default as `AlertReader` finds it.
        registry: URL of the schema registry, which knows the broker's schema; likewise.
        survey: Whose alerts they speak of; by default by the header ``survey``, else by what ids there are.
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
        where: dict[str, Any] = {"bootstrap": bootstrap, "registry": registry, "survey": survey}
        how: dict[str, Any] = {"group": group, "since": since, "last": last, "follow": follow}
        self._reader = AlertReader(returns(broker), **where, **how, on_bad=self._unreadable)

    def __enter__(self) -> Self:
        self._reader.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reader.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[Return]:
        """Yield what can be used.

        Raises:
            TopicError: There is no such broker.
            KafkaException: Kafka cannot be reached.
        """
        for received in self._reader:
            try:
                found = as_return(received, self._broker)
            except ReturnError as error:
                place = f"{received.topic}[{received.partition}]@{received.offset}"
                self._tell(BadReturn(place, received.value, str(error)))
            else:
                self.good += 1
                yield found

    def _unreadable(self, record: BadRecord) -> None:
        place = f"{record.topic}[{record.partition}]@{record.offset}"
        self._tell(BadReturn(place, record.value or b"", record.reason))

    def _tell(self, bad: BadReturn) -> None:
        self.bad += 1
        if self._on_bad is not None:
            self._on_bad(bad)


class DeadLetterSink:
    """Sends what cannot be used to `dead-letters`, and returns once it is there.

    Args:
        bootstrap: Kafka's address; by default as `AlertReader` finds it.
    """

    def __init__(self, bootstrap: str | None = None) -> None:
        self._writer = Writer(kafka.producer(find_endpoints(bootstrap).kafka))

    def __call__(self, bad: BadReturn) -> None:
        """Bury *bad*.

        Raises:
            DeliveryError: Kafka did not take it.
        """
        send_to_dead_letters(self._writer, bad.value, stage=STAGE, source=bad.place, reason=bad.reason)
        self._writer.flush()
