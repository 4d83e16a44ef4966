"""Playing files of alerts into Kafka, their bytes unchanged."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nightwire.core.accounting import send_to_dead_letters
from nightwire.core.channels import ChannelCopies
from nightwire.core.cli import Meter
from nightwire.core.kafka import MAX_MESSAGE, Writer
from nightwire.core.runtime import Lateness, Stop, on_time
from nightwire.producer.replay.files import Found, Refused, find, read
from nightwire.producer.replay.schema_ids import SchemaIds
from nightwire.producer.visits.counts import STAGE, VisitCounts
from nightwire.producer.visits.visit_topic import REPLAY_HEADER, VISIT_HEADER, VisitTopic
from nightwire.producer.writing.message_format import ContainerFormat
from nightwire.schemas import RegistryAwayError, SchemaError, SchemaRegistry, Survey, topics
from nightwire.schemas.wire import frame, is_container

log = logging.getLogger("nightwire.producer")

MAX_DEAD_LETTER = MAX_MESSAGE - (64 << 10)
"""Most bytes of a refused file that go to `dead-letters`."""
LOGGED_ONE_BY_ONE = 10
"""So many refused files are logged one by one, then each thousandth."""
SECONDS_A_DAY = 86_400.0


@dataclass(frozen=True)
class Pace:
    """When each alert is due.

    Attributes:
        rate: Alerts a second; 0 = at once.
        speed: Keep the times between the alerts, so many times as fast; 0 = do not.
        longest_gap: Shorten longer gaps, as they are played, to this. [s]
    """

    rate: float = 0.0
    speed: float = 0.0
    longest_gap: float = 60.0

    def gap(self, before: float | None, now: float | None) -> float:
        """Return how long after the alert of time *before* that of *now* is due. [s; times in d]"""
        if self.speed:
            if before is None or now is None:
                return 0.0
            return min(self.longest_gap, max(0.0, (now - before) * SECONDS_A_DAY / self.speed))
        return 1.0 / self.rate if self.rate else 0.0


@dataclass(frozen=True)
class Replay:
    """What to play, and how."""

    survey: str
    files: Sequence[Path]
    pace: Pace
    as_is: bool = False
    schemas: Path | None = None


class Player:
    """Writes the alerts of files, and counts them.

    Args:
        survey: The survey of the alerts.
        writer: Writes them.
        registry: Has the schemas, and takes new ones.
        batch: The counts of the whole replay.
        visit_topic: Opens the visits of the alerts.
        channels: Copies what is written to the topic's channels.
        as_is: Pass messages on as they lie in their files.
    """

    def __init__(
        self,
        survey: Survey,
        writer: Writer,
        registry: SchemaRegistry,
        batch: VisitCounts,
        visit_topic: VisitTopic,
        *,
        channels: ChannelCopies,
        as_is: bool = False,
    ) -> None:
        self._survey, self._writer, self._registry = survey, writer, registry
        self._ids = SchemaIds(registry, survey.name)
        self._as_is, self._channels = as_is, channels
        self._visit_topic = visit_topic
        self._topic = topics.alerts(survey.name)
        self._as_container = topics.settings(self._topic).format == "container"
        self._refused: list[Refused] = []
        self._formats: dict[int, ContainerFormat] = {}
        self._replay = (REPLAY_HEADER, str(batch.visit).encode())
        self.batch = batch
        self.visits: dict[int, VisitCounts] = {}

    def items(self, files: Sequence[Path]) -> Iterator[tuple[Path, Found | Refused]]:
        """Yield the alerts in *files* and folders; other files of folders are named in the log."""
        wanted, left_aside = find(files)
        if left_aside:
            log.warning("left aside, neither .avro nor .cwf: %s", ", ".join(map(str, left_aside)))
        for path in wanted:
            for item in read(path, self._survey, self._registry):
                yield path, item

    def play(self, path: Path, item: Found | Refused) -> None:
        """Write one alert of *path*, or its bytes to `dead-letters` where it could not be read.

        Raises:
            DeliveryError: Kafka did not take an earlier record.
            RegistryAwayError: The alert's schema is new, and the registry does not answer.
        """
        self.batch.offered += 1
        if isinstance(item, Refused):
            self._send_to_dead_letters(item)
            return
        try:
            value = self._value(item)
        except RegistryAwayError:
            self.batch.offered -= 1
            raise
        except SchemaError as error:
            self._send_to_dead_letters(Refused(path, str(error), item.body))
            return
        headers, delivered = self._visit(item)
        if is_container(value):
            headers += ContainerFormat.headers()
        self._writer.write(
            self._topic,
            value,
            key=item.key,
            headers=headers,
            on_delivered=self._channels.after(delivered, headers),
            on_refused=lambda error: self._refused.append(Refused(path, error.str(), value)),
        )

    def _visit(self, item: Found) -> tuple[list[tuple[str, bytes]], Callable[..., None]]:
        """Return an alert's headers and the callback that counts it; open its visit if new."""
        number = self._survey.visit(item.alert)
        if number is None:
            return [self._replay], self.batch.delivered
        if number not in self.visits:
            self.visits[number] = self._visit_topic.open(number)
        visit = self.visits[number]
        visit.offered += 1

        def delivered(message: object) -> None:
            self.batch.delivered(message)  # type: ignore[arg-type]
            visit.delivered(message)  # type: ignore[arg-type]

        return [(VISIT_HEADER, str(number).encode()), self._replay], delivered

    def _value(self, item: Found) -> bytes:
        if self._as_is:
            if item.message is None:
                raise SchemaError("a container of several alerts is no message: leave --format as-is out")
            return item.message
        schema_id = item.schema_id
        if schema_id is None:
            schema_id = self._ids.id(item.schema or {})
        return self._container(schema_id, item) if self._as_container else frame(schema_id, item.body)

    def _container(self, schema_id: int, item: Found) -> bytes:
        if schema_id not in self._formats:
            self._formats[schema_id] = ContainerFormat(item.schema or self._registry.schema(schema_id))
        return self._formats[schema_id].value(item.body)

    def finish(self) -> None:
        """Wait for acknowledgements; write alerts that the topic refused to `dead-letters`.

        Raises:
            DeliveryError: Kafka did not take a record.
        """
        self._writer.flush()
        for refused in self._refused:
            self._send_to_dead_letters(refused)
        self._refused.clear()
        self._writer.flush()

    def _send_to_dead_letters(self, refused: Refused) -> None:
        count = self.batch.dead_lettered = self.batch.dead_lettered + 1
        if count <= LOGGED_ONE_BY_ONE or count % 1000 == 0:
            log.warning("refused (%d so far): %s: %s", count, refused.path, refused.reason)
        reason, content = refused.reason, refused.content
        if len(content) > MAX_DEAD_LETTER:
            reason += f" (the first {MAX_DEAD_LETTER} of {len(content)} bytes)"
        source = str(refused.path)
        send_to_dead_letters(
            self._writer, content[:MAX_DEAD_LETTER], stage=STAGE, source=source, reason=reason
        )


def play_all(
    player: Player, replay: Replay, survey: Survey, *, stop: Stop, meter: Meter, clock: Callable[[], float]
) -> Lateness:
    """Play the files of *replay* at its pace until they end or *stop* is set; return the lateness.

    Raises:
        DeliveryError: Kafka did not take an alert.
        RegistryAwayError: A schema is new, and the registry does not answer.
    """
    lateness = Lateness()
    due, before = clock(), None
    for path, item in player.items(replay.files):
        if stop.is_set():
            break
        if isinstance(item, Found):
            moment = survey.view(item.alert).mjd_tai if replay.pace.speed else None
            due, before = due + replay.pace.gap(before, moment), moment
            if next(on_time([due], clock=clock, idle=stop.wait), None) is None:
                break
        player.play(path, item)
        if replay.pace.speed or replay.pace.rate:
            lateness.note(clock() - due)
        meter.advance()
    return lateness


def by_visit(visits: Mapping[int, VisitCounts]) -> list[VisitCounts]:
    """Return the counts of *visits*, in the order of their numbers."""
    return [counts for _number, counts in sorted(visits.items())]
