"""The scenario `gateway`: what it takes, and the order in which its questions are asked."""

from collections.abc import Mapping, Sequence

from nightwire.benchmarks.environment.vtp_brokers import VtpBrokers, check_comet
from nightwire.benchmarks.model.sample import Sample
from nightwire.benchmarks.model.scenario import Context, Experiment, Figure, Needs, Outcome, Scenario, Size
from nightwire.benchmarks.scenarios.gateway.experiments import Herd, Latency, Rate, Tree
from nightwire.benchmarks.scenarios.gateway.plan import figures, full, quick
from nightwire.benchmarks.scenarios.gateway.table import Table
from nightwire.benchmarks.workers.vtp.packets import real_packets

HERD = 1_000


class GatewayScenario(Scenario):
    """Our VTP broker beside Comet."""

    name = "gateway"
    title = "The VTP gateway, beside Comet"
    measures = (
        "Authors and subscribers are processes of their own, the same for both brokers. Ours acknowledges an "
        "event once Kafka has it (acks=all) and delivers it from the log, so Kafka, gateway, authors and "
        "subscribers share the cores; Comet has no log, and hashes in a dbm in memory, its best setting. "
        "A rate counts from when authors begin to the last event at the subscriber. An event of ours that is "
        "lost, delivered twice or refused fails the run."
    )
    figures: Sequence[Figure] = tuple(figures())
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=4_000, pairs=3, rate=1.0, profile="quick"),
        "full": Size(alerts=10_000, pairs=5, rate=1.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        seconds = 200 + 40 * size.pairs if size.profile == "quick" else 2_500 * size.pairs
        return Needs(disk=4 * 10**9, memory=3 * 10**9, seconds=seconds)

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return Table 1, rates, latencies, two brokers, and the herd.

        Raises:
            RunError: Comet's event database would be the slow one.
        """
        check_comet()
        size, self._profile = context.size, context.size.profile
        plan = quick() if size.profile == "quick" else full(size.pairs)
        brokers, self._packets = VtpBrokers(context), real_packets()
        self.exits.callback(brokers.close)
        found: list[Experiment] = [Table(context, self._packets, plan.table)]
        found += [Rate(brokers, stream) for stream in plan.streams]
        found += [Latency(brokers, many, *plan.pace(many), plan.runs) for many in plan.subscribers]
        found += [Tree(brokers, *plan.pace(1), plan.runs), Herd(brokers, HERD, plan.patience, plan.runs)]
        return found

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Say what was sent, and what was not repeated."""
        sizes = sorted(map(len, self._packets.documents))
        notes = [
            f"{self._packets.what}, {sizes[0]:,} to {sizes[-1]:,} bytes (median {sizes[len(sizes) // 2]:,}), "
            "taken in turn, each with an ivorn of its own.",
            "The second of two brokers is, of ours, a second gateway on the same Kafka; of Comet's, one that "
            "subscribes to the first.",
            "Round trips are made by a relay in a process of its own, the handshake's among them.",
        ]
        if self._profile == "quick":
            notes.append(
                "Quick: the headline rates and Table 1 in every pair, authors far away once, the rest twice."
            )
        return Outcome(notes=notes)
