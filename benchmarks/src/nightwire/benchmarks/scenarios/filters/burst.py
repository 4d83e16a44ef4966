"""A visit in one burst, while the engine judges: owners' waits, also with bad neighbours."""

from collections.abc import Iterable, Mapping
from statistics import fmean

from nightwire.benchmarks.environment.filter_engine import ALERTS, CAP
from nightwire.benchmarks.environment.filter_mixture import DISTURBING, MixedFilter
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import Experiment, RunError
from nightwire.benchmarks.model.statistics import quantile
from nightwire.benchmarks.scenarios.filters.visits import FilterSetting
from nightwire.benchmarks.workers.client import reader_process

WARM_UP = 500
"""Alerts that the engine judges before the first pair, twice."""
TIMES = 10
"""A visit of 100,000 alerts, where an ordinary one has 10,000."""


class Burst(Experiment):
    """Dictionaries → Kafka → every filter, copies acknowledged, accounts written; owners read.

    The baseline is a plain consumer of such a visit.
    """

    def __init__(self, setting: FilterSetting) -> None:
        self._setting, self.name = setting, f"burst-{setting.count}-filters"

    def prepare(self) -> None:
        """Make the filters live, and have the engine judge some alerts by them."""
        self._setting.engine.live(self._setting.filters())
        for _turn in range(2):
            self._judged(min(WARM_UP, self._setting.context.size.alerts))

    def run_once(self, kind: Kind) -> Figures:
        """Send one visit; wait until the engine has accounted for it, or a consumer has it."""
        count = self._setting.context.size.alerts
        if kind is Kind.BASELINE:
            return {f"visit_seconds_{self._setting.count}_filters": self._consumed(count)}
        seconds, delays, copies = self._judged(count)
        return {
            f"visit_seconds_{self._setting.count}_filters": seconds,
            f"first20_mean_seconds_{self._setting.count}_filters": fmean(delays),
            f"first20_p99_seconds_{self._setting.count}_filters": quantile(delays, 0.99),
            f"copies_sent_{self._setting.count}_filters": float(copies),
        }

    def _judged(self, count: int) -> tuple[float, list[float], int]:
        """Return time until accounted for, times to owners' first alerts [s], and copies."""
        engine = self._setting.engine
        owned = list(engine.filters.values())
        with (
            engine.coverage() as coverage,
            reader_process(self._setting.context, engine.bootstrap, owned, "bytes", note=True) as reader,
        ):
            began, ends = self._setting.visits.send(ALERTS, count)
            seconds = coverage.await_ends(ends) - began
            arrivals = reader.findings()["arrivals"]
        engine.forget(ends)
        delays = firsts([(topic, arrived - began) for topic, _, _, arrived in arrivals], CAP)
        if not delays:
            raise RunError(f"none of {count:,} alerts passed any of {len(owned):,} filters")
        return seconds, list(delays.values()), len(arrivals)

    def _consumed(self, count: int) -> float:
        """Return how long it takes until a plain consumer has such a visit. [s]"""
        context, bootstrap = self._setting.context, self._setting.engine.bootstrap
        with (
            self._setting.engine.topic("raw") as topic,
            reader_process(context, bootstrap, [topic], "bytes", expect=count) as reader,
        ):
            began, _ = self._setting.visits.send(topic, count)
            return float(reader.findings()["last"]) - began


class Large(Burst):
    """A visit ten times as large, as the largest surveys have: until it is accounted for.

    It is sent in the first pair alone, for it takes minutes.
    """

    at_most = dict.fromkeys(Kind, 1)

    def __init__(self, setting: FilterSetting) -> None:
        super().__init__(setting)
        self._alerts = TIMES * setting.context.size.alerts
        self.name = f"visit-of-{TIMES}-{setting.count}-filters"

    def run_once(self, kind: Kind) -> Figures:
        """Send one visit; wait until the engine has accounted for it, or a consumer has it."""
        return {"large_visit_seconds": (self._all if kind is Kind.SUBJECT else self._consumed)(self._alerts)}

    def _all(self, count: int) -> float:
        with self._setting.engine.coverage() as coverage:
            began, ends = self._setting.visits.send(ALERTS, count)
            seconds = coverage.await_ends(ends) - began
        self._setting.engine.forget(ends)
        return seconds


class Disturbed(Burst):
    """The same visits, while one filter begins to loop for ever and one to take all memory it gets.

    The baseline is a visit without the two.  They are new in each run: the engine suspends what is
    too slow.
    """

    def __init__(self, setting: FilterSetting) -> None:
        super().__init__(setting)
        self.name = f"disturbed-{setting.count}-filters"
        self._quiet: list[MixedFilter] = []

    def prepare(self) -> None:
        """Make the filters live."""
        super().prepare()
        self._quiet = self._setting.filters()

    def run_once(self, kind: Kind) -> Figures:
        """Send one visit, with bad neighbours or without."""
        if kind is Kind.SUBJECT:
            self._disturb()
        try:
            _, delays, _ = self._judged(self._setting.context.size.alerts)
        finally:
            self._setting.engine.live(self._quiet)
        return {
            "disturbed_first20_mean_seconds": fmean(delays),
            "disturbed_first20_p99_seconds": quantile(delays, 0.99),
        }

    def _disturb(self) -> None:
        """Let two filters judge some alerts well; from the next visit on they do not."""
        after = self._setting.visits.next + 1
        bad = [
            MixedFilter(
                f"bad-{kind.name}", f"{kind.name}-{after}", kind, kind.source.replace("LIMIT", str(after)), 0
            )
            for kind in DISTURBING
        ]
        self._setting.engine.live([*self._quiet, *bad])
        self._setting.engine.filters = {
            key: topic for key, topic in self._setting.engine.filters.items() if not key.startswith("bad-")
        }
        self._judged(min(WARM_UP, self._setting.context.size.alerts))


def firsts(arrivals: Iterable[tuple[str, float]], cap: int) -> Mapping[str, float]:
    """Return when each topic had its *cap*-th record, or its last where it had fewer. [s]"""
    times: dict[str, list[float]] = {}
    for topic, moment in arrivals:
        times.setdefault(topic, []).append(moment)
    return {topic: sorted(some)[:cap][-1] for topic, some in times.items()}
