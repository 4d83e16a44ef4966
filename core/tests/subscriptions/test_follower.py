"""Subscriptions through a real Kafka: said, followed, refreshed, taken back."""

import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from confluent_kafka import KafkaException

from nightwire.core.kafka import ensure_topics, read_to_end
from nightwire.core.subscriptions import LiveInterest, Registrar, SubscriptionFollower, SubscriptionTable
from nightwire.schemas.topics import SUBSCRIPTIONS, settings
from tests._waiting import until

pytestmark = pytest.mark.kafka


@pytest.fixture
def log(kafka: str) -> str:
    """Return a Kafka with the topic."""
    ensure_topics(kafka, [settings(SUBSCRIPTIONS)])
    return kafka


def of(follower: SubscriptionFollower, who: str) -> dict[str, str]:
    """Return the conditions of a subscriber, by name."""
    return {
        one.record["name"]: one.record["condition"]
        for one in follower.live("alerts.sim")
        if one.record["subscriber"] == who
    }


def test_it_takes_effect_at_a_stated_offset_and_is_taken_back(log: str) -> None:
    with SubscriptionFollower(log) as follower:
        with Registrar(log, "ann") as ann:
            offset = ann.subscribe("bright", "alerts.sim", "magnitude < 19").result(10)
            assert follower.wait_until(offset, 10)
            assert of(follower, "ann") == {"bright": "magnitude < 19"}
            assert [one.offset for one in follower.live() if one.record["subscriber"] == "ann"] == [offset]
            changed = ann.subscribe("bright", "alerts.sim", "magnitude < 18").result(10)
            gone = ann.unsubscribe("bright").result(10)
            assert offset < changed < gone
            assert follower.wait_until(gone, 10)
            assert of(follower, "ann") == {}
            offset = ann.subscribe("faint", "alerts.sim").result(10)
            assert follower.wait_until(offset, 10)
            assert of(follower, "ann") == {"faint": "TRUE"}
        until(lambda: of(follower, "ann") == {})  # who leaves takes all back


def test_what_is_advertised_holds_from_a_stated_offset_until_it_is_taken_back(log: str) -> None:
    def offers() -> dict[str, int]:
        live = follower.live("filter.ann.bright", "advertisement")
        return {one.record["condition"]: one.offset for one in live}

    with SubscriptionFollower(log) as follower, Registrar(log, "engine") as engine:
        offset = engine.advertise("bright", "filter.ann.bright", "magnitude < 19").result(10)
        assert follower.wait_until(offset, 10)
        assert offers() == {"magnitude < 19": offset}
        assert follower.live("filter.ann.bright") == []  # nobody asks for it
        assert follower.wait_until(engine.unadvertise("bright").result(10), 10)
        assert offers() == {}


def test_who_dies_is_gone_after_two_refreshes_and_who_lives_is_not(log: str) -> None:
    with SubscriptionFollower(log) as follower, Registrar(log, "alive", interval=2.0) as alive:
        dead = Registrar(log, "dead", interval=2.0)  # its thread never begins: it says so once
        offsets = [dead.subscribe("a", "alerts.sim").result, alive.subscribe("a", "alerts.sim").result]
        dead._client.flush(10)
        assert follower.wait_until(max(one(10) for one in offsets), 10)
        assert set(of(follower, "dead")) == set(of(follower, "alive")) == {"a"}
        until(lambda: not of(follower, "dead"))
        assert set(of(follower, "alive")) == {"a"}
        assert {one.offset for one in follower.live() if one.record["subscriber"] == "alive"} == {
            offsets[1]()
        }


def change(registrar: Registrar, seed: int, last: dict[int, int]) -> dict[str, str]:
    """Subscribe and unsubscribe 125 times; note the last offset by *seed*, return what is left."""
    chance, held = random.Random(seed), dict[str, str]()
    for number in range(125):
        name = f"s{chance.randrange(20)}"
        if name in held and chance.random() < 0.5:
            del held[name]
            effect = registrar.unsubscribe(name)
        else:
            held[name] = f"flux > {number}"
            effect = registrar.subscribe(name, "alerts.sim", held[name])
    last[seed] = effect.result(30)
    return held


def offsets(live: Iterable[LiveInterest]) -> dict[tuple[str, str], int]:
    """Return the offsets from which interests of many hold."""
    named = {(one.record["subscriber"], one.record["name"]): one.offset for one in live}
    return {key: offset for key, offset in named.items() if key[0].startswith("many")}


def test_a_thousand_changes_by_many_at_once_are_all_seen_in_order(log: str) -> None:
    with SubscriptionFollower(log) as follower, ExitStack() as exits, ThreadPoolExecutor(8) as pool:
        assert follower.wait(30)
        many = [exits.enter_context(Registrar(log, f"many-{number}")) for number in range(8)]
        last = dict[int, int]()
        left = [*pool.map(change, many, range(8), [last] * 8)]
        assert follower.wait_until(max(last.values()), 30)
        assert [of(follower, f"many-{number}") for number in range(8)] == left
        assert sum(map(len, left)) > 20
        again = SubscriptionTable()
        for message in read_to_end(log, [SUBSCRIPTIONS]):
            key = (message.key() or b"").decode()
            again.apply(key, message.value(), message.timestamp()[1], message.offset() or 0)
        assert offsets(again.live()) == offsets(follower.live())


def test_without_a_kafka_nobody_waits() -> None:
    with Registrar("127.0.0.1:1", "alone") as alone:
        effect = alone.subscribe("a", "alerts.sim")
        assert not effect.done()
    assert not effect.done() or isinstance(effect.exception(), KafkaException)
