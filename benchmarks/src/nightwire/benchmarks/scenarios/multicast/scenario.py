"""The scenario `multicast`: its figures, and what they take."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks import (
    Better,
    Context,
    Experiment,
    Figure,
    Needs,
    Outcome,
    Published,
    Scenario,
    Size,
)
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.model.drawing import figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.scenarios.multicast.losing import loss_figures, losses
from nightwire.benchmarks.scenarios.multicast.mapped import Moves, WantsLessByWhere, mapped_figures
from nightwire.benchmarks.scenarios.multicast.matching import Inserting, Matching
from nightwire.benchmarks.scenarios.multicast.memory import InProcess, memory_figures
from nightwire.benchmarks.scenarios.multicast.network import HOSTS, figures_of, network_experiments
from nightwire.benchmarks.scenarios.multicast.site import SharedSite
from nightwire.benchmarks.scenarios.multicast.sources import CopyingBeside, SendingAlone, source_figures

SUBSCRIPTIONS = (1_000, 10_000, 100_000, 1_000_000)
SCAN = "a vectorised scan over the same constraints, in the same process"
PERCOLATOR = Published(1.0, "Elasticsearch's percolator", "100,000 stored queries, texts, as users report")


def matching_figures() -> Iterator[Figure]:
    """Yield the figures of subscriptions that are judged and compared in one process."""
    for count in SUBSCRIPTIONS:
        yield Figure(
            f"matched_{count}_per_s", "1/s", f"Events judged by {count:,} subscriptions, a second of CPU",
            Better.HIGHER, baseline=SCAN, headline=True,
            published=PERCOLATOR if count == 100_000 else None,
        )  # fmt: skip
        yield Figure(f"passed_by_{count}", "1", f"Subscriptions of {count:,} that pass an event, mean")
    yield Figure(
        "insert_p99_ms", "ms", "One insert among 10,000, with covering, 99 %", headline=True,
        baseline="a vectorised scan for who covers it, alone",
    )  # fmt: skip
    yield Figure("insert_templates_p99_ms", "ms", "The same where they tighten 200 templates, 99 %")
    yield Figure("roots_share", "1", "Share of roots among these", headline=True)
    yield Figure("remove_root_ms", "ms", "Such a root's removal: fifty find others, mean")


class MulticastScenario(Scenario):
    """Subscriptions by content, and a relay that sends a LAN each record once."""

    name = "multicast"
    title = "Subscriptions by content, and a LAN that gets a stream once"
    measures = (
        "Subscriptions of one to three ranges of six attributes, a tenth of them with a text as well; each "
        "passes 2.8 % of all events. Events are judged as columns, up to 1,000 at once. Roots are the "
        "subscriptions that no other covers; each insert is placed under one, or becomes one. All takes "
        "one thread, whose CPU time is told. The LAN is a bridge between network namespaces; records are "
        "random bytes, 1,400 at 2,500 a second where nothing else is said. A source has connected before "
        "its first record, whose second of connecting would be the delay of many."
    )
    figures: Sequence[Figure] = (
        *matching_figures(), *loss_figures(), *figures_of(), *mapped_figures(), *source_figures(),
        *memory_figures(),
    )  # fmt: skip
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=100_000, pairs=3, rate=1.0, profile="quick"),
        "full": Size(alerts=1_000_000, pairs=5, rate=1.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes; its ``alerts`` are the most subscriptions."""
        return Needs(
            disk=10**8,
            memory=10**9 + size.alerts * 4_000,
            seconds=20 + size.alerts * 2e-4 + size.pairs * 220,
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return those of subscriptions alone, then those of a LAN."""
        self._cluster, site = self.closing(Cluster(context)), self.closing(SharedSite(context, HOSTS))
        self._counts = [count for count in SUBSCRIPTIONS if count <= max(1_000, context.size.alerts)]
        alone = [Matching(context, self._counts), Inserting(), InProcess(self._cluster)]
        network = [
            *losses(context, site),
            *network_experiments(context, site),
            Moves(context, site),
            WantsLessByWhere(context, site),
        ]
        sources = [SendingAlone(context, site), CopyingBeside(context, site)]
        return [*alone, *network, *sources]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Draw how fast events are judged, by the number of subscriptions."""
        lines = [
            figure_line(
                name, [(float(count), f"matched_{count}_per_s", kind) for count in self._counts], samples
            )
            for name, kind in (("nightwire", Kind.SUBJECT), ("a scan", Kind.BASELINE))
        ]
        return Outcome(series=[*plot("Events judged", ("subscriptions", "1/s"), lines)])
