"""What `nightwire ingest` decides, without any Kafka."""

import os
import re
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from nightwire.core.accounting import RANGE, discrepancies
from nightwire.core.runtime import Stop
from nightwire.producer.ingest.batch import Batcher
from nightwire.producer.ingest.commands import ingest
from nightwire.producer.ingest.items import Counts, Item, Output, beginning, expired
from nightwire.producer.ingest.metrics import Metrics
from nightwire.producer.ingest.plan import Topics, night
from nightwire.producer.ingest.positions import SourcePositions
from nightwire.producer.ingest.schemas import SchemaPatience
from nightwire.producer.ingest.source import SourceError, connect
from nightwire.producer.ingest.transactional_sink import FencedError, TransactionalSink, TransactionWriter
from nightwire.producer.ingest.transform import Transformer, has_path, wanted_fields
from nightwire.producer.ingest.visits import MirroredVisits, from_record
from nightwire.schemas import Codec, RegistryAwayError, SchemaError, UnknownSchemaError, survey
from nightwire.schemas.records import VISIT
from producer.tests.ingest.survey_kafka import ID, body, container, lsst_schema, wire

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ZTF = "ztf_{date}_programid1"
PARTITION = ("t", 0)


@dataclass(frozen=True)
class Record:
    """What librdkafka gives."""

    content: bytes | None
    at: int = 5
    more: tuple[tuple[str, Any], ...] = ()

    def topic(self) -> str:
        """Return its topic."""
        return "theirs"

    def partition(self) -> int:
        """Return its partition."""
        return 3

    def offset(self) -> int:
        """Return its offset."""
        return self.at

    def key(self) -> bytes:
        """Return its key."""
        return b"their key"

    def value(self) -> bytes | None:
        """Return its value."""
        return self.content

    def headers(self) -> tuple[tuple[str, Any], ...]:
        """Return its headers."""
        return self.more

    def timestamp(self) -> tuple[int, int]:
        """Return its time."""
        return 1, 1_700_000_000_123


class Known:
    """Schemas: one by id, one by a container; and an error for all others."""

    def __init__(self, error: SchemaError | None = None) -> None:
        self.error = error or UnknownSchemaError("nobody knows it")

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of the small schema."""
        if schema_id != ID:
            raise self.error
        return Codec(lsst_schema())

    def id(self, schema: Mapping[str, Any]) -> int:
        """Return what our registry would give."""
        return 101_007


def transformer(name: str = "lsst", *, as_is: bool = False) -> Transformer:
    """Return a transformer that knows the small schemas."""
    return Transformer(survey(name), Known(), "here", as_is=as_is)


# Topics


@pytest.mark.parametrize(
    ("topic", "date"),
    [
        ("ztf_20260301_programid1", "20260301"),
        ("ztf_20260301_programid2", None),
        ("ztf_20261341_programid1", None),  # no such day
        ("ztf_2026031_programid1", None),
        ("xztf_20260301_programid1", None),
        ("ztf_20260301_programid1_old", None),
    ],
)
def test_a_pattern_finds_nights(topic: str, date: str | None) -> None:
    assert night(ZTF, topic) == date


def test_dots_of_a_pattern_are_dots() -> None:
    assert night("a.{date}", "ab20260301") is None


@pytest.mark.parametrize(
    ("topic", "seen", "new"),
    [
        ("plain", set(), True),
        ("plain", {"plain"}, False),
        ("ztf_20260302_programid1", set(), True),
        ("ztf_20260302_programid1", {"ztf_20260301_programid1"}, False),  # a night that appeared
        ("ztf_20260302_programid1", {"plain"}, True),
    ],
)
def test_start_applies_to_what_was_never_seen(topic: str, seen: set[str], new: bool) -> None:
    topics = Topics(["plain"], [ZTF])
    assert topics.among([topic, "other"]) == [topic]
    assert topics.is_new(topic, seen) is new


# Records


def test_a_message_in_wire_format_on_literal_bytes() -> None:
    """00, id 9900 big-endian; diaSourceId 7, visit 31, diaObjectId 8 as varints; an empty pad."""
    literal = bytes.fromhex("00 000026ac 0e 0e 3e 10 00".replace(" ", ""))
    item = transformer().item(Record(literal, more=(("offset", b"99"), ("own", "text"), ("none", None))))
    (one,) = item.outputs
    assert (item.source_partition, item.first, item.last, item.dead_letter_reason) == (
        ("theirs", 3),
        5,
        5,
        None,
    )
    assert (one.key, one.value, one.visit) == (b"8", literal, 31)
    assert list(one.headers) == [
        ("visit", b"31"),
        ("source-cluster", b"here"),
        ("source-topic", b"theirs"),
        ("source-partition", b"3"),
        ("source-offset", b"5"),
        ("source-time", b"1700000000123"),
        ("survey-offset", b"99"),
        ("own", b"text"),
    ]


@given(st.integers(1, 2**62), st.integers(1, 2**40), st.binary(max_size=50))
def test_a_body_is_never_touched(number: int, visit: int, pad: bytes) -> None:
    value = wire(number, visit, pad=pad)
    (one,) = transformer().item(Record(value)).outputs
    assert (one.value, one.visit) == (value, visit)


def test_a_container_becomes_wire_format_with_our_id() -> None:
    item = transformer("ztf").item(Record(container([1, 2], 31)))
    assert [one.value[:5] for one in item.outputs] == [b"\0" + struct.pack(">I", 101_007)] * 2
    assert [(one.key, one.visit) for one in item.outputs] == [(b"ZTF1", 31), (b"ZTF2", 31)]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "no value"),
        (b"", "not in wire format: 0 bytes"),
        (b"hello world", "not in wire format"),
        (wire(1, 2)[:8], "cut off"),
        (wire(0, 2), "no alert of survey lsst"),
        (b"Obj\x01nonsense", "container"),
    ],
)
def test_what_is_no_alert_goes_to_dead_letters_with_its_bytes(value: bytes | None, why: str) -> None:
    item = transformer().item(Record(value))
    assert item.dead_letter_reason is not None
    assert re.search(why, item.dead_letter_reason)
    assert (item.outputs, item.value, item.key) == ((), value or b"", b"their key")


def test_as_is_passes_single_containers_on_and_refuses_others() -> None:
    single = container([1], 31)
    assert [one.value for one in transformer("ztf", as_is=True).item(Record(single)).outputs] == [single]
    assert "container of 2 alerts" in str(
        transformer("ztf", as_is=True).item(Record(container([1, 2], 3))).dead_letter_reason
    )


def test_an_empty_container_is_rejected_by_name() -> None:
    assert transformer("ztf").item(Record(container([], 31))).rejected == "empty-container"


def test_only_the_ids_that_a_schema_has_are_decoded() -> None:
    wanted = wanted_fields(survey("lsst"), Codec(lsst_schema()))
    assert wanted == ["diaSource.diaSourceId", "diaSourceId", "diaSource.diaObjectId", "diaSource.visit"]


@pytest.mark.parametrize("name", ["s", "a.s"])
def test_fields_are_found_through_unions_and_names(name: str) -> None:
    inner = {"type": "record", "name": "s", "namespace": "a", "fields": [{"name": "x", "type": "int"}]}
    fields = [{"name": "one", "type": ["null", inner]}, {"name": "two", "type": ["null", name]}]
    schema = {"type": "record", "name": "r", "namespace": "a", "fields": fields}
    found = [has_path(schema, path) for path in ("one.x", "two.x", "two.y", "three", "one.x.z")]
    assert found == [True, True, False, False, False]


# Waiting for schemas


def batcher(error: SchemaError, clock: list[float]) -> Batcher:
    """Return a batcher whose patience is 60 s by *clock*."""
    made = Transformer(survey("lsst"), Known(error), "here")
    return Batcher(made, SchemaPatience(60.0), lambda: clock[0])


def test_an_unknown_schema_holds_what_comes_after_it_and_goes_to_dead_letters_in_the_end() -> None:
    clock = [0.0]
    one = batcher(UnknownSchemaError("nobody knows 9901"), clock)
    one.pending = deque([Record(wire(1, 5), 0), Record(wire(2, 5, minor=1), 1), Record(wire(3, 5), 2)])
    assert [item.first for item in one.take()] == [0]
    assert one.waits_for == "nobody knows 9901"
    clock[0] = 59.0
    assert one.take() == []
    clock[0] = 60.0
    assert [(item.first, item.dead_letter_reason) for item in one.take()] == [
        (1, "nobody knows 9901"),
        (2, None),
    ]
    one.pending = deque([Record(wire(4, 5, minor=1), 3)])
    # it was waited for
    assert [item.dead_letter_reason for item in one.take()] == ["nobody knows 9901"]


def test_a_registry_that_is_away_is_waited_for_as_long_as_it_takes() -> None:
    clock = [0.0]
    one = batcher(RegistryAwayError("away"), clock)
    one.pending = deque([Record(wire(2, 5, minor=1))])
    one.take()
    clock[0] = 1e6
    assert (one.take(), one.waits_for) == ([], "away")


# Positions


def mirrored(offset: int, last: int | None = None) -> Item:
    """Return an item that was delivered."""
    return Item(PARTITION, offset, offset if last is None else last, outputs=[Output(b"k", b"v", (), 1)])


def test_positions_grow_and_nothing_changes_before_they_are_kept() -> None:
    positions = SourcePositions("s/n/")
    assert positions.position(PARTITION) is None
    items = [
        beginning(PARTITION, 3),
        mirrored(3),
        expired(PARTITION, 4, 7),
        mirrored(9).as_dead_letter("why"),
        mirrored(10),
    ]
    (account,) = positions.after(items)
    assert positions.position(PARTITION) is None
    positions.keep([account])
    assert positions.position(PARTITION) == 11
    assert (account.source, account.first, account.last) == ("s/n/t", 3, 10)
    assert (account.read, account.delivered, account.dead_lettered) == (6, 2, 1)
    assert account.rejected == {"expired": 3}
    assert discrepancies([account]) == []


def test_a_long_account_ends_and_the_next_one_joins_it() -> None:
    positions = SourcePositions("s/n/")
    positions.keep(positions.after([mirrored(0)]))
    (long,) = positions.after([mirrored(RANGE - 1)])
    positions.keep([long])
    (after,) = positions.after([mirrored(RANGE + 5)])
    assert (long.first, long.last, after.first, after.last) == (0, RANGE - 1, RANGE, RANGE + 5)
    assert discrepancies([replace(long, read=2, delivered=2), after]) == []


def test_positions_come_back_from_accounts_of_this_source_alone() -> None:
    positions = SourcePositions("s/n/")
    (one,) = positions.after([mirrored(4)])
    others = [replace(one, source="s/other/t", last=99), replace(one, stage="filters", last=99)]
    again = SourcePositions("s/n/", [replace(one, first=5, last=8), one, *others])
    assert (again.position(PARTITION), again.topics) == (9, {"t"})


@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), st.data())
def test_however_offsets_are_cut_into_batches_accounts_join_and_add_up(
    gaps: list[int], data: st.DataObject
) -> None:
    offsets = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(offsets)), max_size=5)))
    positions = SourcePositions("s/n/")
    for begin, end in zip([0, *cuts], [*cuts, len(offsets)], strict=True):
        if some := [mirrored(offset) for offset in offsets[begin:end]]:
            positions.keep(positions.after(some))
            positions = SourcePositions(
                "s/n/", positions.after([beginning(PARTITION, some[-1].last + 1)])
            )  # a restart
    (account,) = positions.after([beginning(PARTITION, offsets[-1] + 1)])
    assert (account.read, account.first, account.last) == (len(offsets), offsets[0], offsets[-1])


# Visits


def mirrored_visits(records: Mapping[int, bytes] | None = None, now: float = 0.0) -> MirroredVisits:
    """Return visits that are over after 30 quiet seconds."""
    return MirroredVisits("lsst", records or {}, quiet=30.0, now=now)


def count(one: MirroredVisits, visits: list[int], now: float, first: int = 0) -> set[int]:
    """Count an alert of each of *visits*; return which are over."""
    counted = one.counts_by_visit(visits, NOON)
    for offset, visit in enumerate(visits, first):
        counted[visit].count(0, offset)
    over = one.over(counted, now)
    counts_by_visit = one.counts_by_visit(over, NOON) | counted
    one.keep(counted, {number: VISIT.encode(counts_by_visit[number].record(NOON)) for number in over}, now)
    return over


def test_a_visit_is_over_when_it_was_quiet() -> None:
    one = mirrored_visits()
    assert count(one, [7, 7], 0.0) == set()
    assert one.over((), 29.9) == set()
    assert count(one, [7], 29.9) == set()
    assert one.over((), 59.8) == set()
    assert one.over((), 60.0) == {7}


def test_a_visit_that_goes_on_at_the_last_moment_is_not_over() -> None:
    one = mirrored_visits()
    count(one, [7], 0.0)
    assert count(one, [7], 40.0) == set()


def test_a_visit_is_over_when_two_later_ones_began() -> None:
    one = mirrored_visits()
    assert count(one, [1], 0.0) == set()
    assert count(one, [1, 2], 1.0) == set()
    assert count(one, [3, 2], 2.0) == {1}
    assert one.open == [2, 3]
    assert count(one, [4, 5, 6], 3.0) == {2, 3, 4}


def test_a_late_alert_is_added_to_a_closed_visit_which_stays_closed() -> None:
    one = mirrored_visits()
    count(one, [1, 1], 0.0)
    assert count(one, [2, 3], 1.0) == {1}
    assert count(one, [1], 2.0, first=9) == {1}
    counts = one.counts_by_visit([1], NOON)[1]
    assert (counts.acknowledged, counts.ranges, counts.estimated) == (3, {0: (0, 9)}, True)
    assert one.open == [2, 3]


def test_counts_survive_a_restart_in_the_records_of_visits() -> None:
    one = mirrored_visits()
    count(one, [1, 1, 2], 0.0)
    counts_by_visit = one.counts_by_visit([1, 2], NOON)
    kept = {
        1: VISIT.encode(counts_by_visit[1].record(None)),
        2: VISIT.encode(counts_by_visit[2].record(NOON)),
    }
    again = mirrored_visits(kept, now=100.0)
    assert again.open == [1]
    assert again.over((), 129.0) == set()
    assert again.over((), 130.0) == {1}
    count(again, [1, 2], 100.0, first=3)
    assert [again.counts_by_visit([n], NOON)[n].acknowledged for n in (1, 2)] == [3, 2]


def test_what_was_counted_in_a_transaction_that_failed_is_forgotten() -> None:
    one = mirrored_visits()
    count(one, [1], 0.0)
    one.counts_by_visit([1], NOON)[1].count(0, 50)
    assert one.counts_by_visit([1], NOON)[1].ranges == {0: (0, 0)}


def test_the_end_ends_every_visit() -> None:
    one = mirrored_visits()
    count(one, [1, 2], 0.0)
    one.end()
    assert one.over((), 0.0) == {1, 2}


def test_a_record_gives_its_ledger_back() -> None:
    one = mirrored_visits()
    count(one, [1], 0.0, first=4)
    record = VISIT.encode(one.counts_by_visit([1], NOON)[1].record(NOON))
    counts = from_record(record)
    assert VISIT.encode(counts.record(NOON)) == record


# The rest


def test_counts_add_up() -> None:
    counts = Counts()
    counts.add(
        [mirrored(1), mirrored(2).as_dead_letter("x"), expired(PARTITION, 3, 6), beginning(PARTITION, 0)]
    )
    assert (counts.read, counts.delivered, counts.dead_lettered, counts.rejected) == (5, 1, 1, {"expired": 3})


def test_a_setting_that_is_none_is_named_and_its_value_is_not() -> None:
    env = {"NIGHTWIRE_SOURCE_KAFKA_SASL_PASWORD": "hush", "NIGHTWIRE_SOURCE_KAFKA_SASL_MECHANISM": "PLAIN"}
    with pytest.raises(SourceError, match="NIGHTWIRE_SOURCE_KAFKA_SASL_PASWORD") as caught:
        connect("127.0.0.1:1", "group", env)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "nothing to mirror"),
        (["--topic-pattern", "ztf"], "has no {date}"),
        (["--topic", "t", "--name", "a|b"], "no name of a source"),
        (["--topic", "t", "--start", "soon"], "write beginning, live"),
    ],
)
def test_wrong_use_is_said_at_once(words: list[str], why: str) -> None:
    done = CliRunner(env=os.environ | {"COLUMNS": "200"}).invoke(
        ingest, ["--survey", "ztf", "--from", "x:1", *words]
    )
    assert (done.exit_code, why in done.output) == (2, True), done.output


def test_the_body_helper_is_what_the_wire_helper_frames() -> None:
    assert wire(1, 2)[5:] == body(1, 2)


def test_a_loop_that_hangs_is_not_healthy() -> None:
    times = iter((0.0, 59.0, 60.0, 100.0, 100.0))
    metrics = Metrics(CollectorRegistry(), "lsst", clock=lambda: next(times))
    assert metrics.healthy()
    assert not metrics.healthy()
    metrics.round_done()
    assert metrics.healthy()


@pytest.mark.parametrize("code", [KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.INVALID_TXN_STATE])
def test_a_transaction_that_kafka_gave_up_is_told_so(code: int) -> None:
    class GaveUp:
        def init_transactions(self, _timeout: float) -> None:
            raise KafkaException(KafkaError(code))

    with pytest.raises(FencedError, match="Kafka gave this one up"):
        TransactionalSink(GaveUp(), "lsst", "source", Stop()).open()  # type: ignore[arg-type]


def test_a_flush_that_breaks_off_with_a_fatal_error_is_asked_again() -> None:
    """confluent-kafka was seen to raise SystemError, when another process took over within it."""

    class Fenced:
        flushed = 0

        def flush(self, _timeout: float) -> int:
            self.flushed += 1
            if self.flushed == 1:
                raise SystemError("returned NULL without setting an exception")
            return 0

    client = Fenced()
    TransactionWriter(client, 1.0).flush()  # type: ignore[arg-type]
    assert client.flushed == 2
