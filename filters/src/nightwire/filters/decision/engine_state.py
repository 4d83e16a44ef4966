"""The engine's state on disk, with which a re-run after a crash does the same again.

    DIR/engine.json            whose Kafka this belongs to
    DIR/beginnings.json        where each partition was when it was first seen
    DIR/filter-sets/57.json    the live filters of version 57 of the filter set, with their lanes
    DIR/checkpoint/            Spark's own: offsets, commits
    DIR/checkpoint/decisions/  what was decided for each batch, before anything was sent
    DIR/checkpoint/places/     the quotas after some of the batches
    DIR/checkpoint/unsent/     what of a batch could not be sent: it had expired, or is malformed
    DIR/checkpoint/counted.json  the newest batch that metrics have counted
    DIR/lanes/                 the slow lanes (`nightwire.filters.decision.slow_lanes`)
    DIR/schemas/               schemas that were seen

Decisions lie within the checkpoint because batch ids count from it: whoever removes one removes
both.
"""

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightwire.core.kafka import TopicPartition
from nightwire.core.runtime import StateError
from nightwire.filters.decision.accounts import Unsent
from nightwire.filters.decision.decision import Decision
from nightwire.filters.decision.quota import Quotas, apply_changes
from nightwire.filters.decision.serialize import dump_decision, dump_quotas, load_decision, load_quotas
from nightwire.filters.model import filter_set
from nightwire.filters.model.live_filter import QUICK, SLOW, LiveFilter
from nightwire.filters.model.offsets import Offset, positions, to_offset

VERSION = 2
KEPT = 20
"""Decisions and filter sets kept; the newest may be needed again, the others are for the curious.
A decision is kept as long as something of its batch is held, and accounted for anew."""

QUOTAS_EVERY = 10
"""The quotas are stored after every so many batches; between them, decisions say what changed."""


@dataclass(frozen=True)
class EngineState:
    """The engine's directory.

    Args:
        root: The directory.
        engine: Name of the folder of positions and decisions: Spark's ``checkpoint``, ``light``, or
            that of a slow lane.
        owner: Whose slow lane it is; empty for the quick one.
    """

    root: Path
    engine: str = "checkpoint"
    owner: str = ""

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint, or that of the engine without Spark."""
        return self.root / self.engine

    @property
    def schemas(self) -> Path:
        """The cache of the schema registry's client."""
        return self.root / "schemas"

    def claim(self, cluster: str) -> None:
        """Make the directory ours, for Kafka cluster *cluster*.

        Raises:
            StateError: It belongs to another cluster, or to another version of nightwire.
        """
        mine = {"version": VERSION, "cluster": cluster}
        theirs = read_json(self.root / "engine.json", mine)
        if theirs != mine:
            raise StateError(
                f"{self.root} is the state of version {theirs.get('version')} for Kafka cluster "
                f"{theirs.get('cluster')}, not version {VERSION} for {cluster}: name another --state, "
                "or remove it (everything still in the alert topics is then judged again)"
            )
        write_atomically(self.root / "engine.json", json.dumps(mine))

    def beginnings(self) -> dict[TopicPartition, int]:
        """Return where each partition began when it was first seen."""
        return positions(read_json(self.root / "beginnings.json", {}))

    def keep_beginnings(self, first: Mapping[TopicPartition, int]) -> None:
        """Store the beginnings."""
        write_atomically(self.root / "beginnings.json", json.dumps(to_offset(first, 0)))

    def batch_start(self, batch: int) -> dict[TopicPartition, int]:
        """Return the offsets at which *batch* began."""
        before = positions(self.planned(batch - 1)) if batch > 0 else {}
        return {**self.beginnings(), **before}

    def keep_filters(self, version: int, text: str, needed: Collection[int] = ()) -> None:
        """Store the live filters of *version* unless they are there; keep those *needed*, too."""
        path = self._filters(version)
        if not path.exists():
            write_atomically(path, text)
            prune_numbered(path.parent, needed)

    def filters(self, version: int) -> list[LiveFilter]:
        """Return the filters of the filter set's *version* that this lane judges; none for
        version 0.

        Raises:
            StateError: They are not there.
        """
        found = self.all_filters(version)
        if self.owner:
            return [one for one in found if one.lane == SLOW and one.owner == self.owner]
        return [one for one in found if one.lane == QUICK]

    def all_filters(self, version: int) -> list[LiveFilter]:
        """Return the live filters of the filter set's *version*, of all lanes; none for version 0.

        Raises:
            StateError: They are not there.
        """
        if version == 0:
            return []
        try:
            return filter_set.load(self._filters(version).read_text())
        except FileNotFoundError as error:
            raise StateError(f"filter set {version} is missing in {self.root}") from error

    def decision(self, batch: int) -> Decision | None:
        """Return the decision on *batch*; None while there is none."""
        path = self._decision(batch)
        return load_decision(path.read_text()) if path.exists() else None

    def keep_decision(self, batch: int, decision: Decision, before: Quotas) -> Quotas:
        """Store the decision of *batch*; return the quotas after it.  On return it is on disk.

        Args:
            batch: Its number.
            decision: What was decided.
            before: The quotas before it.
        """
        after = apply_changes(before, decision.changes)
        write_atomically(self._decision(batch), dump_decision(decision))
        if batch % QUOTAS_EVERY == 0:
            write_atomically(self._quotas(batch), dump_quotas(after))
            prune_numbered(self._quotas(batch).parent)
        prune_numbered(self._decision(batch).parent, after.batches() | after.released.keys())
        self._prune_unsent()
        return after

    def newest_decision(self) -> int:
        """Return the newest batch that was decided; -1 when none was."""
        return max(_numbers(self._decision(0).parent), default=-1)

    def quotas(self, batch: int) -> Quotas:
        """Return the quotas after *batch*: those stored last, with the changes since."""
        stored = max((one for one in _numbers(self._quotas(0).parent) if one <= batch), default=-1)
        quotas = load_quotas(self._quotas(stored).read_text()) if stored >= 0 else Quotas()
        for number in range(stored + 1, batch + 1):
            if (decision := self.decision(number)) is not None:
                quotas = apply_changes(quotas, decision.changes)
        return quotas

    def unsent(self, batch: int) -> Unsent:
        """Return the unsent part of *batch*."""
        found = read_json(self._unsent(batch), {"lost": [], "malformed": []})
        malformed = (((topic, part, at), key) for (topic, part, at), key in found["malformed"])
        return Unsent({(topic, part, at) for topic, part, at in found["lost"]}, {*malformed})

    def keep_unsent(self, batch: int, unsent: Unsent) -> None:
        """Add to the stored unsent part of *batch*."""
        if unsent:
            every = self.unsent(batch) | unsent
            values = {"lost": sorted(every.lost), "malformed": sorted(every.malformed)}
            write_atomically(self._unsent(batch), json.dumps(values))

    def _prune_unsent(self) -> None:
        """Forget the unsent parts of batches whose decisions were pruned."""
        decided = set(_numbers(self._decision(0).parent))
        for batch in _numbers(self._unsent(0).parent):
            if batch not in decided:
                self._unsent(batch).unlink(missing_ok=True)

    def counted(self) -> int:
        """Return the newest batch that metrics have counted; -1 when there is none."""
        return int(read_json(self._counted, {"batch": -1})["batch"])

    def keep_counted(self, batch: int) -> None:
        """Note that metrics have counted *batch*: a second run does not count it."""
        write_atomically(self._counted, json.dumps({"batch": batch}))

    def planned(self, batch: int) -> dict[str, Any]:
        """Return Spark's offset at the end of *batch*."""
        lines = (self.checkpoint / "offsets" / str(batch)).read_text().splitlines()
        # version, batch's metadata, then one line per source
        offset: dict[str, Any] = json.loads(lines[2])
        return offset

    def is_committed(self, batch: int) -> bool:
        """Return whether it is noted that *batch* is done."""
        return (self.checkpoint / "commits" / str(batch)).exists()

    def newest_commit(self) -> int:
        """Return the last committed batch; -1 when there is none."""
        names = (path.name for path in (self.checkpoint / "commits").glob("[0-9]*"))
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def is_planned(self, batch: int) -> bool:
        """Return whether it is noted where *batch* ends."""
        return (self.checkpoint / "offsets" / str(batch)).exists()

    def in_progress(self) -> bool:
        """Return whether a batch is planned and not yet committed."""
        return self.is_planned(self.newest_commit() + 1)

    def committed(self) -> dict[str, Any]:
        """Return Spark's offset after the last committed batch; empty when there is none."""
        newest = self.newest_commit()
        return self.planned(newest) if newest >= 0 else {}

    def _filters(self, version: int) -> Path:
        return self.root / "filter-sets" / f"{version}.json"

    def _decision(self, batch: int) -> Path:
        return self.checkpoint / "decisions" / f"{batch}.json"

    def _quotas(self, batch: int) -> Path:
        return self.checkpoint / "places" / f"{batch}.json"

    @property
    def _counted(self) -> Path:
        return self.checkpoint / "counted.json"

    def _unsent(self, batch: int) -> Path:
        return self.checkpoint / "unsent" / f"{batch}.json"


def read_json(path: Path, default: dict[str, Any]) -> dict[str, Any]:
    """Return the object in a JSON file, or *default* where there is no file."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return default
    return found


def write_atomically(path: Path, text: str) -> None:
    """Replace a file as a whole: after a crash it holds the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def prune_numbered(folder: Path, wanted: Collection[int] = ()) -> None:
    """Remove all but the newest numbered files, and those *wanted*."""
    for number in sorted(_numbers(folder))[:-KEPT]:
        if number not in wanted:
            (folder / f"{number}.json").unlink(missing_ok=True)


def _numbers(folder: Path) -> list[int]:
    return [int(path.stem) for path in folder.glob("*.json")]


CHECKPOINTS_KEPT = 100
"""Batches whose files are kept."""


@dataclass(frozen=True)
class LocalCheckpoint:
    """Plans and commits of the batches of an engine without Spark, in files like Spark's.

    Args:
        state: The engine's directory.
    """

    state: EngineState

    def planned(self, batch: int) -> Offset | None:
        """Return the end of *batch*, where it was planned already."""
        return self.state.planned(batch) if self.state.is_planned(batch) else None

    def plan(self, batch: int, end: Offset) -> None:
        """Note where *batch* ends, before it is done; on return it is on disk."""
        write_atomically(self.state.checkpoint / "offsets" / str(batch), f"v1\n{{}}\n{json.dumps(end)}")

    def commit(self, batch: int) -> None:
        """Note that *batch* is done."""
        write_atomically(self.state.checkpoint / "commits" / str(batch), "v1\n{}")
        for folder in ("offsets", "commits"):
            (self.state.checkpoint / folder / str(batch - CHECKPOINTS_KEPT)).unlink(missing_ok=True)
