"""The compose stack, brought up and loaded for real; `make test-compose` runs this.

Alerts and VOEvents come in from outside the network and are read from outside, through the
published ports; the ids must be the same, and the accounts must agree.
"""

import json
import re
import subprocess
from pathlib import Path

import httpx
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.consumers import AlertReader
from nightwire.core.kafka import producer
from nightwire.gateway.voevent.samples import samples
from nightwire.monitoring.dashboards import ALL, queries
from tests.compose.stack import OPERATOR, ROOT, SKYMAPS, Stack, Visit, await_

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1500)]

ALERTS = 1000
SIM = "alerts.sim"
SERVICES = {"kafka-1", "kafka-2", "kafka-3", "schema-registry", "gateway", "filters", "producer", "consumer"}
SERVICES |= {
    "archive",
    "flows",
    "portal",
    "directory",
    "exporter",
    "prometheus",
    "alertmanager",
    "node-exporter",
    "hook",
}
MAKES_A_TOPIC = """
import os
from nightwire.core.kafka import ensure_topics
from nightwire.schemas.topics import settings
ensure_topics(os.environ["KAFKA_BOOTSTRAP_SERVERS"], [settings("returns.fink")])
"""
SETUP = "setup"
"""Ends once topics and users are there."""


def test_everything_runs_and_nothing_listens_beyond_this_machine(stack: Stack) -> None:
    found = stack.services()
    assert found.pop(SETUP)["ExitCode"] == 0
    assert set(found) == SERVICES
    assert {name for name, one in found.items() if one["State"] != "running"} == set()
    assert {name for name, one in found.items() if one["Health"] not in ("healthy", "")} == set()
    published = [port for one in found.values() for port in one["Publishers"] if port["PublishedPort"]]
    assert published
    assert {port["URL"] for port in published} == {"127.0.0.1"}


def test_no_container_is_root_or_may_become_it(stack: Stack) -> None:
    names = [one["Name"] for one in stack.services().values()]
    said = subprocess.run(["docker", "inspect", *names], capture_output=True, text=True, check=True).stdout
    for one in json.loads(said):
        assert one["Config"]["User"] not in ("", "root", "0"), one["Name"]
        assert one["HostConfig"]["CapDrop"] == ["ALL"], one["Name"]
        assert one["HostConfig"]["ReadonlyRootfs"], one["Name"]
        assert one["HostConfig"]["Memory"] > 0, one["Name"]


@pytest.mark.parametrize(
    "service", ["producer", "filters", "gateway", "consumer", "flows", "archive", "portal"]
)
def test_alerts_are_read_by_the_native_codec(stack: Stack, service: str) -> None:
    ask = "from nightwire.schemas.avro.native_engine import available; print(available())"
    assert stack.compose("exec", "-T", service, "python", "-c", ask) == "True\n"


def test_each_process_is_a_user_that_may_do_what_it_has_to(stack: Stack) -> None:
    ask = "import os; print(os.environ['KAFKA_SASL_USERNAME'])"
    processes = {
        "schema-registry",
        "directory",
        "gateway",
        "filters",
        "exporter",
        "archive",
        "flows",
        "portal",
    }
    users = {one: stack.compose("exec", "-T", one, "python", "-c", ask).strip() for one in processes}
    assert users == {one: f"nightwire.{one}" for one in processes}
    said = stack.compose("exec", "-T", "exporter", "sh", "-c", f"python -c '{MAKES_A_TOPIC}' 2>&1 || true")
    assert "TOPIC_AUTHORIZATION_FAILED" in said, said


def test_who_has_no_password_is_not_let_in(stack: Stack) -> None:
    nobody = AdminClient({"bootstrap.servers": stack.kafka})
    with pytest.raises(KafkaException):
        nobody.list_topics(timeout=10)


def test_an_owner_reads_alerts_and_may_not_write_them(
    quiet: Stack, owner: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in owner.items():
        monkeypatch.setenv(name, value)
    refused: list[KafkaError | None] = []
    writer = producer(quiet.kafka)
    writer.produce(SIM, b"not mine to write", on_delivery=lambda error, _message: refused.append(error))
    writer.flush(60)
    assert refused[0] is not None
    assert refused[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    lines = quiet.nightwire(
        "subscribe", SIM, "--last", "10", "--no-follow", "--format", "json", user=owner
    ).splitlines()
    assert len(lines) == 10


def test_the_simulated_survey_stops_cleanly(quiet: Stack) -> None:
    assert quiet.services()["producer"]["ExitCode"] == 0


def test_a_thousand_alerts_come_out_as_they_went_in(quiet: Stack, owner: dict[str, str]) -> None:
    visit = Visit(quiet, ALERTS)
    visit.run()
    sent = visit.sent
    assert len(set(sent)) == ALERTS
    with AlertReader(
        SIM, last=ALERTS, follow=False, bootstrap=quiet.kafka, registry=quiet.registry
    ) as reader:
        got = [received.alert["diaSourceId"] for received in reader]
    assert sorted(got) == sorted(sent)
    words = ["subscribe", SIM, "--last", str(ALERTS), "--no-follow", "--format", "json"]
    lines = quiet.nightwire(*words, user=owner).splitlines()
    assert sorted(json.loads(line)["alert"]["diaSourceId"] for line in lines) == sorted(sent)


def test_in_is_out_at_every_stage(quiet: Stack) -> None:
    delivered = quiet.stages()["producer"]["delivered"]
    assert delivered >= ALERTS + 100
    await_(lambda: quiet.stages().get("filters", {}).get("read", 0) >= delivered, "every alert is judged")
    found = quiet.stages()
    assert found["filters"]["read"] == delivered
    assert found["filter.demo.bright"]["read"] >= ALERTS


def test_a_filter_that_is_code_is_tried_on_recent_alerts_and_goes_live(
    quiet: Stack, owner: dict[str, str]
) -> None:
    notebook = ROOT / "filters" / "notebooks" / "rising.ipynb"
    said = quiet.nightwire("filter", "submit", str(notebook), "--name", "rising", user=owner)
    assert "rising is live in version 1 (tried on 300 recent alerts" in said
    assert "failed" not in said


FLOW = """
name = "demo"
[sources.all]
topic = "alerts.sim"
survey = "sim"
begin = "start"
[stones.some]
kind = "filter"
from = "all"
where = "snr > 5"
[stones.out]
kind = "topic"
from = "some"
topic = "broker.demo.some"
"""


def test_a_flow_of_an_owner_runs(quiet: Stack, owner: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "demo.toml").write_text(FLOW)
    quiet.nightwire("flow", "up", str(tmp_path / "demo.toml"), user=owner)
    await_(lambda: quiet.stages().get("flow.demo", {}).get("delivered", 0) >= ALERTS, "the flow delivers")
    words = ("subscribe", "broker.demo.some", "--last", "5", "--no-follow", "--format", "json")
    assert len(quiet.nightwire(*words, user=owner).splitlines()) == 5
    assert json.loads(quiet.nightwire("flow", "list", "--json", user=owner))[0]["made by"] == "demo"


def test_what_passed_is_archived_and_looked_at(quiet: Stack, owner: dict[str, str]) -> None:
    """Kafka's users alone may ask, each with his own password."""
    delivered = quiet.stages()["producer"]["delivered"]
    await_(lambda: quiet.stages().get("archive", {}).get("delivered", 0) == delivered, "all is archived")
    login = owner["KAFKA_SASL_USERNAME"], owner["KAFKA_SASL_PASSWORD"]
    archive, portal = (f"http://127.0.0.1:{quiet.port(f'{one}_PORT')}" for one in ("ARCHIVE", "PORTAL"))
    counted = httpx.get(f"{archive}/query", params={"sql": "SELECT count(*) AS n FROM sim"}, auth=login)
    assert counted.json() == [{"n": delivered}]
    (newest,) = httpx.get(f"{portal}/api/alerts", params={"most": 1}, auth=login).json()["alerts"]
    assert newest["survey"] == "sim"
    assert {httpx.get(url).status_code for url in (f"{archive}/surveys", f"{portal}/api/alerts")} == {401}


FILTER = '''
from scipy.stats import median_abs_deviation

def keep(alert):
    """Brighter than 18.9 mag, as the sandbox's SciPy says."""
    return alert.magnitude is not None and median_abs_deviation([alert.magnitude, 0.0]) < 9.45
'''


def test_an_owner_signs_in_tries_a_filter_submits_it_and_comments(
    quiet: Stack, owner: dict[str, str]
) -> None:
    """By the port that is published to this machine alone, without TLS."""
    url, token = f"http://127.0.0.1:{quiet.port('PORTAL_PORT')}", re.compile('name="token" value="([^"]+)"')
    with httpx.Client(base_url=url, timeout=120, follow_redirects=True) as portal:
        form = {"name": owner["KAFKA_SASL_USERNAME"], "password": owner["KAFKA_SASL_PASSWORD"]}
        (form["token"],) = token.findall(portal.get("/sign-in").text)
        page = portal.post("/sign-in", data={**form, "next": "/filters"})
        assert page.url.path == "/filters", page.text
        portal.headers["X-CSRF-Token"] = token.findall(page.text)[0]
        wish = {"language": "python", "text": FILTER, "survey": "sim", "last": 50}
        for when in ({}, {"last_night": True}):
            tried = portal.post("/api/filters/try", json=wish | when).json()
            assert (tried["judged"], tried["failed"], len(tried["pictures"]) > 0) == (50, 0, True), tried
        done = portal.post("/api/filters/of/bright-too", json=wish).json()
        assert (done["accepted"], done["version"]) == (True, 1), done
        said = portal.post("/api/filters/of/bright-too/comments", json={"text": "seen by two"}).json()
        assert [one["text"] for one in said] == ["seen by two"]
        assert "seen by two" in portal.get("/filters/of/bright-too").text


HAS_A_SKYMAP = """
import numpy
from astropy.io import fits
whole = fits.BinTableHDU.from_columns([fits.Column("PROB", "D", array=numpy.ones(12))])
whole.header["PIXTYPE"] = "HEALPIX"
fits.HDUList([fits.PrimaryHDU(), whole]).writeto("/tmp/map.fits")
"""


def test_a_skymap_is_drawn_that_comes_from_where_the_operator_said(quiet: Stack, tmp_path: Path) -> None:
    serve = f"python -m http.server {SKYMAPS.rpartition(':')[2]} --bind 127.0.0.1 --directory /tmp"
    quiet.compose("exec", "-d", "portal", "sh", "-c", f"python -c '{HAS_A_SKYMAP}' && {serve}")
    ((_, document),) = samples(1, 60_000)
    named = f'<Param name="skymap_fits" value="http://{SKYMAPS}/map.fits"/></What>'
    (tmp_path / "event.xml").write_bytes(document.replace(b"</What>", named.encode()))
    to = f"127.0.0.1:{quiet.port('VTP_AUTHORS_PORT')}"
    quiet.nightwire("send", "--to", to, str(tmp_path / "event.xml"))
    login = OPERATOR["KAFKA_SASL_USERNAME"], OPERATOR["KAFKA_SASL_PASSWORD"]
    with httpx.Client(base_url=f"http://127.0.0.1:{quiet.port('PORTAL_PORT')}", auth=login) as portal:
        await_(lambda: portal.get("/api/alerts?topic=voevents").json().get("alerts"), "the event is seen")
        (event,) = portal.get("/api/alerts?topic=voevents").json()["alerts"]
        at = f"/api/skymaps/voevents/{event['partition']}/{event['offset']}"
        await_(lambda: portal.get(at).status_code != httpx.codes.SERVICE_UNAVAILABLE, "it is fetched")
        assert portal.get(at).json()["area90"] == pytest.approx(0.9167 * 41_253, rel=1e-3)  # 11 cells of 12


def test_the_consumer_catches_up(quiet: Stack) -> None:
    query = 'nightwire_consumer_lag_records{group="consumer.stream", topic="alerts.sim"}'
    await_(lambda: [one["value"][1] for one in quiet.prometheus(query)] == ["0"], "the consumer has no lag")


def test_an_alarm_reaches_alertmanager_and_from_there_a_webhook(quiet: Stack) -> None:
    """The directory is killed: its page does not answer, which is an alarm.  Prometheus goes on
    with the pages that it last named; the producer, which was stopped, said goodbye: no alarm.
    """
    url = f"http://127.0.0.1:{quiet.port('ALERTMANAGER_PORT')}/api/v2/alerts"

    def names() -> set[tuple[str, str]]:
        labels = [one["labels"] for one in httpx.get(url).json()]
        return {(one["alertname"], one.get("process", "")) for one in labels}

    quiet.compose("kill", "directory")
    try:
        await_(lambda: ("ProcessDown", "directory") in names(), "ProcessDown fires")
        await_(lambda: ("ProcessDown", "directory") in told(quiet), "the webhook is told")
        assert ("ProcessDown", "stream") not in names()
    finally:
        quiet.compose("start", "directory")


def told(stack: Stack) -> set[tuple[str, str]]:
    """Return what the webhook was told is wrong: alarm and process."""
    lines = stack.compose("logs", "--no-log-prefix", "hook").splitlines()
    alarms = [alarm for line in lines for alarm in json.loads(line)["alerts"] if alarm["status"] == "firing"]
    return {(one["labels"]["alertname"], one["labels"].get("process", "")) for one in alarms}


def test_every_panel_has_data(quiet: Stack) -> None:
    to = f"127.0.0.1:{quiet.port('VTP_AUTHORS_PORT')}"
    quiet.nightwire("send", "--to", to, "--samples", "20", "--first-sample", "50000")
    for query in queries(ALL, rare=False):
        await_(lambda query=query: bool(quiet.prometheus(query)), query)
    assert {one["value"][1] for one in quiet.prometheus("nightwire:missing")} == {"0"}
    assert {one["value"][1] for one in quiet.prometheus("nightwire_kafka_brokers")} == {"3"}
    assert quiet.prometheus("node_filesystem_avail_bytes")
