"""The sandbox: filters judged row by row, each owner's in a process that can do nothing else."""

import os
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from nightwire.filters.sandbox.batch_run import BatchRun
from nightwire.filters.sandbox.pool import ProcessPool
from nightwire.filters.sandbox.shared_batch import sealed
from nightwire.filters.sandbox.types import BatchInput, Limits, Outcome, RowFilter, SandboxError, Strength

DEFAULT_LIMITS = Limits()


class Sandbox:
    """Judges filters that cannot be compiled.  May be used by several threads, one batch at a time.

    To be closed, or used as a context; at the latest it ends with the last reference to it.  A
    process that forks may not use it on both sides.

    Args:
        strength: ``strong`` refuses where a layer of confinement is missing; ``weak`` goes on.
        limits: For one filter and batch.

    Attributes:
        missing: Layers of confinement that the kernel lacks.

    Raises:
        SandboxError: A layer is missing that *strength* asks for, or no process can be had.
    """

    def __init__(self, strength: Strength = "strong", limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._process_id = os.getpid()
        self._pool = ProcessPool(strength, limits)
        try:
            self.missing = self._pool.probe()
        except BaseException:
            self._pool.close()
            raise
        ending = weakref.finalize(self, _close, self._pool, self._process_id)
        ending.atexit = False  # they end with this process anyway

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
            batch: A ``pyarrow.RecordBatch`` of dotted paths, for filters whose fields are known;
                those that want whole alerts take canonical values from it as far as it goes, which
                is quicker.
            values: The same alerts as they lay in Kafka, for filters that want them whole.
            schemas: Schemas of *values*, by id.

        Raises:
            ValueError: *batch* and *values* do not have the same number of rows, or there is
                neither.
            SandboxError: No process can be had.
        """
        if os.getpid() != self._process_id:
            raise SandboxError("this sandbox belongs to another process: start one after forking")
        batch_input = _batch_input(survey_name, batch, values, schemas or {})
        lacking = {one: batch_input.lacks(one) for one in filters}
        outcomes = {one.key: Outcome(0, killed=why) for one, why in lacking.items() if why}
        with self._lock, sealed(batch_input) as shared:
            try:
                judged = BatchRun(self._pool, shared, self._limits).judge(
                    one for one, why in lacking.items() if not why
                )
            except BaseException:
                self._pool.end_all()  # nobody waits for their answers
                raise
            self._pool.end_idle()
        return {**outcomes, **judged}

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            _close(self._pool, self._process_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _close(pool: ProcessPool, process_id: int) -> None:
    """End all processes, where it is the one with *process_id* that started them."""
    if os.getpid() == process_id:
        pool.close()


def _batch_input(
    survey_name: str, batch: Any, values: Sequence[bytes] | None, schemas: Mapping[int, Mapping[str, Any]]
) -> BatchInput:
    counts = {len(part) for part in (batch, values) if part is not None}
    if len(counts) != 1:
        raise ValueError(f"columns and messages of the same alerts are wanted, not of {sorted(counts)}")
    return BatchInput(survey_name, counts.pop(), batch, values, schemas)
