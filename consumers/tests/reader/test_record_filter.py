"""A condition on alerts: which records pass, what is said of the others, where reading goes on."""

import io
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import fastavro
import pytest
from confluent_kafka import Message

from nightwire.consumers.alert.deduplication import Deduplicator, RecentKeys
from nightwire.consumers.reader.batch import Batch, DecodingContext
from nightwire.consumers.reader.record_filter import RecordFilter, check_condition, check_fields
from nightwire.consumers.reader.unpack import AlertUnpacker, TableUnpacker
from nightwire.schemas import AlertDecoder, Columns, RegistryAwayError, SchemaRegistry

Encode = Callable[..., bytes]


class Absent(SchemaRegistry):
    """A registry that has the schemas that come along, and does not answer of others."""

    def codec(self, schema_id: int) -> Any:
        if schema_id == 777:
            raise RegistryAwayError("the registry does not answer")
        return super().codec(schema_id)


@pytest.fixture
def decoder() -> AlertDecoder:
    return AlertDecoder(Absent(None))


def messages_of(values: Sequence[bytes | None], survey: bytes | None = b"sim") -> list[Message]:
    headers = [] if survey is None else [("survey", survey)]
    return [
        Message(topic="filter.me.f", partition=0, offset=at, value=value, headers=headers)
        for at, value in enumerate(values)
    ]


def offsets(messages: Sequence[Message]) -> list[int]:
    return [one.offset() or 0 for one in messages]


def ids(batch: Batch[Any]) -> list[int]:
    return [one.alert["diaSourceId"] for one in batch.item or ()]


@pytest.fixture
def unpack(decoder: AlertDecoder) -> Callable[[Sequence[Message]], Batch[Any]]:
    no_rows: Callable[[Sequence[str]], Columns] = partial(decoder.columns, [])
    return AlertUnpacker(DecodingContext(decoder, None, Deduplicator(None, RecentKeys()), no_rows)).all


def test_those_pass_on_which_it_holds(decoder: AlertDecoder, encode: Encode, unpack: Any) -> None:
    values = [encode(number, psfFlux=1000.0 * number) for number in range(1, 7)]
    batch = RecordFilter("flux > 2500", decoder, None).unpacked(unpack, messages_of(values), 100)
    assert (ids(batch), batch.count, batch.filtered, batch.faulted) == ([3, 4, 5, 6], 4, 2, 0)
    assert (offsets(batch.messages), offsets(batch.waiting)) == ([0, 1, 2, 3, 4, 5], [])


def test_what_lies_behind_the_last_that_is_wanted_waits_and_is_not_judged_twice(
    decoder: AlertDecoder, encode: Encode, unpack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_filter = RecordFilter("diaSourceId % 3 = 0", decoder, None)
    messages = messages_of([encode(number) for number in range(1, 9)])
    asked = []
    columns = decoder.columns
    monkeypatch.setattr(
        decoder, "columns", lambda values, *a, **k: asked.append(len(values)) or columns(values, *a, **k)
    )
    found, left = [], messages
    while left:
        batch = record_filter.unpacked(unpack, left, 1)
        found.append((ids(batch), offsets(batch.messages), batch.filtered))
        left = list(batch.waiting)
    assert found == [([3], [0, 1, 2], 2), ([6], [3, 4, 5], 2), ([], [6, 7], 2)]
    assert asked == [8]


def test_records_without_alert_or_survey_are_bad_wherever_they_lie(
    decoder: AlertDecoder, encode: Encode, unpack: Any
) -> None:
    messages = messages_of([encode(1), b"malformed", None, encode(2)])
    messages += messages_of([encode(3)], None) + messages_of([encode(4)], b"nobody")
    batch = RecordFilter("diaSourceId = 2", decoder, None).unpacked(unpack, messages, 9)
    assert (ids(batch), batch.filtered) == ([2], 1)
    reasons = [why for _, why in batch.bad]
    assert reasons[1] == "the record has no value: it deletes its key"
    assert "of which survey this record is" in reasons[2]
    assert "nobody has described survey 'nobody'" in reasons[3]
    assert len(reasons) == 4


def test_a_schema_that_cannot_be_had_now_makes_the_rest_wait(
    decoder: AlertDecoder, encode: Encode, unpack: Any
) -> None:
    away = b"\0" + (777).to_bytes(4, "big") + b"body"
    record_filter = RecordFilter("flux > 0", decoder, None)
    batch = record_filter.unpacked(
        unpack, messages_of([encode(1), encode(2, psfFlux=-1.0), away, encode(3)]), 9
    )
    assert (ids(batch), batch.filtered, offsets(batch.waiting)) == ([1], 1, [2, 3])
    assert isinstance(batch.unavailable, RegistryAwayError)
    batch = record_filter.unpacked(unpack, list(batch.waiting), 9)
    assert (batch.count, list(batch.messages), offsets(batch.waiting)) == (0, [], [2, 3])


def test_a_fault_leaves_out_and_is_told_once(
    decoder: AlertDecoder, encode: Encode, unpack: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "nightwire.consumers"):
        batch = RecordFilter("prvDiaSources.ra > 3", decoder, None).unpacked(
            unpack, messages_of([encode(1), encode(2)]), 9
        )
        RecordFilter("brightnes < 3", decoder, None).unpacked(unpack, messages_of([encode(1)]), 9)
    assert (batch.count, batch.filtered, batch.faulted) == (0, 0, 2)
    told = [record.getMessage() for record in caplog.records]
    assert "a list of values is no value: prvDiaSources.ra" in told[0]
    assert told[1:] == ["where brightnes < 3: alerts of sim have no field diaSource.brightnes: it is NULL"]


def as_container(number: int, kind: str, flux: object) -> bytes:
    fields = [{"name": "diaSourceId", "type": "long"}, {"name": "psfFlux", "type": kind}]
    source = {"name": "diaSource", "type": {"type": "record", "name": "source", "fields": fields}}
    schema = {"type": "record", "name": "alert", "fields": [fields[0], source]}
    out = io.BytesIO()
    told = {"diaSourceId": number, "psfFlux": flux}
    fastavro.writer(out, schema, [{"diaSourceId": number, "diaSource": told}])
    return out.getvalue()


def test_an_alert_whose_field_is_of_another_type_spoils_no_other(decoder: AlertDecoder, unpack: Any) -> None:
    good, odd = as_container(1, "double", 3.0), as_container(2, "string", "bright")
    record_filter = RecordFilter("psfFlux > 2", decoder, None)
    for values in ([good], [odd, good], [good]):
        batch = record_filter.unpacked(unpack, messages_of(values), 9)
        assert (ids(batch), batch.faulted) == ([1], len(values) - 1)


def test_tables_hold_what_passes(decoder: AlertDecoder, encode: Encode) -> None:
    context = DecodingContext(
        decoder, None, Deduplicator(None, RecentKeys()), lambda names: decoder.columns([], names)
    )
    table = TableUnpacker(context, ["diaSourceId"], ["offset"], "arrow")
    values = [encode(number, psfFlux=1000.0 * number) for number in range(1, 5)]
    batch = RecordFilter("flux > 2500", decoder, None).unpacked(table, messages_of(values), 9)
    assert batch.item.to_pydict() == {"offset": [2, 3], "diaSourceId": [3, 4]}


@pytest.mark.parametrize(
    ("text", "survey", "words"),
    [
        ("magnitude < ", "sim", "where: line 1, column 12: "),
        ("magnitude <\n nosuch(2)", None, "where: line 2, column 2: "),
    ],
)
def test_a_condition_that_is_none_is_refused_with_its_place(
    text: str, survey: str | None, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        check_condition(text, ["filter.me.f"], survey)
    check_condition("psfFlux > 3", ["alerts.lsst", "filter.me.f"], None)


class Registry:
    """Has one version of each survey's schema."""

    def of_survey(self, _name: str) -> Iterator[dict[str, Any]]:
        """Yield it."""
        yield {"type": "record", "name": "alert", "fields": [{"name": "diaSourceId", "type": "long"}]}


def test_a_field_that_no_alert_has_is_refused_with_what_was_meant() -> None:
    known: Any = Registry()
    with pytest.raises(ValueError, match=r"where: .* no field .*magnitud; did you mean magnitude"):
        check_fields("magnitud < 19", ["alerts.sim"], known)
    check_fields("magnitude < 19", ["alerts.sim"], known)
    check_fields("magnitud < 19", ["filter.me.f", "alerts.nobody"], known)
