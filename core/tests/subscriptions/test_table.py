"""Who wants what, by the log alone: from which offset, for how long."""

from datetime import UTC, datetime
from typing import Any

import pytest

from nightwire.core.subscriptions import InterestError, SubscriptionTable, interest, interest_key
from nightwire.schemas import records

START = 1_700_000_000_000
"""When the first record was appended. [ms since 1970]"""


class Log:
    """A log whose records a test appends, at times of its own."""

    def __init__(self) -> None:
        self.table, self._offset = SubscriptionTable(), 0

    def say(self, at: float, name: str, *, gone: bool = False, **more: Any) -> int:
        """Append a record at *at* [s since the first]; return its offset."""
        said = {"condition": "flux > 1", "instance": "i", "interval": 10.0} | more
        found = interest("local", "ann", name, "alerts.sim", **said)
        value = None if gone else records.SUBSCRIPTION.encode(found)
        self.table.apply(interest_key(found), value, START + round(1000 * at), self._offset)
        self._offset += 1
        return self._offset - 1

    def live(self, kind: str = "subscription") -> dict[str, int]:
        """Return the offsets from which what is live holds, by name."""
        return {one.record["name"]: one.offset for one in self.table.live("alerts.sim", kind)}


@pytest.fixture
def log() -> Log:
    return Log()


def test_it_holds_from_the_offset_of_what_it_says_whatever_refreshes_it(log: Log) -> None:
    log.say(0, "a")
    log.say(1, "b")
    log.say(9, "a")
    assert log.live() == {"a": 0, "b": 1}
    log.say(10, "a", condition="flux > 2")
    assert log.live() == {"a": 3, "b": 1}
    log.say(11, "b", gone=True)
    assert log.live() == {"a": 3}
    assert [*log.table.live("alerts.lsst")] == []
    log.say(12, "c", kind="advertisement")
    assert (log.live(), log.live("advertisement")) == ({"a": 3}, {"c": 5})


def test_who_is_not_refreshed_twice_is_gone_by_the_logs_clock(log: Log) -> None:
    log.say(0, "dead")
    for at in (10, 20):
        log.say(at, "alive")
        assert set(log.live()) == {"dead", "alive"}
    log.say(20.1, "alive")
    assert log.live() == {"alive": 1}
    offset = log.say(30, "dead")  # back again: it holds from here on
    assert log.live()["dead"] == offset


def test_nobody_is_gone_because_kafka_was(log: Log) -> None:
    log.say(0, "a")
    log.table.caught_up()
    log.say(3600, "b")
    assert set(log.live()) == {"a", "b"}


def test_kafkas_clock_may_be_a_day_ahead_and_be_set_right(log: Log) -> None:
    log.say(0, "dead")
    log.table.caught_up()
    log.say(86_400, "new")
    for second in range(1, 30):
        log.say(second, "new")
    assert set(log.live()) == {"new"}


def test_what_was_waited_for_is_no_less_for_a_clock_that_stands_still(log: Log) -> None:
    log.say(0, "dead")
    log.table.caught_up()
    for _ in range(30):
        log.table.wait(1.0)
        log.say(0, "new")
    assert set(log.live()) == {"new"}


def test_a_log_that_was_silent_gives_everybody_an_interval(log: Log) -> None:
    log.say(0, "old")
    log.say(19, "a")
    log.table.caught_up()
    log.table.wait(9.9)
    assert set(log.live()) == {"old", "a"}
    log.table.wait(0.2)
    assert set(log.live()) == {"a"}
    log.table.wait(10)
    assert log.live() == {}


def test_an_end_of_its_own(log: Log) -> None:
    log.say(0, "a", expires=datetime.fromtimestamp(START / 1000 + 5, UTC))
    assert log.live() == {"a": 0}
    log.table.caught_up()
    log.table.wait(5.1)
    assert log.live() == {}


def test_what_cannot_stand_there_is_counted(log: Log) -> None:
    value = records.SUBSCRIPTION.encode(interest("local", "ann", "a", "alerts.sim", "TRUE", instance="i"))
    for key, wrong in (("local/bob/a", value), ("local/ann/a", b"nonsense"), ("local/ann/a", b"x" * 100_000)):
        log.table.apply(key, wrong, START, 0)
    assert (log.table.refused, log.live()) == (3, {})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"condition": "band = '\udcff'"}, "no Unicode text"),
        ({"name": "a/b"}, "is no name"),
        ({"topic": ""}, "is no topic"),
        ({"kind": "wish"}, "is no kind; there are subscription, advertisement"),
        ({"condition": "x" * 70_000}, "the limit is 65536"),
        ({"interval": 0.0}, "interval=0 s"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    usual = {"name": "a", "topic": "alerts.sim", "condition": "TRUE", "instance": "i"}
    with pytest.raises(InterestError, match=words):
        interest("local", "ann", **(usual | changes))
