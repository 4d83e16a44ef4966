"""Mixtures of many filters: what astronomers write, and kinds that each pass a chosen share."""

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import cycle
from typing import Any, Self

from nightwire.benchmarks.environment.alert_pool import Alert
from nightwire.benchmarks.environment.machine import CLONE
from nightwire.schemas import AlertView, survey


@dataclass(frozen=True)
class FilterKind:
    """A kind of filter: one text of ``filter_kinds.toml``, which says what its entries mean.

    Attributes:
        compiles: Whether the closed language can say it.
        cost_us: CPU time that an alert costs; none of that file costs more than 14. [µs]
    """

    name: str
    source: str
    value: str = ""
    below: bool = False
    sql: bool = False
    compiles: bool = True
    cost_us: float = 10.0


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((files("nightwire.benchmarks.environment") / name).read_text(encoding="utf-8"))


def _kinds() -> dict[str, tuple[FilterKind, ...]]:
    return {
        group: tuple(FilterKind(**one, compiles=group == "compiled") for one in kinds)
        for group, kinds in _table("filter_kinds.toml").items()
    }


KINDS = _kinds()
COMPILED, CODE, DISTURBING = KINDS["compiled"], KINDS["code"], KINDS["disturbing"]
PASS_ALL = FilterKind("all", "def keep(alert):\n    return alert.id > LIMIT\n", "alert.id")
OWNERS = 10
"""The filters belong to so many owners."""
SHARES = (0.004, 0.008, 0.012, 0.02, 0.03, 0.045)
"""Shares of alerts that pass, in turn: within 0.3 and 5 %."""
HABITS = CLONE / "filters" / "notebooks" / "habits"
SLOW_US = 50.0
"""CPU time of an alert above which a filter is a slow one. [µs]"""


@dataclass(frozen=True)
class MixedFilter:
    """One filter of the mixture.

    Attributes:
        owner: Whose it is.
        name: Its name.
        kind: What it is like.
        source: Its text.
        share: Of the alerts that it was made with, those that pass, where it was made so.
        limit: What it compares with.
    """

    owner: str
    name: str
    kind: FilterKind
    source: str
    share: float = math.nan
    limit: float = 0.0

    @classmethod
    def passing_all(cls, owner: str, name: str) -> Self:
        """Return a filter that passes all alerts."""
        return cls(owner, name, PASS_ALL, PASS_ALL.source.replace("LIMIT", "0"), 1.0)

    @property
    def key(self) -> str:
        """``owner/name``."""
        return f"{self.owner}/{self.name}"

    @property
    def slow(self) -> bool:
        """Whether it is one that nobody should wait for."""
        return self.kind.cost_us > SLOW_US

    @property
    def function(self) -> str:
        """The filter as a Python function ``keep``, whatever it is written in."""
        if not self.kind.sql:
            return self.source
        sign = "<" if self.kind.below else ">"
        return (
            f"def keep(alert):\n    value = {self.kind.value}\n"
            f"    return value is not None and value {sign} {self.limit!r}\n"
        )


@cache
def habit_kinds() -> tuple[FilterKind, ...]:
    """Return the accepted notebooks of astronomers, their sources as they are submitted."""
    from nightwire.filters.authoring import file_source  # runs some of them: brings NumPy

    costs: dict[str, float] = _table("habits.toml")["cost_us"]
    return tuple(
        FilterKind(name, file_source(HABITS / f"{name}.ipynb", "keep"), cost_us=cost)
        for name, cost in costs.items()
    )


def habits(owners: int, kinds: Sequence[FilterKind]) -> list[MixedFilter]:
    """Return the notebooks *kinds*, live for each of so many owners."""
    return [
        MixedFilter(f"astronomer{number}", kind.name, kind, kind.source)
        for number in range(owners)
        for kind in kinds
    ]


def mixture(count: int, code: int, pool: Sequence[Alert]) -> list[MixedFilter]:
    """Return *count* different filters, of which *code* cannot be compiled.

    Args:
        count: How many.
        code: How many of them are a class, a try, a call of astropy.
        pool: Alerts of which each filter passes its share.
    """
    sim = survey("sim")
    views = [sim.view(alert) for alert in pool]
    ranked = {kind.name: values(kind, views) for kind in (*COMPILED, *CODE)}
    kinds = [kind for kind, _ in zip(cycle(COMPILED), range(count - code), strict=False)]
    kinds += [kind for kind, _ in zip(cycle(CODE), range(code), strict=False)]
    return [_mixed(number, kind, ranked[kind.name]) for number, kind in enumerate(kinds)]


def values(kind: FilterKind, views: Sequence[AlertView]) -> list[float]:
    """Return what *kind* compares for each alert, the first to pass first; infinite for None."""
    value = value_of(kind)
    worst = math.inf if kind.below else -math.inf
    found = [value(view) for view in views]
    return sorted((worst if one is None else float(one) for one in found), reverse=not kind.below)


def value_of(kind: FilterKind) -> Callable[[AlertView], Any]:
    """Return the function that a kind's expression of ``alert`` is."""
    return eval(f"lambda alert: ({kind.value})", {"SEPARATION": separation})  # type: ignore[no-any-return]  # noqa: S307


def separation(alert: AlertView) -> float | None:
    """Return the distance of an alert from a place in the north. [rad]"""
    if alert.ra is None or alert.dec is None:
        return None
    ra, dec = math.radians(alert.ra), math.radians(alert.dec)
    cosine = math.sin(dec) * math.sin(0.3) + math.cos(dec) * math.cos(0.3) * math.cos(ra - 1.0)
    return math.acos(max(-1.0, min(1.0, cosine)))


def _mixed(number: int, kind: FilterKind, ranked: Sequence[float]) -> MixedFilter:
    """Return filter *number*; its limit lies between two alerts, beside others' of its kind."""
    share = SHARES[number % len(SHARES)]
    place = max(1, round(share * len(ranked)))
    inside, outside = ranked[place - 1], ranked[min(place, len(ranked) - 1)]
    part = 0.25 + 0.5 * (number * 0.6180339887 % 1.0)
    limit = inside + (outside - inside) * part if math.isfinite(outside) else inside
    text = kind.source.replace("LIMIT", repr(limit))
    return MixedFilter(f"owner{number % OWNERS}", f"{kind.name}-{number}", kind, text, share, limit)
