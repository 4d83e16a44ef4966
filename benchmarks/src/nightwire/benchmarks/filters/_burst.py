"""A visit in one burst through many filters, beside a consumer that only takes the bytes."""

import time
from collections.abc import Iterable, Mapping, Sequence

from nightwire.benchmarks._feed import alert_writer
from nightwire.benchmarks._pool import Alert, patched
from nightwire.benchmarks._scenario import Context, Figures, Kind, RunError
from nightwire.benchmarks._second import second_process
from nightwire.benchmarks._stats import quantile
from nightwire.benchmarks.filters._mixture import mixture
from nightwire.benchmarks.filters._services import CAP, ManyFilters
from nightwire.benchmarks.visit._services import ALERTS

FIRST_VISIT = 2026_0105_00000
WARM_UP = 500
"""Alerts that the engine judges before the first pair, twice."""


class Burst:
    """Dictionaries → Kafka → every filter judged, what passed acknowledged, accounts written; owners read.

    Args:
        context: Says how much.
        services: The engine.
        pool: Alerts.
        count: Number of filters.
        code: How many of them cannot be compiled.
    """

    def __init__(
        self, context: Context, services: ManyFilters, pool: Sequence[Alert], count: int, code: int
    ) -> None:
        self.name = f"filters-{count}"
        self._context, self._services, self._pool = context, services, pool
        self._count, self._code = count, code
        self._visits = self._sent = 0

    def prepare(self) -> None:
        """Make the filters live, and have the engine judge some alerts by them."""
        self._context.say(f"making {self._count:,} filters live")
        self._services.live(mixture(self._count, self._code, self._pool))
        for _turn in range(2):
            self._judged(min(WARM_UP, self._context.size.alerts))

    def run_once(self, kind: Kind) -> Figures:
        """Send one visit; wait until the engine has accounted for it, or a plain consumer has it."""
        count = self._context.size.alerts
        if kind is Kind.BASELINE:
            return {f"pass_seconds_{self._count}_filters": self._bare(count)}
        return self._judged(count)

    def tear_down(self) -> None:
        """Nothing to stop: the engine serves the next experiment too."""

    def _judged(self, count: int) -> Figures:
        owned = list(self._services.filters.values())
        order = {
            "bootstrap": self._services.bootstrap,
            "topics": owned,
            "work": "bytes",
            "note": True,
            "expect": 0,
        }
        log = self._context.folder / "owners.log"
        with self._services.coverage() as coverage, second_process(self._context, order, log) as second:
            began, ends = self._send(ALERTS, count)
            seconds = coverage.await_ends(ends) - began
            arrivals = second.findings()["arrivals"]
        delays = firsts([(topic, arrived - began) for topic, _, _, arrived in arrivals], CAP)
        if not delays:
            raise RunError(f"none of {count:,} alerts passed any of {len(owned):,} filters")
        return {
            f"pass_seconds_{self._count}_filters": seconds,
            f"first20_mean_seconds_{self._count}_filters": sum(delays.values()) / len(delays),
            f"first20_p99_seconds_{self._count}_filters": quantile(list(delays.values()), 0.99),
            f"copies_sent_{self._count}_filters": float(len(arrivals)),
        }

    def _bare(self, count: int) -> float:
        with self._services.topic("bare") as topic:
            order = {
                "bootstrap": self._services.bootstrap,
                "topics": [topic],
                "work": "bytes",
                "expect": count,
            }
            with second_process(self._context, order, self._context.folder / "consumer.log") as second:
                began, _ = self._send(topic, count)
                return float(second.findings()["last"]) - began

    def _send(self, topic: str, count: int) -> tuple[float, dict[int, int]]:
        """Send a visit of new alerts; return when the first was sent, and where each partition ends."""
        writer, _codec, _client = alert_writer(self._services.bootstrap, topic)
        note, ends = self._services.delivered()
        visit = FIRST_VISIT + self._visits
        alerts = patched(self._pool, count, visit=visit, first=self._sent)
        self._visits, self._sent = self._visits + 1, self._sent + count
        began = time.monotonic()
        for alert in alerts:
            writer.write(alert, visit=visit, on_delivered=note)
        writer.flush()
        return began, ends


def firsts(arrivals: Iterable[tuple[str, float]], cap: int) -> Mapping[str, float]:
    """Return when each topic had its *cap*-th record, or its last where it had fewer. [s]"""
    times: dict[str, list[float]] = {}
    for topic, moment in arrivals:
        times.setdefault(topic, []).append(moment)
    return {topic: sorted(some)[:cap][-1] for topic, some in times.items()}
