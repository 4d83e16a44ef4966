"""A reader is told where nothing that is advertised meets its condition."""

from collections.abc import Callable

import pytest

from nightwire.consumers import AlertReader
from nightwire.consumers.reader.offers import may_pass
from nightwire.core.kafka import ensure_topics
from nightwire.core.subscriptions import Registrar, SubscriptionFollower
from nightwire.schemas.topics import SUBSCRIPTIONS, settings
from tests._waiting import until


@pytest.mark.parametrize(
    ("condition", "offers", "passes"),
    [
        ("magnitude < 19", ["magnitude > 20"], False),
        ("magnitude < 19", ["magnitude > 20", "magnitude < 15"], True),
        ("magnitude < 19 AND snr > 5", ["snr < 5 OR snr IS NULL"], False),
        ("magnitude < 19", ["snr > 5"], True),
        ("magnitude < 19", [], True),
        ("diaSource.snr > 5", ["snr > 7"], True),
        ("magnitude < 19", ["not ( SQL"], True),  # a stranger's text
    ],
)
def test_what_overlaps_no_offer_cannot_come(condition: str, offers: list[str], passes: bool) -> None:
    assert may_pass(condition, offers) is passes


@pytest.mark.kafka
def test_a_reader_is_told_once_that_nothing_will_come(
    kafka: str, fresh_topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    topic = fresh_topic()
    ensure_topics(kafka, [settings(SUBSCRIPTIONS)])
    with Registrar(kafka, "filters") as registrar, SubscriptionFollower(kafka) as follower:
        assert follower.wait_until(registrar.advertise("a", topic, "magnitude > 20").result(10), 10)
        for condition in ("magnitude > 21", "magnitude < 19"):  # the first is silent
            with AlertReader(topic, bootstrap=kafka, where=condition, announce=True, follow=False) as reader:
                assert [*reader] == []
                if condition == "magnitude < 19":
                    until(lambda: "meets: magnitude > 20" in caplog.text, "it is told")
    assert caplog.text.count("nothing new will meet this condition") == 1
