"""The light engine: without Spark, and with the same output."""

from collections.abc import Callable
from typing import Any

import pytest

from nightwire.core.accounts import Account, discrepancies, read_accounts
from nightwire.schemas import records

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

FILTERS = {
    "bright": ("def keep(alert):\n    return alert.flux > 500\n", "--cap", "0"),
    "early": ("def keep(alert):\n    return alert.flux > 100\n",),
    "top": ("def keep(alert):\n    return alert.flux\n", "--cap", "5", "--choice", "best"),
    "classy": ("class Cut:\n    least = 700\n\ndef keep(alert):\n    return alert.flux > Cut.least\n",),
    "faulty": ("def keep(alert):\n    return 1 / (alert.id % 10) > 0.4\n",),
}

Site = Any


def submitted(site: Site) -> None:
    """Make the filters live, while there are no alerts yet."""
    site.start("--light", state="early")
    for name, (code, *options) in FILTERS.items():
        done = site.submit(name, code, "--survey", "sim", *options)
        assert done.returncode == 0, done.stderr
    assert site.stop() == 0


def copies(site: Site) -> dict[str, list[Any]]:
    """Return all that lies in the filters' topics: key, value and headers, in order."""
    names = [f"{kind}.me.{name}" for name in FILTERS for kind in ("filter", "overflow")]
    return {name: [(one.key(), *content(name, one)) for one in site.read(name)] for name in names}


def content(topic: str, message: Any) -> tuple[Any, ...]:
    """Return what a record holds, but for the time at which it was cut off."""
    if topic.startswith("filter."):
        return message.value(), message.headers()
    return ({**records.OVERFLOW.decode(message.value()), "time": None},)


def accounted(site: Site) -> list[Account]:
    """Return the engine's accounts."""
    return [one for one in read_accounts(site.bootstrap) if one.stage == "filters"]


def judged(site: Site, until: Callable[..., Any], *words: str, state: str) -> dict[str, list[Any]]:
    """Let an engine judge everything; return what it wrote."""
    before = copies(site)
    sent = sum(map(len, before.values()))
    site.start(*words, state=state)
    until(lambda: settled(site, sent), 120, lambda: site.log.read_text()[-3000:])
    assert site.stop() == 0
    return {name: found[len(before[name]) :] for name, found in copies(site).items()}


def settled(site: Site, before: int) -> bool:
    """Return whether all alerts are judged, and the best of both visits sent."""
    return sum(map(len, copies(site).values())) - before == EXPECTED and discrepancies(accounted(site)) == []


EXPECTED = 950 + 990 + 1000 + 930 + 200
"""Copies and overflow of a thousand alerts: each pass is one or the other."""


def test_it_writes_what_the_engine_with_spark_writes(
    site: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    submitted(site)
    some = [encode(number, 10.0 * number, visit=7 + number % 2) for number in range(1, 1001)]
    site.write("alerts.sim", [*some, b"\0\0\0"])
    ends = {one.partition(): one.offset() for one in site.read("alerts.sim")}
    for visit in (7, 8):
        record = {
            "survey": "sim", "visit": visit, "opened": 0, "closed": 1, "written": 500, "refused": 0,
            "partitions": [{"partition": part, "first": 0, "last": last} for part, last in ends.items()],
        }  # fmt: skip
        site.write("visits", {f"sim/{visit}".encode(): records.VISIT.encode(record)})
    light = judged(site, until, "--light", state="light")
    by_light = accounted(site)
    assert {name: len(found) for name, found in light.items()} == {
        "filter.me.bright": 950, "overflow.me.bright": 0,
        "filter.me.early": 40, "overflow.me.early": 950,
        "filter.me.top": 10, "overflow.me.top": 990,
        "filter.me.classy": 40, "overflow.me.classy": 890,
        "filter.me.faulty": 40, "overflow.me.faulty": 160,
    }  # fmt: skip
    spark = judged(site, until, state="spark")
    for name, found in light.items():
        assert found == spark[name], name
    assert accounted(site) == by_light
