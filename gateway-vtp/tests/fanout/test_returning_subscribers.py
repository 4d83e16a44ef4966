"""Subscribers that return, are far, or take much: nothing is lost, and nobody is held up."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.kafka import read_to_end
from nightwire.core.stack import free_port
from nightwire.gateway import Author, Submission
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.net.tls import TLSSettings, client_context
from nightwire.schemas.records import POSITION, VOEVENT
from tests._voevents import packet
from tests._waiting import until

pytestmark = pytest.mark.kafka

Start = Callable[..., Any]
Subscribe = Callable[..., Any]
Ivorns = Callable[[int], list[str]]


@pytest.fixture
def sent(ivorns: Ivorns) -> Callable[..., list[bytes]]:
    """Return a function that sends so many events to a gateway, and returns them."""
    names = iter(ivorns(10_000))

    def send(gateway: Any, count: int, **options: Any) -> list[bytes]:
        documents = [packet(next(names), **options) for _ in range(count)]
        author = Author(Address("127.0.0.1", gateway.authors))
        assert {author.send(Submission("x", one)).verdict for one in documents} == {"ack"}
        return documents

    return send


def known(kafka: str) -> set[str]:
    """Whose positions are in Kafka."""
    return {POSITION.decode(one.value() or b"")["peer"] for one in read_to_end(kafka, ["vtp-positions"])}


def test_a_subscriber_that_returns_goes_on_after_its_last_ack_also_after_kill_9_and_at_another_gateway(
    start_gateway: Start, telescope: Subscribe, sent: Callable[..., list[bytes]], kafka: str
) -> None:
    me, other = (f"ivo://test.{os.urandom(6).hex()}/{name}" for name in ("me", "other"))
    one = start_gateway("--replay", "1h", "--no-accounts", name="one")
    first = telescope(one.subscribers, name=me)
    seen = sent(one, 3)
    first.wait_for(3)
    until(lambda: me in known(kafka), "the position to be in Kafka")
    one.kill()
    one.start()
    witness = telescope(one.subscribers)
    missed = sent(one, 3)
    witness.wait_for(3)
    stranger = telescope(one.subscribers, name=other)
    back = telescope(one.subscribers, name=me)
    until(lambda: set(missed) <= set(back.events), "what was missed")
    assert sorted(event for event in back.events if event in missed) == sorted(missed)  # each once
    asking = telescope(one.subscribers, name=other + "s", params=(("replay", "3600"),))
    until(lambda: {*seen, *missed} <= set(asking.events), "what was asked for")
    assert stranger.events == []
    back.close()
    away = sent(one, 2)
    assert sorted(stranger.wait_for(2)) == sorted(away)
    two = start_gateway("--replay", "1h", "--no-accounts", "--ivorn", "ivo://test/two", name="two")
    there = telescope(two.subscribers, name=me)
    until(lambda: set(away) <= set(there.events), "what was missed, at the other gateway")
    assert "returns to feed voevents" in two.log.read_text()


def test_nobody_moves_the_position_of_another_by_taking_its_name(
    start_gateway: Start, telescope: Subscribe, sent: Callable[..., list[bytes]], kafka: str
) -> None:
    me = f"ivo://test.{os.urandom(6).hex()}/me"
    gateway = start_gateway("--replay", "1h", "--no-accounts")
    first = telescope(gateway.subscribers, name=me)
    sent(gateway, 2)
    first.wait_for(2)
    until(lambda: me in known(kafka), "the position to be in Kafka")
    first.close()
    witness = telescope(gateway.subscribers)
    missed = sent(gateway, 2)
    witness.wait_for(2)
    impostor = telescope(gateway.subscribers, name=me, host="127.0.0.2")  # comes first, and acks
    taken = sent(gateway, 1)
    impostor.wait_for(1)
    mute = telescope(gateway.subscribers, name=me, host="127.0.0.3", acks=False)
    back = telescope(gateway.subscribers, name=me)
    until(lambda: {*missed, *taken} <= set(back.events), "what was missed")
    assert (set(impostor.events), mute.events) == (set(taken), [])
    for second in (mute, back):
        (told,) = (one for one in second.heard if one.role == "nak")
        assert told.result == f"somebody else has the name {me}, too; each has a position of his own"
    again = telescope(gateway.subscribers, name=me)
    until(lambda: "an older connection of yours" in str(again.heard), "the second to be told")
    assert gateway.log.read_text().count("is told: ") == 3


def test_a_position_is_its_certificates_wherever_that_comes_from(
    start_gateway: Start,
    telescope: Subscribe,
    sent: Callable[..., list[bytes]],
    authority: Callable[[str], Any],
    kafka: str,
) -> None:
    me, signs = f"ivo://test.{os.urandom(6).hex()}/me", authority("authority")
    ours, port = signs.issue("gateway"), free_port()
    tls = ("--tls-cert", str(ours), "--tls-client-ca", str(signs.file))
    listen = ("--subscribers", f"tls://127.0.0.1:{port}", *tls)
    gateway = start_gateway("--replay", "1h", "--no-accounts", *listen, subscribers=port)
    north, south = (
        client_context(TLSSettings(signs.issue(one), ca=signs.file)) for one in ("north", "south")
    )
    first = telescope(port, name=me, tls=north)
    sent(gateway, 2)
    first.wait_for(2)
    until(lambda: me in known(kafka), "the position to be in Kafka")
    first.close()
    other = telescope(port, name=me, tls=south)
    missed = sent(gateway, 2)
    other.wait_for(2)
    back = telescope(port, name=me, tls=north, host="127.0.0.2")
    until(lambda: set(missed) <= set(back.events), "what was missed")


def test_our_own_subscriber_asks_for_what_was_before(
    start_gateway: Start, sent: Callable[..., list[bytes]], fresh_broker: Any, gateway_on: Start
) -> None:
    """A gateway on a Kafka of its own fills it from another gateway."""
    one = start_gateway("--replay", "1d", name="one")
    before = sent(one, 3)
    asks = ("--remote", f"127.0.0.1:{one.subscribers}", "--remote-replay", "1h", "--ivorn", "ivo://test/own")
    two = gateway_on(fresh_broker.bootstrap, *asks, name="two")

    def arrived() -> set[bytes]:
        return {
            VOEVENT.decode(x.value() or b"")["raw"] for x in read_to_end(fresh_broker.bootstrap, ["voevents"])
        }

    until(lambda: set(before) <= arrived(), "events of before")
    assert two.stop() == 0


def test_a_subscriber_so_far_away_that_its_acks_come_late_is_kept_and_loses_nothing(
    start_gateway: Start, telescope: Subscribe, sent: Callable[..., list[bytes]], metric: Any
) -> None:
    gateway = start_gateway("--iamalive", "0.3", "--no-accounts")
    far, near = telescope(gateway.subscribers, acks=False), telescope(gateway.subscribers)
    documents = sent(gateway, 60)
    assert near.wait_for(60) == far.wait_for(60)
    assert sorted(far.events) == sorted(documents)
    heartbeats = lambda: sum(told.role == "iamalive" for told in far.heard)  # noqa: E731
    until(lambda: heartbeats() >= 3, "heartbeats that come while 60 events are unacknowledged")
    for document in far.events:
        far.ack(document)
    answered = 'nightwire_gateway_events_answered_total{answer="ack"}'
    until(lambda: metric(gateway, answered) == 120, "late acks to count")


def test_what_comet_does_not_take_goes_to_those_who_say_they_take_it(
    start_gateway: Start, telescope: Subscribe, sent: Callable[..., list[bytes]], metric: Any
) -> None:
    gateway = start_gateway("--no-accounts")
    plain = telescope(gateway.subscribers)
    large = telescope(gateway.subscribers, params=(("max-frame", "200000"),))
    (hello,) = sent(gateway, 1)
    assert large.wait_for(1) == [hello]  # so that what it takes is known
    big = sent(gateway, 2, what="<What><Description>" + "x" * 150_000 + "</Description></What>")
    (end,) = sent(gateway, 1)
    assert sorted(large.wait_for(4)) == sorted([hello, *big, end])
    assert plain.wait_for(2)[-1] == end
    assert sorted(plain.events) == sorted([hello, end])
    assert metric(gateway, 'nightwire_gateway_events_withheld_total{feed="voevents",reason="size"}') == 2
    assert gateway.log.read_text().count("it goes only to subscribers that say they take so much") == 1


def test_each_feed_has_its_own_address_and_gives_what_its_table_says(
    start_gateway: Start,
    telescope: Subscribe,
    ivorns: Ivorns,
    tmp_path: Path,
    free_ports: Callable[[int], list[int]],
) -> None:
    tests, near = free_ports(2)
    table = '[feeds.{}]\nlisten = "127.0.0.1:{}"\ntopics = ["voevents"]\n{}\n'
    config = tmp_path / "feeds.toml"
    config.write_text(
        table.format("tests", tests, 'roles = ["test"]')
        + table.format("near", near, 'xpath = ["//Param[@name=\'near\']"]\nrate = "2/day"')
    )
    gateway = start_gateway("--config", str(config), "--no-accounts")
    ports = gateway.subscribers, tests, near
    usual, of_tests, of_near = (telescope(port) for port in ports)
    author = Author(Address("127.0.0.1", gateway.authors))
    what = '<What><Param name="near" value="1"/></What>'
    documents = [packet(ivorn, what=what) for ivorn in ivorns(4)]
    documents += [packet(f"{ivorn}-test", role="test") for ivorn in ivorns(2)]
    for document in documents:
        assert author.send(Submission("x", document)).verdict == "ack"
    assert sorted(usual.wait_for(6)) == sorted(documents)
    assert sorted(of_tests.wait_for(2)) == sorted(documents[4:])
    assert set(of_near.wait_for(2)) < set(documents[:4])
    gateway.stop()
    assert [len(one.events) for one in (usual, of_tests, of_near)] == [6, 2, 2]


def test_a_retraction_reaches_every_feed_and_handler_that_had_the_event_and_no_other(
    start_gateway: Start,
    telescope: Subscribe,
    ivorns: Ivorns,
    tmp_path: Path,
    free_ports: Callable[[int], list[int]],
) -> None:
    near, alerts = free_ports(2)
    table = '[feeds.{}]\nlisten = "127.0.0.1:{}"\n{}\n'
    config = tmp_path / "feeds.toml"
    config.write_text(
        table.format("near", near, 'topics = ["voevents"]\nxpath = ["//Param[@name=\'near\']"]')
        + table.format("bright", alerts, 'topics = ["filter.gateway-test.bright"]')
    )
    saving = ("--save-event", "--save-event-directory", str(tmp_path / "saved"))
    options = ("--config", str(config), "--registry", "http://127.0.0.1:9", "--no-accounts", *saving)
    gateway = start_gateway(*options)
    usual, of_near, of_alerts = (telescope(port) for port in (gateway.subscribers, near, alerts))
    mine = telescope(gateway.subscribers, filters=("//Param[@name='near']",))
    until(lambda: "filters by" in gateway.log.read_text(), "a subscriber's own filter")
    there, far, gone, away, alert = ivorns(5)
    what = '<What><Param name="near" value="1"/></What>'

    def retract(ivorn: str, cited: str) -> bytes:
        citation = f'<Citations><EventIVORN cite="retraction">{cited}</EventIVORN></Citations>'
        return packet(ivorn, role="utility", what=citation)

    sent = [
        packet(there, what=what),
        packet(far),
        retract(gone, there),
        retract(away, far),
        retract(alert, "ivo://nightwire/filter.gateway-test.bright#lsst-1"),
    ]
    author = Author(Address("127.0.0.1", gateway.authors))
    for number, document in enumerate(sent):
        assert author.send(Submission("x", document)).verdict == "ack"
        usual.wait_for(number + 1)  # one after the other, whatever partitions they are in
    assert usual.wait_for(5) == sent
    assert of_near.wait_for(2) == [sent[0], sent[2]]
    assert mine.wait_for(2) == [sent[0], sent[2]]
    assert of_alerts.wait_for(1) == [sent[4]]
    until(lambda: len(list((tmp_path / "saved").iterdir())) == 5, "the handler")
    gateway.stop()
    assert [len(one.events) for one in (usual, of_near, mine, of_alerts)] == [5, 2, 2, 1]
