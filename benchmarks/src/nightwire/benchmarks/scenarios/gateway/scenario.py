"""The scenario `gateway`: what it takes, and the order in which its questions are asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nightwire.benchmarks import Better, Context, Experiment, Figure, Needs, Outcome, Sample, Scenario, Size
from nightwire.benchmarks.environment.vtp_brokers import VtpBrokers, check_comet
from nightwire.benchmarks.scenarios.gateway.experiments import EventStream, Herd, Latency, Rate, Tree
from nightwire.benchmarks.scenarios.gateway.table import STEPS, Table
from nightwire.benchmarks.workers.vtp.packets import real_packets

COMET = "Comet 3.1.0 under Debian's python3 with python3-gdbm, event database in memory"
GNUPG = "GnuPG, a process for each signature"
HEADLINE = "single_c64"
PIPELINED, FAR = "pipelined_c8", "pipelined_rtt100"


EVERY = 1_000_000
"""Runs of what is in each pair, however many there are."""
TWICE = 2
"""Runs of the rest in the quick profile: the least that has a spread."""
DELIVERY = 0.0005
"""Time that a delivery to one of many subscribers is given, so that events do not queue. [s]"""


@dataclass(frozen=True)
class Plan:
    """What a profile asks.

    Attributes:
        streams: Streams of events.
        subscribers: Numbers of subscribers that latency is measured with.
        latencies: Events of each of these.
        interval: Between two of them. [s]
        table: Events of Table 1.
        patience: Longest wait of a herd. [s]
        runs: Most runs of latencies, of the herd and of two brokers.
    """

    streams: tuple[EventStream, ...]
    subscribers: tuple[int, ...]
    latencies: int
    interval: float
    table: int
    patience: float
    runs: int

    def pace(self, subscribers: int) -> tuple[int, float]:
        """Return the number of events for *subscribers*, and their interval [s]: none waits."""
        interval = max(self.interval, subscribers * DELIVERY)
        return max(20, int(self.latencies * self.interval / interval)), interval


def quick() -> Plan:
    """Return what is asked in minutes."""
    streams = _streams(4_000, (1, 16, 256), ((0.1, 1), (0.1, 64), (0.5, 64)), TWICE, 1)
    return Plan(streams, (1, 64, 256, 1000), 60, 0.05, 800, 5.0, TWICE)


def full(pairs: int) -> Plan:
    """Return what the paper asked, as often as it is published."""
    connections = (1, 2, 4, 8, 16, 32, 128, 256, 512)
    far = tuple((trip, many) for trip in (0.1, 0.2, 0.5) for many in (1, 4, 16, 64, 256, 512))
    streams = _streams(10_000, connections, far, pairs, pairs)
    return Plan(streams, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000), 1_000, 0.05, 10_000, 40.0, pairs)


def _streams(
    events: int,
    connections: tuple[int, ...],
    far: tuple[tuple[float, int], ...],
    runs: int,
    far_runs: int,
) -> tuple[EventStream, ...]:
    """Return the streams; the headlines are in every pair."""
    return (
        EventStream(HEADLINE, events, 64, runs=EVERY),
        EventStream(PIPELINED, 5 * events, 8, window=64, real=False, runs=EVERY, alone=True),
        EventStream("pipelined_real_c8", 2 * events, 8, window=64, runs=runs, alone=True),
        EventStream(FAR, 5 * events, 1, window=2_000, real=False, round_trip=0.1, runs=EVERY, alone=True),
        EventStream("listing5_c64", events, 64, real=False, runs=runs),
        *(EventStream(f"single_c{many}", events, many, runs=runs) for many in connections),
        EventStream("single_c1024", events, 1_024, runs=runs),
        *(_far(trip, many, far_runs) for trip, many in far),
    )


def _far(round_trip: float, connections: int, runs: int) -> EventStream:
    """Return a stream of some seconds: two round trips an event are what is waited for."""
    events = max(8, min(4_000, int(4 * connections / round_trip / 2)))
    name = f"rtt{round_trip * 1000:.0f}_c{connections}"
    return EventStream(name, events, connections, real=False, round_trip=round_trip, runs=runs)


STEP_TITLES = {
    "check": "parsing, validation and hash in one: ours is the native check, where it is built",
    "parse": "parsing (ours: libxml2 without the native check)",
    "validate": "validation (ours: libxml2 without the native check)",
    "hash": "hash (ours finds the element's bytes)",
    "dedup": "de-duplication: asked and noted (ours on disk, Comet's in memory)",
    "signature": "checking a signature",
}


def figures() -> Iterator[Figure]:
    """Yield every figure of both profiles."""
    for stream in {stream.name: stream for stream in (*quick().streams, *full(1).streams)}.values():
        yield from _of_stream(stream)
    for many in full(1).subscribers:
        yield from _of_latency(many)
    yield Figure("tree_mean_ms", "ms", "Through two brokers, mean", baseline=COMET, group="Latency")
    yield from _of_herd()
    yield from map(_of_step, STEPS)


def _of_stream(stream: EventStream) -> Iterator[Figure]:
    words = f"{stream.connections:,} connections" if stream.connections > 1 else "one connection"
    words += f", {stream.window} unanswered on each" if stream.window else ", one event on each"
    words += ", real packets" if stream.real else ", Listing 5"
    words += f", round trips of {stream.round_trip * 1000:.0f} ms" if stream.round_trip else ""
    baseline, group = "" if stream.alone else COMET, "Rates"
    yield Figure(
        f"{stream.name}_per_second", "1/s", f"Events a second: {words}", Better.HIGHER, baseline,
        headline=stream.name in (HEADLINE, PIPELINED, FAR), group=group,
    )  # fmt: skip
    for name, title in (("broker", "the broker"), ("generator", "generator and subscriber")):
        headline = name == "broker" and stream.name in (HEADLINE, PIPELINED)
        yield Figure(
            f"{stream.name}_{name}_cpu_us", "µs", f"CPU time of {title}, an event: {words}",
            baseline=baseline, headline=headline, group=group,
        )  # fmt: skip
    yield Figure(f"{stream.name}_kafka_cpu_us", "µs", f"CPU time of Kafka, an event: {words}", group=group)
    yield Figure(
        f"{stream.name}_lost", "1", f"Events that never came: {words}", baseline=baseline, group=group
    )
    if stream.round_trip and stream.connections == 1:
        name = f"{stream.name}_round_trips"
        yield Figure(name, "1", f"Round trips an event: {words}", baseline=baseline, group=group)


def _of_latency(many: int) -> Iterator[Figure]:
    words, group = f"{many:,} subscribers" if many > 1 else "one subscriber", "Latency"
    yield Figure(
        f"latency_s{many}_own_ms", "ms", f"Author to subscriber without Kafka's part, {words}, mean",
        baseline=f"{COMET}, all of it", headline=many in (1, 1000), group=group,
    )  # fmt: skip
    yield Figure(
        f"latency_s{many}_mean_ms", "ms", f"Author to subscriber, {words}, mean",
        baseline=COMET, group=group,
    )  # fmt: skip
    yield Figure(f"latency_s{many}_p99_ms", "ms", f"… {words}, 99 %", baseline=COMET, group=group)
    lost = f"Deliveries that never came, {words}"
    yield Figure(f"latency_s{many}_lost", "1", lost, baseline=COMET, group=group)
    for name, title in (
        ("in_to_produced", "Last byte in to produced"),
        ("produced_to_acknowledged", "Produced to acknowledged by Kafka"),
        ("acknowledged_to_out", "Acknowledged to first byte out"),
    ):
        yield Figure(f"latency_s{many}_{name}_ms", "ms", f"{title}, {words}, mean", group=group)


def _of_herd() -> Iterator[Figure]:
    words = "1,000 subscribers that connect at once"
    yield Figure(
        "herd_within_a_second", "1", f"Greeted within a second, of {words}", Better.HIGHER, COMET,
        headline=True, group="Latency",
    )  # fmt: skip
    yield Figure("herd_served", "1", f"Greeted at all, of {words}", Better.HIGHER, COMET, group="Latency")
    yield Figure("herd_seconds", "s", f"Until the last of these, of {words}", baseline=COMET, group="Latency")


def _of_step(step: str) -> Figure:
    title = STEP_TITLES.get(step, f"XPath expression {step[-1]}")
    return Figure(
        f"table_{step}_us", "µs", f"Table 1: {title}, an event",
        baseline=GNUPG if step == "signature" else "Comet's own classes",
        headline=step in ("check", "dedup", "signature"), group="Table 1",
    )  # fmt: skip


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
        brokers, self._packets = self.closing(VtpBrokers(context)), real_packets()
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
