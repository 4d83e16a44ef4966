"""The sandbox: filters judged row by row, each owner's in a process that can do nothing else."""

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from nightwire.filters.sandbox.batch_run import BatchRun
from nightwire.filters.sandbox.pool import ProcessPool
from nightwire.filters.sandbox.shared_batch import share
from nightwire.filters.sandbox.types import Limits, Outcome, RowFilter, SandboxError, Strength, Work

NO_LIMITS = Limits()


class Sandbox:
    """Judges filters that cannot be compiled.  May be used by several threads, one batch at a time.

    To be closed, or used as a context.  A process that forks may not use it on both sides.

    Args:
        strength: ``strong`` refuses where a layer of containment is missing; ``weak`` goes on without it.
        limits: For one filter and batch.
        modules: Heavy packages (astropy, pandas, scipy) to import beforehand; others are imported when the
            first filter wants them, which takes up to two seconds then.

    Attributes:
        missing: Layers that are not there.

    Raises:
        SandboxError: A layer is missing that *strength* asks for, or no process can be had.
    """

    def __init__(
        self, strength: Strength = "strong", limits: Limits = NO_LIMITS, modules: Iterable[str] = ()
    ) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._mine = os.getpid()
        self._children = ProcessPool(strength, limits)
        try:
            self.missing = self._children.try_walls()
            self._children.warm(frozenset(modules))
        except BaseException:
            self._children.close()
            raise

    def judge(
        self,
        filters: Iterable[RowFilter],
        survey_name: str,
        *,
        batch: Any = None,
        values: Sequence[bytes] | None = None,
        schemas: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> Mapping[str, Outcome]:
        """Return the outcome of each of *filters* on one batch, by ``owner/name``.

        Args:
            filters: Any number of owners' filters; each name once.
            survey_name: Whose alerts these are.
            batch: A ``pyarrow.RecordBatch`` of dotted paths, for filters whose fields are known; those that
                want whole alerts take canonical values from it as far as it goes, which is quicker.
            values: The same alerts as they lay in Kafka, for filters that want them whole.
            schemas: Schemas of *values*, by id.

        Raises:
            ValueError: *batch* and *values* do not have the same number of rows, or there is neither.
            SandboxError: No process can be had.
        """
        if os.getpid() != self._mine:
            raise SandboxError("this sandbox belongs to another process: start one after forking")
        work = _work(survey_name, batch, values, schemas or {})
        able = {one: work.lacks(one) for one in filters}
        outcomes = {one.key: Outcome(0, killed=lack) for one, lack in able.items() if lack}
        with self._lock, share(work) as shared:
            try:
                judged = BatchRun(self._children, shared, self._limits).judge(
                    one for one, lack in able.items() if not lack
                )
            except BaseException:
                self._children.end_all()  # what they are at belongs to nobody
                raise
            self._children.end_idle()
        return {**outcomes, **judged}

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            if os.getpid() == self._mine:
                self._children.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _work(
    survey_name: str, batch: Any, values: Sequence[bytes] | None, schemas: Mapping[int, Mapping[str, Any]]
) -> Work:
    counts = {len(part) for part in (batch, values) if part is not None}
    if len(counts) != 1:
        raise ValueError(f"columns and messages of the same alerts are wanted, not of {sorted(counts)}")
    return Work(survey_name, counts.pop(), batch, values, schemas)
