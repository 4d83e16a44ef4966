"""The scenario `stretch`: its size, its figures, and what they have to show."""

from collections.abc import Mapping, Sequence

from nightwire.benchmarks.environment.alert_pool import ON_DISK, POOL, make_pool, pool_memory, ready_messages
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.model.sample import Sample
from nightwire.benchmarks.model.scenario import Context, Experiment, Figure, Needs, Outcome, Scenario, Size
from nightwire.benchmarks.scenarios.stretch.three_visits import VISITS, ThreeVisits

RAW = "ready-made bytes of the same sizes through raw librdkafka"
INTERVAL = 39.0
"""From one visit of LSST to the next, as DMTN-028 has it. [s]"""
PER_ALERT = 0.0012
"""An alert of a pair of runs. [s]  Two shared cores."""


class StretchScenario(Scenario):
    """Three visits of 100,000 alerts, back to back, through a topic that cannot hold two."""

    name = "stretch"
    title = "Three visits of 100,000 alerts in a row"
    measures = (
        "Alerts of real sizes (a pool of 2,000 distinct simulated ones, made before the clock starts; ids, "
        "times and positions are new in each) go from dictionaries through the encoder into Kafka (acks=all, "
        "idempotent, lz4, 4 partitions) and into twenty columns in a second process; three visits, one "
        "right after the other. A visit lasts from its first dictionary to the columns of its last alert. "
        "Retention keeps less than one visit in the topic; a record that was not read fails the run."
    )
    figures = (
        Figure(
            "three_visits_slowest_seconds",
            "s",
            "The slowest of three visits, to twenty columns",
            baseline=RAW,
            headline=True,
        ),
        Figure("three_visits_seconds", "s", "All three of them", baseline=RAW, headline=True),
        Figure(
            "producer_rss_growth",
            "1",
            "The producer's memory after the third visit, over after the first",
            headline=True,
        ),
        Figure(
            "consumer_rss_growth",
            "1",
            "The consumer's memory after the third visit, over after the first",
            headline=True,
        ),
        Figure(
            "topic_disk_visits", "1", "The most that the topic took on the disk, in visits", headline=True
        ),
    )
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=2_000, pairs=3, rate=1.0, profile="quick"),
        "full": Size(alerts=100_000, pairs=3, rate=1.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        return Needs(
            disk=VISITS * size.alerts * ON_DISK,
            memory=pool_memory(size.alerts) + 3 * 10**9,
            seconds=15 + size.pairs * VISITS * size.alerts * PER_ALERT,
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Make the pool; return the one experiment."""
        context.say("making the pool of alerts")
        self._size, pool = context.size, make_pool(context.size.alerts)
        cluster = Cluster(context)
        self.exits.callback(cluster.close)
        return [ThreeVisits(context, cluster, pool, ready_messages(pool))]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Say how much was moved, and what LSST asks for."""
        alerts = self._size.alerts
        notes = [
            f"{VISITS} visits of {alerts:,} alerts a run, {min(alerts, POOL):,} distinct ones.",
            f"LSST visits the sky every {INTERVAL:g} s.",
        ]
        if alerts < self.standard["full"].alerts:
            notes.append("Reduced: the goal is 100,000 alerts a visit; retention only matters there.")
        return Outcome(notes=notes)
