"""Reading derived topics, whose headers say an alert's survey, and whether a backfill sent it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Message

from nightwire.filters.model.chains import is_derived
from nightwire.filters.model.messages import BACKFILL, RangeCounts, Row
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.alerts import RecordSource, undecodable_row
from nightwire.filters.reading.fetch import ExpiredCount


class RecordGroup(NamedTuple):
    """Records that are judged together: of one survey, all live or all sent by backfills."""

    survey: str
    backfilled: bool = False


UNKNOWN_SURVEY = RecordGroup("")
"""Records whose headers name no known survey."""


@dataclass(frozen=True)
class GroupSource(RecordSource):
    """Some records of ranges that were fetched before."""

    fetched: "FetchedRecords"
    group: "RecordGroup"

    def records(self, work: OffsetRange, expired: ExpiredCount) -> Iterator[Sequence[Message]]:
        """Yield the records of a range; expired offsets were counted when they were fetched."""
        yield self.fetched.messages.get((work, self.group), [])


@dataclass(frozen=True)
class FetchedRecords:
    """All records of some ranges.

    Attributes:
        source: Where they come from.
        messages: The records, by range and group.
        expired: Offsets that had expired, by range.
    """

    source: RecordSource
    messages: dict[tuple[OffsetRange, "RecordGroup"], list[Message]]
    expired: dict[OffsetRange, int]

    @property
    def groups(self) -> "list[RecordGroup]":
        """The groups of which there are alerts, in order."""
        return sorted({group for _, group in self.messages} - {UNKNOWN_SURVEY})

    def of(self, group: "RecordGroup") -> RecordSource:
        """Return the source of the records of one group."""
        return GroupSource(self.source.consumer, self.source.decoder, self.source.registry, self, group)

    def rest(self) -> Iterator[Row]:
        """Yield rows for records of unknown surveys, and counts of these and of expired offsets."""
        for work, expired in self.expired.items():
            unknown = self.messages.get((work, UNKNOWN_SURVEY), [])
            yield from (
                undecodable_row(message, "no header `survey` says whose alert it is") for message in unknown
            )
            yield RangeCounts(work, len(unknown), len(unknown), expired).row()


def fetch_groups(source: RecordSource, work: Iterable[OffsetRange], known: Collection[str]) -> FetchedRecords:
    """Return the records of the ranges *work*; *known* are the surveys that there are.

    Raises:
        KafkaException: Kafka was silent too long.
    """
    found = FetchedRecords(source, defaultdict(list), {})
    for one in work:
        expired = ExpiredCount()
        for messages in source.records(one, expired):
            for message in messages:
                group = RecordGroup(survey_of(message), header(message, BACKFILL) == "yes")
                found.messages[one, group if group.survey in known else UNKNOWN_SURVEY].append(message)
        found.expired[one] = expired.count
    return found


def survey_of(message: Message) -> str:
    """Return the survey of a record's alert, by its topic or a header; empty where neither says."""
    topic = str(message.topic())
    return header(message, "survey") if is_derived(topic) else topic.partition(".")[2]


def header(message: Message, name: str) -> str:
    """Return the text of a header; empty where there is none."""
    value = dict(message.headers() or ()).get(name)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""


def origin_headers(message: Message) -> dict[str, str]:
    """Return headers with the first position of a record's alert, and the topic it came through."""
    position = {name: header(message, name) for name in ("topic", "partition", "offset")}
    return {**(position if all(position.values()) else {}), "via": str(message.topic())}
