"""Where flows meet others: VTP both ways, the archive, another site's Kafka, brokers' returns."""

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from archive.tests.conftest import CODEC, message, packet, put, writer
from archive.tests.conftest import alert as archived_alert
from archive.tests.test_http_api import answering
from consumers.tests.returns.test_returns import body
from flows.tests.conftest import Site, decoded, hook, out
from flows.tests.receivers import receiver
from flows.tests.running import identities, records_in, wait_for, worker, write_alerts
from nightwire.archive import Archive
from nightwire.core.accounting import read_accounts, totals
from nightwire.core.kafka import Writer, admin, ensure_topics, headers_of, producer
from nightwire.core.runtime import free_port
from nightwire.core.stack import Broker
from nightwire.core.subscriptions import write_flow
from nightwire.flows.engine import delete_orphaned_queues, orphaned_queues, unread_counts
from nightwire.flows.model import parse
from nightwire.schemas import SIM_ALERT_ID, records
from nightwire.schemas.serving import KafkaAccess
from nightwire.schemas.topics import DEAD_LETTERS, FLOWS, TopicSettings, flow_queue, settings
from nightwire.schemas.wire import frame
from tests._serving import verb

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]


def test_alerts_go_out_by_vtp_and_come_back(site: Site, tmp_path: Path) -> None:
    """A real gateway takes an alert as a VOEvent; a flow that reads `voevents` posts it."""
    authors = free_port()
    words = ["gateway", "serve", "--bootstrap", site.kafka, "--authors", f"127.0.0.1:{authors}"]
    words += ["--subscribers", f"127.0.0.1:{free_port()}", "--metrics-port", str(free_port())]
    words += ["--state", str(tmp_path / "index")]
    ivorn = f"ivo://nightwire/flow.{site.flow}.vtp#sim-7"
    with receiver() as page, verb(tmp_path / "gateway", *words, port=authors):
        vtp = f'[stones.vtp]\nkind = "vtp"\nfrom = "sky"\nto = "127.0.0.1:{authors}"\n'
        back = '[sources.back]\ntopic = "voevents"\n' + hook("page", page.url).replace('"sky"', '"back"')
        site.up(vtp + back)
        write_alerts(site.kafka, site.source, [7], ra=10.0, dec=-20.0)
        with worker(tmp_path / "log", site.kafka, "one", "--allow-inside"):
            wait_for(lambda: ivorn in {voevent(one)["ivorn"] for _, one in page.got}, tmp_path / "log")
    taken = [records.VOEVENT.decode(one.value() or b"") for one in records_in(site.kafka, "voevents")]
    [one] = [one for one in taken if one["ivorn"] == ivorn]
    assert (one["ra"], one["dec"], one["role"]) == (10.0, -20.0, "observation")


def voevent(posted: bytes) -> dict[str, str]:
    found: dict[str, str] = json.loads(posted)["event"]
    return found


LARGE = 90
"""Offset of an alert that the other site does not take."""


@pytest.mark.proof
def test_what_kafka_forgot_crosses_a_bridge_once(
    kafka: str, fresh_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive gives 60 alerts, Kafka 40 more; the worker is killed on the way, and moves."""
    here, there = fresh_broker.bootstrap, "filter.ann." + tmp_path.name[-6:].replace("_", "0")
    ensure_topics(here, [TopicSettings("alerts.sim", 1)])
    ensure_topics(here, [settings(one) for one in (FLOWS, "directory", "accounts", DEAD_LETTERS)])
    ensure_topics(kafka, [TopicSettings(there, 1, {"max.message.bytes": "20000"})])
    large = archived_alert(LARGE + 1) | {"cutoutScience": os.urandom(99_999)}
    bulky = frame(SIM_ALERT_ID, CODEC.encode(large))
    tables = writer(tmp_path / "archive")
    put(tables, *(packet(n) for n in range(80)))
    alerts = Writer(producer(here))
    for number in range(100):
        alerts.write("alerts.sim", bulky if number == LARGE else message(number + 1), key=b"k")
    alerts.flush()
    client = admin(here)
    [done] = client.delete_records([TopicPartition("alerts.sim", 0, 60)]).values()
    done.result(30)
    source = 'name = "past"\n[sources.sky]\ntopic = "alerts.sim"\nbegin = "2020-01-01"\n'
    bridge = f'[stones.far]\nkind = "bridge"\nfrom = "sky"\nkafka = "{kafka}"\ntopic = "{there}"\n'
    write_flow(here, "past", source + bridge)
    with answering(Archive(tmp_path / "archive"), KafkaAccess({})) as http:
        monkeypatch.setenv("NIGHTWIRE_ARCHIVE_HTTP", str(http.base_url))
        two = worker(tmp_path / "two", here, "two", "--takeover", "6s")
        with worker(tmp_path / "log", here, "one", "--takeover", "6s"), two:
            wait_for(lambda: records_in(kafka, there) != [], tmp_path / "log")
        with worker(tmp_path / "log", here, "three", "--takeover", "6s"):
            wait_for(lambda: len(records_in(kafka, there)) >= 99, tmp_path / "log")
            wait_for(lambda: read_of(here, "flow.past.far") == [(100, 99, 1)], tmp_path / "log")
    arrived = [headers_of(one) for one in records_in(kafka, there)]
    assert [int(one["offset"]) for one in arrived] == [n for n in range(100) if n != LARGE]
    assert [int(one["site-offset"]) for one in arrived] == sorted(int(one["site-offset"]) for one in arrived)
    assert [one.value() for one in records_in(kafka, there)][:LARGE] == [message(n + 1) for n in range(LARGE)]
    [dead] = map(headers_of, records_in(here, DEAD_LETTERS))
    assert (dead["stage"], b"MSG_SIZE_TOO_LARGE" in dead["reason"]) == (b"flow.past.far", True)


@pytest.mark.proof
def test_what_comes_back_from_another_site_goes_round_once(
    site: Site, fresh_broker: Broker, tmp_path: Path
) -> None:
    """A bridge leads from A to B, another from B to where the first one begins."""
    there = fresh_broker.bootstrap
    ensure_topics(there, [settings(one) for one in (FLOWS, "directory", "accounts", DEAD_LETTERS)])
    ensure_topics(there, [TopicSettings(site.source, 1)])
    for here, other in ((site.kafka, there), (there, site.kafka)):
        bridge = f'[stones.far]\nkind = "bridge"\nfrom = "sky"\nkafka = "{other}"\ntopic = "{site.source}"\n'
        write_flow(here, site.flow, site.text(bridge))
    write_alerts(site.kafka, site.source, range(1, 51))
    stage, log = flow_queue(site.flow, "far"), tmp_path / "log"
    with worker(log, site.kafka, "a"), worker(tmp_path / "b", there, "b", "--takeover", "6s"):
        wait_for(lambda: site.rows(stage) == [(100, 50, 50, 0)], log)
        write_alerts(site.kafka, site.source, range(51, 61))
        wait_for(lambda: site.rows(stage) == [(120, 60, 60, 0)], log)
    assert read_of(there, stage) == [(60, 60, 0)]
    mine = [one.rejected for one in read_accounts(site.kafka) if one.stage == stage]
    assert sum(one["cycle"] for one in mine if one) == 60
    assert log.read_text().count("a cycle over sites") == 1
    came = identities([one for one in records_in(site.kafka, site.source) if one.headers()])
    assert len({*came}) == len(came) == len(records_in(there, site.source)) == 60


def read_of(kafka: str, stage: str) -> list[tuple[int, int, int]]:
    """Return what a stage has read, delivered and sent to dead letters."""
    mine = [one for one in read_accounts(kafka) if one.stage == stage]
    return [(one.read, one.delivered, one.dead_lettered) for one in totals(mine)]


JOIN = """[sources.said]
topic = "returns.{broker}"
survey = "sim"
begin = "start"
[stones.known]
kind = "join"
from = ["sky", "said"]
within = "1d"
most = 2
"""


def test_alerts_meet_what_a_broker_returned(
    site: Site, tmp_path: Path, serve_registry: Callable[..., AbstractContextManager[str]]
) -> None:
    """Three alerts of one object, a return of the last, which names the alert alone; a kill."""
    broker, lost = site.flow, "known: returned of no object that is held"
    ensure_topics(site.kafka, [settings(f"returns.{broker}")])
    returned = Writer(producer(site.kafka))
    with serve_registry(site.kafka) as registry:
        site.up(JOIN.format(broker=broker) + out(site, "known"))
        write_alerts(site.kafka, site.source, [1, 98, 195])
        with worker(tmp_path / "log", site.kafka, "one", "--registry", registry):
            wait_for(lambda: sum(one[0] for one in site.rows(f"flow.{site.flow}")) == 6, tmp_path / "log")
        returned.write(f"returns.{broker}", body(195, brokerName=broker))
        returned.write(f"returns.{broker}", body(4711, brokerName=broker))
        returned.flush()
        with worker(tmp_path / "log", site.kafka, "one", "--registry", registry):
            wait_for(lambda: lost in site.rejected() and len(site.arrived()) == 1, tmp_path / "log")
        [known] = decoded(site, registry, tmp_path)
    assert known["object"] == "2"
    assert [one["alert"] for one in known["alerts"]] == ["98", "195"]
    [said] = known["returns"]
    assert (said["alert"], said["classes"]) == ("195", {"111": 0.25, "112": 0.75})
    assert (site.rejected()[lost], site.dead()) == (1, {})


def test_a_queue_goes_once_its_stone_is_gone_and_all_was_read(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody reads waits for its stone; then it is dead letters, each once, and counted so."""
    with receiver() as page, receiver() as hung:
        hung.hang.set()
        with worker(tmp_path / "log", site.kafka, "one", "--allow-inside"):
            site.up(hook("read", page.url) + hook("late", hung.url))
            write_alerts(site.kafka, site.source, range(1, 4))
            wait_for(lambda: len(page.got) == 3, tmp_path / "log")
            wait_for(lambda: site.rows(flow_queue(site.flow, "read")) == [(3, 3, 0, 0)], tmp_path / "log")
        hung.hang.clear()
    gone, late = (flow_queue(site.flow, name) for name in ("read", "late"))
    changed = parse(site.text(out(site, "sky")))
    assert delete_orphaned_queues(site.kafka, [parse(site.text(hook("read", page.url)))]) == []
    assert unread_counts(site.kafka, changed).keys() == {"late"}
    assert delete_orphaned_queues(site.kafka, [changed]) == [gone]
    assert {late} == {one for one in topics_of(site.kafka) if one.startswith(f"flow.{site.flow}.")}
    monkeypatch.setattr(orphaned_queues, "WAIT", 0.0)
    monkeypatch.setattr(orphaned_queues, "BATCH", 2)
    monkeypatch.setattr(orphaned_queues, "MOST", 2)
    assert orphaned_queues.find_orphaned_queues((), [gone, late, "alerts.sim"], {site.flow}) == []
    assert orphaned_queues.find_orphaned_queues((), [gone, late, "alerts.sim"], {"another"}) == [late, gone]
    # once Kafka knows that nobody reads
    wait_for(lambda: delete_orphaned_queues(site.kafka, [changed]) or site.rows(late) == [(2, 0, 0, 2)])
    # the stone came back meanwhile:
    assert delete_orphaned_queues(site.kafka, [changed], is_orphaned=lambda _: False) == []
    assert delete_orphaned_queues(site.kafka, [changed]) == [late]
    assert site.rows(late) == [(3, 0, 0, 3)]
    assert {*site.dead().values()} == {orphaned_queues.REASON}
    letters = [
        one for one in map(headers_of, records_in(site.kafka, DEAD_LETTERS)) if one["stage"].decode() == late
    ]
    assert len(letters) == 3


def topics_of(kafka: str) -> list[str]:
    return [*admin(kafka).list_topics(timeout=10).topics]


def test_a_terminal_that_becomes_a_stone_goes_on_in_its_queue(site: Site, tmp_path: Path) -> None:
    """What was posted is not written again: both read the queue from where either was."""
    with receiver() as page, worker(tmp_path / "log", site.kafka, "one", "--allow-inside"):
        site.up(hook("next", page.url))
        write_alerts(site.kafka, site.source, range(1, 11))
        wait_for(lambda: len(page.got) == 10, tmp_path / "log")
        site.up('[stones.next]\nkind = "split"\nfrom = "sky"\n' + out(site, "next"))
        write_alerts(site.kafka, site.source, range(11, 16))
        wait_for(lambda: len(site.arrived()) >= 5, tmp_path / "log")
        site.up(hook("next", page.url))
        write_alerts(site.kafka, site.source, range(16, 19))
        wait_for(lambda: len(page.got) >= 13, tmp_path / "log")
    assert (len(page.got), len(site.arrived())) == (13, 5)
