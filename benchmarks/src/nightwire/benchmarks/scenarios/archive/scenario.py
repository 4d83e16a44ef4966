"""The scenario `archive`: its figures, and what they take."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks import Better, Context, Experiment, Figure, Needs, Outcome, Sample, Scenario, Size
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.scenarios.archive.asking import Asking
from nightwire.benchmarks.scenarios.archive.disturbing import BURST, GAP, VISITS, Disturbing
from nightwire.benchmarks.scenarios.archive.stamping import CLIENTS, Stamping

SCHEDULES = {
    "constant": "at once",
    "rate": "15 MB/s at most",
    "state": "while nobody writes",
    "order": "a partition at a time",
}
STAMPS = {"kafka": "Kafka has, by offset", "archive": "the archive has, by id"}
FETCHED = "one client that fetches from Kafka and decodes, without HTTP"
SCAN = "a scan of the same column in memory (Arrow)"
ASTROPY = "astropy's separations to the same positions in memory"
OFF = "the same without an archive"


def figures_of() -> Iterator[Figure]:
    """Yield the figures."""
    yield Figure("get_ms", "ms", "An alert by its id, median", baseline=SCAN, headline=True)
    yield Figure("object_ms", "ms", "All alerts of an object, median", baseline=SCAN, headline=True)
    yield Figure("cone_1arcmin_ms", "ms", "A cone of 1′, median", baseline=ASTROPY, headline=True)
    yield Figure("cone_5deg_ms", "ms", "A cone of 5°, median", baseline=ASTROPY, headline=True)
    yield Figure("fill_per_s", "1/s", "Rows archived, compaction with them", Better.HIGHER)
    yield Figure("row_bytes", "B", "Size of a row in columns and index")
    for name, where in STAMPS.items():
        title = f"A stamp over HTTP of what {where}, to {CLIENTS} clients"
        baseline = FETCHED if name == "kafka" else ""
        yield Figure(f"{name}_stamps_per_s", "1/s", title, Better.HIGHER, baseline=baseline, headline=True)
        for share in ("p50", "p95", "p99", "max"):
            yield Figure(f"{name}_stamp_{share}_ms", "ms", f"{title}, {share}", baseline=baseline)
    for name, when in SCHEDULES.items():
        for share in ("p50", "p95", "p99", "max"):
            yield Figure(
                f"live_{name}_{share}_ms", "ms", f"Due → consumer, archived {when}, {share}", baseline=OFF,
                headline=share == "p99",
            )  # fmt: skip


class ArchiveScenario(Scenario):
    """Questions to what passed, and what keeping it costs."""

    name = "archive"
    title = "The archive: what passed, and what keeping it costs the stream"
    measures = (
        "An archive of rows of ten nights and twenty alerts an object, compacted, asked by one process that "
        "has asked before: by id, object, cones. Stamps over HTTP, by "
        "clients that keep their connections. And visits of real-sized alerts to a plain consumer, with "
        "an archive that keeps them and without: the delay of each alert from when it was due, open loop. "
        f"A run is {VISITS} visits of {BURST:g} s with {GAP:g} s between them. DataStager's figure, to "
        "compare ratios with: its best schedule slowed an application on 2,048 processors by 4 %."
    )
    figures: Sequence[Figure] = tuple(figures_of())
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=1_000_000, pairs=3, rate=200.0, profile="quick"),
        "full": Size(alerts=10_000_000, pairs=5, rate=200.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes; its ``alerts`` are the rows of the archive."""
        return Needs(
            disk=10**9 + size.alerts * 2_000,
            memory=2 * 10**9 + size.alerts * 1_000,
            seconds=60 + size.alerts * 5e-5 + size.pairs * (60 + size.alerts * 2e-6 + 4 * 35),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return questions, and the four schedules."""
        cluster = self.closing(Cluster(context))
        return [
            Asking(context),
            Stamping(context, cluster),
            *(Disturbing(context, cluster, name) for name in SCHEDULES),
        ]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Say what was left out."""
        return Outcome(
            notes=["Rows have the canonical columns and nine of the survey's own; no whole alerts."]
        )
