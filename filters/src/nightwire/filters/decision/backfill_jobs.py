"""Backfills on disk, from the request until they are done.

They lie in ``DIR/backfills/<owner>.<name>.<version>/``:

job.json        what is to be judged
reached.json    how far it is
filter-sets/    the filter
stop            says that its owner wants it to end
past/           what was decided for each batch, before anything was sent
"""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nightwire.core.kafka import TopicPartition
from nightwire.filters.decision.backfill_decision import BackfillJob, BackfillProgress
from nightwire.filters.decision.engine_state import EngineState, write_atomically
from nightwire.filters.model.live_filter import FilterVersion
from nightwire.filters.model.offsets import positions, to_offset


@dataclass(frozen=True)
class BackfillJobs:
    """The backfills of one engine.

    Args:
        root: The engine's state directory.
    """

    root: Path

    def ask(self, job: BackfillJob) -> None:
        """Note that *job* is wanted; it waits until its version is live."""
        until = None if job.until is None else to_offset(job.until, 0)
        write_atomically(self._file(job.id), json.dumps({**vars(job), "until": until}))

    def waits(self, version: FilterVersion) -> bool:
        """Return whether there is a job for a version of a filter that waits until that is live."""
        file = self._of(version)
        return file.exists() and _load(file).until is None

    def any_waits(self) -> bool:
        """Return whether some job waits until its version is live."""
        return any(_load(file).until is None for file in self._files())

    def begin(self, version: FilterVersion, at: Mapping[TopicPartition, int]) -> None:
        """Let the job of a version begin; at the offsets *at* the live stream takes over."""
        self.ask(replace(_load(self._of(version)), until=at))

    def due(self) -> list[BackfillJob]:
        """Return those that can be done, by name."""
        return [job for job in map(_load, self._files()) if job.until is not None]

    def state(self, job: BackfillJob) -> EngineState:
        """Return where a job keeps its filter and its decisions."""
        return EngineState(self._file(job.id).parent, "past")

    def progress(self, job: BackfillJob) -> BackfillProgress | None:
        """Return how far a job is; None where it has not begun."""
        file = self._file(job.id).with_name("reached.json")
        if not file.exists():
            return None
        values = json.loads(file.read_text())
        return BackfillProgress(**{**values, "at": positions(values["at"])})

    def keep_progress(self, job: BackfillJob, progress: BackfillProgress) -> None:
        """Store how far a job is; on return it is on disk."""
        values = {**vars(progress), "at": to_offset(progress.at, 0)}
        write_atomically(self._file(job.id).with_name("reached.json"), json.dumps(values))

    def stop(self, owner: str, name: str) -> int:
        """Let the newest backfill of a filter end; return of which version it is, 0 for none."""
        found = [job for job in map(_load, self._files()) if (job.owner, job.name) == (owner, name)]
        newest = max(found, key=lambda job: job.version, default=None)
        if newest is None:
            return 0
        with suppress(FileNotFoundError):  # it has just ended
            self._file(newest.id).with_name("stop").touch()
        return newest.version

    def stopped(self, job: BackfillJob) -> bool:
        """Return whether its owner wants a job to end."""
        return self._file(job.id).with_name("stop").exists()

    def done(self, job: BackfillJob) -> None:
        """Forget a job."""
        shutil.rmtree(self._file(job.id).parent)

    def _files(self) -> list[Path]:
        return sorted((self.root / "backfills").glob("*/job.json"))

    def _of(self, version: FilterVersion) -> Path:
        key, number = version
        return self._file(f"{key.replace('/', '.')}.{number}")

    def _file(self, id_: str) -> Path:
        return self.root / "backfills" / id_ / "job.json"


def _load(file: Path) -> BackfillJob:
    values = json.loads(file.read_text())
    until = None if values["until"] is None else positions(values["until"])
    return BackfillJob(**{**values, "until": until})
