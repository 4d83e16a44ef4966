"""The choice of conditions that get a channel.  Pure.

A receiver without a channel gets the whole topic and discards most of it.  A channel spares its
receivers the difference to the smallest other channel that covers them: rate × size × receivers ×
the difference of the shares that pass.  The channel that spares most is made first, and so on, as
long as one spares enough.  An existing one has to spare less than a new one, and none is taken out
young.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from nightwire.core.channels import MAX_CONDITION, ChannelMapping

Action = Literal["make", "keep", "take out", "forget"]


@dataclass(frozen=True)
class Settings:
    """The limits of a plan.

    Attributes:
        groups: Multicast groups that channels may get, ``ADDRESS:PORT``.
        derived: Whether sources copy a channel's events to a topic of its own.
        full: Whether groups carry alerts whole.
        make: Least saving of a new channel. [byte/s]
        keep: Least saving of an existing one. [byte/s]
        most: Most channels of the planner.
        age: Least age of one that is taken out.
    """

    groups: Sequence[str] = ()
    derived: bool = False
    full: bool = False
    make: float = 100_000.0
    keep: float = 50_000.0
    most: int = 16
    age: timedelta = timedelta(minutes=10)


@dataclass(frozen=True)
class Demand:
    """The demand for a topic.

    Attributes:
        rate: Events a second.
        size: Their mean length at receivers. [byte]
        receivers: By condition, the subscriptions that it covers most narrowly.
        shares: By condition, channels' too, the share of events that passes.
        covered: By condition, the conditions in *receivers* that it covers.
    """

    rate: float
    size: float
    receivers: Mapping[str, int]
    shares: Mapping[str, float]
    covered: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Change:
    """A planned change of a channel.

    Attributes:
        action: What the change does.
        mapping: The channel afterwards.
        receivers: How many it has, or would have.
        share: Of the topic's events.
        spared: The receivers' saving. [byte/s]
    """

    action: Action
    mapping: ChannelMapping
    receivers: int
    share: float
    spared: float


def plan(
    now: Sequence[ChannelMapping], demand: Demand, settings: Settings, topic: str, made_by: str, at: datetime
) -> list[Change]:
    """Return the changes of the planner's channels.

    Args:
        now: The topic's channels; those that people made stay as they are.
        demand: For the topic.
        settings: Limits.
        topic: Its name.
        made_by: Who makes them.
        at: The present.
    """
    ours = {one.condition: one for one in now if one.automatic and _carried(one)}
    chosen = _choose(now, ours, demand, settings, at)
    found = list[Change]()
    free = iter(_free_groups(now, settings))
    taken = {one.group for one in now if not one.automatic}
    for condition, spared in chosen.items():
        action: Action = "keep"
        mapping = ours.get(condition)
        if mapping is None or (mapping.group and mapping.group in taken):  # planned by two at once
            action, mapping = "make", ChannelMapping(
                topic, name_of(condition), condition, made_by, at, derived=settings.derived,
                group=next(free, None), full=settings.full, automatic=True,
            )  # fmt: skip
        taken.add(mapping.group)
        if _carried(mapping):
            found.append(_change(action, mapping, demand, spared))
    for condition, mapping in ours.items():
        if condition not in chosen:
            spared = _spared(condition, demand, _reach(now, chosen, demand))
            out = replace(mapping, group=None, derived=False, made=at)
            found.append(_change("take out", out, demand, spared))
    old = [one for one in now if one.automatic and not _carried(one) and at - one.made >= settings.age]
    return found + [_change("forget", one, demand, 0.0) for one in old]


def name_of(condition: str) -> str:
    """Return the name of the planner's channel for a condition."""
    return f"auto-{hashlib.sha256(condition.encode()).hexdigest()[:8]}"


def _choose(
    now: Sequence[ChannelMapping],
    ours: Mapping[str, ChannelMapping],
    demand: Demand,
    settings: Settings,
    at: datetime,
) -> dict[str, float]:
    """Return the conditions that get a channel, and the saving of each beside the others."""
    manual = {one.condition for one in now if not one.automatic and _carried(one)}
    young = sorted(condition for condition, one in ours.items() if at - one.made < settings.age)
    wanted = {one for one in demand.receivers if len(one.encode()) <= MAX_CONDITION}
    candidates = (wanted | ours.keys()) - manual - {*young}
    reach, found = _reach(now, (), demand), dict[str, float]()
    for one in young:
        found[one] = _spared(one, demand, reach)
        reach = _narrow(reach, one, demand)
    while candidates and len(found) < settings.most:
        spared = {one: _spared(one, demand, reach) for one in sorted(candidates)}
        least = {one: settings.keep if one in ours else settings.make for one in candidates}
        best = max(spared, key=lambda one: spared[one] / max(1.0, least[one]))
        if spared[best] < max(1.0, least[best]):
            break
        candidates.remove(best)
        found[best] = spared[best]
        reach = _narrow(reach, best, demand)
    return found


def _reach(
    now: Sequence[ChannelMapping], chosen: Sequence[str] | Mapping[str, float], demand: Demand
) -> dict[str, float]:
    """Return the share that each condition's receivers get by manual channels and *chosen*."""
    reach = dict.fromkeys(demand.receivers, 1.0)
    for one in [*(each.condition for each in now if not each.automatic and _carried(each)), *chosen]:
        reach = _narrow(reach, one, demand)
    return reach


def _narrow(reach: Mapping[str, float], by: str, demand: Demand) -> dict[str, float]:
    share, below = demand.shares.get(by, 1.0), demand.covered.get(by, frozenset())
    return {one: min(had, share) if one in below else had for one, had in reach.items()}


def _spared(condition: str, demand: Demand, reach: Mapping[str, float]) -> float:
    """Return the saving of a channel, beside those that its receivers have already. [byte/s]"""
    share, below = demand.shares.get(condition, 1.0), demand.covered.get(condition, frozenset())
    less = sum(demand.receivers[one] * max(0.0, reach[one] - share) for one in below)
    return demand.rate * demand.size * less


def _change(action: Action, mapping: ChannelMapping, demand: Demand, spared: float) -> Change:
    below = demand.covered.get(mapping.condition, frozenset())
    receivers = sum(demand.receivers[one] for one in below)
    return Change(action, mapping, receivers, demand.shares.get(mapping.condition, 1.0), spared)


def _carried(one: ChannelMapping) -> bool:
    return one.derived or one.group is not None


def _free_groups(now: Sequence[ChannelMapping], settings: Settings) -> list[str]:
    taken = {one.group for one in now}
    return [one for one in settings.groups if one not in taken]
