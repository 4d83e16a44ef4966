"""Owners' requests and the engine's answers, by the command and a real Kafka."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import nbformat
import pytest
from click.testing import CliRunner, Result
from nbclient import NotebookClient

from nightwire.core.catalogues import CatalogueStore
from nightwire.core.kafka import Writer, ensure_topics, producer
from nightwire.core.runtime import Stop, now_ms
from nightwire.filters.admission.catalog import Catalog
from nightwire.filters.admission.catalogue_names import keep_watchlist
from nightwire.filters.admission.requests import RequestConsumer
from nightwire.filters.admission.service import SubmissionService
from nightwire.filters.admission.trial import AdmissionPolicy
from nightwire.filters.cli.commands import filter_
from nightwire.filters.cli.queries import read_filters
from nightwire.filters.decision.decision import Decision
from nightwire.filters.delivery.deliver import AcknowledgedCopy
from nightwire.filters.engine import services
from nightwire.filters.language import FilterError
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import RangeCounts
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.stats.collector import StatsCollector
from nightwire.filters.stats.filter_stats import batch_totals
from nightwire.filters.stats.publish import StatsPublisher, read_stats
from nightwire.schemas import records, topics

pytestmark = pytest.mark.kafka

ALERTS = 100
EXAMPLES = Path(__file__).parents[2] / "notebooks"
POLICY = AdmissionPolicy(fewest=50, alerts=80, memory_mb=256, cpu_ms=20.0)


class Requests:
    """An engine that answers requests, and an owner who uses the command."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap, self.folder, self.stop = bootstrap, folder, Stop()
        service = SubmissionService(
            bootstrap, "http://127.0.0.1:9", folder, Catalog(bootstrap), POLICY, "weak"
        )
        self.thread = RequestConsumer(bootstrap, service, self.stop).start()

    def ask(self, verb: str, *arguments: str) -> Result:
        """Run a verb of `nightwire filter`."""
        return CliRunner().invoke(filter_, [verb, *arguments, "--bootstrap", self.bootstrap])

    def submit(self, name: str, code: str, *options: str) -> Result:
        """Submit *code* as a script."""
        file = self.folder / f"{name}.py"
        file.write_text(code)
        return self.ask("submit", str(file), "--name", name, "--survey", "sim", *options)

    def live(self, name: str) -> int:
        """Return the live version."""
        return read_filters(self.bootstrap).live_version("me", name)


@pytest.fixture(scope="module")
def requests(site: Any, encode: Callable[..., bytes]) -> Iterator[Requests]:
    """Yield an engine that answers, at a Kafka that holds a hundred alerts of 1 … 100 nJy."""
    site.write("alerts.sim", [encode(number, float(number)) for number in range(1, ALERTS + 1)])
    requests = Requests(site.bootstrap, site.folder)
    yield requests
    requests.stop.set()
    requests.thread.join(20)


def keep(condition: str) -> str:
    """Return a filter that asks for *condition*."""
    return f"def keep(alert):\n    return {condition}\n"


def test_versions_come_go_and_come_back(requests: Requests) -> None:
    for limit in (99, 98, 97):
        assert requests.submit("back", keep(f"alert.flux > {limit}")).exit_code == 0
    assert requests.live("back") == 3
    assert "live in version 2" in requests.ask("rollback", "back").output
    assert "live in version 1" in requests.ask("rollback", "back", "--to", "1").output
    assert "no earlier version" in requests.ask("rollback", "back").output
    assert "version 1 was live" in requests.ask("disable", "back").output
    assert requests.live("back") == 0
    assert "live in version 1" in requests.ask("enable", "back").output
    assert "live in version 3" in requests.ask("enable", "back", "--version", "3").output
    assert requests.ask("remove", "back").exit_code == 0
    assert "no live filter" in requests.ask("disable", "back").output
    assert "live in version 3" in requests.ask("enable", "back").output
    assert "no filter back version 9" in " ".join(
        requests.ask("enable", "back", "--version", "9").output.split()
    )


def test_a_request_that_comes_twice_is_done_once(requests: Requests) -> None:
    for limit in (99, 98, 97):
        assert requests.submit("twice", keep(f"alert.flux > {limit}")).exit_code == 0
    request = {"id": "the same", "action": "rollback", "owner": "me", "name": "twice", "time": 0}
    writer = Writer(producer(requests.bootstrap))
    for _ in range(2):
        writer.write(topics.requests("me"), records.REQUEST.encode(request))
    writer.flush()
    # answered behind the two
    assert "no filter nothing" in requests.ask("enable", "nothing").output
    assert requests.live("twice") == 2


def test_a_request_is_in_the_filters_record_and_log(requests: Requests) -> None:
    requests.submit("capped", keep("alert.flux > 99 and alert.flux"), "--cap", "5", "--choice", "best")
    record = read_filters(requests.bootstrap).versions["me", "capped", 1]
    assert (record["cap"], record["choice"], record["language"]) == (5, "best", "python")
    requests.ask("disable", "capped")
    requests.ask("enable", "nothing")
    log = json.loads(requests.ask("log", "capped", "--json").output)
    assert [entry["kind"] for entry in log] == ["asked", "accepted", "asked", "accepted"]
    assert "cap 5 best" in log[0]["text"]
    assert "tried on 80 recent alerts" in log[1]["text"]
    assert "refused" in requests.ask("log", "nothing").output
    listed = {line["name"]: line for line in json.loads(requests.ask("list", "--json").output)}
    assert (listed["capped"]["state"], listed["capped"]["cap"]) == ("disabled", 5)
    assert "at most 5 alerts a visit, best" in requests.ask("show", "capped").output
    assert "capped" in requests.ask("list").output
    assert requests.ask("top", "--once").exit_code == 0


def test_an_owner_sees_his_filters_at_work(requests: Requests) -> None:
    requests.submit("busy", keep("alert.flux > 97"))
    live = [LiveFilter("me", "busy", 1, "sim", "", "keep", program="x")]
    one = RangeCounts(
        OffsetRange("alerts.sim", 0, 0, 10), 10, filters=[0], evaluated=[10], passed=[3], faulted=[0],
        cpu_us=[25], stopped={0: {"line 2: alert.flux > 97": 7}},
    )  # fmt: skip
    stats, batch = StatsCollector(), Decision(4, [("me/busy", 1)], at=now_ms(), counts=[one])
    stats.add_batch(batch, batch_totals(batch.counts, 1), live)
    stats.add_copies([AcknowledgedCopy("filter.me.busy", "me/busy", 0.25)])
    StatsPublisher(requests.bootstrap, stats, Stop()).publish()
    seen = {line["key"]: line for line in json.loads(requests.ask("top", "--json").output)}["me/busy"]
    assert (seen["evaluated"], seen["passed"], seen["sent"]) == (10, 3, 1)
    assert seen["cost_us"] == pytest.approx(2.5)
    assert "me/busy" in requests.ask("top", "--once", "--all").output
    assert json.loads(requests.ask("top", "--json", "--owner", "you").output) == []
    listed = {line["name"]: line for line in json.loads(requests.ask("list", "--json").output)}["busy"]
    assert (listed["delay_p50"], listed["stopped"]) == (0.25, {"line 2: alert.flux > 97": 7})
    shown = requests.ask("show", "busy").output
    assert "# judged 10 alerts" in shown
    assert "# stopped 100% by line 2: alert.flux > 97" in shown
    assert [one["name"] for one in read_stats(requests.bootstrap)] == ["busy"]


@pytest.mark.parametrize(
    ("name", "condition", "options", "said"),
    [
        ("many", "alert.flux > 50", (), "passes too much"),
        ("none", "alert.flux > 1 / 0", (), "failed on all of 80 recent alerts: ZeroDivisionError"),
        ("huge", "len(bytearray(10**9))", (), "too much memory: it takes more than 256 MB"),
        ("slow", "any(x < 0 for x in range(1_000_000))", (), "too slow"),
        ("row", "[].pop() if alert.flux else 0", (), "failed on all of 80 recent alerts: IndexError"),
        ("crash", "__import__", (), "may not use __import__"),
        ("eager", "False", ("--no-trial",), "this engine tries every filter"),
    ],
)
def test_a_refusal_says_why(requests: Requests, name: str, condition: str, options: Any, said: str) -> None:
    done = requests.submit(name, keep(condition), *options)
    assert done.exit_code == 1
    assert said in done.output
    assert requests.live(name) == 0


def test_the_best_few_may_be_chosen_among_many(requests: Requests) -> None:
    assert requests.submit("ranked", keep("alert.flux"), "--choice", "best").exit_code == 0
    assert (
        "passes too much"
        in requests.submit("all", keep("alert.flux"), "--choice", "best", "--cap", "0").output
    )


def test_a_suspended_filter_says_so_and_can_be_enabled(requests: Requests) -> None:
    requests.submit("tired", keep("alert.flux > 99"))
    assert Catalog(requests.bootstrap).stop("me", "tired", 1, suspended="too slow in 3 batches") == 1
    assert "suspended: too slow in 3 batches" in " ".join(requests.ask("show", "tired").output.split())
    assert "live in version 1" in requests.ask("enable", "tired").output
    assert requests.live("tired") == 1


def test_what_is_suspended_or_disabled_can_be_removed_once(requests: Requests) -> None:
    for name in ("slow", "off"):
        assert requests.submit(name, keep("alert.flux > 99")).exit_code == 0
    Catalog(requests.bootstrap).stop("me", "slow", 1, suspended="too slow in 3 batches")
    requests.ask("disable", "off")
    for name in ("slow", "off"):
        assert "version 1 was live" in requests.ask("remove", name).output
        assert "removed" in requests.ask("show", name).output
        assert f"no filter {name}" in requests.ask("remove", name).output


def test_alerts_cut_off_by_a_cap_can_be_fetched(requests: Requests, tmp_path: Path) -> None:
    """The engine writes these records; here they are written as it does."""
    topic = topics.overflow("me", "full")
    ensure_topics(requests.bootstrap, [topics.settings(topic)])
    assert "nothing was cut off" in requests.ask("overflow", "full").output
    writer = Writer(producer(requests.bootstrap))
    for offset, visit in ((0, 7), (1, 7), (1, 7), (2, 8)):
        one = {
            "owner": "me", "name": "full", "version": 1, "survey": "sim", "visit": visit,
            "topic": "alerts.sim", "partition": 0, "offset": offset, "alert": f"a{offset}",
            "rank": 2.5, "time": 0,
        }  # fmt: skip
        writer.write(topic, records.OVERFLOW.encode(one), key=str(visit).encode())
    writer.flush()
    assert "alerts.sim[0] 1" in requests.ask("overflow", "full").output
    assert len(json.loads(requests.ask("overflow", "full", "--visit", "7", "--json").output)) == 2
    done = requests.ask("overflow", "full", "--save", str(tmp_path))
    assert "3 of 3 alerts" in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sim-a0.avro", "sim-a1.avro", "sim-a2.avro"]


def test_the_answer_says_how_sql_and_uncompiled_filters_are_judged(requests: Requests) -> None:
    done = requests.ask("submit", "--sql", "WHERE flux > 97", "--name", "clause", "--survey", "sim")
    assert "3 passed" in done.output
    assert "judged over columns" in done.output
    assert read_filters(requests.bootstrap).versions["me", "clause", 1]["program"]
    assert "line 1, column 13" in requests.ask("submit", "--sql", "WHERE flux >", "--name", "clause").output
    done = requests.submit(
        "caught", "def keep(alert):\n    try:\n        return alert.flux > 97\n    except: 0\n"
    )
    assert "3 passed" in done.output
    assert "judged row by row" in done.output
    assert "because of line 2: try/except cannot be compiled" in done.output
    assert read_filters(requests.bootstrap).versions["me", "caught", 1]["remarks"]


def test_a_filter_is_tried_where_it_is_written(requests: Requests, tmp_path: Path) -> None:
    file, page = tmp_path / "mine.py", tmp_path / "mine.html"
    file.write_text(keep("alert.flux > 50 and alert.flux < 80"))
    done = requests.ask("test", str(file), "--last", "100", "--html", str(page))
    assert "29 of 100 alerts pass" in done.output
    assert "50  stopped by line 2: alert.flux > 50" in done.output
    assert (
        "would be accepted: tried on 100 recent alerts"
        in requests.ask("test", str(file), "--last", "9").output
    )
    assert page.read_text().count("<svg ") == 10 + 5  # of those that passed, and just missed
    done = requests.ask("test", "--sql", "flux > 50 AND flux < 80", "--last", "100", "--each")
    assert "29 of 100 alerts pass" in done.output
    assert "stopped by flux < 80" in done.output
    assert "no description of a survey" in requests.ask("test", str(file), "--survey", "none").output


def test_an_engine_without_a_sandbox_refuses_the_function_of_a_transform(requests: Requests) -> None:
    known = Catalog(requests.bootstrap)
    service = SubmissionService(
        requests.bootstrap, "http://127.0.0.1:9", requests.folder, known, POLICY, computes=False
    )
    request = {
        "id": "1", "action": "submit", "owner": "me", "name": "made", "survey": "sim", "time": 1,
        "language": "python", "source": TRANSFORM, "entry": "keep", "output": "broker.me.computed",
    }  # fmt: skip

    def reply(**more: Any) -> Any:
        said = records.REQUEST.decode(records.REQUEST.encode(request | more))
        return service.reply(said, "me")

    refused = reply(transform="transform")
    assert (refused[0], "does without one (--sandbox none)" in refused[2][0]) == (False, True)
    accepted, *_, said = reply(drop=["cutoutScience"], name="dropped")
    assert accepted, said
    service.close()


def test_a_refused_submission_leaves_the_owner_his_watchlist(requests: Requests, tmp_path: Path) -> None:
    store = CatalogueStore(tmp_path / "catalogues")
    keep_watchlist(store, {"owner": "me", "name": "mine", "watchlist": b"ra,dec\n1,2\n"})
    before, held = store.current("me/mine"), store.kept("me/mine")
    known = Catalog(requests.bootstrap)
    service = SubmissionService(requests.bootstrap, "http://127.0.0.1:9", tmp_path, known, catalogues=store)
    for name in ("mine", "other"):
        asked = {
            "id": "1", "action": "submit", "owner": "me", "name": name, "survey": "sim", "time": 1,
            "language": "sql", "source": f"MATCH('me/{name}', 2) >", "watchlist": b"ra,dec\n1,3\n",
        }  # fmt: skip
        assert not service.reply(records.REQUEST.decode(records.REQUEST.encode(asked)), "me")[0]
    assert (store.current("me/mine"), store.current("me/other")) == (before, None)
    assert (store.kept("me/mine"), store.kept("me/other")) == (held, set())
    service.close()


def test_no_version_comes_back_whose_catalogue_is_gone(requests: Requests, tmp_path: Path) -> None:
    store = CatalogueStore(tmp_path / "catalogues")
    known = Catalog(requests.bootstrap, store)
    service = SubmissionService(
        requests.bootstrap, "http://127.0.0.1:9", tmp_path, known, POLICY, catalogues=store
    )
    asked = {
        "id": "1", "action": "submit", "owner": "me", "name": "near", "survey": "sim", "time": 1,
        "language": "sql", "source": "MATCH('me/near', 2) IS NULL AND id < 0",
    }  # fmt: skip

    def reply(**more: Any) -> Any:
        return service.reply(records.REQUEST.decode(records.REQUEST.encode(asked | more)), "me")

    for number in (1, 2, 3):
        said = reply(id=str(number), time=number, watchlist=b"ra,dec\n1,%d\n" % number)
        assert said[:2] == (True, number), said
    assert service.prune(0.0) == []  # seen for the first time
    assert len(service.prune(0.0)) == 1
    accepted, _, why = reply(action="rollback", version=1)
    assert not accepted
    assert "catalogue me/near is no longer kept in version" in why[0]
    assert reply(action="rollback", version=0)[:2] == (True, 2)
    assert reply(id="4", time=4, watchlist=b"ra,dec\n1,4\n")[:2] == (True, 4)
    assert service.prune(0.0) == []
    refused = pruned_while_an_owner_asks(service, lambda: reply(action="rollback", version=2))
    assert (refused[0], "no longer kept" in refused[2][0]) == (False, True)
    service.close()


def pruned_while_an_owner_asks(service: SubmissionService, ask: Callable[[], Any]) -> Any:
    """Return what an owner is told who asks while versions go, in the engine's thread for that."""
    assert service.catalogues is not None
    folder, stop, asked = service.catalogues.folder, Stop(), list[Future[Any]]()

    class Asked(CatalogueStore):
        def prune(self, needed: Any, grace: float) -> list[str]:
            if (self.folder / ".lock").is_dir():  # a fault of the disk ends no thread
                try:
                    return super().prune(needed, 0.0)
                finally:
                    (self.folder / ".lock").rmdir()
            asked.append(pool.submit(ask))
            wait(asked, 1.0)  # whom nothing holds back has been answered by then
            stop.set()
            return super().prune(needed, 0.0)

    service.catalogues = Asked(folder)
    (folder / ".lock").unlink()
    (folder / ".lock").mkdir()
    with ThreadPoolExecutor() as pool:
        while not stop.is_set():
            services.prune_catalogues(service)
    return asked[0].result()


def test_a_new_notebook_runs_from_top_to_bottom(
    requests: Requests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in Jupyter: cell by cell, the history in ``In``; the engine makes its filter live."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", requests.bootstrap)
    assert requests.ask("new", "first-light").exit_code == 2  # it talks to nobody
    assert CliRunner().invoke(filter_, ["new", "first-light", "--survey", "sim"]).exit_code == 0
    assert "is there already" in CliRunner().invoke(filter_, ["new", "first-light"]).output
    assert "is no name" in CliRunner().invoke(filter_, ["new", "First"]).output
    cells = json.loads((tmp_path / "first-light.ipynb").read_text())["cells"]
    session: dict[str, Any] = {"__name__": "__main__", "In": ["", "mistyped ("], "get_ipython": None}
    for cell in cells:
        if cell["cell_type"] == "code":
            session["In"].append("".join(cell["source"]))
            exec(session["In"][-1], session)  # noqa: S102
    assert "me/first-light is live in version 1" in repr(session["submitted"])
    assert len(session["report"].judged) == ALERTS
    assert requests.live("first-light") == 1
    session["In"].append("import os\ndef spy(a):\n    return os.getpid()")
    exec(session["In"][-1], session)  # noqa: S102
    with pytest.raises(FilterError, match="may not import os"):
        session["submit"](session["spy"], name="spy")
    submit_transforms(requests, session)


TRANSFORM = """
SCALE = float("1e-3")
ADDS = {"micro": (float, "Flux. [µJy]")}

def keep(alert):
    return alert.flux > 50

def transform(alert):
    return {"micro": SCALE * alert.flux}
"""


def submit_transforms(requests: Requests, session: dict[str, Any]) -> None:
    """Submit transforms from a notebook's session, one that is right and some that are not."""
    session["In"].append(TRANSFORM)
    exec(TRANSFORM, session)  # noqa: S102
    submit, keep, transform = (session[name] for name in ("submit", "keep", "transform"))
    wanted: dict[str, Any] = {"name": "made", "survey": "sim", "cap": 0, "output": "broker.me.made"}
    made = submit(keep, **wanted, drop="cutoutScience", mean=["prvDiaSources.psfFlux"], transform=transform)
    assert made.topic == "broker.me.made"
    known = read_filters(requests.bootstrap).versions["me", "made", 1]
    assert (known["drop"], known["means"]) == (["cutoutScience"], ["prvDiaSources.psfFlux"])
    assert (known["transform"], known["output"]) == ("transform", "broker.me.made")
    assert "ADDS" in known["source"]
    assert "SCALE" in known["source"]
    light = submit("WHERE flux > 97", **wanted | {"name": "light"}, lite=True)
    assert light.topic == wanted["output"]
    assert "prvDiaSources" in read_filters(requests.bootstrap).versions["me", "light", 1]["drop"]
    for more, said in (
        ({"transform": transform, "output": ""}, "a transform writes to broker"),
        ({"drop": "diaSourceId"}, "diaSourceId tells which alert it is: it cannot be dropped"),
        ({"transform": "transform"}, "a transform is a function defined by def, not a str"),
        ({"lite": True, "survey": "*"}, "a light form needs a survey"),
    ):
        with pytest.raises(FilterError, match=said):
            submit(keep, **wanted | more)
    del session["In"][-1]
    session["In"].append(TRANSFORM.replace("ADDS", "GIVES"))
    with pytest.raises(FilterError, match="there is no ADDS, which a transform needs beside keep"):
        submit(keep, **wanted, transform=transform)


def test_an_impossible_chain_is_refused_and_a_chain_without_input_says_so(requests: Requests) -> None:
    assert requests.submit("spring", keep("alert.flux > 99")).exit_code == 0
    done = requests.submit("river", keep("alert.flux > 99"), "--source", "filter.me.spring")
    assert "not tried: there are no alerts yet" in done.output
    assert "judges filter.me.spring" in requests.ask("show", "river").output
    refused = requests.submit("brook", keep("alert.flux > 99"), "--source", "filter.me.sprig")
    assert "there is no topic filter.me.sprig; there is filter.me.spring" in refused.output
    back = (keep("alert.flux > 98"), "--source", "filter.me.river")
    assert "a cycle: me/spring reads me/river reads me/spring" in requests.submit("spring", *back).output
    requests.ask("disable", "river")
    assert requests.submit("spring", *back).exit_code == 0  # nothing live feeds it now
    assert "but no live filter writes to filter.me.river" in requests.ask("show", "spring").output
    assert "a cycle: me/river reads me/spring reads me/river" in requests.ask("enable", "river").output
    assert requests.live("river") == 0


def in_jupyter(notebook: Path, folder: Path) -> list[Any]:
    """Run *notebook* in a kernel of its own; return what its cells showed."""
    written = nbformat.read(notebook, as_version=4)
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(written, timeout=60, kernel_name="python3", resources=where).execute()
    return [output for cell in written.cells for output in cell.get("outputs", [])]


def test_notebooks_run_in_jupyter(
    requests: Requests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The template makes a filter live, having shown what it keeps; an example keeps something."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "KAFKA_BOOTSTRAP_SERVERS": requests.bootstrap, "JUPYTER_RUNTIME_DIR": str(tmp_path),
        "IPYTHONDIR": str(tmp_path), "JUPYTER_PLATFORM_DIRS": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert CliRunner().invoke(filter_, ["new", "by-kernel", "--survey", "sim"]).exit_code == 0
    shown = in_jupyter(tmp_path / "by-kernel.ipynb", tmp_path)
    pages = [one["data"]["text/html"] for one in shown if "text/html" in one.get("data", {})]
    assert any(f"of {ALERTS} alerts" in page for page in pages)
    assert any("me/by-kernel is live in version 1" in str(one) for one in shown)
    assert requests.live("by-kernel") == 1
    shown = in_jupyter(EXAMPLES / "bright-transient.ipynb", tmp_path)
    assert any("alerts pass" in one.get("text", "") for one in shown)


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["--sql", "magnitud < 20"], "did you mean magnitude"),
        (["--sql", "diaSource.psfFluxx > 20"], "did you mean diaSource.psfFlux"),
        (['alert["diaSource"]["psfFluxx"] > 20'], "did you mean diaSource.psfFlux"),
        (['len(str(alert["diaSource"]["psfFluxx"])) > 20'], "did you mean diaSource.psfFlux"),
    ],
    ids=["sql", "sql path", "compiled", "sandboxed"],
)
def test_a_mistyped_name_is_refused_even_untried(requests: Requests, words: list[str], near: str) -> None:
    survey = ("--survey", "sim")
    done = (
        requests.ask("submit", *words, "--name", "typo", *survey)
        if len(words) > 1
        else requests.submit("typo", keep(words[0]))
    )
    assert done.exit_code == 1
    assert near in done.output
    assert not requests.live("typo")
