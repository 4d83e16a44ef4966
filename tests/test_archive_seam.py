"""A reader goes into the archive for what Kafka has forgotten, without a seam."""

import json
import re
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from confluent_kafka import TopicPartition

from archive.tests.conftest import alert, message, serving
from nightwire.consumers import AlertReader, ReceivedAlert
from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.core.datagrams import LITE_HEADER
from nightwire.core.kafka import (
    Writer,
    admin,
    consumer,
    ensure_topics,
    headers_of,
    producer,
    read_to_end,
    watermarks,
)
from nightwire.core.presence import ArchiveClient
from nightwire.core.runtime import Stop, free_port
from nightwire.core.stack import Broker
from nightwire.filters.admission.catalog import _record
from nightwire.filters.cli.commands import filter_
from nightwire.filters.decision.backfill_decision import BackfillJob
from nightwire.filters.decision.backfill_jobs import BackfillJobs
from nightwire.filters.engine.backfill_runner import BackfillRunner, find_start
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.model.compilation import compile_request
from nightwire.schemas import SIM_ALERT_ID, Codec, derived_schema, records, sim_alert_schema
from nightwire.schemas.avro.container import container_block, container_head
from nightwire.schemas.topics import settings
from nightwire.schemas.wire import frame
from tests._multicast import Receiver, free_group, relay
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


LIGHTER = "broker.ann.lighter"
"""Where alerts lie without their stamps."""


def write(bootstrap: str, first: int, end: int) -> None:
    out = Writer(producer(bootstrap))
    for number in range(first, end):
        out.write("alerts.sim", message(number), key=b"%d" % number)
    out.flush()


def await_archived(url: str, wanted: int) -> None:
    def archived() -> bool:
        answer = httpx.get(f"{url}/query", params={"sql": "SELECT count(*) AS n FROM sim"})
        return answer.status_code == 200 and answer.json()[0]["n"] >= wanted

    until(archived, "not archived", 60, tick=0.3)


def forget(bootstrap: str, share: float = 0.5) -> dict[int, int]:
    """Let Kafka delete a share of each partition; return where they begin now."""
    reader, kafka = consumer(bootstrap), admin(bootstrap)
    held = {number: watermarks(reader, "alerts.sim", number) for number in range(4)}
    lows = {number: marks.low + int(share * (marks.high - marks.low)) for number, marks in held.items()}
    for done in kafka.delete_records([TopicPartition("alerts.sim", *one) for one in lows.items()]).values():
        done.result(30)
    reader.close()
    return lows


def check_a_backfill_of_what_is_all_forgotten(kafka: str, url: str, low: int) -> None:
    """It lies before what Kafka has: the archive gives it, or it is said to have expired."""
    until = {("alerts.sim", 0): low - 1}
    with closing(ArchiveClient(url)) as past:
        found = find_start(kafka, 0, until, past)
    assert (found.first, found.kept) == ({("alerts.sim", 0): 0}, None)
    assert find_start(kafka, 0, until).kept is not None


def check_stamps_of(number: int, kafka: str, registry: str) -> None:
    """Kafka has forgotten the alert that came here without its stamps: partition 0, offset 0."""
    stamps = {"cutoutScience", "cutoutTemplate", "cutoutDifference"}
    schema = derived_schema(sim_alert_schema(), stamps)
    body = Codec(schema).encode({name: one for name, one in alert(number).items() if name not in stamps})
    value = container_head(json.dumps(schema).encode(), bytes(16)) + container_block(body, bytes(16))
    headers = [("survey", b"sim"), ("topic", b"alerts.sim"), ("partition", b"0"), ("offset", b"0")]
    ensure_topics(kafka, [settings(LIGHTER)])
    out = Writer(producer(kafka))
    out.write(LIGHTER, value, headers=headers)
    out.flush()
    with AlertReader(LIGHTER, bootstrap=kafka, registry=registry, follow=False) as alerts:
        (one,) = list(alerts)
        assert {name: stamp.raw for name, stamp in one.stamps.items()} == {
            "science": alert(number)["cutoutScience"]
        }


@pytest.mark.proof
def test_stamps_of_what_a_relay_sends_lite_come_from_kafka_and_then_from_the_archive(
    fresh_broker: Broker,
    serve_registry: Callable[[str], AbstractContextManager[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka, port, group = fresh_broker.bootstrap, free_port(), free_group()
    names = ("alerts.sim", "accounts", "dead-letters", "_schemas", "directory")
    ensure_topics(kafka, [settings(name) for name in names])
    monkeypatch.setenv("NIGHTWIRE_ARCHIVE_HTTP", url := f"http://127.0.0.1:{port}")
    words = ("--every", "300ms", "--port", str(port))
    with (
        serve_registry(kafka) as registry,
        serving(tmp_path / "archive", kafka, registry, *words),
        relay(tmp_path / "log", kafka, "alerts.sim", group, "--registry", registry),
    ):
        how = {"bootstrap": kafka, "registry": registry, "multicast": group, "interface": "127.0.0.1"}
        one = Receiver(AlertReader("alerts.sim", survey="sim", timeout=60, **how), 40)
        until(lambda: one.reader.way == "multicast" or not one.is_alive())
        write_large(kafka, 1, 41)
        one.join(60)
        await_archived(url, 40)
        lite = [alert for alert in one.alerts if LITE_HEADER in alert.headers]
        assert len(lite) == 40
        check_stamps(lite[:20])
        lows = forget(kafka, 1.0)
        assert all(offset < lows[number] for _, number, offset in one.places)
        check_stamps(lite)
        one.reader.close()


def large(number: int) -> dict[str, Any]:
    """Return an alert that fits into no datagram, with a stamp of its own."""
    return alert(number) | {"cutoutScience": number.to_bytes(8, "big") * 1000}


def write_large(bootstrap: str, first: int, end: int) -> None:
    out, codec = Writer(producer(bootstrap)), Codec(sim_alert_schema())
    for number in range(first, end):
        value = frame(SIM_ALERT_ID, codec.encode(large(number)))
        out.write("alerts.sim", value, key=b"%d" % number, headers=[("survey", b"sim")])
    out.flush()


def check_stamps(alerts: Sequence[ReceivedAlert]) -> None:
    for one in alerts:
        found = {name: stamp.raw for name, stamp in one.stamps.items()}
        assert found == {"science": large(one.alert["diaSourceId"])["cutoutScience"]}


def check_a_filter_on_the_last_night(kafka: str, registry: str) -> None:
    """Kafka has forgotten the alert that passes."""
    words = ["test", "--sql", "WHERE diaSourceId <= 4", "--survey", "sim", "--last-night", "--last", "2000"]
    shown = CliRunner().invoke(filter_, [*words, "--each", "--bootstrap", kafka, "--registry", registry])
    assert shown.exit_code == 0, shown.output
    assert re.search(r"4 of \d+ alerts pass", shown.output), shown.output


def check_a_backfill_of_all(kafka: str, registry: str, url: str, state: Path) -> None:
    """Half of the past lies in the archive alone: each alert is judged, sent and accounted once."""
    names = ("answers.ann", "filter.ann.tenth", "overflow.ann.tenth", "filters")
    ensure_topics(kafka, [settings(name) for name in names])
    request = {
        "id": "1", "action": "submit", "owner": "ann", "name": "tenth", "survey": "sim", "time": 1,
        "source": "def keep(alert):\n    return alert.id % 10 == 0", "entry": "keep", "sources": [],
    }  # fmt: skip
    known = records.REQUEST.decode(records.REQUEST.encode(request))
    live = records.FILTER.encode({**_record(known, compile_request(known), 1), "live": True})
    out = Writer(producer(kafka))
    for key in ("ann/tenth/1", "ann/tenth"):
        out.write("filters", live, key=key.encode(), partition=0)
    out.flush()
    reader = consumer(kafka)
    until = {("alerts.sim", number): watermarks(reader, "alerts.sim", number).high for number in range(4)}
    reader.close()
    jobs, job = BackfillJobs(state), BackfillJob("ann", "tenth", 1, since=0, until=until)
    jobs.ask(job)
    runner = BackfillRunner(EngineSettings(kafka, registry, state, archive=url), Stop(), share=1.0)
    while runner.round():
        pass
    sent = [one for one in read_to_end(kafka, ["filter.ann.tenth"]) if one.value()]
    assert sorted(int(headers_of(one)["alert"]) for one in sent) == [*range(10, 2001, 10)]
    own = [one for one in read_accounts(kafka) if one.source.startswith(f"backfill/{job.id}/")]
    assert (sum(one.read for one in own), sum(one.delivered for one in own)) == (2000, 200)
    assert (discrepancies(own), sum(one.rejected.get("expired", 0) for one in own)) == ([], 0)
    told = [records.ANSWER.decode(one.value() or b"") for one in read_to_end(kafka, ["answers.ann"])]
    assert not any("expired" in reason for one in told for reason in one["reasons"])


def test_a_reader_goes_on_from_the_archive_into_kafka(
    fresh_broker: Broker,
    serve_registry: Callable[[str], AbstractContextManager[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka, folder, port = fresh_broker.bootstrap, tmp_path / "archive", free_port()
    names = ("alerts.sim", "accounts", "dead-letters", "_schemas", "directory")
    ensure_topics(kafka, [settings(name) for name in names])
    write(kafka, 1, 1601)
    url = f"http://127.0.0.1:{port}"
    with serve_registry(kafka) as registry:
        with serving(folder, kafka, registry, "--every", "300ms", "--port", str(port)) as child:
            await_archived(url, 1600)
            lows = forget(kafka)
            write(kafka, 1601, 2001)
            monkeypatch.setenv("NIGHTWIRE_ARCHIVE_HTTP", url)
            how = {"bootstrap": kafka, "registry": registry, "since": timedelta(hours=1), "follow": False}
            with AlertReader("alerts.sim", **how) as alerts:
                found = [(one.partition, one.offset, one.alert["diaSourceId"], alerts.way) for one in alerts]
                assert alerts.expired == 0
            check_a_filter_on_the_last_night(kafka, registry)
            check_a_backfill_of_what_is_all_forgotten(kafka, url, lows[0])
            check_a_backfill_of_all(kafka, registry, url, tmp_path / "engine")
            check_stamps_of(next(one[2] for one in found if one[:2] == (0, 0)), kafka, registry)
            child.send_signal(signal.SIGTERM)
            child.wait(60)
        assert sorted(one[2] for one in found) == [*range(1, 2001)]
        for number in range(4):
            offsets = [one[1] for one in found if one[0] == number]
            assert offsets == [*range(len(offsets))]
        assert {one[3] for one in found if one[1] >= lows[one[0]]} >= {"kafka"}
        assert found[0][3] == "archive"
        with AlertReader("alerts.sim", **how) as alerts:  # the archive is gone: what Kafka has
            assert len([*alerts]) == 2000 - sum(lows.values())
