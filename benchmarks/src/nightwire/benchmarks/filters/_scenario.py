"""The scenario itself: its size, its figures, and what they have to show."""

from collections.abc import Mapping, Sequence

from nightwire.benchmarks._pool import POOL, make_pool
from nightwire.benchmarks._scenario import Context, Experiment, Figure, Needs, Outcome, Size
from nightwire.benchmarks.filters._burst import Burst
from nightwire.benchmarks.filters._services import CAP, ManyFilters

RAW = "the same visit into a topic, and a plain librdkafka consumer"
MIXTURES = {100: 20, 1_000: 50}
"""How many of so many filters cannot be compiled."""
ON_DISK = 130_000
"""An alert in Kafka, uncompressed. [byte]"""
IN_POOL = 600_000
"""An alert of the pool: dictionaries and bytes. [byte]"""
PROCESSES = 5 * 10**9
"""Kafka, Spark, the sandbox and the consumer together. [byte]"""
PER_ALERT = 0.004
"""An alert of a pair of runs, for each hundred filters that are sent to. [s]"""
STARTING = {100: 150.0, 1_000: 300.0}
"""Kafka, registry, engine, the filters' topics. [s]"""


def figures(count: int, *, headline: bool) -> list[Figure]:
    """Return the figures of *count* filters."""
    many = f"{count:,} filters"
    return [
        Figure(
            f"pass_seconds_{count}_filters",
            "s",
            f"A visit in one burst, judged by {many}, sent and accounted for",
            baseline=RAW,
            headline=headline,
        ),
        Figure(
            f"first20_mean_seconds_{count}_filters",
            "s",
            f"From the first send until an owner has the first {CAP} of a visit, {many}, mean",
            headline=headline,
        ),
        Figure(
            f"first20_p99_seconds_{count}_filters",
            "s",
            f"From the first send until an owner has the first {CAP} of a visit, {many}, 99 %",
            headline=headline,
        ),
        Figure(f"copies_sent_{count}_filters", "1", f"Copies that were sent to owners, {many}"),
    ]


class FiltersScenario:
    """Visits in one burst, through a hundred and through a thousand filters."""

    name = "filters"
    title = "A hundred and a thousand filters"
    measures = (
        "Each visit is sent in one burst: alerts of real sizes go from dictionaries through the encoder into "
        "Kafka, and the engine judges them by every filter, sends each owner at most 20 and writes its "
        "accounts. The filters are a mixture of cuts, colours, light-curve features and SQL, each of which "
        "passes 0.3 to 5 %; 20 of 100 and 50 of 1,000 are code that cannot be compiled (a class, a try, a "
        "call of astropy) and run in the sandbox. A second process reads all owners' topics. All processes "
        "share one machine."
    )
    figures = (*figures(100, headline=True), *figures(1_000, headline=True))
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=2_000, pairs=2, rate=1.0, profile="quick"),
        "full": Size(alerts=10_000, pairs=5, rate=1.0, profile="full"),
    }

    def __init__(self) -> None:
        self._services: ManyFilters | None = None
        self._size = self.standard["quick"]

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        counts = counted(size)
        copies = sum(counts) * CAP * (size.pairs + 2)
        return Needs(
            disk=(size.alerts * 3 * (size.pairs + 1) + copies) * ON_DISK,
            memory=min(size.alerts, POOL) * IN_POOL + PROCESSES,
            seconds=sum(STARTING[one] + size.pairs * size.alerts * PER_ALERT for one in counts),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Make the pool; return an experiment for each number of filters."""
        context.say("making the pool of alerts")
        self._size, pool = context.size, make_pool(context.size.alerts)
        self._services = services = ManyFilters(context)
        if context.engine == "none":
            return []
        return [Burst(context, services, pool, count, MIXTURES[count]) for count in counted(context.size)]

    def tear_down(self) -> None:
        """End Kafka, the registry and the engine."""
        if self._services is not None:
            self._services.close()

    def outcome(self) -> Outcome:
        """Say how much was moved, and what was left out."""
        size = self._size
        notes = [f"{size.alerts:,} alerts a visit ({size.profile} profile), {size.pairs} pairs; cap {CAP}."]
        if counted(size) != list(MIXTURES):
            notes.append("Reduced: a hundred filters only; the full profile has a thousand as well.")
        return Outcome(notes=notes)


def counted(size: Size) -> list[int]:
    """Return the numbers of filters that a run of *size* has."""
    return [100] if size.profile == "quick" else list(MIXTURES)
