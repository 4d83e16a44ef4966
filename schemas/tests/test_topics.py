"""Topic names and how topics are kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.schemas import surveys, topics
from nightwire.schemas.topics import NameError_, check_name, settings

DAY = 86_400_000


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        (topics.alerts("lsst"), "alerts.lsst"),
        (topics.filter_topic("ada", "bright-sn"), "filter.ada.bright-sn"),
        (topics.requests("ada"), "requests.ada"),
        (topics.answers("ada"), "answers.ada"),
        (topics.overflow("ada", "bright-sn"), "overflow.ada.bright-sn"),
        (topics.broker_topic("fink", "no-stamps"), "broker.fink.no-stamps"),
        (topics.returns("fink"), "returns.fink"),
    ],
)
def test_topics_are_named_as_the_contract_says(topic: str, name: str) -> None:
    assert topic == name
    assert settings(topic).name == name


@pytest.mark.parametrize("name", ["", "Ada", "1a", "a_b", "a.b", "a b", "é", "a" * 33, "-a", "a\n"])
def test_a_name_that_cannot_be_part_of_a_topic_is_refused(name: str) -> None:
    with pytest.raises(NameError_, match="1 to 32 characters"):
        check_name(name)


@given(st.from_regex(r"[a-z][a-z0-9-]{0,31}", fullmatch=True))
def test_names_come_back_unchanged(name: str) -> None:
    assert check_name(name) == name
    assert settings(topics.filter_topic(name, name)).partitions == 1


@pytest.mark.parametrize("topic", ["visits", "filters", "accounts", "_schemas"])
def test_what_must_never_be_lost_is_compacted_in_one_partition(topic: str) -> None:
    kept = settings(topic)
    assert kept.partitions == 1
    assert kept.config["cleanup.policy"] == "compact"
    assert "retention.ms" not in kept.config


@pytest.mark.parametrize(
    "topic", ["alerts.lsst", "alerts.new-survey", "voevents", "filter.a.b", "broker.a.b"]
)
def test_topics_that_carry_alerts_take_four_mebibytes(topic: str) -> None:
    assert settings(topic).config["max.message.bytes"] == str(4 << 20)


def test_alerts_have_four_partitions_and_their_surveys_retention() -> None:
    for survey in surveys():
        assert settings(topics.alerts(survey)).partitions == 4
    assert settings("alerts.lsst").config["retention.ms"] == str(7 * DAY)
    assert "retention.bytes" not in settings("alerts.lsst").config


def test_the_simulated_stream_stays_under_two_gigabytes() -> None:
    """Kafka deletes whole closed segments: a partition may hold its limit and one segment more."""
    kept = settings("alerts.sim")
    partition = int(kept.config["retention.bytes"]) + int(kept.config["segment.bytes"])
    assert kept.partitions * partition < 2_000_000_000


def test_voevents_are_kept_thirty_days_at_least() -> None:
    assert int(settings("voevents").config["retention.ms"]) >= 30 * DAY


@pytest.mark.parametrize(
    "topic", ["nonsense", "alerts", "filter.a", "filter.a.b.c", "alerts.A", "__consumer_offsets"]
)
def test_a_topic_that_is_not_ours_has_no_settings(topic: str) -> None:
    with pytest.raises(NameError_):
        settings(topic)
