"""Flows at work on a real Kafka: killed, changed, moved, and with receivers that fail."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from conftest import mock_cluster
from flows.tests.conftest import Site, decoded, hook, out, place
from flows.tests.receivers import Tom, receiver, serving
from flows.tests.running import (
    Stream,
    alert,
    records_in,
    rewound,
    wait_for,
    worker,
    write_alerts,
)
from nightwire.core.kafka import Writer, admin, ensure_topics, headers_of, producer
from nightwire.core.runtime import Endpoints
from nightwire.core.subscriptions import FlowRecord, append_flow, read_flows, read_problems
from nightwire.filters.cli.notify import check_url, doubt, flow_name, notify_owner
from nightwire.filters.language import FilterError
from nightwire.flows.commands import flow as verb
from nightwire.flows.engine.bridge import Bridge
from nightwire.flows.engine.delivery import TerminalRunner
from nightwire.flows.model import parse
from nightwire.flows.problems import ProblemReporter
from nightwire.flows.terminals import TerminalLimits
from nightwire.schemas import SchemaRegistry
from nightwire.schemas.records import FILTER, FLOW
from nightwire.schemas.topics import FLOW_PROBLEMS, filter_topic, flow_queue, settings

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]


def chain(site: Site, number: int, *places: str) -> str:
    """Return two stones in an order, and with a condition, that depend on *number*."""
    first, second, last = ("sky", "one", "two") if number % 2 else ("two", "sky", "one")
    one, two = (*map(place, places), "", "")[:2]
    return (
        f'[stones.one]\nkind = "filter"\nfrom = "{first}"\nwhere = "snr > {number % 7}"\n{one}'
        f'[stones.two]\nkind = "split"\nfrom = "{second}"\n{two}{out(site, last)}'
    )


def test_a_worker_that_is_killed_loses_and_doubles_nothing(site: Site, tmp_path: Path) -> None:
    bright = '[stones.bright]\nkind = "filter"\nfrom = "sky"\nwhere = "diaSourceId <> 7"\n'
    site.up(bright + out(site, "bright"))
    stream = Stream(site.kafka, site.source, 200)
    stream.start()
    for _ in range(2):
        with worker(tmp_path / "log", site.kafka, "one"):
            have = len(site.arrived())
            wait_for(lambda have=have: len(site.arrived()) > have + 50, tmp_path / "log")
    count = stream.end()
    with worker(tmp_path / "log", site.kafka, "one"):
        wait_for(lambda: len(site.arrived()) >= count - 1, tmp_path / "log")
        wait_for(lambda: site.rows(f"flow.{site.flow}")[0][0] == count)
    assert Counter(site.arrived()).most_common(1)[0][1] == 1
    assert site.rows(f"flow.{site.flow}") == [(count, count - 1, 1, 0)]


@pytest.mark.parametrize("changes", [6, pytest.param(100, marks=pytest.mark.proof)])
def test_a_flow_changes_and_moves_under_load(site: Site, tmp_path: Path, changes: int) -> None:
    """Text, edges and places change; each change is seen before the next is made."""

    def seen(version: int) -> bool:
        return any(int(headers_of(one)["flow-version"]) >= version for one in site.arrivals.so_far()[-50:])

    with worker(tmp_path / "a", site.kafka, "a"), worker(tmp_path / "b", site.kafka, "b"):
        stream = Stream(site.kafka, site.source, 100)
        stream.start()
        for number in range(changes):
            places = ("ab"[number % 2], ("", "a", "b")[number % 3])
            version = site.up(chain(site, number, *places), at=("", "b", "a")[number % 3])
            wait_for(lambda version=version: seen(version), tmp_path / "a")
        count = stream.end()
        wait_for(lambda: len(site.arrived()) >= count, tmp_path / "a")
    assert Counter(site.arrived()).most_common(1)[0][1] == 1
    assert len(site.arrived()) == count


FIRST_BATCH = """
import sys
from nightwire.core.runtime import Endpoints
from nightwire.filters.language import Condition
from nightwire.flows import serve
from nightwire.schemas import AlertDecoder, SchemaRegistry

serve.enter = sys.exit  # before Kafka is asked
try:
    serve.serve(serve.WorkerSettings(Endpoints(""), "one"))
except SystemExit:
    known = {*sys.modules}
said = Condition("snr > 20", "sim").judge([bytes.fromhex(sys.argv[1])], AlertDecoder(SchemaRegistry(None)))
print(len(said.passed), "pandas" in known, "pandas" in sys.modules)
"""


def test_a_worker_has_its_imports_before_its_first_batch() -> None:
    """Else who gets a stone that moves holds it up for as long as pandas takes."""
    asked = [sys.executable, "-c", FIRST_BATCH, alert(1).hex()]
    said = subprocess.run(asked, capture_output=True, text=True, timeout=200, check=True)
    assert said.stdout.split() == ["1", "True", "True"]


WINDOW = """[stones.often]
kind = "window"
from = "sky"
within = "1h"
function = "count"
above = 2
"""


def test_a_window_names_its_causes_and_survives_a_kill(
    site: Site, tmp_path: Path, serve_registry: Callable[..., AbstractContextManager[str]]
) -> None:
    """Ninety-seven objects have two alerts each, the worker is killed, each gets three more.

    Then it adds up another field, and begins anew.
    """
    mean = WINDOW.replace('"count"\nabove = 2', '"mean"\nvalue = "psfFlux"')
    with serve_registry(site.kafka) as registry:
        site.up(WINDOW + out(site, "often"))
        write_alerts(site.kafka, site.source, range(1, 195), midpointMjdTai=60_000.0)
        with worker(tmp_path / "log", site.kafka, "one", "--registry", registry):
            wait_for(lambda: sum(one[0] for one in site.rows(f"flow.{site.flow}")) == 194, tmp_path / "log")
        write_alerts(site.kafka, site.source, range(195, 292), midpointMjdTai=60_000.01)
        write_alerts(site.kafka, site.source, range(292, 486), midpointMjdTai=60_000.02)
        with worker(tmp_path / "log", site.kafka, "one", "--registry", registry):
            wait_for(lambda: sum(one[0] for one in site.rows(f"flow.{site.flow}")) == 485, tmp_path / "log")
            site.up(mean + out(site, "often"))
            again = [site.kafka, site.source, [486]]
            wait_for(lambda: write_alerts(*again, midpointMjdTai=60_000.02) or len(site.arrived()) > 97)
        found = decoded(site, registry, tmp_path)
    said, anew = ([one for one in found if (one["count"] == 3) is counted] for counted in (True, False))
    assert (anew[0]["object"], anew[0]["count"], anew[0]["value"]) == ("2", 1, 3631.0)
    assert Counter(one["object"] for one in said) == {str(number): 1 for number in range(1, 98)}
    first = next(one for one in said if one["object"] == "2")
    assert (first["value"], first["begin"], first["end"]) == (3.0, 60_000.0, 60_000.01)
    assert [one["alert"] for one in first["causes"]] == ["1", "98", "195"]
    assert {one["topic"] for one in first["causes"]} == {site.source}


def test_a_router_and_a_transform(
    site: Site, tmp_path: Path, serve_registry: Callable[..., AbstractContextManager[str]]
) -> None:
    """The function of the transform fails on one alert, which filters behind it never see.

    One of these cannot be compiled, and runs in the sandbox, too.
    """
    stones = """[stones.scored]
kind = "filter"
from = "odd"
where = "alert.score > 3"
[stones.odd]
kind = "filter"
from = "small"
python = '''
def keep(alert):
    return str(alert["diaSourceId"]).endswith(tuple("13579"))
'''
[stones.small]
kind = "transform"
from = "bands.g"
lite = true
python = '''
ADDS = {"score": float}
def transform(alert):
    return {"score": 30 / (alert["diaSource"]["diaSourceId"] - 7)}
'''
[stones.bands]
kind = "router"
from = "sky"
by = "band"
values = ["g", "r"]
"""
    with serve_registry(site.kafka) as registry:
        site.up(stones + out(site, "scored"))
        write_alerts(site.kafka, site.source, range(1, 21), band="g")
        write_alerts(site.kafka, site.source, range(21, 31), band="r")
        with worker(tmp_path / "log", site.kafka, "one", "--registry", registry):
            wait_for(lambda: site.rows(f"flow.{site.flow}") == [(30, 4, 25, 1)], tmp_path / "log")
        said = decoded(site, registry, tmp_path)
    assert {one["diaSource"]["band"] for one in said} == {"g"}
    assert "cutoutScience" not in said[0]
    assert {one["diaSourceId"]: one["score"] for one in said} == {n: 30 / (n - 7) for n in range(9, 17, 2)}
    [why] = site.dead().values()
    assert why.startswith("small: ZeroDivisionError: division by zero (line 3: return")


def test_a_terminal_that_fails_loses_nothing_and_stops_no_other(site: Site, tmp_path: Path) -> None:
    """One webhook answers, one is down until it answers, one is given up, one hangs."""
    with receiver() as good, receiver() as late, receiver() as broken, receiver() as hung:
        late.status = broken.status = 500
        hung.hang.set()
        broken_hook = hook("broken", broken.url, 'give_up = "1s"\n')
        site.up(hook("good", good.url) + hook("late", late.url) + broken_hook + hook("hung", hung.url))
        write_alerts(site.kafka, site.source, range(1, 4))
        with worker(tmp_path / "log", site.kafka, "one", "--allow-inside"):
            wait_for(lambda: len(good.got) == 3 and late.refused > 1, tmp_path / "log")
            wait_for(lambda: site.rows(flow_queue(site.flow, "good")) == [(3, 3, 0, 0)], tmp_path / "log")
        # as a kill between accounts and commit does:
        wait_for(lambda: rewound(site.kafka, flow_queue(site.flow, "good"), 1))
        with worker(tmp_path / "log", site.kafka, "one", "--allow-inside"):
            wait_for(lambda: len(site.dead()) == 3, tmp_path / "log")
            late.status = 200
            hung.hang.clear()
            wait_for(lambda: len(set(late.ids)) == len(set(hung.ids)) == 3, tmp_path / "log")
            for name in ("late", "good"):
                queue = flow_queue(site.flow, name)
                wait_for(lambda queue=queue: site.rows(queue) == [(3, 3, 0, 0)], tmp_path / "log")
            wait_for(lambda: len(good.got) == 5, tmp_path / "log")
    assert {one.partition(",")[0] for one in site.dead().values()} == {"answers 500"}
    assert site.rows(flow_queue(site.flow, "broken")) == [(3, 0, 0, 3)]
    assert json.loads(late.got[0][1])["event"]["diaSourceId"] in range(1, 4)


def test_a_bridge_names_the_topic_that_is_not_there(site: Site) -> None:
    owner, there = mock_cluster()
    bridge = f'[stones.far]\nkind = "bridge"\nfrom = "sky"\nkafka = "{there}"\ntopic = "not.there"\n'
    flow = parse(site.text(bridge))
    ensure_topics(site.kafka, [settings(flow.queue("far"))])
    one = Bridge(site.kafka, flow, flow.stones["far"], 6.0)
    one.start()
    wait_for(lambda: f"{there} has no topic not.there" in one.problem)
    owner.list_topics("not.there", timeout=5)  # which makes it
    wait_for(lambda: not one.problem)
    one.leave()
    one.join(30)


def test_a_terminal_whose_queue_another_has_tells_no_old_problem(site: Site) -> None:
    flow = parse(site.text(hook("one", "https://example.org/x")))
    ensure_topics(site.kafka, [settings(flow.queue("one"))])
    given = {"limits": TerminalLimits(), "takeover": 2.0, "registry": SchemaRegistry(None)}
    runners = [TerminalRunner(site.kafka, flow, flow.stones["one"], **given) for _ in range(2)]
    for one in runners:
        one.problem = "left behind"
        one.start()
    wait_for(lambda: not any(one.problem for one in runners))
    for one in runners:
        one.leave()
    for one in runners:
        one.join(30)


def test_a_webhook_inside_is_refused_to_dead_letters(site: Site, tmp_path: Path) -> None:
    with receiver() as inside:
        site.up(hook("inside", inside.url))
        write_alerts(site.kafka, site.source, range(1, 3))
        with worker(tmp_path / "log", site.kafka, "careful"):
            wait_for(lambda: len(site.dead()) == 2, tmp_path / "log")
    assert inside.got == []
    assert all("an address inside" in one for one in site.dead().values())


def test_the_verbs(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow is checked, goes up, is shown, pauses, goes on where it stopped, and ends."""
    os.environ.pop("KAFKA_BOOTSTRAP_SERVERS", None)

    def said(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(verb, [*words, "--bootstrap", site.kafka])
        assert result.exit_code == code, result.output
        return result.output

    file = tmp_path / "flow.toml"
    file.write_bytes(b"name = '\xff'")
    assert "flow.toml is no UTF-8: invalid start byte" in said("up", str(file), code=1)
    file.write_text(site.text(out(site, "nowhere")))
    assert "flow.toml, line 8: stone out: there is no nowhere" in said("check", str(file), code=1)
    keep = "def keep(alert):\n    return bool(str(alert.ra))\n"
    few = f'[stones.few]\nkind = "filter"\nfrom = "sky"\npython = {json.dumps(keep)}\n'
    file.write_text(site.text(few + out(site, "few")))
    assert "few: judged row by row, which is slower, because of" in said("check", str(file))
    file.write_text(site.text(out(site, "sky")))
    assert f"out: topic {site.out}" in said("check", str(file))
    with monkeypatch.context() as full:
        full.setattr("nightwire.core.subscriptions.MOST_NAMES", 0)
        assert "0 names of flows are taken" in said("up", str(file), code=1)
    with worker(tmp_path / "log", site.kafka, "one"):
        assert "is up in version" in said("up", str(file))
        write_alerts(site.kafka, site.source, range(1, 11))
        wait_for(lambda: len(site.arrived()) == 10, tmp_path / "log")
        said("pause", site.flow)
        wait_for(lambda: b"left" in (tmp_path / "log").read_bytes(), tmp_path / "log")
        assert {one["name"]: one["state"] for one in json.loads(said("list", "--json"))}[
            site.flow
        ] == "paused"
        write_alerts(site.kafka, site.source, range(11, 21))
        said("up", site.flow)
        wait_for(lambda: len(site.arrived()) == 20, tmp_path / "log")
        version = site.up(out(site, "sky").replace(site.out, "filters"))
        why = f"version {version} does not run (worker one, since "
        wait_for(lambda: why in said("show", site.flow), tmp_path / "log")
        assert "): line 9: filters is no flow's to write" in said("show", site.flow)
        site.up(out(site, "sky") + hook("page", "http://127.0.0.1:1"))
        more = [site.kafka, site.source, [21]]
        told = "page (worker one, since 20"
        wait_for(lambda: write_alerts(*more) or told in said("show", site.flow), tmp_path / "log")
        assert "does not run" not in said("show", site.flow)
        older = f"{site.out}-older"
        site.up(out(site, "sky").replace(site.out, older))
        wait_for(lambda: "worker" not in said("show", site.flow), tmp_path / "log")
        wait_for(lambda: write_alerts(*more) or records_in(site.kafka, older) != [], tmp_path / "log")
    said("show", site.flow, "--svg", str(tmp_path / "a.svg"))
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    shared = f"{site.out}-too"
    also = out(site, "sky").replace("stones.out", "stones.too").replace(site.out, shared)
    site.up(out(site, "sky") + also + hook("page", "http://127.0.0.1:1"))
    about = {"owner": "ann", "name": site.flow, "version": 1, "live": True, "submitted": 1, "survey": "sim"}
    submitted = FILTER.encode(about | {"language": "sql", "source": "snr > 1", "output": shared})
    ensure_topics(site.kafka, [settings("filters")])
    writer = Writer(producer(site.kafka))
    writer.write("filters", submitted, key=f"ann/{site.flow}/1".encode())
    writer.flush()
    with worker(tmp_path / "log", site.kafka, "one"):
        wait_for(
            lambda: flow_queue(site.flow, "page") in admin(site.kafka).list_topics(timeout=10).topics,
            tmp_path / "log",
        )
        ended = said("down", site.flow, "--purge")
    assert f"{flow_queue(site.flow, 'page')} is deleted" in ended
    assert f"{site.out} is deleted" in ended
    assert f"{older} is deleted" in ended
    assert shared not in ended  # a filter writes it too
    groups = admin(site.kafka).list_consumer_groups().result(30).valid
    assert [one.group_id for one in groups if site.flow in one.group_id] == []
    assert site.flow not in read_flows(site.kafka)
    assert f"no flow {site.flow}" in said("down", site.flow, code=1)
    ended = FlowRecord(site.flow, "", paused=False, made_by="ann", made=datetime.now(UTC))
    append_flow(site.kafka, site.flow, FLOW.encode(asdict(ended)))  # as the directory writes for ann
    assert "is down" in said("down", site.flow)  # by the operator: the name is free
    assert f"no flow {site.flow}" in said("down", site.flow, code=1)


def test_a_worker_that_is_back_after_a_crash_withdraws_what_it_had_reported(site: Site) -> None:
    ensure_topics(site.kafka, [settings(FLOW_PROBLEMS)])
    now = [0.0]

    def reported(found: dict[tuple[str, str], tuple[int, str]], *, say: bool) -> bool:
        now[0] += 10.0
        reporter.report(found)
        return say == any(one.flow == site.flow for one in read_problems(site.kafka))

    reporter = ProblemReporter(site.kafka, "one", lambda: now[0])
    wait_for(lambda: reported({(site.flow, "out"): (1, "nobody answers")}, say=True))
    reporter = ProblemReporter(site.kafka, "one", lambda: now[0])
    wait_for(lambda: reported({}, say=False))


def test_a_tom_rejects_alerts_without_an_object(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTWIRE_FLOW_TOM", "swordfish")
    with serving(Tom()) as tom, worker(tmp_path / "log", site.kafka, "one", "--allow-inside"):
        asked = '[stones.follow]\nkind = "tom"\nfrom = "sky"\ntoken = "env:NIGHTWIRE_FLOW_TOM"\n'
        asked += f'url = "http://127.0.0.1:{tom.server_port}"\nfacility = "LCO"\n'
        site.up(asked + 'observation_type = "IMAGING"\nparameters = {}\n')
        for number, object_id in ((7, None), (8, 5)):
            write_alerts(site.kafka, site.source, [number], diaObjectId=object_id, ra=10.0, dec=-20.0)
        queue = flow_queue(site.flow, "follow")
        wait_for(lambda: site.rows(queue) == [(2, 1, 1, 0)], tmp_path / "log")
    assert [one["name"] for one in tom.targets] == ["sim 5"]


def test_a_filter_that_notifies_is_a_flow(site: Site, tmp_path: Path) -> None:
    """What `nightwire filter submit --notify` writes; its topic is made with the first alert."""
    owner, name = "ann-of-the-southern-sky", f"{site.flow}-bright"
    site.flow = flow_name(owner, name)
    topic = filter_topic(owner, name)
    with receiver() as page, worker(tmp_path / "log", site.kafka, "one", "--allow-inside"):
        assert notify_owner(site.kafka, owner, name, topic, page.url) == site.flow
        asked = doubt(Endpoints(site.kafka, None, directory="http://127.0.0.1:9"), page.url)
        assert "not known: " in asked
        assert "no directory is known" not in asked
        ensure_topics(site.kafka, [settings(topic)])
        write_alerts(site.kafka, topic, range(1, 4))
        wait_for(lambda: len(set(page.ids)) == 3, tmp_path / "log")
    assert len(site.flow) <= 36


@pytest.mark.parametrize(
    "url", ["ftp://example.org", "mailto:", "mailto:ann", "mailto:a@b.c\r\nBcc: d@e.f", "https://a.b/\n"]
)
def test_what_can_be_no_page_is_told(url: str) -> None:
    with pytest.raises(FilterError, match="--notify"):
        check_url(url)


def test_pages_and_people_are_no_mistakes() -> None:
    check_url("https://example.org/hook?a=b%20c")
    check_url("mailto:ann@example.org, bob.b+x@example.org")
