"""A channel is announced in Kafka, and read there; what a condition carries."""

from dataclasses import replace

import pytest

from nightwire.core.datagrams import Channel, ConditionError, announce, channel_judge, read_channels
from nightwire.core.kafka import Writer, producer
from nightwire.filters.language import FilterError
from nightwire.schemas import (
    SIM_ALERT_ID,
    AlertDecoder,
    Codec,
    RegistryAwayError,
    SchemaRegistry,
    sim_alert_schema,
)
from nightwire.schemas.topics import multicast, settings
from nightwire.schemas.wire import frame
from tests._alerts import empty

ONE = Channel("alerts.sim", "239.1.1.1:5000", "snr > 5", "sim", False, (b"new", b"old"), 1_795_000_000_000)


def test_channels_come_back_by_group(bootstrap: str) -> None:
    writer = Writer(producer(bootstrap))
    other = Channel("alerts.sim", "239.1.1.2:5000", full=True)
    for one in (replace(ONE, keys=()), other, ONE):
        announce(writer, one)
    writer.write(multicast("alerts.sim"), b"no record of ours", key=b"239.1.1.3:5000")
    writer.flush()
    assert read_channels(bootstrap, "alerts.sim") == {ONE.group: ONE, other.group: other}
    assert read_channels(bootstrap, "alerts.lsst") == {}


def test_datagrams_name_a_channel_by_what_it_carries() -> None:
    others = (
        replace(ONE, condition=""),
        replace(ONE, group="239.1.1.2:5000"),
        replace(ONE, topic="alerts.ztf"),
    )
    assert len({one.number for one in (ONE, *others)}) == 4
    assert replace(ONE, keys=()).number == ONE.number


def test_its_topic_keeps_the_last_record_of_each_group() -> None:
    assert settings("multicast.alerts.sim").config["cleanup.policy"] == "compact"


def alert(flux: float | None) -> bytes:
    """Return the message of a simulated alert."""
    made = empty(sim_alert_schema())
    made["diaSource"] |= {"diaSourceId": 1, "psfFlux": flux}
    return frame(SIM_ALERT_ID, Codec(sim_alert_schema()).encode(made))


def test_a_condition_judges_alerts_and_carries_what_it_cannot_read() -> None:
    judge = channel_judge("diaSource.psfFlux > 100", "sim", AlertDecoder(SchemaRegistry(None)))
    values = [alert(200.0), b"no alert", alert(1.0), None, alert(None), alert(101.0)]
    assert judge(values) == [True, True, False, True, False, True]
    assert judge([]) == []


def test_a_schema_that_cannot_be_had_now_is_waited_for() -> None:
    judge = channel_judge("snr > 5", "sim", AlertDecoder(SchemaRegistry(None)))
    with pytest.raises(RegistryAwayError):
        judge([frame(901, b"body")])


@pytest.mark.parametrize(("condition", "survey_name"), [("snr >", "sim"), ("nonsense(", "sim")])
def test_what_is_no_condition_is_said(condition: str, survey_name: str) -> None:
    with pytest.raises(FilterError, match="line 1"):
        channel_judge(condition, survey_name, AlertDecoder(SchemaRegistry(None)))


def test_a_condition_wants_a_survey() -> None:
    with pytest.raises(ConditionError, match=r"alerts\.SURVEY"):
        channel_judge("snr > 5", "", AlertDecoder(SchemaRegistry(None)))
