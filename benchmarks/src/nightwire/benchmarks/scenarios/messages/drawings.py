"""Plots of what was measured.  Pure."""

from collections.abc import Iterable, Iterator, Sequence

from nightwire.benchmarks.model.drawing import OWNERS, figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.model.scenario import Line, Series
from nightwire.benchmarks.scenarios.messages.experiments import flow_name
from nightwire.benchmarks.scenarios.messages.plan import Plan, Point, name_of, words_of

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
