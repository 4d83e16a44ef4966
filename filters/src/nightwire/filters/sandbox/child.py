"""A filter's process: confines itself, then judges batches until it is ended.

One thread, one channel (descriptor 3), one owner.  What filters print goes nowhere.
"""

import io
import json
import mmap
import os
import signal
import socket
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from nightwire.filters.language import (
    FILENAME,
    FilterError,
    Predicate,
    compile_filter,
    fault_text,
    rank_of,
    sets_attributes,
)
from nightwire.filters.sandbox.alert_columns import series, verdicts_of
from nightwire.filters.sandbox.confinement import LAYERS, confine
from nightwire.filters.sandbox.preload import import_advice
from nightwire.filters.sandbox.protocol import (
    BATCH,
    INTERRUPT,
    JUDGE,
    MARK,
    PASSED,
    READY,
    REJECTED,
    REQUEST_HEADER,
    STOP,
    RowVerdicts,
    encode_answer,
)
from nightwire.filters.sandbox.shared_batch import BatchRows
from nightwire.filters.sandbox.syscalls import CHANNEL
from nightwire.filters.sandbox.types import Limits
from nightwire.schemas import COLUMN_MAKERS

PAGE = mmap.PAGESIZE


class NullOutput(io.TextIOBase):
    """The output of filters, which is dropped."""

    def write(self, text: str) -> int:
        """Drop *text*."""
        return len(text)


def run(limits: dict[str, Any], channel: int, progress: int, parent: int) -> None:
    """Become a filter's process; returns when the sandbox has closed the *channel*.

    Args:
        limits: As `Limits` has them.
        channel: Descriptor of the socket to the sandbox.
        progress: Descriptor of the page on which the row being judged is shown.
        parent: The process that forked this one.
    """
    page = memoryview(mmap.mmap(progress, PAGE)).cast("Q")
    evaluator = BatchEvaluator(page)
    _close_files(channel)
    allowed = Limits(**limits)
    os.nice(allowed.nice)
    for number in (STOP, INTERRUPT):
        signal.signal(number, lambda number, frame: _interrupted(evaluator, number, frame))
    sock = socket.socket(fileno=CHANNEL)
    missing = confine(allowed, parent)
    os.write(CHANNEL, READY.pack(MARK, bytes(layer in missing for layer in LAYERS)))
    _serve(sock, evaluator)


def _close_files(channel: int) -> None:
    """Leave no file open but the channel and ``/dev/null``."""
    os.dup2(channel, CHANNEL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.closerange(CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), NullOutput(), NullOutput()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    # the first to go if memory does
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _interrupted(evaluator: "BatchEvaluator", number: int, frame: FrameType | None) -> None:
    evaluator.stopped |= number == STOP
    if evaluator.judging and (number == STOP or is_own(frame)):
        raise TooLate


def _serve(sock: socket.socket, evaluator: "BatchEvaluator") -> None:
    rows: BatchRows | None = None
    while head := _receive_header(sock, REQUEST_HEADER.size):
        header, descriptors = head
        nonce, kind, size = REQUEST_HEADER.unpack(header)
        body = json.loads(_read_exactly(size))
        if kind == JUDGE and rows is not None:
            answer = encode_answer(nonce, evaluator.judge(rows, **body))
            _write(answer)
            continue
        if rows is not None:
            rows.close()
        rows = BatchRows(descriptors[0], **body) if kind == BATCH else None
        for descriptor in descriptors:
            os.close(descriptor)


def _receive_header(sock: socket.socket, size: int) -> tuple[bytes, list[int]] | None:
    """Return a header and its descriptors; None where the sandbox is gone."""
    header, descriptors, _, _ = socket.recv_fds(sock, size, 1)
    while header and len(header) < size:
        header += os.read(CHANNEL, size - len(header))
    return (header, descriptors) if header else None


def _read_exactly(size: int) -> bytes:
    parts = []
    while size:
        parts.append(os.read(CHANNEL, size))
        size -= len(parts[-1])
    return b"".join(parts)


def _write(answer: bytes) -> None:
    left = memoryview(answer)
    while left:
        left = left[os.write(CHANNEL, left) :]


class TooLate(BaseException):
    """Raised in a filter that has to stop; no `Exception`, which a filter might catch."""


class BatchEvaluator:
    """Judges batches; keeps filters' functions from batch to batch.

    Args:
        progress: Its first item is the row being judged, as the sandbox sees it.

    Attributes:
        judging: A filter's code runs, which may be interrupted.
        stopped: It was to be stopped, perhaps while its alerts were made.
    """

    def __init__(self, progress: "memoryview[int]") -> None:
        self.judging = self.stopped = False
        self._progress = progress
        self._functions: dict[str, KnownFilter] = {}

    def judge(
        self,
        rows: BatchRows,
        key: str,
        source: str,
        entry: str,
        whole: bool,
        transform: str = "",
        columns: Sequence[str] | None = None,
    ) -> RowVerdicts:
        """Return the verdicts of the filter *key* on all *rows*; on fewer, where it was stopped."""
        verdicts = RowVerdicts()
        self._progress[0] = 0
        try:
            self.judging = True
            known = self._function(key, source, entry)
            self.stopped = False
            if columns is None:
                adds = None if not transform else known.predicate.__globals__[transform]
                self.judging = False  # who asks first makes the alerts for all
                functions, alerts = _on_alerts(rows, whole, known, adds)
                self.judging = True
                self._each(functions, alerts, source, verdicts)
            else:
                self._at_once(known.predicate, columns, rows, source, verdicts)
            self.judging = False
        except FilterError as error:
            self.judging = False
            for _ in range(rows.count):
                verdicts.fault(str(error))
        except TooLate as error:
            self.judging = False
            verdicts.stop(rows.count, fault_text(error, source).replace(f"{TooLate.__module__}.", ""))
        return verdicts

    def _function(self, key: str, source: str, entry: str) -> "KnownFilter":
        known = self._functions.get(key)
        if known is None or known.source != source:
            known = KnownFilter(source, _compiled(source, entry), not sets_attributes(source))
            self._functions[key] = known
        return known

    def _each(
        self, functions: Sequence[Any], alerts: Sequence[Any], source: str, verdicts: RowVerdicts
    ) -> None:
        if self.stopped:
            raise TooLate
        (function, transform), texts = functions, FaultTexts(source)
        progress, states, ranks = self._progress, verdicts.states, verdicts.ranks
        for row, alert in enumerate(alerts):
            progress[0] = row
            try:
                if result := function(alert):
                    if transform is not None:
                        verdicts.add(json.dumps(transform(alert), default=jsonable))
                    ranks.append(rank_of(result))
                    states.append(PASSED)
                else:
                    states.append(REJECTED)
            except TooLate:
                raise
            except BaseException as error:  # noqa: BLE001 - a filter's SystemExit is its fault, not ours
                verdicts.fault(texts.text(error))

    def _at_once(
        self, function: Any, names: Sequence[str], rows: BatchRows, source: str, verdicts: RowVerdicts
    ) -> None:
        """Judge all rows at once; where that fails halves of them, and so on."""
        texts, todo = FaultTexts(source), [(0, rows.count)] if rows.count else []
        while todo:
            begin, end = todo.pop()
            self._progress[0] = begin
            try:
                alerts = rows.columns(begin, end)
                given = [series(alerts[name]) for name in names] or [alerts]
                states, ranks = verdicts_of(function(*given), end - begin)
            except (TooLate, FilterError):
                raise
            except BaseException as error:  # noqa: BLE001 - as for rows
                middle = (begin + end) // 2
                if begin < middle:
                    todo += [(middle, end), (begin, middle)]
                else:
                    verdicts.fault(texts.text(error))
            else:
                verdicts.ranks += ranks
                verdicts.states += states


def _on_alerts(
    rows: BatchRows, whole: bool, known: "KnownFilter", transform: Any
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the filter's functions, and what to call them with: alerts that are shared, or rows of
    which they make views.
    """
    if known.shares and not whole:
        alerts = rows.shared(with_history="history" in known.source)
        return (known.predicate, transform), alerts
    view = rows.view(whole=whole, shared=known.shares)
    return (_of_row(known.predicate, view), transform and _of_row(transform, view)), range(rows.count)


def _of_row(function: Any, view: Any) -> Any:
    return lambda row: function(view(row))


@dataclass(frozen=True)
class KnownFilter:
    """A filter's function that was made before.

    Attributes:
        source: Its source.
        predicate: The function.
        shares: It may have the alerts that others have, too: it sets no attribute of anything.
    """

    source: str
    predicate: Predicate
    shares: bool


def is_own(frame: FrameType | None) -> bool:
    """Return whether what runs in *frame* is a filter's own doing, not a column that is made."""
    while frame is not None and frame.f_code.co_filename != FILENAME:
        if frame.f_code in COLUMN_MAKERS:
            return False
        frame = frame.f_back
    return frame is not None


def jsonable(value: Any) -> Any:
    """Return a value of NumPy's as one that JSON can hold.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"transform gave a {type(value).__name__}, which cannot be added to an alert")


class FaultTexts:
    """Texts of the exceptions of a filter, made once for each type and line, which takes long.

    Args:
        source: The filter's.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._texts: dict[tuple[type, int], str] = {}

    def text(self, error: BaseException) -> str:
        """Return the text of the first exception of *error*'s type on its line."""
        where = type(error), _line_of(error.__traceback__)
        if where not in self._texts:
            self._texts[where] = fault_text(error, self._source)
        return self._texts[where]


def _line_of(trace: TracebackType | None) -> int:
    found = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _compiled(source: str, entry: str) -> Predicate:
    """Return the function *entry* of *source*, whose top level may do anything.

    Raises:
        FilterError: It cannot be had; where a module is missing, with what there is.
    """
    try:
        return compile_filter(source, entry)
    except FilterError as error:
        cause = error.__cause__
        if isinstance(cause, ImportError) and cause.name:
            raise FilterError(f"{error}; {import_advice(cause.name)}") from error
        raise
    except TooLate:
        raise
    except BaseException as error:
        raise FilterError(fault_text(error, source)) from error
