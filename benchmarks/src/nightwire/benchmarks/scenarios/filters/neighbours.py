"""Owners' waits for the first alerts of a visit that lies in Kafka, and who changes them."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from nightwire.benchmarks import Experiment, Figures, Kind, RunError
from nightwire.benchmarks.environment.filter_engine import ALERTS, CAP
from nightwire.benchmarks.environment.filter_mixture import DISTURBING, MixedFilter
from nightwire.benchmarks.model.statistics import quantile
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting, topics_of
from nightwire.benchmarks.workers.client import reader_process

WARM_UP = 500
"""Alerts that the engine judges before each visit that counts: its filters have changed."""


class Neighbours(Experiment):
    """A visit appears in Kafka → owners have their first alerts, beside certain neighbours.

    The baseline is such a visit without these neighbours.
    """

    whose = ""
    """Whose waits they are, in the names of figures."""

    def __init__(self, setting: FilterSetting) -> None:
        self._setting = setting
        self.name = f"{self.whose}-owners-{setting.count}-{setting.what}"
        self._at_once = list(setting.quick_ones)
        if not setting.patient:
            self.at_most = dict.fromkeys(Kind, 1)

    def run_once(self, kind: Kind) -> Figures:
        """Send one visit, with the neighbours or without.

        The waits are those of filters that the engine judges at once: with the neighbours it may
        find an owner's filters too dear together, and without them those are left out, too.
        """
        others = self._neighbours() if kind is Kind.SUBJECT else []
        quiet = self._setting.quick_ones if kind is Kind.SUBJECT else self._at_once
        self._setting.engine.live([*quiet, *others])
        self._waits(min(WARM_UP, self._setting.context.size.alerts))
        slow = self._setting.engine.slow_filters()
        waits = self._waits(self._setting.context.size.alerts)
        slow |= self._setting.engine.slow_filters()  # some move as the visit comes
        self._at_once = [one for one in quiet if one.key not in slow]
        behind = [one for one in (*quiet, *others) if one.key in slow]
        return self._figures(waits, topics_of(self._at_once), topics_of(behind))

    @abstractmethod
    def _neighbours(self) -> Sequence[MixedFilter]:
        """Return the neighbours of the next visit but one."""

    def _figures(self, waits: Mapping[str, float], quiet: Sequence[str], _others: Sequence[str]) -> Figures:
        return self._summary(self.whose, [waits[topic] for topic in quiet if topic in waits])

    def _summary(self, whose: str, waits: Sequence[float]) -> Figures:
        if not waits:
            raise RunError(f"{self.name}: no owner had an alert")
        start = f"{whose}_first20"
        return {
            f"{start}_mean_seconds_{self._setting.label}": fmean(waits),
            f"{start}_p99_seconds_{self._setting.label}": quantile(waits, 0.99),
        }

    def _waits(self, count: int) -> Mapping[str, float]:
        """Have a visit judged; return how long each topic's owner waited. [s]"""
        engine, owned = self._setting.engine, [*self._setting.engine.filters.values()]
        with (
            engine.coverage() as coverage,
            reader_process(self._setting.context, engine.bootstrap, owned, "bytes", note=True) as reader,
        ):
            there, ends = self._setting.visits.send_at_once(ALERTS, count)
            self._setting.await_lanes(coverage, ends)
            arrivals = reader.findings()["arrivals"]
        return firsts(((topic, arrived - there) for topic, _, _, arrived in arrivals), CAP)


class SlowNeighbours(Neighbours):
    """… the slow filters of the setting, whose owners' waits stand beside."""

    whose = "quick"

    def _neighbours(self) -> Sequence[MixedFilter]:
        return [one for one in self._setting.filters if one.slow]

    def _figures(self, waits: Mapping[str, float], quiet: Sequence[str], others: Sequence[str]) -> Figures:
        found = super()._figures(waits, quiet, others)
        found[f"quick_lane_{self._setting.label}"] = len(quiet)
        slow = [waits[topic] for topic in others if topic in waits]
        return found | (self._summary("slow", slow) if slow and self._setting.patient else {})


class Disturbed(Neighbours):
    """… one that begins to loop for ever and one that takes all memory it gets, in that visit.

    They are new in each run: the engine suspends what is too slow.
    """

    whose = "disturbed"

    def _neighbours(self) -> Sequence[MixedFilter]:
        after = self._setting.visits.next + 1
        return [
            MixedFilter(
                f"bad-{kind.name}", f"{kind.name}-{after}", kind, kind.source.replace("LIMIT", str(after))
            )
            for kind in DISTURBING
        ]


def firsts(arrivals: Iterable[tuple[str, float]], cap: int) -> Mapping[str, float]:
    """Return when each topic had its *cap*-th record, or its last where it had fewer. [s]"""
    times: dict[str, list[float]] = {}
    for topic, moment in arrivals:
        times.setdefault(topic, []).append(moment)
    return {topic: sorted(some)[:cap][-1] for topic, some in times.items()}
