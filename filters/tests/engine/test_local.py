"""The local engine: without Spark, and with the same output."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from filters.tests.helpers.past import check_the_past
from nightwire.core.accounting import Account, discrepancies, read_accounts, totals
from nightwire.core.kafka import read_to_end
from nightwire.schemas import AlertDecoder, SchemaRegistry, records

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

FILTERS = {
    "bright": ("def keep(alert):\n    return alert.flux > 500\n", "--cap", "0"),
    "early": ("def keep(alert):\n    return alert.flux > 100\n",),
    "top": ("def keep(alert):\n    return alert.flux\n", "--cap", "5", "--choice", "best"),
    "classy": ("class Cut:\n    least = 700\n\ndef keep(alert):\n    return alert.flux > Cut.least\n",),
    "faulty": ("def keep(alert):\n    return 1 / (alert.id % 10) > 0.4\n",),
    "chained": (
        "def keep(alert):\n    return alert.flux\n",
        *("--source", "filter.me.bright", "--cap", "5", "--choice", "best"),
    ),
    "last": (
        "class Cut:\n    least = 9970\n\ndef keep(alert):\n    return alert.flux > Cut.least\n",
        *("--source", "filter.me.chained"),
    ),
    "made": (
        'ADDS = {"label": (str, "How bright it is."), "curve": list[float]}\n'
        "def keep(alert):\n    return alert.flux > 9000 or alert.id == 2003\n"
        "def transform(alert):\n"
        "    label = 5 if alert.id == 950 else f'{alert.flux:g} nJy'\n"
        "    return {'label': label, 'curve': [alert.flux, float('nan')]}\n",
        *("--output", "broker.me.made", "--cap", "0", "--drop", "cutoutScience", "--drop", "prvDiaSources"),
        *("--mean", "prvDiaSources.psfFlux", "--transform", "transform"),
    ),
}

MADE = "broker.me.made"
"""Where the transformed alerts go."""

WRITTEN = [f"{kind}.me.{name}" for name in FILTERS for kind in ("filter", "overflow") if name != "made"]
"""Where copies and overflow of the other filters go."""

SLOW = ".me.classy"
"""Untried code: the slow lane judges it, whose batches end elsewhere each time, and with them
which twenty of a visit come first."""

Site = Any


@pytest.fixture(scope="module")
def submitted(site: Site) -> None:
    """Make the filters live, while there are no alerts yet: one test alone needs them too."""
    site.start("--light", state="early")
    for name, (code, *options) in FILTERS.items():
        done = site.submit(name, code, "--survey", "sim", *options)
        assert done.returncode == 0, done.stderr
    assert site.stop() == 0


def copies(site: Site) -> dict[str, list[Any]]:
    """Return all that lies in the filters' topics: key, value and headers, in order."""
    found = {name: [(one.key(), *content(name, one)) for one in site.read(name)] for name in WRITTEN}
    made = sorted(site.read(MADE), key=lambda one: one.timestamp())  # of several partitions
    return {**found, MADE: [(one.key(), *content(MADE, one)) for one in made]}


def content(topic: str, message: Any) -> tuple[Any, ...]:
    """Return what a record holds, but for the time at which it was cut off."""
    if topic.startswith(("filter.", "broker.")):
        return (
            message.value(),
            message.headers(),
        )  # the first position of an alert, not that in another's topic
    cut = {**records.OVERFLOW.decode(message.value()), "time": None}
    return ({**cut, "offset": None} if cut["topic"].startswith("filter.") else cut,)


def accounted(site: Site, source: str = "") -> list[Account]:
    """Return the engine's accounts, of all lanes, or of one source in the quick one."""
    stages = ("filters",) if source else ("filters", "filters-slow")
    found = (one for one in read_accounts(site.bootstrap) if one.stage in stages)
    return [one for one in found if source in ("", one.source)]


def judged(site: Site, until: Callable[..., Any], *words: str, state: str) -> dict[str, list[Any]]:
    """Let an engine judge everything; return what it wrote."""
    before = copies(site)
    sent = sum(map(len, before.values()))
    site.start(*words, state=state)
    until(lambda: settled(site, sent), 120, lambda: site.log.read_text()[-3000:])
    assert site.stop() == 0
    return {name: found[len(before[name]) :] for name, found in copies(site).items()}


def settled(site: Site, before: int) -> bool:
    """Return whether all alerts are judged, and the best of both visits sent, chains included."""
    written = sum(1 for _ in read_to_end(site.bootstrap, [*WRITTEN, MADE]))  # by one reader
    return written - before == EXPECTED and discrepancies(accounted(site)) == []


EXPECTED = 950 + 990 + 1000 + 930 + 200 + 950 + 3 + 99
"""Copies and overflow of a thousand alerts: each pass is one or the other."""


@pytest.mark.usefixtures("submitted")
def test_it_writes_what_the_engine_with_spark_writes(
    site: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    some = [encode(number, 10.0 * number, visit=7 + number % 2) for number in range(1, 1001)]
    site.write("alerts.sim", [*some, b"\0\0\0", encode(2003, 0.0)[:-1]])
    ends = {one.partition(): one.offset() for one in site.read("alerts.sim")}
    for visit in (7, 8):
        record = {
            "survey": "sim", "visit": visit, "opened": 0, "closed": 1, "written": 500, "refused": 0,
            "partitions": [{"partition": part, "first": 0, "last": last} for part, last in ends.items()],
        }  # fmt: skip
        site.write("visits", {f"sim/{visit}".encode(): records.VISIT.encode(record)})
    light = judged(site, until, "--light", state="light")
    by_local = [(one.key, one.read) for one in accounted(site, "alerts.sim")]
    assert {name: len(found) for name, found in light.items()} == {
        "filter.me.bright": 950, "overflow.me.bright": 0,
        "filter.me.early": 40, "overflow.me.early": 950,
        "filter.me.top": 10, "overflow.me.top": 990,
        "filter.me.classy": 40, "overflow.me.classy": 890,
        "filter.me.faulty": 40, "overflow.me.faulty": 160,
        "filter.me.chained": 10, "overflow.me.chained": 940,
        "filter.me.last": 3, "overflow.me.last": 0, MADE: 99,
    }  # fmt: skip
    best = {dict(headers)["alert"] for _, _, headers in light["filter.me.chained"]}
    assert best == {str(number).encode() for number in range(991, 1001)}
    came = dict(light["filter.me.last"][0][2])
    assert (came["via"], came["topic"]) == (b"filter.me.chained", b"alerts.sim")
    assert_made_over(site, light[MADE])
    spark = judged(site, until, state="spark")
    assert sorted(light.pop(MADE)) == sorted(spark[MADE])
    for name, found in light.items():
        if not name.endswith(SLOW):
            assert found == spark[name], name
    for kind in ("filter", "overflow"):
        assert len(light[f"{kind}{SLOW}"]) == len(spark[f"{kind}{SLOW}"])
    assert [(one.key, one.read) for one in accounted(site, "alerts.sim")] == by_local
    sums = {one.stage: one for one in totals(accounted(site)) if one.stage == "filter.me.chained"}
    assert vars(sums["filter.me.chained"]).items() >= {"read": 1900, "delivered": 20, "capped": 1880}.items()


def assert_made_over(site: Site, copies: list[Any]) -> None:
    """Look at what a transform sent: the survey's alert without what it drops, and with what it
    adds.
    """
    with SchemaRegistry(site.registry) as known:
        alerts = [AlertDecoder(known).decode(value) for _, value, _ in copies]
    assert {one.alert["diaSource"]["diaSourceId"] for one in alerts} == {*range(901, 1001)} - {950}
    one = next(one for one in alerts if one.alert["diaSource"]["diaSourceId"] == 901)
    assert (one.alert["label"], one.alert["curve"][0], len(one.alert["curve"])) == ("9010 nJy", 9010.0, 2)
    assert (one.alert["prvDiaSourcesCount"], one.alert["prvDiaSourcesMeanPsfFlux"]) == (None, None)
    assert one.alert.keys().isdisjoint({"cutoutScience", "prvDiaSources"})
    docs = {field["name"]: field.get("doc") for field in one.schema["fields"]}
    assert docs["label"] == "How bright it is."
    sums = {total.stage: total for total in totals(accounted(site))}["filter.me.made"]
    assert (sums.read, sums.delivered, sums.rejected, sums.faulted) == (1001, 99, 900, 2)
    dead = [dict(one.headers())["reason"].decode() for one in site.read("dead-letters")]
    assert any(reason.startswith("me/made: ") and "cutoutTemplate" in reason for reason in dead)
    assert sum(one.dead_lettered for one in accounted(site)) == 2
    done = site.nightwire("filter", "log", "made")
    assert "transform gave int 5 for label, declared as str" in done.stdout


PAST, LATER, SOME, MOST = 1500, 300, 50, 40
"""Alerts before a filter is submitted; alerts meanwhile, so many at a time; and the most that are
sent."""


def numbers(site: Site, topic: str) -> Iterator[tuple[int, bool]]:
    """Yield the number of each alert in a topic of what passed, and whether a backfill sent it."""
    for one in site.read(topic):
        headers = dict(one.headers())
        yield int(headers["alert"]), headers.get("backfill") == b"yes"


def read_by(site: Site) -> int:
    """Return how many alerts the engine has judged."""
    return sum(one.read for one in accounted(site) if one.source == "alerts.sim")


@pytest.mark.usefixtures("submitted")
def test_a_backfill_and_the_live_stream_share_the_alerts_even_if_the_engine_is_killed(
    site: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    """One alert in 25 passes.  Of the past no more is sent than the operator allows.

    The rest is overflow.
    """
    words = ("--light", "--backfill-most", str(MOST))
    site.start(*words, state="light")
    first, before = 10_000, read_by(site)
    alerts = [(str(n).encode(), encode(n, 1.0, visit=9)) for n in range(first, first + PAST + LATER)]
    site.write("alerts.sim", dict(alerts[:PAST]))
    until(lambda: read_by(site) == before + PAST)

    def write_later() -> None:
        for at in range(PAST, PAST + LATER, SOME):
            site.write("alerts.sim", dict(alerts[at : at + SOME]))

    stream = threading.Thread(target=write_later)
    stream.start()
    code = "def keep(alert):\n    return alert.id >= 10_000 and alert.id % 25 == 0\n"
    done = site.submit("late", code, "--survey", "sim", "--cap", "0", "--backfill", "1h")
    assert done.returncode == 0, done.stderr
    until(lambda: any(marked for _, marked in numbers(site, "filter.me.late")), 180, site.log.read_text)
    site.kill()
    site.start(*words, state="light")
    until(lambda: "backfill ended" in site.nightwire("filter", "log", "late").stdout, 180, site.log.read_text)
    stream.join()
    wanted = set(range(first, first + PAST + LATER, 25))
    cut = {int(records.OVERFLOW.decode(one.value())["alert"]) for one in site.read("overflow.me.late")}
    until(lambda: {number for number, _ in numbers(site, "filter.me.late")} | cut == wanted)
    sent = set(numbers(site, "filter.me.late"))
    assert sum(marked for _, marked in sent) == MOST
    assert len(sent) + len(cut) == len(wanted)  # nothing by both
    until(lambda: read_by(site) == before + PAST + LATER)
    # chains were judged by two engines before, each in batches of its own
    own = [one for one in read_accounts(site.bootstrap) if one.source.endswith("alerts.sim")]
    assert {one.stage for one in own} >= {"filters", "backfill"}
    assert discrepancies(own) == []
    assert site.stop() == 0


@pytest.mark.usefixtures("submitted")
def test_the_past_is_judged_beside_the_stream_and_along_a_chain(
    site: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    site.start("--light", "--backfill-most", str(MOST), state="light")
    check_the_past(site, encode, until)
    assert site.stop() == 0
