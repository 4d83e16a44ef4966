"""The time for which delivery waits for alerts that it reads again."""

from confluent_kafka import Message

from nightwire.filters.delivery.deliver import timed


def test_each_wait_is_told_and_nothing_is_changed() -> None:
    parts: list[list[Message]] = [[Message()], [], [Message()]]
    waits: list[float] = []
    assert list(timed(iter(parts), waits.append)) == parts
    assert len(waits) == 4
    assert min(waits) >= 0
