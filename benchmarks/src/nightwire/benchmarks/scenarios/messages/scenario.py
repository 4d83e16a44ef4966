"""The scenario `messages`: its figures, its size, its experiments, and what they have to show."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from nightwire.benchmarks import (
    Better,
    Context,
    Experiment,
    Figure,
    Line,
    Needs,
    Outcome,
    Scenario,
    Series,
    Size,
)
from nightwire.benchmarks.model.drawing import OWNERS, figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.scenarios.messages.experiments import (
    FLOW,
    KIB,
    LARGEST,
    MIB,
    MOST,
    PINGPONG,
    Flow,
    MessageWorkers,
    PingPong,
    Plan,
    Point,
    flow_name,
    name_of,
    plan_of,
    words_of,
)

SIZE = "message size [byte]"
RATE = "bandwidth [MB/s]"
DRAWN = (1, 4, 14)
"""Numbers of producers, or consumers, that have a line of their own over sizes."""


def drawings(plan: Plan, samples: Sequence[Sample]) -> Iterator[Series]:
    """Yield latency and bandwidth over sizes, and over numbers of producers and consumers."""
    latency = [
        _over_sizes(
            f"{owner}, {words}", kind, {s: f"latency_{name_of(s)}_{share}_ms" for s in plan.pingpong}, samples
        )
        for kind, owner in OWNERS.items()
        for words, share in (("median", "p50"), ("99 %", "p99"))
    ]
    rates = [
        _over_sizes(
            owner, kind, {s: f"pingpong_{name_of(s)}_megabytes_per_second" for s in plan.pingpong}, samples
        )
        for kind, owner in OWNERS.items()
    ]
    yield from plot("Ping-pong: half a round trip", (SIZE, "latency [ms]"), latency)
    yield from plot("Ping-pong: bandwidth", (SIZE, RATE), rates)
    for what, title in (("producers", "Many producers"), ("consumers", "Many consumers, rate of each")):
        points = {count: point for point in plan.points if (count := point.number_of(what))}
        yield from plot(f"{title}: over sizes", (SIZE, RATE), _flow_sizes(plan, what, points, samples))
        yield from plot(f"{title}: over their number", (what, RATE), _counts(plan, points, samples), log="y")


def _over_sizes(name: str, kind: Kind, figures: dict[int, str], samples: Sequence[Sample]) -> Line:
    return figure_line(name, [(size, figure, kind) for size, figure in figures.items()], samples)


def _flow_sizes(plan: Plan, what: str, points: dict[int, Point], samples: Sequence[Sample]) -> Iterable[Line]:
    for kind, owner in OWNERS.items():
        for count in DRAWN:
            if count in points:
                name = f"{owner}, {count} {what if count > 1 else what[:-1]}"
                figures = {size: flow_name(points[count], size) for size in plan.flow}
                yield _over_sizes(name, kind, figures, samples)


def _counts(plan: Plan, points: dict[int, Point], samples: Sequence[Sample]) -> Iterable[Line]:
    for kind, owner in OWNERS.items():
        for size in plan.flow:
            places = [(count, flow_name(point, size), kind) for count, point in sorted(points.items())]
            yield figure_line(f"{owner}, {words_of(size)}", places, samples)


RAW = "bytes of the same sizes through raw librdkafka, both ways"
HEADLINE_SIZES = (256, 16 * KIB, MIB)
UNIT = "MB/s"


def figures_of(plan: Plan) -> Iterator[Figure]:
    """Yield every figure of *plan*."""
    for size in plan.pingpong:
        yield from _pingpong(size)
    for point in plan.points:
        for size in plan.flow:
            yield _flow(point, size, most=max(plan.counts))


def _pingpong(size: int) -> Iterator[Figure]:
    name, words = name_of(size), words_of(size)
    for share, title in (("p50", "median"), ("p99", "99 %")):
        yield _figure(
            f"latency_{name}_{share}_ms",
            "ms",
            f"Half a round trip of {words}, {title}",
            "Ping-pong: latency",
            headline=size in HEADLINE_SIZES,
        )
    yield _figure(
        f"pingpong_{name}_megabytes_per_second",
        UNIT,
        f"{words} over half its round trip",
        "Ping-pong: bandwidth",
    )


def _flow(point: Point, size: int, most: int) -> Figure:
    group = "Many producers" if point.producers > 1 else "Many consumers, rate of each"
    return _figure(
        flow_name(point, size),
        UNIT,
        f"{point.title}, messages of {words_of(size)}",
        group if point != Point() else "One producer, one consumer",
        headline=size == MIB and max(point.producers, point.consumers) in (1, most),
    )


def _figure(name: str, unit: str, title: str, group: str, *, headline: bool = False) -> Figure:
    return Figure(
        name,
        unit,
        title,
        Better.HIGHER if unit == UNIT else Better.LOWER,
        baseline=RAW,
        headline=headline,
        group=group,
    )


STARTING = 15.0
"""Kafka, and the alerts of all sizes. [s]"""
PER_WORKER = 0.4
"""A process. [s]"""
PER_FLOW = 0.4
"""Topic, clients and the move itself. [s]"""
PER_READ = 0.000_03
"""A message in one consumer, on two shared cores. [s]"""
PER_BYTE = 4e-9
"""A byte in one consumer, likewise. [s]"""
TO_AND_FRO = 10**9
"""What goes to and fro, before retention takes it. [byte]"""
MEMORY = 2 * 10**9
PER_PROCESS = 250 * 10**6
"""Kafka and the harness; and a worker with librdkafka's queues. [byte]"""


class MessagesScenario(Scenario):
    """Latency and bandwidth of messages by size, with up to fourteen producers or consumers.

    Args:
        plan: What a run of a size measures.
    """

    name = "messages"
    title = "Tycho's measurements: message latency and bandwidth by size"
    measures = (
        "The messaging tests of Baker and Grove (2007), section 4.1, with Kafka between. A message is an "
        "alert that has what its schema demands and one stamp of random bytes that fills it to the size: "
        "alerts are what AlertWriter takes and AlertReader gives, and random bytes do not shrink on the way. "
        "*Ping-pong*: AlertWriter writes one and flushes, a second process reads it from an AlertReader and "
        "writes what it read to a second topic; the first reads it there, and compares. Latency is half a "
        "round trip, in one clock; bandwidth the size over half the mean round trip. *Many producers*, *many "
        "consumers*: processes write their share through AlertWriter, all at once, and each consumer reads "
        "all of it, each alert decoded whole; bandwidth is that of one consumer, from the first dictionary "
        "to the last alert in the last consumer. The baseline does the same with ready-made bytes of the "
        "same sizes, the same settings (acks=all, idempotent, lz4) and bare librdkafka. A message that is "
        "lost, doubled or of another size fails the run. All processes share one machine."
    )
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=8_000, pairs=3, rate=1.0, profile="quick"),
        "full": Size(alerts=20_000, pairs=3, rate=1.0, profile="full"),
    }

    def __init__(self, plan: Callable[[Size], Plan] = plan_of) -> None:
        self._plan_of = plan
        self.figures = list(figures_of(plan(self.standard["full"])))

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        plan = self._plan_of(size)
        flows = sum(flow_seconds(plan, point.consumers) for point in plan.points)
        pingpong = len(plan.pingpong) * min(plan.seconds, plan.trips * 0.02)
        return Needs(
            disk=3 * plan.volume + TO_AND_FRO,  # Kafka deletes a topic a little later
            memory=MEMORY + plan.most * PER_PROCESS,
            seconds=STARTING + plan.most * PER_WORKER + 2 * (size.pairs + 0.3) * (flows + pingpong),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return the ping-pong, then one flow for each number of producers and consumers."""
        context.role(os.getpid(), "harness")
        self._size, plan = context.size, self._plan_of(context.size)
        workers = self.closing(MessageWorkers(context))
        return [PingPong(workers, plan), *(Flow(workers, plan, point) for point in plan.points)]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Return the plots, and what was reduced."""
        plan = self._plan_of(self._size)
        return Outcome(list(drawings(plan, samples)), notes(self._size, plan))


def flow_seconds(plan: Plan, consumers: int) -> float:
    """Return about how long the flows of all sizes to so many *consumers* take. [s]"""
    counts = {size: plan.count(size) for size in plan.flow}
    reading = sum(count * (PER_READ + size * PER_BYTE) for size, count in counts.items())
    return len(counts) * PER_FLOW + consumers * reading


def notes(size: Size, plan: Plan) -> list[str]:
    """Say what was reduced, and what differs from the paper."""
    found = [
        f"{size.profile.capitalize()} profile: {plan.trips:,} round trips of a size, or as many as fit into "
        f"{plan.seconds:g} s; {plan.messages:,} messages in a flow, or as many as have "
        f"{plan.volume // MIB} MiB together. The paper does not say how many its messaging tests had.",
        "The paper's Figs. 9 to 12 are plots without tables: sizes are those that its text names, and its "
        f"numbers only those of the text. Its 4 Mbytes are {LARGEST:,} bytes here, since Kafka takes no "
        "more than 4 MiB with key and headers.",
        "Tycho's messages go from socket to socket; ours are stored by a broker in between, which "
        f"acknowledges them. All processes share {os.cpu_count()} cores, for which up to {plan.most} of them "
        "compete.",
    ]
    left_out = [words_of(one) for one in PINGPONG if one not in plan.pingpong]
    fewer = [words_of(one) for one in FLOW if one not in plan.flow]
    if left_out or fewer or len(plan.counts) < MOST:
        found.append(
            f"Reduced: no round trips of {', '.join(left_out)}; no flows of {', '.join(fewer)}; of 1 to "
            f"{MOST} producers and consumers only {', '.join(map(str, plan.counts))}."
        )
    return found
