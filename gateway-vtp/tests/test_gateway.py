"""The whole gateway, a process of its own, on a real Kafka."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.accounting import discrepancies, read_accounts, totals
from nightwire.gateway import Author, Submission, encode_frame
from nightwire.gateway.client.bulk_author import send_bulk
from nightwire.gateway.net.addresses import Address
from tests._voevents import packet
from tests._waiting import until

pytestmark = pytest.mark.kafka

Ivorns = Callable[[int], list[str]]
Start = Callable[..., Any]
"""Starts a gateway with options: a `GatewayProcess` of conftest."""
Subscribe = Callable[..., Any]
"""Subscribes to a port: a `Telescope` of conftest."""
Logged = Callable[[], dict[str, list[bytes]]]
Metric = Callable[..., float]
"""Reads one sample of a gateway's metrics page."""


def author(gateway: Any, **options: float) -> Author:
    return Author(Address("127.0.0.1", gateway.authors), **options)


def gateway_total(kafka: str) -> dict[str, int]:
    found = [total for total in totals(read_accounts(kafka)) if total.stage == "gateway"]
    return vars(found[0]) if found else dict.fromkeys(("read", "delivered", "rejected"), 0)


def test_an_event_goes_from_author_to_kafka_to_subscriber_byte_for_byte(
    start_gateway: Start, telescope: Subscribe, ivorns: Ivorns, logged: Logged
) -> None:
    gateway = start_gateway()
    listener = telescope(gateway.subscribers)
    documents = {ivorn: packet(ivorn) + b"<!-- \xe2\x98\x86 -->\n" for ivorn in ivorns(20)}
    for ivorn, document in documents.items():
        receipt = author(gateway).send(Submission("x", document))
        assert (receipt.verdict, receipt.ivorn) == ("ack", ivorn)
    assert sorted(listener.wait_for(20)) == sorted(documents.values())
    log = logged()
    assert {ivorn: log[ivorn] for ivorn in documents} == {ivorn: [raw] for ivorn, raw in documents.items()}
    assert gateway.stop() == 0


def test_several_events_on_one_connection_are_answered_in_order_even_before_they_are_acknowledged(
    start_gateway: Start, ivorns: Ivorns
) -> None:
    gateway = start_gateway()
    names = ivorns(600)
    frames = [encode_frame(packet(ivorn)) for ivorn in names]
    answers = gateway.ask(*frames, close=True)
    assert [(one.role, one.origin) for one in answers] == [("ack", ivorn) for ivorn in names]


def test_copies_are_acknowledged_and_neither_stored_nor_delivered_again(
    start_gateway: Start, telescope: Subscribe, ivorns: Ivorns, kafka: str, logged: Logged
) -> None:
    gateway = start_gateway()
    listener = telescope(gateway.subscribers)
    before = gateway_total(kafka)
    ivorn, last = ivorns(2)
    copies = [Submission("x", packet(ivorn) + b"<!--%d-->" % number) for number in range(40)]
    with ThreadPoolExecutor(20) as pool:  # at once, so that most meet the first one in flight
        receipts = list(pool.map(author(gateway).send, copies))
    assert {receipt.verdict for receipt in receipts} == {"ack"}
    assert author(gateway).send(Submission("x", packet(last))).verdict == "ack"
    assert len(listener.wait_for(2)) == 2
    assert len(logged()[ivorn]) == 1
    gateway.stop()
    after = gateway_total(kafka)
    assert after["read"] - before["read"] == 41
    assert after["delivered"] - before["delivered"] == 2
    assert after["rejected"] - before["rejected"] == 39


def test_a_restarted_gateway_knows_what_it_had_and_one_without_its_index_learns_it_again(
    start_gateway: Start, ivorns: Ivorns, logged: Logged, kafka: str
) -> None:
    (ivorn,) = ivorns(1)
    for name in ("gateway", "gateway", "elsewhere"):
        gateway = start_gateway(name=name)
        assert author(gateway).send(Submission("x", packet(ivorn))).verdict == "ack"
        assert gateway.stop() == 0
    assert len(logged()[ivorn]) == 1
    assert discrepancies(read_accounts(kafka)) == []


def test_an_invalid_event_is_refused_with_its_reason_and_the_rest_goes_on(
    start_gateway: Start, ivorns: Ivorns, kafka: str, tmp_path: Path
) -> None:
    gateway = start_gateway()
    before = gateway_total(kafka)
    good, bad = ivorns(2)
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a-bad.xml").write_bytes(packet(bad, what="<What>\n<Bogus/></What>"))
    (tmp_path / "events" / "b-garbage.xml").write_bytes(b"not xml at all")
    (tmp_path / "events" / "c-good.xml").write_bytes(packet(good))
    done = gateway.send("--json", str(tmp_path / "events"), "-", stdin=packet(good))
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert {name: report[name] for name in ("sent", "acked", "naked", "failed")} == {
        "sent": 4,
        "acked": 2,
        "naked": 2,
        "failed": 0,
    }
    reasons = [one["reason"] or "" for one in report["results"]]
    assert "Bogus" in reasons[0]
    assert "line 5" in reasons[0]
    assert "not well-formed" in reasons[1]
    gateway.stop()
    after = gateway_total(kafka)
    assert {name: after[name] - before[name] for name in ("read", "delivered", "rejected")} == {
        "read": 4,
        "delivered": 1,
        "rejected": 3,
    }


def test_what_is_acknowledged_survives_kill_9_in_mid_load_and_the_accounts_agree(
    start_gateway: Start, ivorns: Ivorns, kafka: str, logged: Logged
) -> None:
    gateway = start_gateway()
    names = ivorns(400)
    acked = threading.Semaphore(0)

    def send(ivorn: str) -> str:
        verdict = author(gateway, patience=60, timeout=30).send(Submission(ivorn, packet(ivorn))).verdict
        acked.release()
        return verdict

    with ThreadPoolExecutor(16) as pool:
        sending = [pool.submit(send, ivorn) for ivorn in names]
        for kill_after in (60, 120):
            for _ in range(kill_after):
                acked.acquire()
            gateway.kill()
            gateway.start()
        verdicts = [future.result() for future in sending]
    assert verdicts == ["ack"] * len(names)
    assert gateway.stop() == 0
    log = logged()
    assert [ivorn for ivorn in names if not log.get(ivorn)] == []
    accounts = read_accounts(kafka)
    assert discrepancies(accounts) == []
    in_log = sum(len(copies) for copies in log.values())
    assert gateway_total(kafka)["delivered"] == in_log


def test_hostile_authors_are_cut_off_and_others_served(start_gateway: Start, ivorns: Ivorns) -> None:
    gateway = start_gateway("--author-timeout", "1", "--max-frame", "100000")
    bomb = b'<!DOCTYPE v [<!ENTITY a "aaaa">]><VOEvent ivorn="ivo://a/b#1">&a;</VOEvent>'
    huge = b"\xff\xff\xff\xff" + os.urandom(1000)
    drip = socket.create_connection(("127.0.0.1", gateway.authors), timeout=30)
    drip.sendall(b"\x00\x00")
    assert [one.role for one in gateway.ask(huge)] == ["nak"]
    (answer,) = gateway.ask(encode_frame(bomb))
    assert "DOCTYPE" in (answer.result or "")
    assert gateway.ask(b"\x00\x00\x00\x00")[0].role == "nak"
    assert [one.role for one in gateway.ask(b"GET / HTTP/1.1\r\n\r\n")] == ["nak"]
    assert gateway.ask(b"\x00\x00\x10\x00half", close=True) == []
    (too_long,) = gateway.ask((100_001).to_bytes(4, "big") + b"x" * 100_001)
    assert too_long.result == "a frame of 100001 bytes, the limit is 100000"
    assert drip.recv(10) == b""  # cut off, though it sent something
    drip.close()
    assert author(gateway).send(Submission("x", packet(ivorns(1)[0]))).verdict == "ack"
    assert gateway.stop() == 0


def test_subscribers_get_what_their_xpath_filters_select(
    start_gateway: Start, telescope: Subscribe, ivorns: Ivorns
) -> None:
    gateway = start_gateway()
    tests = telescope(gateway.subscribers, filters=("//[", "/*[@role='test']"))
    everything = telescope(gateway.subscribers, filters=("//[",))
    until(lambda: gateway.log.read_text().count("filters by") == 2)
    names = ivorns(10)
    for number, ivorn in enumerate(names):
        role = "test" if number % 2 else "observation"
        author(gateway).send(Submission("x", packet(ivorn, role=role)))
    assert len(everything.wait_for(10)) == 10
    assert sorted(tests.wait_for(5)) == sorted(packet(ivorn, role="test") for ivorn in names[1::2])


def test_a_slow_subscriber_loses_nothing_and_holds_up_nobody(
    start_gateway: Start, telescope: Subscribe, ivorns: Ivorns, metric: Metric
) -> None:
    gateway = start_gateway("--ring-events", "20")
    fast = telescope(gateway.subscribers)
    slow = telescope(gateway.subscribers, pause=threading.Event())
    padding = "<What><Description>" + "x" * 50_000 + "</Description></What>"
    sent = [packet(ivorn, what=padding) for ivorn in ivorns(400)]
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(author(gateway).send, [Submission("x", document) for document in sent]))
    assert {receipt.verdict for receipt in receipts} == {"ack"}
    assert sorted(fast.wait_for(400)) == sorted(sent)
    assert slow.events == []
    slow.pause.set()  # only now does it begin to read
    assert sorted(slow.wait_for(400)) == sorted(sent)
    assert metric(gateway, "nightwire_gateway_backlog_events_total") > 0
    assert metric(gateway, "nightwire_gateway_held_bytes") < 20 * 51_000


@pytest.fixture
def far_away() -> Iterator[Callable[[int], int]]:
    """Return a function that relays to a port, 200 ms away; it returns the port of the relay."""
    with ExitStack() as relays:

        def relay(port: int) -> int:
            order = json.dumps({"port": port, "round_trip": 0.2})
            command = [sys.executable, "-m", "nightwire.benchmarks.workers.vtp.relay", order]
            process = relays.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            relays.callback(process.kill)
            assert process.stdout is not None
            return int(json.loads(process.stdout.readline())["port"])

        yield relay


@pytest.fixture
def reaches_the_far_one(
    start_gateway: Start, telescope: Subscribe, ivorns: Ivorns, metric: Metric, far_away: Callable[[int], int]
) -> Callable[[int], None]:
    """Return a function that sends events at 500/s, across heartbeats, near and far."""

    def run(count: int) -> None:
        gateway = start_gateway("--iamalive", "0.5")
        near, far = telescope(gateway.subscribers), telescope(far_away(gateway.subscribers))
        documents = [packet(ivorn) for ivorn in ivorns(count)]

        def paced() -> Iterator[Submission]:
            began, pause = time.monotonic(), threading.Event()
            for number, document in enumerate(documents):
                pause.wait(max(0.0, began + number / 500 - time.monotonic()))
                yield Submission("x", document)

        assert {one.verdict for one in send_bulk(author(gateway), paced(), 1, 256)} == {"ack"}
        assert sorted(near.wait_for(count)) == sorted(documents)
        assert sorted(far.wait_for(count)) == sorted(documents)
        assert "answered nothing" not in gateway.log.read_text()
        assert metric(gateway, "nightwire_gateway_held_bytes") <= 64 << 20

    return run


def test_a_subscriber_far_away_is_kept_across_heartbeats_and_loses_nothing(
    reaches_the_far_one: Callable[[int], None],
) -> None:
    reaches_the_far_one(1_000)


@pytest.mark.proof
@pytest.mark.timeout(300)
def test_a_subscriber_far_away_keeps_up_for_a_minute(reaches_the_far_one: Callable[[int], None]) -> None:
    reaches_the_far_one(30_000)


def test_a_subscriber_that_answers_nothing_is_dropped_and_one_that_only_answers_iamalive_is_kept(
    start_gateway: Start, telescope: Subscribe, ivorns: Ivorns
) -> None:
    gateway = start_gateway("--iamalive", "0.5")
    alive = telescope(gateway.subscribers, acks=False)
    with socket.create_connection(("127.0.0.1", gateway.subscribers), timeout=60) as mute:
        while mute.recv(1 << 16):  # until the gateway hangs up
            pass
    assert "answered nothing" in gateway.log.read_text()
    author(gateway).send(Submission("x", packet(ivorns(1)[0])))
    assert len(alive.wait_for(1)) == 1
    assert [told.role for told in alive.heard].count("iamalive") >= 2


def test_accounts_of_a_subscriber_say_what_it_acknowledged(
    start_gateway: Start, telescope: Subscribe, ivorns: Ivorns, kafka: str
) -> None:
    gateway = start_gateway("--ivorn", "ivo://accounts.test/gateway")
    good, mute = telescope(gateway.subscribers), telescope(gateway.subscribers, acks=False)
    for ivorn in ivorns(7):
        author(gateway).send(Submission("x", packet(ivorn)))
    good.wait_for(7)
    mute.wait_for(7)
    gateway.stop()
    mine = [one for one in read_accounts(kafka) if one.source.endswith("ivo://accounts.test/gateway")]
    assert sorted((one.read, one.delivered, dict(one.rejected)) for one in mine) == [
        (7, 0, {"unacked": 7}),
        (7, 7, {}),
    ]


def test_a_gateway_gets_events_from_another_and_copies_end_there(
    start_gateway: Start, telescope: Subscribe, ivorns: Ivorns
) -> None:
    one = start_gateway(name="one")
    remote = f"127.0.0.1:{one.subscribers}"
    two = start_gateway("--remote", remote, "--no-accounts", name="two")
    listener = telescope(two.subscribers)
    until(lambda: "connected" in two.log.read_text(), "one gateway to subscribe to the other")
    names = ivorns(31)
    for ivorn in names:
        assert author(one).send(Submission("x", packet(ivorn))).verdict == "ack"
    # Both write to one log, so `two` may admit an event before it has read that `one` did; nobody
    # gets it twice.
    listener.wait_for(31)
    assert two.stop() == 0
    assert sorted(listener.events) == sorted(packet(ivorn) for ivorn in names)


@pytest.fixture
def both_get_each_once(start_gateway: Start, telescope: Subscribe, ivorns: Ivorns) -> Callable[[int], None]:
    """Return a function that gives events to two gateways at once, and compares their output."""

    def run(count: int) -> None:
        gateways = [start_gateway(*more, name=name) for name, more in (("a", ()), ("b", ("--no-accounts",)))]
        listeners = [telescope(gateway.subscribers) for gateway in gateways]
        documents = [packet(ivorn) for ivorn in ivorns(count)]

        def submit(gateway: Any) -> list[str]:
            submissions = (Submission("x", document) for document in documents)
            return [receipt.verdict for receipt in send_bulk(author(gateway), submissions, 2, 256)]

        with ThreadPoolExecutor(2) as pool:
            assert [set(verdicts) for verdicts in pool.map(submit, gateways)] == [{"ack"}, {"ack"}]
        for listener in listeners:
            listener.wait_for(count, 300)
        assert all(gateway.stop() == 0 for gateway in gateways)
        for listener in listeners:
            assert sorted(listener.events) == sorted(documents)

    return run


def test_two_gateways_that_get_the_same_events_at_once_deliver_each_once(
    both_get_each_once: Callable[[int], None],
) -> None:
    both_get_each_once(1_000)


@pytest.mark.proof
@pytest.mark.timeout(1200)
def test_two_gateways_that_get_a_hundred_thousand_events_at_once_deliver_each_once(
    both_get_each_once: Callable[[int], None],
) -> None:
    both_get_each_once(100_000)


def test_two_gateways_cannot_share_a_state_folder(start_gateway: Start) -> None:
    first = start_gateway()
    with pytest.raises(AssertionError, match="in use by another gateway"):
        start_gateway()
    assert first.stop() == 0


def test_while_kafka_is_away_authors_wait_and_nothing_is_acknowledged_that_it_does_not_have(
    fresh_broker: Any, gateway_on: Start, telescope: Subscribe, ivorns: Ivorns
) -> None:
    gateway = gateway_on(fresh_broker.bootstrap)
    listener = telescope(gateway.subscribers)
    names = ivorns(120)

    def send(ivorn: str) -> str:
        return author(gateway, timeout=120, patience=120).send(Submission(ivorn, packet(ivorn))).verdict

    with ThreadPoolExecutor(8) as pool:
        sending = [pool.submit(send, ivorn) for ivorn in names]
        listener.wait_for(20)
        fresh_broker.kill()
        refused = pool.submit(gateway.ask, encode_frame(b"not an event"), close=True)
        assert not refused.done()
        fresh_broker.start()
        assert [future.result() for future in sending] == ["ack"] * len(names)
        assert [one.role for one in refused.result()] == ["nak"]
    assert sorted(listener.wait_for(len(names))) == sorted(packet(ivorn) for ivorn in names)
    assert gateway.stop() == 0  # the same process all the time
    accounts = read_accounts(fresh_broker.bootstrap)
    assert discrepancies(accounts) == []
    assert [
        (one.read, one.delivered, one.rejected) for one in totals(accounts) if one.stage == "gateway"
    ] == [(len(names) + 1, len(names), 1)]


def test_a_job_that_fails_ends_the_gateway_instead_of_leaving_it_half_dead(
    kafka: str, tmp_path: Path
) -> None:
    """The name of this gateway makes test events that are none."""
    ports = [*("--authors", "127.0.0.1:0"), *("--subscribers", "127.0.0.1:0"), *("--metrics-port", "0")]
    where = ["--bootstrap", kafka, "--state", str(tmp_path), "--no-accounts", *ports]
    command = [sys.executable, "-m", "nightwire.core.cli", "gateway", "serve", *where]
    done = subprocess.run(
        [*command, "--test-event", "1h", "--ivorn", "no name"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "a job of the gateway failed" in done.stderr) == (1, True)
