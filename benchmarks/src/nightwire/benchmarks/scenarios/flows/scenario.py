"""The scenario `flows`: its figures, and what they take."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks import Better, Context, Experiment, Figure, Needs, Outcome, Scenario, Size
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.model.drawing import figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.scenarios.flows.chains import KINDS, LENGTHS, Chains
from nightwire.benchmarks.scenarios.flows.changing import CHANGES, Changing

BY_HAND = {"split": "", "filter": "the conditions judged one after the other, no flow"}
EFFECTS = {"changes": "A condition changes", "moves": "A stone moves to another process"}
RESTART = "the worker ends, another starts with the new graph"
LONGEST = LENGTHS["full"]


def figures_of() -> Iterator[Figure]:
    """Yield the figures."""
    for kind, baseline in BY_HAND.items():
        for length in LONGEST:
            title, shown = f"Events through a chain of {length} × {kind}", length in LENGTHS["quick"]
            name = f"{kind}_{length}_per_s"
            yield Figure(name, "1/s", title, Better.HIGHER, baseline=baseline, headline=shown)
    for name, what in EFFECTS.items():
        for share in ("p50", "p95", "max"):
            title = f"{what} under load: command → effect, {share}"
            yield Figure(f"{name}_{share}_s", "s", title, baseline=RESTART, headline=share != "p95")
        for fate in ("lost", "doubled"):
            yield Figure(f"{name}_{fate}", "1", f"{what} under load: alerts {fate}", headline=True)


class FlowsScenario(Scenario):
    """What a stone costs, and a graph that changes under load."""

    name = "flows"
    title = "Flows: what a stone costs, and a graph that changes while events go through it"
    measures = (
        "As Figures 11 and 12 of EVPath (2009): events a second through chains of stones in one process, "
        "which only pass on, or are filters that let everything pass; alerts of real sizes in batches of "
        "a transaction, without Kafka. And a flow at work on Kafka under a steady load, whose condition "
        "changes, or whose stone moves between two processes, each change after the one before is seen: the "
        "time from the command until an alert comes out of the new graph; each alert is counted at the end."
    )
    figures: Sequence[Figure] = tuple(figures_of())
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=5_000, pairs=3, rate=200.0, profile="quick"),
        "full": Size(alerts=20_000, pairs=5, rate=200.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes; its ``alerts`` go through each chain."""
        chains = sum(LENGTHS[size.profile]) * size.alerts * 3e-5
        return Needs(
            disk=10**9,
            memory=3 * 10**9,
            seconds=40 + size.pairs * (chains + 2 * 0.6 * CHANGES[size.profile] + 20),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return chains of each kind, changes and moves."""
        cluster = self.closing(Cluster(context))
        changing = [Changing(context, cluster, moves=moves) for moves in (False, True)]
        return [*(Chains(context, kind) for kind in KINDS), *changing]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Draw events a second against the stones in a chain."""
        lines = [
            figure_line(kind, [(n, f"{kind}_{n}_per_s", Kind.SUBJECT) for n in LONGEST], samples)
            for kind in KINDS
        ]
        title = "Events a second against stones in a chain"
        return Outcome(series=plot(title, ("stones", "events a second"), lines))
