"""Alerts of a filter topic, as VOEvents, to the subscribers of the gateway."""

import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nightwire.core.kafka import Writer, ensure_topics, producer, read_to_end
from nightwire.core.stack import free_port
from nightwire.gateway import Author, Submission, author_packet, voevent_fields
from nightwire.gateway.net.addresses import Address
from nightwire.schemas.topics import DEAD_LETTERS, filter_topic, settings
from tests._alert_container import container
from tests._voevents import packet
from tests._waiting import until

pytestmark = pytest.mark.kafka


def test_alerts_that_passed_a_filter_reach_telescopes_as_voevents(
    start_gateway: Callable[..., Any], telescope: Callable[..., Any], kafka: str
) -> None:
    topic = filter_topic("gateway-test", "bright")
    ensure_topics(kafka, [settings(topic)])
    gateway = start_gateway("--feed", topic, "--registry", "http://127.0.0.1:9")
    listener = telescope(gateway.subscribers)
    writer = Writer(producer(kafka))
    for alert_id in range(1, 6):
        writer.write(topic, container(alert_id), headers=[("survey", b"lsst")])
        writer.write(topic, b"Obj\x01 no alert", headers=[("survey", b"lsst")])
    writer.flush()
    packets = [author_packet(document) for document in listener.wait_for(5)]
    assert [packet.ivorn for packet in packets] == [f"ivo://nightwire/{topic}#lsst-{n}" for n in range(1, 6)]
    fields = voevent_fields(packets[0])
    assert fields["event_time"] == "2025-12-31T23:59:23.000"  # UTC of an MJD in TAI
    assert (fields["ra"], fields["dec"]) == (1.5, -1.5)
    until(lambda: gateway.log.read_text().count("cannot be read") == 5)
    buried = [one.value() for one in read_to_end(kafka, [DEAD_LETTERS])]
    assert buried.count(b"Obj\x01 no alert") == 5
    assert gateway.stop() == 0


def is_open(port: int) -> bool:
    """Whether somebody listens on *port*."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


def test_a_feed_with_a_condition_sends_what_meets_it_and_its_retraction_alone(
    start_gateway: Callable[..., Any],
    telescope: Callable[..., Any],
    kafka: str,
    tmp_path: Path,
    ivorns: Callable[[int], list[str]],
) -> None:
    topic, ports = filter_topic("gateway-test", "half"), [free_port(), free_port(), free_port()]
    event, test_event, *retractions = ivorns(8)
    mine = f"where = \"role = 'observation' AND id LIKE '{event[:-1]}%'\"\n"
    ensure_topics(kafka, [settings(topic), settings("alerts.lsst")])
    tables = [
        f'[feeds.f{number}]\nlisten = "127.0.0.1:{port}"\ntopics = ["{one}"]\n{more}'
        for number, (port, one, more) in enumerate(
            [
                (ports[0], "alerts.lsst", 'where = "flux > 3"\n'),
                (ports[1], topic, 'where = "magnitude < 22"\n'),
                (ports[2], "voevents", mine),
            ]
        )
    ]
    (tmp_path / "feeds.toml").write_text("".join(tables))
    options = "--config", str(tmp_path / "feeds.toml"), "--registry", "http://127.0.0.1:9", "--feed", topic
    gateway = start_gateway(*options)
    bounded, some, all_of_them = telescope(ports[0]), telescope(ports[1]), telescope(gateway.subscribers)
    writer = Writer(producer(kafka))
    for alert_id in range(1, 7):
        value = container(alert_id, 1e4 if alert_id % 3 == 0 else 1.0)
        for one in (topic, "alerts.lsst"):
            writer.write(one, value, headers=[("survey", b"lsst")])
    writer.write("alerts.lsst", b"Obj\x01 no alert", headers=[("survey", b"lsst")])
    writer.flush()

    def numbers(documents: Iterable[bytes]) -> list[str]:
        return [author_packet(one).ivorn.rpartition("-")[2] for one in documents]

    assert sorted(numbers(bounded.wait_for(2))) == ["3", "6"]
    assert numbers(some.wait_for(2)) == ["3", "6"]
    assert numbers(all_of_them.wait_for(6)) == ["1", "2", "3", "4", "5", "6"]
    until(lambda: "cannot be read" in gateway.log.read_text())
    assert gateway.stop() == 0

    gateway = start_gateway(*options)  # it still knows what went out
    until(lambda: all(map(is_open, ports)))
    of_events, bounded, some = telescope(ports[2]), telescope(ports[0]), telescope(ports[1])
    all_of_them = telescope(gateway.subscribers)
    cited = [
        event,
        test_event,
        *(f"ivo://nightwire/{one}#lsst-{n}" for one in ("alerts.lsst", topic) for n in (1, 3)),
    ]
    sent = [packet(event), packet(test_event, role="test")]
    for ivorn, one in zip(retractions, cited, strict=True):
        what = f'<Citations><EventIVORN cite="retraction">{one}</EventIVORN></Citations>'
        sent.append(packet(ivorn, role="utility", what=what))
    author = Author(Address("127.0.0.1", gateway.authors))
    for number, document in enumerate(sent, 1):
        assert author.send(Submission("x", document)).verdict == "ack"
        all_of_them.wait_for(number)  # one after the other, whatever partitions they are in
    gateway.stop()
    assert of_events.events == [sent[0], sent[2]]
    assert (bounded.events, some.events) == ([sent[5]], [sent[7]])
    assert all_of_them.events == sent
