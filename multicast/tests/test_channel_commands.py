"""`nightwire channel`, with a real Kafka."""

import json

import pytest
from click.testing import CliRunner, Result

from nightwire.core.kafka import Writer, admin, ensure_topics, producer
from nightwire.multicast.channel_commands import channel
from nightwire.schemas import records
from nightwire.schemas.topics import CHANNELS, settings

pytestmark = pytest.mark.kafka


def run(kafka: str, *words: str) -> Result:
    """Run the verb."""
    return CliRunner().invoke(channel, [*words, "--bootstrap", kafka])


def test_a_channel_is_added_shown_changed_and_taken_out(kafka: str) -> None:
    for condition in ("magnitude < 19", "magnitude < 18"):
        assert run(kafka, "add", "alerts.ztf", "bright", "--where", condition).exit_code == 0
    (shown,) = json.loads(run(kafka, "list", "alerts.ztf", "--json").output)
    assert (shown["name"], shown["condition"], shown["derived"]) == ("bright", "magnitude < 18", True)
    assert "magnitude < 18" in run(kafka, "list").output
    known = admin(kafka).list_topics(timeout=10).topics
    assert len(known["channel.ztf.bright"].partitions) == len(known["alerts.ztf"].partitions)
    assert run(kafka, "remove", "alerts.ztf", "bright").exit_code == 0
    assert json.loads(run(kafka, "list", "alerts.ztf", "--json").output) == []


def test_what_a_stranger_wrote_is_listed_with_why_it_is_refused_and_can_be_removed(kafka: str) -> None:
    ensure_topics(kafka, [settings(CHANNELS)])
    wide = {"topic": "alerts.ztf", "name": "wide", "condition": "x" * 5000, "made_by": "", "made": 0}
    rest = {"derived": True, "group": None, "full": False, "priority": 0, "since": [], "automatic": False}
    writer = Writer(producer(kafka))
    writer.write(CHANNELS, records.MAPPING.encode(wide | rest), key=b"alerts.ztf/wide")
    writer.flush()
    (shown,) = json.loads(run(kafka, "list", "alerts.ztf", "--json").output)
    assert (shown["name"], shown["refused"]) == ("wide", "the condition has 5000 bytes: 1 to 4096")
    assert run(kafka, "remove", "alerts.ztf", "wide").exit_code == 0
    assert json.loads(run(kafka, "list", "alerts.ztf", "--json").output) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "alerts.sim", "bright", "--where", "magnitude <"), "--where: line 1"),
        (
            ("add", "alerts.nowhere", "bright", "--where", "TRUE"),
            "channels are of voevents and alerts.SURVEY",
        ),
        (("add", "alerts.elasticc", "bright", "--where", "TRUE"), "no topic alerts.elasticc"),
        (("add", "alerts.sim", "Bright", "--where", "TRUE"), "is no name here"),
        (("plan", "sim", "--derived"), "plans are of alerts.SURVEY"),
        (("remove", "alerts.elasticc", "nothing"), "alerts.elasticc has no channel nothing; there are: none"),
    ],
)
def test_what_cannot_be_is_named(kafka: str, words: tuple[str, ...], says: str) -> None:
    done = run(kafka, *words)
    assert done.exit_code != 0
    assert says in str(done.exception) + done.output


def test_a_group_that_another_channel_has_is_refused(kafka: str) -> None:
    to = ("--group", "239.77.5.8:45118")
    for name in ("first", "first"):  # again is no other
        assert run(kafka, "add", "alerts.ztf", name, "--where", "magnitude < 19", *to).exit_code == 0
    for topic in ("alerts.ztf", "alerts.sim"):
        done = run(kafka, "add", topic, "second", "--where", "magnitude < 18", *to)
        assert "239.77.5.8:45118 carries channel alerts.ztf/first" in str(done.exception) + done.output
    assert run(kafka, "remove", "alerts.ztf", "first").exit_code == 0
