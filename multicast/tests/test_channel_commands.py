"""`nightwire channel`, with a real Kafka."""

import json

import pytest
from click.testing import CliRunner, Result

from nightwire.core.kafka import admin
from nightwire.multicast.channel_commands import channel

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


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "alerts.sim", "bright", "--where", "magnitude <"), "--where: line 1"),
        (("add", "alerts.nowhere", "bright", "--where", "TRUE"), "channels are of alerts.SURVEY"),
        (("add", "alerts.elasticc", "bright", "--where", "TRUE"), "no topic alerts.elasticc"),
        (("add", "alerts.sim", "Bright", "--where", "TRUE"), "is no name here"),
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
    done = run(kafka, "add", "alerts.ztf", "second", "--where", "magnitude < 18", *to)
    assert "239.77.5.8:45118 carries channel alerts.ztf/first" in str(done.exception) + done.output
    assert run(kafka, "remove", "alerts.ztf", "first").exit_code == 0
