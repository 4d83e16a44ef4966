"""A filter, and one that is chained to it, both with a past: what must lie in their topics
afterwards.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from filters.tests.helpers.accounted import judged
from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.schemas import records

Site = Any

FIRST, PAST, LATER, EACH = 20_000, 200, 100, 25
"""The first alert's id; alerts before the filters are submitted, and after; one in so many
passes."""

CAP = 2
"""Places of the chained filter in the visit of the later alerts, of which more pass."""

END = FIRST + PAST + LATER
WRITTEN = f"def keep(alert):\n    return {FIRST} <= alert.id < {END} and alert.id % {EACH} == 0\n"
CHAINED = f"def keep(alert):\n    return alert.id >= {FIRST}\n"


def copies(site: Site, topic: str) -> Counter[tuple[int, bool]]:
    """Count the copies in a topic of what passed, by the alert and whether a backfill sent it."""
    said = (dict(one.headers()) for one in site.read(topic))
    return Counter((int(one["alert"]), one.get("backfill") == b"yes") for one in said)


def check_the_past(site: Site, encode: Callable[..., bytes], until: Callable[..., Any]) -> None:
    """Let a running engine judge past and stream by a chain of two, and look at what it wrote."""
    before, numbers = judged(site, "alerts.sim"), range(FIRST, END)
    site.write("alerts.sim", [encode(number, 1.0, visit=90) for number in numbers[:PAST]])
    until(lambda: judged(site, "alerts.sim") == before + PAST)
    past = ("--survey", "sim", "--backfill", "1h")
    for name, code, *more in (
        ("past", WRITTEN, "--cap", "0"),
        ("after", CHAINED, "--cap", str(CAP), "--source", "filter.me.past"),
    ):
        done = site.submit(name, code, *past, *more)
        assert done.returncode == 0, done.stderr
    site.write("alerts.sim", [encode(number, 1.0, visit=91) for number in numbers[PAST:]])
    old = Counter((number, True) for number in numbers[:PAST:EACH])
    new = Counter((number, False) for number in numbers[PAST::EACH])
    for name in ("past", "after"):
        until(lambda name=name: "backfill ended" in site.nightwire("filter", "log", name).stdout)
    until(lambda: copies(site, "filter.me.past") == old + new, 60, lambda: site.log.read_text()[-3000:])
    until(lambda: copies(site, "filter.me.after").total() == old.total() + CAP)
    sent = copies(site, "filter.me.after")
    cut = Counter(
        (int(records.OVERFLOW.decode(one.value())["alert"]), False) for one in site.read("overflow.me.after")
    )
    assert cut.total() == new.total() - CAP
    assert sent + cut == old + new
    until(lambda: accounted(site) == sent.total())
    assert discrepancies(own_accounts(site)) == []


def own_accounts(site: Site) -> list[Any]:
    """Return the accounts of what the two judged of each other's, live or not."""
    return [one for one in read_accounts(site.bootstrap) if one.source.endswith("filter.me.past")]


def accounted(site: Site) -> int:
    """Return how many alerts of the chained filter are accounted as sent, by the live stream or
    its backfill.
    """
    return sum(one.delivered for one in own_accounts(site))
