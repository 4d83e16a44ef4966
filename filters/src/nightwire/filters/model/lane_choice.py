"""Lanes: filters that cost little are judged at once, others at their own pace.  Pure.

The quick lane is the engine's query over all topics.  What is dear is judged behind it, each
owner's filters by themselves, so that nobody waits for a neighbour.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nightwire.filters.model.live_filter import QUICK, SLOW, FilterVersion, LiveFilter

QUICK_US = 50.0
"""What all quick filters of one owner may cost for an alert together. [µs of CPU]"""

QUICK_LANE_US = 150.0
"""What the filters of all owners in the quick lane may cost for an alert, a task. [µs of CPU]"""

OWNER_US = 1.0
"""What an owner's process costs for an alert beside his filters (2 ms a batch; decision 0046).
[µs of CPU]"""

RETURN_FACTOR = 1.5
"""A slow filter counts as so many times as dear, so that none moves to and fro."""

ALLOWANCES = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)
"""Shares of `QUICK_US` that owners have where all of it would be too much, the largest first."""

VISIT_S, VISIT_ALERTS = 39.0, 10_000
"""A visit as an observatory has them, for forecasts. [s]"""

NEWEST, SUSPEND = "newest", "suspend"
"""What becomes of a filter whose lane is too far behind: what is too old is left out; or it is
suspended."""


def first_lane(live: LiveFilter) -> str:
    """Return the lane of a filter that was not judged yet.

    One that is code and was not tried is slow until it is measured; what a compiled one may cost
    its language bounds.
    """
    if live.cost_us is None:
        return QUICK if live.program else SLOW
    return QUICK if live.cost_us <= QUICK_US else SLOW


def wanted_lanes(
    filters: Iterable[LiveFilter], costs: Mapping[FilterVersion, float | None], most_us: float
) -> dict[FilterVersion, str]:
    """Return the lane that each filter should have.

    An owner's cheapest filters are quick, as long as together they cost no more than `QUICK_US`; or
    less, the same for every owner, where all owners' would cost more than *most_us*.

    Args:
        filters: The live filters, each with its present lane.
        costs: CPU time for an alert; None or missing where it is not known. [µs]
        most_us: What all quick filters may cost for an alert. [µs]
    """
    owners: dict[str, list[tuple[float, LiveFilter]]] = {}
    wanted: dict[FilterVersion, str] = {}
    for one in filters:
        cost = costs.get(one.id)
        cost = one.cost_us if cost is None else cost
        if cost is None:
            wanted[one.id] = first_lane(one)
        else:
            owners.setdefault(one.owner, []).append(
                (cost * (1.0 if one.lane == QUICK else RETURN_FACTOR), one)
            )
    chosen: set[FilterVersion] = set()
    for share in ALLOWANCES:
        parts = [_cheapest(some, share * QUICK_US) for some in owners.values()]
        chosen = {one.id for part in parts for _, one in part}
        if sum(map(_lane_cost, parts)) <= most_us:
            break
    wanted.update(
        {one.id: QUICK if one.id in chosen else SLOW for some in owners.values() for _, one in some}
    )
    return wanted


def _cheapest(some: Iterable[tuple[float, LiveFilter]], most: float) -> list[tuple[float, LiveFilter]]:
    """Return the cheapest of an owner's filters that cost no more than *most* together."""
    chosen, spent = list[tuple[float, LiveFilter]](), 0.0
    for cost, one in sorted(some, key=lambda item: (item[0], item[1].id)):
        spent += cost
        if spent <= most:
            chosen.append((cost, one))
    return chosen


def _lane_cost(part: Iterable[tuple[float, LiveFilter]]) -> float:
    """Return the cost of an owner's quick filters, and of the process that those need that are
    code. [µs]"""
    part = list(part)
    return sum(cost for cost, _ in part) + OWNER_US * any(not one.program for _, one in part)


def assigned(
    live: Iterable[LiveFilter],
    current: Mapping[str, str],
    wanted: Mapping[FilterVersion, str],
    may_move: Callable[[LiveFilter, str], bool],
) -> list[LiveFilter]:
    """Return the filters, each with the lane that judges it from here on.

    Args:
        live: The live filters.
        current: The present lanes, by ``owner/name``.
        wanted: The lanes that they should have.
        may_move: Returns whether a filter can leave its present lane, here and now.
    """

    def lane(one: LiveFilter) -> str:
        want = wanted.get(one.id) or first_lane(one)
        now = current.get(one.key, want)
        return want if want == now or may_move(one, now) else now

    return [replace(one, lane=lane(one)) for one in live]


@dataclass(frozen=True)
class LaneLoad:
    """What is asked of the slow lanes.

    Attributes:
        cores: Cores that they have.
        owners: CPU that each owner's slow filters take for an alert. [µs]
        alerts: Alerts of a visit.
        quick: CPU that each of an owner's quick filters takes for an alert, by owner. [µs]
    """

    cores: int = 1
    owners: Mapping[str, float] = field(default_factory=dict)
    alerts: int = VISIT_ALERTS
    quick: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def is_quick(self, owner: str, cost_us: float) -> bool:
        """Return whether one more filter of *owner*, of such a cost, goes to the quick lane."""
        cheaper = (cost for cost in self.quick.get(owner, ()) if cost <= cost_us)
        return cost_us + sum(cheaper) <= QUICK_US

    def seconds(self, cost_us: float) -> float:
        """Return the CPU time of a visit. [s]"""
        return 1e-6 * cost_us * self.alerts

    def share(self, owner: str) -> float:
        """Return the CPU time that *owner* has in the time of a visit. [s]"""
        others = [self.seconds(cost) for name, cost in self.owners.items() if name != owner]
        whole, fair = self.cores * VISIT_S, self.cores * VISIT_S / (1 + len(others))
        return min(VISIT_S, max(fair, whole - sum(min(fair, one) for one in others)))

    def forecast(self, owner: str, cost_us: float) -> str:
        """Return what one more slow filter of *owner* has to expect, in words."""
        own, share = self.seconds(self.owners.get(owner, 0.0) + cost_us), self.share(owner)
        about = f"a visit of {self.alerts:,} alerts takes it {self.seconds(cost_us):.1f} s of CPU"
        if own <= share:
            return f"{about}; expect its alerts {own * VISIT_S / share:.0f} s after the quick ones'"
        kept = f"with your other slow filters {own:.0f} s, of which you have {share:.0f} s"
        return f"{about}, {kept}: {1 - share / own:.0%} of the alerts will not be judged"
