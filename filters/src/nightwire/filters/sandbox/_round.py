"""One batch judged by everybody's filters: an owner's one after the other, all owners at once."""

import selectors
import signal
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from nightwire.filters.sandbox._answer import Answer, ForgedError
from nightwire.filters.sandbox._batch import SharedBatch
from nightwire.filters.sandbox._case import Case
from nightwire.filters.sandbox._children import Children
from nightwire.filters.sandbox._contract import Limits, Outcome, RowFilter
from nightwire.filters.sandbox._process import Child, LostError
from nightwire.filters.sandbox._protocol import BATCH
from nightwire.filters.sandbox._warm import groups_of

TICK_S = 0.01
"""Shortest wait for something to happen. [s]"""

STUBBORN = "and did not stop when it was told to: it is inside C code, or it catches everything"
DEAF = "its process takes no questions"
FULL = "took all of {:,} MiB of memory"


@dataclass
class Turn:
    """An owner's filters.

    Attributes:
        waiting: Those without an outcome; the first is the one that is judged.
        child: The process that has the batch, if there is one.
        again: Filters whose process was killed, once, and not by us: that is no fault of theirs.
    """

    owner: str
    waiting: deque[RowFilter] = field(default_factory=deque)
    child: Child | None = None
    again: set[str] = field(default_factory=set)


class Round:
    """Judges one batch.

    A filter that ends its process, or makes it grow beyond half of its limit, does not take its owner's other
    filters along: they are judged in a new process.

    Args:
        children: The owners' processes.
        shared: The batch.
        limits: Of each filter.
    """

    def __init__(self, children: Children, shared: SharedBatch, limits: Limits) -> None:
        self._children, self._shared, self._limits = children, shared, limits
        self._rows = int(shared.described["count"])
        self._outcomes: dict[str, Outcome] = {}
        self._busy: dict[Case, Turn] = {}
        self._selector = selectors.DefaultSelector()

    def judge(self, filters: Iterable[RowFilter]) -> Mapping[str, Outcome]:
        """Return the outcome of each of *filters*, by ``owner/name``.

        Raises:
            SandboxError: No process can be had.
        """
        turns: dict[str, Turn] = {}
        for one in filters:
            turns.setdefault(one.owner, Turn(one.owner)).waiting.append(one)
        with self._selector:
            for turn in turns.values():
                self._next(turn)
            while self._busy:
                self._step()
        return self._outcomes

    def _next(self, turn: Turn) -> None:
        """Have *turn*'s next filter judged; after the last one, let its process rest."""
        while turn.waiting:
            try:
                return self._ask(turn)
            except LostError:
                self._discard(turn)
                if self._was_tried(turn):
                    self._outcomes[turn.waiting.popleft().key] = Outcome(0, killed=DEAF)
        self._children.rest(turn.owner)
        return None

    def _ask(self, turn: Turn) -> None:
        if turn.child is None:
            groups = groups_of(one.source for one in turn.waiting)
            turn.child = self._children.of(turn.owner, groups)
            turn.child.tell(BATCH, self._shared.described, descriptor=self._shared.descriptor)
        one = turn.waiting[0]
        case = Case(turn.child, one, self._rows, self._limits.within(one.cpu_s))
        self._selector.register(turn.child.channel, selectors.EVENT_READ, case)
        self._busy[case] = turn

    def _step(self) -> None:
        """Wait until somebody answers, or has had its time."""
        soonest = min(case.left_s() for case in self._busy)
        for key, _ in self._selector.select(max(soonest, TICK_S)):
            self._hear(key.data)
        for case in [case for case in self._busy if case.left_s() <= 0]:
            if not case.press():
                self._ended(case, f"{case.complaint}, {STUBBORN}")

    def _hear(self, case: Case) -> None:
        try:
            answer = case.hear()
        except LostError:
            self._ended(case)
        except ForgedError as error:
            self._ended(case, str(error))
        else:
            if answer is not None:
                self._answered(case, answer)

    def _answered(self, case: Case, answer: Answer) -> None:
        turn = self._settle(case)
        outcome, large = case.answered(answer), case.child.held_mb() > self._limits.memory_mb / 2
        if large and outcome.wanted_memory:
            outcome = replace(outcome, killed=FULL.format(self._limits.memory_mb))
        self._outcomes[turn.waiting.popleft().key] = outcome
        if case.complaint or answer.late or large:
            self._discard(turn)
        else:
            case.child.learn(case.filter)
        self._next(turn)

    def _ended(self, case: Case, why: str | None = None) -> None:
        """Go on after the process of *case* ended by itself, or has to be ended because of *why*."""
        turn = self._settle(case)
        if why is None:
            why = self._last_words(turn)
        else:
            self._discard(turn)
        if why is not None:
            self._outcomes[turn.waiting.popleft().key] = case.ended(why)
        self._next(turn)

    def _last_words(self, turn: Turn) -> str | None:
        """Return what to say of *turn*'s process, which ended; None: nobody is to blame, once."""
        turn.child, status = None, self._children.end(turn.owner)
        if status == -signal.SIGKILL and not self._was_tried(turn):
            return None
        return last_words(status)

    def _settle(self, case: Case) -> Turn:
        case.measure()
        self._selector.unregister(case.child.channel)
        return self._busy.pop(case)

    def _discard(self, turn: Turn) -> None:
        turn.child = None
        self._children.discard(turn.owner)

    def _was_tried(self, turn: Turn) -> bool:
        """Whether the first filter was judged twice; notes that it was judged once."""
        key = turn.waiting[0].key
        tried = key in turn.again
        turn.again.add(key)
        return tried


def last_words(status: int) -> str:
    """Return what to say of a process that ended with *status*, a signal's where negative."""
    if status >= 0:
        return f"its process ended by itself, with status {status}"
    if status == -signal.SIGKILL:
        return "its process was killed from outside (SIGKILL), for want of memory perhaps"
    return f"its process crashed ({signal.Signals(-status).name})"
