"""Lanes on a real Kafka: nobody waits for a slow neighbour, and every alert is judged once."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from nightwire.core.accounting import discrepancies, read_accounts, totals

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

Site = Any

BURN = """
def keep(alert):
    if {condition}:
        sum(number for number in range({steps}))
    return alert.id % {every} == 0
"""
"""A filter that takes some 40 ns of CPU time a step."""

QUICK_ONE = "def keep(alert):\n    return alert.id % 50 == 0\n"

MOODY = BURN.format(condition="5000 <= alert.flux < 6000", steps=30_000, every=20)
"""A filter that is cheap, dear, and cheap again."""


def judged(site: Site, name: str) -> int:
    """Return how many alerts a filter has judged, in all lanes."""
    sums = {one.stage: one for one in totals(read_accounts(site.bootstrap))}
    return sums[f"filter.me.{name}"].read if f"filter.me.{name}" in sums else 0


def quick(site: Site) -> int:
    """Return how many alerts the quick lane has accounted for."""
    return sum(one.read for one in read_accounts(site.bootstrap) if one.stage == "filters")


def log_of(site: Site, name: str) -> str:
    """Return the log of a filter."""
    return str(site.nightwire("filter", "log", name).stdout)


def sent(site: Site, name: str) -> Counter[tuple[int, bytes]]:
    """Return how often each alert, of each visit, lies in the topic of a filter."""
    headers = [dict(one.headers()) for one in site.read(f"filter.me.{name}")]
    return Counter((int(one["alert"]), one["visit"]) for one in headers)


def test_a_filter_moves_between_lanes_as_its_cost_does_and_judges_every_alert_once(
    site: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    """The engine is killed amid the dear alerts, and again where it is behind."""
    site.start("--light", "--slow-processes", "1")
    for name, code in {"bright": QUICK_ONE, "moody": MOODY}.items():
        done = site.submit(name, code, "--survey", "sim", "--cap", "7")
        assert done.returncode == 0, done.stderr
        lane = "quick lane" if name == "bright" else "slow lane until it is measured"
        assert f"judged in the {lane}" in done.stdout
    written = 0

    def write(count: int, flux: float, visit: int) -> None:
        nonlocal written
        numbers = range(written + 1, written + count + 1)
        alerts = {str(number).encode(): encode(number, flux, visit=visit) for number in numbers}
        site.write("alerts.sim", alerts)
        written += count

    write(600, 1.0, visit=7)  # untried, it begins in the slow lane, and is measured there
    until(lambda: judged(site, "moody") == written, 90, site.log.read_text)
    until(lambda: write(20, 1.0, visit=7) or "in the quick lane from batch" in log_of(site, "moody"), 90)
    write(900, 5500.0, visit=8)
    until(lambda: write(20, 5500.0, visit=8) or "in the slow lane from batch" in log_of(site, "moody"), 90)
    write(2000, 5500.0, visit=9)  # two seconds of it
    until(lambda: quick(site) == written, 90)
    site.kill()
    site.start("--light", "--slow-processes", "1")
    write(12_000, 1.0, visit=10)
    site.kill()
    site.start("--light", "--slow-processes", "1")
    until(lambda: judged(site, "moody") == judged(site, "bright") == written, 120, site.log.read_text)
    again = r"in the quick lane from batch (?s:.*)in the slow lane from batch (?s:.*)in the quick lane"
    until(lambda: write(20, 1.0, visit=10) or re.search(again, log_of(site, "moody")), 120)
    until(lambda: judged(site, "moody") == judged(site, "bright") == written, 90)
    assert discrepancies(read_accounts(site.bootstrap)) == []
    assert {one.source for one in read_accounts(site.bootstrap) if one.stage == "filters-slow"}
    # a quota of seven a visit, whatever the lane
    for name in ("bright", "moody"):
        visits = Counter(visit for _, visit in sent(site, name))
        assert visits == dict.fromkeys((b"7", b"8", b"9", b"10"), 7), name
    assert site.stop() == 0


def test_a_slow_neighbour_delays_himself_alone_and_what_he_cannot_judge_is_said(
    site: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    site.start("--light", "--slow-processes", "1", "--most-behind", "2", "--allow-no-trial", state="late")
    dear = BURN.format(condition="alert.flux > 0", steps=200_000, every=10)
    site.submit("dear", dear, "--survey", "sim", "--owner", "ann", "--no-trial")
    site.submit("gone", dear, "--survey", "sim", "--owner", "bob", "--no-trial", "--behind", "suspend")
    site.submit("bright", QUICK_ONE, "--survey", "sim", "--no-trial")
    before = len(site.read("alerts.sim"))
    number = 100_000

    def write() -> None:
        nonlocal number
        site.write(
            "alerts.sim", {str(one).encode(): encode(one, visit=11) for one in range(number, number + 300)}
        )
        number += 300

    log = lambda owner, name: site.nightwire("filter", "log", name, "--owner", owner).stdout  # noqa: E731
    until(lambda: write() or "were not judged" in log("ann", "dear"), 120, site.log.read_text)
    until(lambda: write() or "suspended: the slow lane could not" in log("bob", "gone"), 120)
    until(lambda: quick(site) >= before + number - 100_000, 60)
    slow = [one for one in read_accounts(site.bootstrap) if one.source.startswith("filters-slow/ann")]
    left_out = sum(one.rejected.get("too-old-for-the-slow-lane", 0) for one in slow)
    assert left_out > 0
    assert discrepancies(slow) == []
    listed = site.nightwire("filter", "list", "--json").stdout
    assert '"lane": "slow"' in listed
    assert f'"unjudged": {left_out}' in listed or left_out  # told every five seconds
    assert site.stop() == 0
