"""Runs of a long benchmark, kept as they come, so that one that was interrupted goes on.

A file of JSON lines lies beside the result to be.  Its first line says what it belongs to:
scenario, size, commit and its changes, machine, Kafka.  Then comes each run, and what the scenario
had to show each time an experiment was done.  A line that was cut by a crash is left out, and so is
a pair of which one half is missing: subject and baseline are measured together.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TextIO

from nightwire.benchmarks import Experiment, Line, Outcome, Sample, Series
from nightwire.benchmarks.harness.pairs import order
from nightwire.benchmarks.harness.result_files import sample_from, sample_row
from nightwire.benchmarks.model.scenario import Table

PREFIX = "nightwire-bench-"
"""How the folder of a run is called."""

Key = Mapping[str, Any]
Row = dict[str, Any]


class CheckpointError(Exception):
    """Another run writes the same file; the message names it."""


class Checkpoint:
    """What was measured so far of one benchmark.

    Args:
        path: Its file; None keeps nothing.
        key: What it belongs to; a file of something else is begun anew.
        fresh: Whether to forget what is there.

    Raises:
        CheckpointError: Another process has it open.
    """

    def __init__(self, path: Path | None = None, key: Key | None = None, *, fresh: bool = False) -> None:
        self.path, self._key = path, json.loads(json.dumps(key or {}))
        self.sittings: list[str] = []
        self.samples: list[Sample] = []
        self.done: dict[str, Outcome] = {}
        self._earlier = Outcome()
        self._file: TextIO | None = None
        self._lock: TextIO | None = None
        if path is not None:
            self._lock = _locked(path)
            if not fresh:
                self._take(_rows(path))

    def begin(
        self, now: datetime, experiments: Sequence[Experiment], pairs: int, folder: Path | None = None
    ) -> None:
        """Begin a sitting: forget halves of pairs, and write what is left.

        Args:
            now: When.
            experiments: What is measured.
            pairs: How often.
            folder: What a crash would leave on the disk; the next sitting removes it.
        """
        earlier = [{"sitting": one} for one in self.sittings]
        self.sittings.append(now.isoformat(timespec="seconds"))
        self.samples = list(_whole(self.samples, experiments, pairs, self.done))
        self._earlier = [Outcome(), *self.done.values()][-1]  # each holds all that came before it
        if self.path is None:
            return
        rows: list[Row] = [{"key": self._key}, *earlier]
        rows.append({"sitting": self.sittings[-1], "folder": None if folder is None else str(folder)})
        rows += [{"sample": sample_row(one)} for one in self.samples]
        rows += [{"done": name, "outcome": asdict(outcome)} for name, outcome in self.done.items()]
        fresh = self.path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.writelines(map(_line, rows))
            _sync(file)
        fresh.replace(self.path)
        self._file = self.path.open("a", encoding="utf-8")

    def of(self, experiment: Experiment) -> list[Sample]:
        """Return the runs of *experiment* that are there."""
        return [one for one in self.samples if one.experiment == experiment.name]

    def add(self, sample: Sample) -> None:
        """Keep a run; on return it is on the disk."""
        self.samples.append(sample)
        self._write({"sample": sample_row(sample)})

    def finish(self, experiment: Experiment, outcome: Callable[[], Outcome]) -> None:
        """Note that *experiment* is done, and the outcome so far, which is in memory alone."""
        if self.path is not None:
            self.done[experiment.name] = so_far = self.shown(outcome())
            self._write({"done": experiment.name, "outcome": asdict(so_far)})

    def shown(self, outcome: Outcome) -> Outcome:
        """Return *outcome* of this sitting together with what earlier ones had to show."""
        return merged(self._earlier, outcome)

    def remove(self) -> None:
        """Forget all: the result is written."""
        self.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another process have it."""
        if self._file is not None:
            self._file.close()
        if self._lock is not None:
            Path(self._lock.name).unlink(missing_ok=True)
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _take(self, rows: Iterable[Row]) -> None:
        found = list(rows)
        if not found or found[0].get("key") != self._key:
            return
        for row in found[1:]:
            if "sitting" in row:
                self.sittings.append(row["sitting"])
                _clear(row.get("folder"))
            elif "sample" in row:
                self.samples.append(sample_from(row["sample"]))
            else:
                self.done[row["done"]] = _outcome(row["outcome"])

    def _write(self, row: Row) -> None:
        if self._file is not None:
            self._file.write(_line(row))
            _sync(self._file)


def checkpoint_path(result: Path | None, folder: Path, scenario: str, key: Key) -> Path:
    """Return where runs are kept: beside *result* where it is named, else in *folder*, by *key*."""
    if result is not None:
        return result.with_name(f"{result.stem}.unfinished.jsonl")
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:10]
    return folder / f"{scenario}-{digest}.unfinished.jsonl"


def merged(earlier: Outcome, later: Outcome) -> Outcome:
    """Return the outcome of two sittings; of points of a line that both have, the *later*'s."""
    series = {one.title: one for one in earlier.series}
    for one in later.series:
        series[one.title] = _joined(series[one.title], one) if one.title in series else one
    notes = dict.fromkeys([*later.notes, *earlier.notes])
    tables = {one.title: one for one in (*earlier.tables, *later.tables)}
    keys = {**earlier.open_messaging, **later.open_messaging}
    return Outcome(list(series.values()), list(notes), keys, tuple(tables.values()))


def _joined(earlier: Series, later: Series) -> Series:
    lines: dict[str, dict[float, float]] = {}
    for line in (*earlier.lines, *later.lines):
        lines.setdefault(line.name, {}).update(zip(line.x, line.y, strict=True))
    drawn = [
        Line(name, sorted(points), [points[x] for x in sorted(points)]) for name, points in lines.items()
    ]
    return Series(later.title, later.x, later.y, drawn, later.log_x, later.log_y)


def _whole(
    samples: Sequence[Sample], experiments: Sequence[Experiment], pairs: int, done: Mapping[str, Outcome]
) -> Iterable[Sample]:
    """Yield the samples of whole pairs.

    An experiment whose runs are all there, but that was not done, has its last pair repeated: what
    it would have shown of them was in memory.
    """
    found = {(one.experiment, one.pair, one.kind): one for one in samples}
    for experiment in experiments:
        wanted = list(order(pairs, experiment.at_most))
        there = [(pair, kind) for pair, kind in wanted if (experiment.name, pair, kind) in found]
        missing = {pair for pair, kind in wanted if (pair, kind) not in there}
        if not missing and experiment.name not in done:
            missing = {pair for pair, _kind in wanted[-1:]}
        for pair, kind in there:
            if pair not in missing:
                yield found[experiment.name, pair, kind]


def _outcome(row: Row) -> Outcome:
    series = [Series(**{**one, "lines": [Line(**line) for line in one["lines"]]}) for one in row["series"]]
    tables = tuple(Table(**one) for one in row["tables"])
    return Outcome(series, row["notes"], row["open_messaging"], tables)


def _clear(folder: str | None) -> None:
    """Remove what a sitting that was killed has left: its Kafka may hold much."""
    if folder is not None and Path(folder).name.startswith(PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _sync(file: TextIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _rows(path: Path) -> list[Row]:
    """Return the lines of *path* up to one that was cut."""
    rows: list[Row] = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows


def _locked(path: Path) -> TextIO:
    """Return an open lock beside *path*; a crash lets go of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_suffix(".lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise CheckpointError(f"{path} is written by another run") from error
    return lock
