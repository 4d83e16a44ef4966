"""Channels as records: what can be, and what a log of them adds up to."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from nightwire.core.channels import ChannelMapping, ChannelTable, MappingError, mapping_of

BRIGHT = ChannelMapping(
    topic="alerts.sim",
    name="bright",
    condition="magnitude < 19",
    made_by="ann",
    made=datetime(2026, 11, 25, tzinfo=UTC),
    group="239.10.0.1:5400",
    since=(17,),
)


def test_a_channel_comes_back_from_its_record() -> None:
    assert mapping_of(BRIGHT.key, BRIGHT.encoded()) == BRIGHT
    assert [BRIGHT.begins(partition) for partition in (0, 1)] == [17, 0]


def test_a_record_under_anothers_key_is_refused() -> None:
    with pytest.raises(MappingError, match="key"):
        mapping_of("alerts.sim/faint", BRIGHT.encoded())


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"topic": "a b"}, "topic"),
        ({"name": "Bright!"}, "name"),
        ({"condition": ""}, "condition"),
        ({"condition": "\ud800"}, "Unicode"),
        ({"condition": "x" * 4097}, "4097 bytes: 1 to 4096"),
        ({"group": "10.0.0.1:5400"}, "group"),
        ({"group": "10.0.0.7@239.10.0.1:5400"}, "group"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, str], why: str) -> None:
    with pytest.raises(MappingError, match=why):
        replace(BRIGHT, **wrong)


def test_the_last_record_of_a_key_holds_and_a_tombstone_ends_it() -> None:
    table = ChannelTable()
    first = replace(BRIGHT, name="first", priority=2)
    table.apply(BRIGHT.key, BRIGHT.encoded(), 0, 0)
    table.apply(first.key, first.encoded(), 0, 1)
    table.apply(BRIGHT.key, replace(BRIGHT, derived=True).encoded(), 0, 2)
    assert [(one.mapping.name, one.offset) for one in table.of("alerts.sim")] == [("first", 1), ("bright", 2)]
    assert table.of("alerts.sim")[1].mapping.derived
    table.apply(first.key, None, 0, 3)
    table.apply("alerts.sim/odd", b"odd", 0, 4)
    assert [one.mapping.name for one in table.of()] == ["bright"]
    assert (table.refused, table.position) == (1, 5)


def test_of_too_many_channels_the_oldest_hold_for_whoever_reads_the_log() -> None:
    table, other = ChannelTable(), ChannelTable()
    some = [replace(BRIGHT, name=f"c{number}", priority=number) for number in range(300)]
    for offset, one in enumerate(some):
        table.apply(one.key, one.encoded(), 0, offset)
        if offset != 7:  # compacted away
            other.apply(one.key, one.encoded(), 0, offset)
    table.apply("alerts.sim/c8", b"odd", 0, 300)
    table.apply("alerts.ztf/c9", b"odd", 0, 301)
    table.apply(some[7].key, None, 0, 302)
    other.apply(some[8].key, None, 0, 300)
    names = {one.mapping.name for one in table.of("alerts.sim")}
    assert names == {f"c{number}" for number in range(102)} - {"c7", "c8"}
    assert names == {one.mapping.name for one in other.of()}
    refused = table.refusals("alerts.sim")
    assert {*refused} == {"alerts.sim/c8", *(f"alerts.sim/c{number}" for number in range(102, 300))}
    assert "100 older channels" in refused["alerts.sim/c299"]
    assert {*table.refusals()} - {*refused} == {"alerts.ztf/c9"}
