"""The engine as it is run: a process of its own, a real Kafka, a real Spark."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from filters.tests.helpers.accounted import accounted, close, evaluated, judged
from filters.tests.helpers.killing import (
    FILTERS,
    LONG,
    Ledger,
    Night,
    java,
    planner,
    sandboxed,
    slow_lanes,
    slow_sandboxed,
    worker,
    zygote,
)
from filters.tests.helpers.past import check_the_past
from filters.tests.helpers.versions import check_changes
from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.schemas import SchemaRegistry, records, wire

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

BRIGHT = "LIMIT = 500\ndef keep(alert):\n    return alert.flux > LIMIT\n"
FAULTY = "def keep(alert):\n    return 1 / (alert.id % 10) > 0.4\n"
ODD = "def keep(alert):\n    return alert['diaSource']['diaSourceId'] % 2 == 1\n"

Site = Any
PATIENT = ("--deadline", "3600")
"""What the engine is told: a visit is held until it is closed, however long the tests take."""


@pytest.fixture(scope="module")
def engine(site: Site) -> Site:
    """Return a site whose engine judges by three filters of everything and two of real surveys."""
    site.start(*PATIENT)
    for name, code in (("bright", BRIGHT), ("faulty", FAULTY), ("odd", ODD)):
        done = site.submit(name, code, "--survey", "sim", "--cap", "0")
        assert done.returncode == 0, done.stderr + site.log.read_text()[-3000:]
    return site


def origins(messages: list[Any]) -> Counter[tuple[bytes, bytes, bytes]]:
    """Count copies by where they come from, as their headers say."""
    found = (dict(message.headers()) for message in messages)
    return Counter((headers["topic"], headers["partition"], headers["offset"]) for headers in found)


def source_of(site: Site, topic: str) -> dict[tuple[bytes, bytes, bytes], Any]:
    """Return the records of a source topic by what headers say of them."""
    return {
        (topic.encode(), str(message.partition()).encode(), str(message.offset()).encode()): message
        for message in site.read(topic)
    }


def test_bytes_headers_and_accounts(
    engine: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    alerts = [encode(number, 10.0 * number) for number in range(1, 101)]
    engine.write("alerts.sim", [*alerts, b"\0\0\0", b"Obj\x01 is not one", encode(101, 2000.0)])
    until(lambda: judged(engine, "alerts.sim") == 103, 60, lambda: engine.log.read_text()[-3000:])
    source = source_of(engine, "alerts.sim")
    copies = engine.read("filter.me.bright")
    assert len(copies) == 51  # 510 … 1000, 2000
    for copy in copies:
        headers = dict(copy.headers())
        original = source[headers["topic"], headers["partition"], headers["offset"]]
        assert (copy.value(), copy.key()) == (original.value(), original.key())
        assert (headers["filter"], headers["version"], headers["visit"]) == (b"me/bright", b"1", b"7")
    dead = engine.read("dead-letters")
    assert sorted(one.value() for one in dead) == [b"\0\0\0", b"Obj\x01 is not one"]
    assert all(dict(one.headers())["reason"] for one in dead)
    assert discrepancies(accounted(engine, "alerts.sim")) == []
    counts = Counter[str]()
    for account in accounted(engine, "alerts.sim"):
        counts += Counter(delivered=account.delivered, dead_lettered=account.dead_lettered)
        for name, classes in account.filters.items():
            counts += Counter({f"{name} {kind}": count for kind, count in vars(classes).items()})
    assert counts["me/bright evaluated"] == counts["me/odd evaluated"] == 101
    assert (counts["me/odd passed"], counts["me/odd rejected"]) == (51, 50)
    assert counts["me/faulty faulted"] == 10
    assert counts["dead_lettered"] == 2
    assert "ZeroDivisionError: division by zero (line 3:" in engine.log.read_text()


def test_a_change_is_live_without_a_restart(
    engine: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    before = judged(engine, "alerts.sim")
    brighter = BRIGHT.replace("500", "5000")
    uncapped = ("--survey", "sim", "--cap", "0")
    assert engine.submit("bright", brighter, *uncapped).returncode == 0
    again = engine.submit("bright", brighter, *uncapped)
    assert "live in version 2 (unchanged: it was live already)" in again.stdout
    engine.write("alerts.sim", [encode(number, 1000.0 * number) for number in range(1, 11)])
    until(lambda: judged(engine, "alerts.sim") == before + 10)
    versions = Counter(dict(copy.headers())["version"] for copy in engine.read("filter.me.bright"))
    assert versions == {b"1": 51, b"2": 5}
    assert engine.nightwire("filter", "remove", "bright").returncode == 0
    engine.write("alerts.sim", [encode(1, 9000.0)])
    until(lambda: judged(engine, "alerts.sim") == before + 11)
    assert len(engine.read("filter.me.bright")) == 56
    gone = engine.nightwire("filter", "remove", "bright")
    assert (gone.returncode, "no filter bright" in gone.stderr) == (1, True)


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("broken", "def keep(alert):\n    return (", "line 2"),
        ("spy", "import os\ndef keep(alert):\n    return os.getpid()", "may not import os"),
        ("loop", "def keep(alert):\n    while True: pass", "too slow"),
        (
            "wrong",
            "def keep(alert):\n    return alert.fluxx > 1",
            "line 2: an alert has no attribute fluxx; did you mean flux?",
        ),
        ("Bad_Name", "def keep(alert):\n    return True", "is no name here"),
    ],
)
def test_a_bad_filter_is_refused_with_its_reason(engine: Site, name: str, code: str, said: str) -> None:
    done = engine.submit(name, code, "--survey", "sim")
    assert done.returncode == 1
    assert said in done.stderr


def test_a_late_filter_is_suspended_and_the_others_go_on(
    engine: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    code = "def keep(alert):\n    while alert.flux == 4321.0: pass\n    return True"
    assert engine.submit("sticky", code, "--survey", "sim").returncode == 0
    for _ in range(2):
        before = judged(engine, "alerts.sim")
        engine.write("alerts.sim", [encode(1, 4321.0)])
        until(lambda before=before: judged(engine, "alerts.sim") == before + 1)
    until(lambda: "filter me/sticky version 1 is suspended" in engine.log.read_text(), 20)
    assert '"sticky"' in (listed := engine.nightwire("filter", "list", "--json").stdout)
    assert '"live": false' in listed
    assert discrepancies(accounted(engine, "alerts.sim")) == []


def notices(site: Site, name: str) -> list[tuple[int, str]]:
    """Return what the owner of a filter was told unasked: version and text."""
    told = [records.ANSWER.decode(one.value()) for one in site.read("answers.me")]
    return [(one["version"], one["reasons"][0]) for one in told if not one["request"] and one["name"] == name]


def test_owners_are_told_from_where_a_filter_is_live_and_what_fails(
    engine: Site, until: Callable[..., Any]
) -> None:
    first, second = notices(engine, "bright")
    assert (first[0], second[0]) == (1, 2)
    assert second[1].startswith("live from batch ")
    assert ": alerts.sim[0] from offset " in second[1]
    (fault,) = (text for _, text in notices(engine, "faulty") if "failed" in text)
    assert "first on alert" in fault
    assert "ZeroDivisionError: division by zero (line 3:" in fault
    until(
        lambda: any(text.startswith("suspended: had to be stopped") for _, text in notices(engine, "sticky")),
        20,
    )


def test_each_visit_has_its_places_and_the_rest_overflows(
    engine: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    few = ("--survey", "sim", "--cap", "5")
    assert engine.submit("early", "def keep(a):\n    return a.flux > 0", *few).returncode == 0
    assert engine.submit("top", "def keep(a):\n    return a.flux", *few, "--choice", "best").returncode == 0
    before = judged(engine, "alerts.sim")
    some = [encode(n, float(n), visit=100 + n % 2) for n in range(1, 41)]
    engine.write("alerts.sim", some)
    until(lambda: judged(engine, "alerts.sim") == before + 40)
    assert Counter(dict(one.headers())["visit"] for one in engine.read("filter.me.early")) == {
        b"100": 5,
        b"101": 5,
    }
    assert engine.read("filter.me.top") == []
    close(engine, 100, "alerts.sim")
    until(lambda: len(engine.read("filter.me.top")) == 5, 30, lambda: engine.log.read_text()[-3000:])
    assert sorted(dict(one.headers())["rank"] for one in engine.read("filter.me.top")) == [
        b"32.0", b"34.0", b"36.0", b"38.0", b"40.0",
    ]  # fmt: skip
    cut = [records.OVERFLOW.decode(one.value()) for one in engine.read("overflow.me.top")]
    assert Counter(one["visit"] for one in cut) == {100: 15, 101: 15}
    assert len(engine.read("overflow.me.early")) == 30
    sums = Counter[str]()
    until(lambda: delivered(engine, "me/top") == 5)
    for account in accounted(engine, "alerts.sim"):
        for name in ("me/early", "me/top"):
            one = vars(account.filters[name]) if name in account.filters else {}
            sums += Counter({f"{name} {kind}": count for kind, count in one.items()})
    assert (sums["me/early passed"], sums["me/early capped"]) == (10, 30)
    assert (sums["me/top passed"], sums["me/top capped"]) == (5, 35)
    assert discrepancies(accounted(engine, "alerts.sim")) == []


def delivered(site: Site, name: str) -> int:
    """Return how many alerts were sent for a filter, as the accounts say."""
    found = (one.filters.get(name) for one in accounted(site, "alerts.sim"))
    return sum(one.passed for one in found if one is not None)


@pytest.mark.data
def test_real_alerts_pass_a_filter_of_their_own_survey(
    engine: Site, data: Path, until: Callable[..., Any]
) -> None:
    container = (data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()
    records = list(wire.read_container(container))
    with SchemaRegistry(engine.registry, cache_dir=engine.folder / "schemas") as registry:
        number = registry.register("alerts.lsst-value", records[0].schema, schema_id=1100)
    rubin = [wire.frame(number, one.body) for one in records]
    ztf = [path.read_bytes() for path in sorted((data / "alerts/ztf").rglob("*.avro"))]
    assert (
        engine.submit(
            "rubin", "def keep(a):\n    return a.snr > 5 and len(a.history) > 1", "--survey", "lsst"
        ).returncode
        == 0
    )
    assert (
        engine.submit(
            "ztf",
            "def keep(a):\n    return a['objectId'].startswith('ZTF') and a.flux is not None",
            "--survey",
            "ztf",
        ).returncode
        == 0
    )
    engine.write("alerts.lsst", rubin)
    engine.write("alerts.ztf", ztf)
    until(lambda: judged(engine, "alerts.lsst") == len(rubin), 60)
    until(lambda: judged(engine, "alerts.ztf") == len(ztf), 60)
    passed = {copy.value() for copy in engine.read("filter.me.rubin")}
    assert passed
    assert passed <= set(rubin)
    assert {copy.value() for copy in engine.read("filter.me.ztf")} <= set(ztf)
    assert engine.read("filter.me.ztf")
    assert discrepancies([one for one in read_accounts(engine.bootstrap) if one.stage == "filters"]) == []


def kill_driver(site: Site) -> None:
    """Kill the engine; its Java process ends with it."""
    left = java(site)
    site.kill()
    left.wait(30)
    site.start(*PATIENT)


def kill_java(site: Site) -> None:
    """Kill Spark's Java process; the engine ends and asks to be started again."""
    java(site).kill()
    assert site.child.wait(60) == 1
    assert "Spark's Java process is gone" in site.log.read_text()
    site.start(*PATIENT)


def kill_kafka(site: Site) -> None:
    """Kill Kafka, and start it again on the same data."""
    site.broker.kill()
    site.broker.start()


VICTIMS: dict[str, Callable[[Site], None]] = {
    "worker": lambda site: worker(site).kill(),
    "sandboxed": lambda site: sandboxed(site).kill(),
    "zygote": lambda site: zygote(site).kill(),
    "slow-lanes": lambda site: slow_lanes(site).kill(),
    "slow-sandboxed": lambda site: slow_sandboxed(site).kill(),
    "planner": lambda site: planner(site).kill(),
    "driver": kill_driver,
    "kafka": kill_kafka,
    "java": kill_java,
}


RARELY = {"java", "driver", "zygote", "sandboxed", "slow-sandboxed"}
"""Proofs alone: the sandbox's own die with `worker` and `slow-lanes`, and alone in
`sandbox/test_sandbox.py`."""

MEASURED = {"zygote", "sandboxed"}
"""Of the quick lane's workers: there are none before code was measured in the slow lane."""


@pytest.fixture(scope="module")
def night(engine: Site, encode: Callable[..., bytes], until: Callable[..., Any]) -> Night:
    """Return a night of visits in which processes are killed."""
    for name, (code, *options) in FILTERS.items():
        done = engine.submit(name, code, "--survey", "sim", *options)
        assert done.returncode == 0, done.stderr
    ledger = Ledger(engine.folder / "state")
    return Night(engine, encode, until, ledger, judged(engine, "alerts.sim"))


@pytest.mark.parametrize(
    "victim", [pytest.param(one, marks=[pytest.mark.proof] * (one in RARELY)) for one in VICTIMS]
)
def test_whoever_is_killed_in_mid_visit_it_ends_as_if_nobody_was(night: Night, victim: str) -> None:
    if victim in MEASURED and not night.ids:
        night.settle(night.feed(), lambda: judged(night.site, "alerts.sim"))
    visit = night.feed()
    VICTIMS[victim](night.site)
    close(night.site, visit, "alerts.sim")
    night.settle(visit, lambda: judged(night.site, "alerts.sim"))
    night.check(visit)
    assert discrepancies(accounted(night.site, "alerts.sim")) == []


def test_a_visit_that_lasted_through_all_deaths_has_its_best_and_its_first(night: Night) -> None:
    close(night.site, LONG, "alerts.sim")
    night.settle(LONG, lambda: judged(night.site, "alerts.sim"))
    night.check(LONG)
    night.check_decisions()
    for key in ("me/few", "me/cut"):
        assert (evaluated(night.site, key), evaluated(night.site, key, "faulted")) == (night.alerts(), 0)


def test_a_change_under_a_stream_of_alerts_loses_none_and_the_log_says_who_judged_which(
    engine: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    check_changes(engine, encode, until)


@pytest.mark.proof
def test_the_past_is_judged_beside_the_stream_and_along_a_chain(
    engine: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    check_the_past(engine, encode, until)
    assert engine.stop() == 0
