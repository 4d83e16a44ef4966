"""Visits at their interval, from the observatory to filters' owners, beside the bytes alone."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nightwire.benchmarks.environment.alert_pool import ReadyMessage
from nightwire.benchmarks.environment.filter_engine import ALERTS, FilterEngine
from nightwire.benchmarks.environment.filter_mixture import MixedFilter
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import Context, Experiment, RunError
from nightwire.benchmarks.scenarios.night.observatory import Observatory
from nightwire.benchmarks.scenarios.night.schedule import Delays, Schedule
from nightwire.benchmarks.workers.alerts.due_times import check_complete
from nightwire.benchmarks.workers.arrivals import await_arrivals
from nightwire.benchmarks.workers.client import OWNER, reader_process, worker_process
from nightwire.core.kafka import end_offsets_at

PATIENCE = 60.0
"""Longest wait for the next copy. [s]"""
OURS, RAW = "nightwire", "raw librdkafka"


@dataclass(frozen=True)
class NightSetting:
    """What a run has.

    Attributes:
        context: Of the run.
        engine: The filter engine.
        observatory: Who sends.
        ready: Messages for the baseline.
        filters: That are live.
    """

    context: Context
    engine: FilterEngine
    observatory: Observatory
    ready: Sequence[ReadyMessage]
    filters: Sequence[MixedFilter]


class Night(Experiment):
    """Visits through the engine to an owner's `AlertReader`; the baseline is raw librdkafka.

    Args:
        name: In the names of figures.
        setting: What is measured.
        schedule: When shutters close and alerts are due.
    """

    def __init__(self, name: str, setting: NightSetting, schedule: Schedule) -> None:
        self.name, self._setting, self._schedule = name, setting, schedule
        self._turn = 0
        self.delays: dict[str, list[float]] = {}

    def prepare(self) -> None:
        """Make the filters live, and let one visit through, both ways."""
        self._setting.engine.live(self._setting.filters)
        one = Schedule(1, min(self._schedule.alerts, 200), 1.0, 1.0)
        self._observed(one)
        self._sent(one)

    def run_once(self, kind: Kind) -> Figures:
        """Send the visits, and return the delays.

        Raises:
            RunError: An alert was not judged, or a copy did not come.
        """
        self._setting.observatory.behind = 0.0
        ours = kind is Kind.SUBJECT
        delays = (self._observed if ours else self._sent)(self._schedule)
        self.delays.setdefault(OURS if ours else RAW, []).extend(delays.shutter)
        figures = delays.figures(self.name)
        if ours:
            figures[f"{self.name}_copies"] = float(len(delays.due))
            figures["generator_behind_ms"] = self._setting.observatory.behind * 1e3
        return figures

    def _observed(self, schedule: Schedule) -> Delays:
        """Send visits through the engine; return how long each copy took to its owner."""
        engine, owned = self._setting.engine, list(self._setting.engine.filters.values())
        before = copies(engine.bootstrap, owned)
        with engine.coverage() as coverage, self._owner(owned) as notes:
            due = self._setting.observatory.observe(engine.bootstrap, ALERTS, schedule)
            ends = {part: end for (_, part), end in end_offsets_at(engine.bootstrap, [ALERTS]).items()}
            coverage.await_ends(ends)
            check_evaluated(coverage.evaluated, engine.filters, schedule.count)
            arrived = self._arrived(notes, copies(engine.bootstrap, owned) - before)
        engine.forget(ends)
        return Delays([when - due[name] for name, _, when in arrived], [age for _, age, _ in arrived])

    @contextmanager
    def _owner(self, owned: Sequence[str]) -> Iterator[Path]:
        """Let an owner read, and yield the file of what comes."""
        self._turn += 1
        log = self._setting.context.folder / f"{self.name}-{self._turn}.arrivals"
        order = {"bootstrap": self._setting.engine.bootstrap, "topics": owned, "into": str(log)}
        with worker_process(self._setting.context, OWNER, order, role="owner") as owner:
            owner.await_ready()
            yield log

    def _arrived(self, notes: Path, wanted: int) -> list[tuple[str, float, float]]:
        """Return id, age [s] and moment [s] of all copies.

        Raises:
            RunError: Fewer came than were sent.
        """
        found = await_arrivals(notes, lambda found: len(found) >= wanted, PATIENCE)
        if len(found) < wanted:
            raise RunError(f"{len(found)} of {wanted} copies came to their owner")
        if not wanted:
            raise RunError(f"none of {self._schedule.count:,} alerts passed a filter")
        named = ((name.split("\t"), when) for name, when in found)
        return [(name, float(age), when) for (name, age), when in named]

    def _sent(self, schedule: Schedule) -> Delays:
        """Send the bytes of such visits to a plain consumer; return how long each took."""
        context, bootstrap = self._setting.context, self._setting.engine.bootstrap
        with (
            self._setting.engine.topic("raw") as topic,
            reader_process(context, bootstrap, [topic], "bytes", note=True) as reader,
        ):
            due, shutters = self._setting.observatory.send(bootstrap, topic, schedule, self._setting.ready)
            arrivals = reader.findings()["arrivals"]
        delays = Delays(due.delays(arrivals, topic), shutters.delays(arrivals, topic))
        check_complete(len(delays.due), schedule.count)
        return delays


def check_evaluated(evaluated: dict[str, int], filters: Iterable[str], count: int) -> None:
    """Raise unless each of *filters* has judged *count* alerts.

    Raises:
        RunError: One has not; the message names it.
    """
    short = [
        f"{name} judged {evaluated.get(name, 0):,}" for name in filters if evaluated.get(name, 0) != count
    ]
    if short:
        raise RunError(f"of {count:,} alerts " + ", ".join(short))


def copies(bootstrap: str, names: Sequence[str]) -> int:
    """Return how many records were ever written to topics."""
    return sum(end_offsets_at(bootstrap, names).values())
