"""Slow lanes on disk: for each owner of slow filters, how far these are, and what changes where.

A lane lies in ``DIR/lanes/<owner>.<time>/``, named by when the batch of the quick lane with which
it began was planned [ms since 1970, UTC]:

schedule.json   from where on which filters are judged
offsets/ …      positions and decisions, as of any engine (`EngineState`)

The engine writes the schedule, the process of the slow lanes all else.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from nightwire.core.kafka import TopicPartition
from nightwire.filters.decision.engine_state import EngineState, write_atomically
from nightwire.filters.decision.quota import Quotas, VisitQuota
from nightwire.filters.decision.serialize import dump_quotas, load_quotas
from nightwire.filters.model.live_filter import FilterVersion
from nightwire.filters.model.offsets import Visit, positions, to_offset

FOLDER = "lanes"


@dataclass(frozen=True)
class LaneChange:
    """From where on a lane has other filters.

    Attributes:
        batch: The first batch of the quick lane with that filter set.
        planned: When that batch was planned. [ms since 1970, UTC]
        filters: The version of the filter set.
        at: Where that batch began.
        names: The owner's slow filters from there on; none: the lane ends there.
        admitted: What filters that come from the quick lane have admitted of visits.
    """

    batch: int
    planned: int
    filters: int
    at: Mapping[TopicPartition, int]
    names: tuple[FilterVersion, ...] = ()
    admitted: Mapping[Visit, VisitQuota] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        quotas = json.loads(dump_quotas(Quotas(self.admitted)))
        return {**vars(self), "at": to_offset(self.at, 0), "admitted": quotas}


def load_change(values: Mapping[str, Any]) -> LaneChange:
    """Return the change of a result of `LaneChange.as_json`."""
    names = tuple((key, number) for key, number in values["names"])
    admitted = load_quotas(json.dumps(values["admitted"])).visits
    return LaneChange(**{**values, "at": positions(values["at"]), "names": names, "admitted": admitted})


@dataclass(frozen=True)
class SlowLanes:
    """The slow lanes of one engine.

    Args:
        root: The engine's state directory.
    """

    root: Path

    def names(self) -> list[str]:
        """Return the lanes, each ``<owner>.<time>``, the oldest of an owner first."""
        found = (path.parent.name for path in (self.root / FOLDER).glob("*/schedule.json"))
        return sorted(found, key=lambda name: (owner_of(name), int(name.rpartition(".")[2])))

    def state(self, name: str) -> EngineState:
        """Return where a lane keeps its positions and decisions."""
        return EngineState(self.root, f"{FOLDER}/{name}", owner_of(name))

    def schedule(self, name: str) -> list[LaneChange]:
        """Return the changes of a lane, in order."""
        path = self._schedule(name)
        return [*_changes(path, path.stat().st_mtime_ns)] if path.exists() else []

    def current(self, owner: str) -> str | None:
        """Return the lane of *owner* to which changes are added; None where it has ended."""
        lanes = [name for name in self.names() if owner_of(name) == owner]
        return lanes[-1] if lanes and self.schedule(lanes[-1])[-1].names else None

    def change(self, owner: str, change: LaneChange) -> None:
        """Add a change to the lane of *owner*, a new one where it has none; once for each batch."""
        name = self.current(owner)
        if name is None and not change.names:
            return
        known = self.schedule(name) if name else []
        if known and known[-1].batch >= change.batch:
            return
        text = json.dumps({"changes": [one.as_json() for one in [*known, change]]})
        write_atomically(self._schedule(name or f"{owner}.{change.planned}"), text)

    def needed(self) -> set[int]:
        """Return the versions of the filter set that lanes have yet to judge by."""
        return {change.filters for name in self.names() for change in self.schedule(name)}

    def done(self, name: str) -> None:
        """Forget a lane."""
        self._schedule(name).unlink()
        shutil.rmtree(self._schedule(name).parent)

    def reached(self, name: str) -> dict[TopicPartition, int]:
        """Return the position of a lane."""
        done = positions(self.state(name).committed())
        return done or dict(self.schedule(name)[0].at)

    def _schedule(self, name: str) -> Path:
        return self.root / FOLDER / name / "schedule.json"


@lru_cache(maxsize=1024)
def _changes(path: Path, _stamp: int) -> Sequence[LaneChange]:
    """Return the changes in a file that was written at a time."""
    return [load_change(one) for one in json.loads(path.read_text())["changes"]]


def owner_of(name: str) -> str:
    """Return the owner of a lane."""
    return name.rpartition(".")[0]


def changes_after(changes: Sequence[LaneChange], at: Mapping[TopicPartition, int]) -> Iterator[LaneChange]:
    """Yield the changes that come after the position *at*."""
    for change in changes:
        if any(at.get(partition, 0) < offset for partition, offset in change.at.items()):
            yield change
