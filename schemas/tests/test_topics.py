"""Topic names and how topics are kept."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.schemas import SchemaError, surveys, topics
from nightwire.schemas.retention import parse_changes, read_changes
from nightwire.schemas.topics import NameError_, check_name, settings

DAY = 86_400_000


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        (topics.alerts("lsst"), "alerts.lsst"),
        (topics.filter_topic("ada", "bright-sn"), "filter.ada.bright-sn"),
        (topics.requests("ada"), "requests.ada"),
        (topics.answers("ada"), "answers.ada"),
        (topics.seen("ada"), "seen.ada"),
        (topics.overflow("ada", "bright-sn"), "overflow.ada.bright-sn"),
        (topics.broker_topic("fink", "no-stamps"), "broker.fink.no-stamps"),
        (topics.returns("fink"), "returns.fink"),
    ],
)
def test_topics_are_named_as_the_contract_says(topic: str, name: str) -> None:
    assert topic == name
    assert settings(topic).name == name


@pytest.mark.parametrize("name", ["", "Ada", "a_b", "a.b", "a b", "é", "a" * 37, "-a", "a\n"])
def test_a_name_that_cannot_be_part_of_a_topic_is_refused(name: str) -> None:
    with pytest.raises(NameError_, match="1 to 36 characters"):
        check_name(name)


@given(st.from_regex(r"[a-z0-9][a-z0-9-]{0,35}", fullmatch=True))
def test_names_come_back_unchanged(name: str) -> None:
    assert check_name(name) == name
    assert settings(topics.filter_topic(name, name)).partitions == 1


@pytest.mark.parametrize("topic", ["visits", "filters", "accounts", "_schemas", "seen.ada", "comments.ada"])
def test_what_must_never_be_lost_is_compacted_in_one_partition(topic: str) -> None:
    kept = settings(topic)
    assert kept.partitions == 1
    assert kept.config["cleanup.policy"] == "compact"
    assert "retention.ms" not in kept.config


def test_what_a_group_that_is_gone_was_owed_is_forgotten() -> None:
    kept = settings(topics.OWED)
    assert (kept.partitions, kept.config["cleanup.policy"]) == (1, "compact,delete")
    assert int(kept.config["retention.ms"]) > int(settings("voevents").config["retention.ms"])


def test_what_a_worker_said_that_was_killed_is_forgotten() -> None:
    """It says again within minutes what stands; a segment that is written to stays a day more."""
    kept = settings(topics.FLOW_PROBLEMS)
    assert kept.config["cleanup.policy"] == "compact,delete"
    assert kept.config["retention.ms"] == kept.config["segment.ms"] == str(DAY)


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
    "topic",
    ["nonsense", "alerts", "filter.a", "filter.a.b.c", "alerts.A", "seen.A", "seen", "__consumer_offsets"],
)
def test_a_topic_that_is_not_ours_has_no_settings(topic: str) -> None:
    with pytest.raises(NameError_):
        settings(topic)


FILE = """
[survey.lsst]
partitions = 8
days = 0.5
partition_bytes = 1_000_000_000
compression = "zstd"
replication = 3
format = "container"

[topic."filter.ada.bright-sn"]
days = 1

[topic.visits]
replication = 3
"""


def test_a_file_changes_what_it_names_and_nothing_else() -> None:
    changes = parse_changes(FILE)
    lsst = settings("alerts.lsst", changes)
    assert (lsst.partitions, lsst.replication, lsst.format) == (8, 3, "container")
    assert lsst.config["retention.ms"] == str(DAY // 2)
    assert lsst.config["retention.bytes"] == "1000000000"
    assert lsst.config["compression.type"] == "zstd"
    assert settings("filter.ada.bright-sn", changes).config["retention.ms"] == str(DAY)
    assert settings("visits", changes).replication == 3
    assert settings("alerts.ztf", changes) == settings("alerts.ztf", {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[survey.lsst", "not TOML"),
        ("[surveys.lsst]", r"\[surveys\]"),
        ("[survey.lsst]\ndaze = 3", r"alerts\.lsst: no setting 'daze'"),
        ("[survey.lsst]\ndays = '3'", "days is '3'"),
        ("[survey.lsst]\npartitions = 0", "above zero"),
        ("[survey.lsst]\npartitions = true", "partitions is True"),
        ("[survey.lsst]\ncompression = 'best'", "one of uncompressed, lz4"),
        ("[survey.lsst]\nformat = 'json'", "wire or container"),
        ("[survey.lsst]\ndays = 3\n[topic.'alerts.lsst']\ndays = 4", "there twice"),
    ],
)
def test_what_a_file_cannot_say_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        parse_changes(text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="gone"):
        read_changes(tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("topic", "table"), [("visits", {"partitions": 2}), ("voevents", {"format": "container"})]
)
def test_a_topic_takes_only_settings_that_it_can_have(topic: str, table: dict[str, object]) -> None:
    with pytest.raises(SchemaError, match=topic):
        settings(topic, {topic: table})
