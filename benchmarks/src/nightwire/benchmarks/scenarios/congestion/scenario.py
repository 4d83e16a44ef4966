"""The scenario `congestion`: its figures, and what they take."""

from collections.abc import Mapping, Sequence

from nightwire.benchmarks import Better, Context, Experiment, Figure, Needs, Outcome, Sample, Scenario, Size
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.scenarios.congestion.cut import AFTER, BEFORE, CUT, WIDTH, CutLink, DroppedOldest
from nightwire.benchmarks.scenarios.congestion.drop_oldest import LENGTH

PLAIN = "the same without the ladder"


class CongestionScenario(Scenario):
    """A link that is cut to a tenth, and what comes over it."""

    name = "congestion"
    title = "Congestion: a link is cut, and gets less of each alert instead of old ones"
    measures = (
        f"A steady stream of real-sized alerts through a directory to one consumer, over a link of {WIDTH} × "
        f"the stream (a proxy), which is cut to {CUT:.0%} for as long as the run's alerts take: the age of "
        "what is delivered during the cut, and how long afterwards until every alert is there whole, each "
        "once. Baselines: the same consumer without the ladder, and a queue of "
        f"{LENGTH} alerts that drops its oldest."
    )
    figures: Sequence[Figure] = (
        Figure("cut_age_p50_s", "s", "Age of what is delivered during the cut, median", baseline=PLAIN),
        Figure("cut_age_p99_s", "s", "The same, 99 %", baseline=PLAIN, headline=True),
        Figure("cut_age_max_s", "s", "The same, the oldest", baseline=PLAIN),
        Figure("cut_delivered", "1", "Share of the cut's alerts that came during it", Better.HIGHER,
               baseline=PLAIN, headline=True),
        Figure("cut_whole_s", "s", "From the link's recovery until all are there whole", baseline=PLAIN,
               headline=True),
        Figure("dropped_age_p99_s", "s", "A queue that drops its oldest: age, 99 %"),
        Figure("dropped_share", "1", "A queue that drops its oldest: share of all alerts lost"),
    )  # fmt: skip
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=600, pairs=1, rate=10.0, profile="quick"),
        "full": Size(alerts=6_000, pairs=3, rate=20.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes; its ``alerts`` are those of the cut."""
        once = BEFORE + AFTER + size.alerts / size.rate * (1 + 1 / WIDTH)
        return Needs(disk=10**9 + size.alerts * 500_000, memory=3 * 10**9, seconds=60 + size.pairs * 3 * once)

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return the ladder beside a plain consumer, and the queue."""
        cluster = self.closing(Cluster(context))
        return [CutLink(context, cluster), DroppedOldest(context, cluster)]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Say what the figures are of."""
        return Outcome(notes=["A run in which an alert comes whole twice, or never, fails."])
