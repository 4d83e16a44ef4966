"""Plots of what was measured, with what the paper says on the same axes.  Pure."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks.model.drawing import sorted_line
from nightwire.benchmarks.model.sample import Kind
from nightwire.benchmarks.model.scenario import Line, Series
from nightwire.benchmarks.model.statistics import median, quantile
from nightwire.benchmarks.scenarios.messages import published as _published
from nightwire.benchmarks.scenarios.messages.experiments import bandwidth
from nightwire.benchmarks.scenarios.messages.plan import Point, words_of

Measured = Mapping[tuple[Kind, int], Sequence[float]]
"""Values by whose they are, and by size."""

WHOSE = {Kind.SUBJECT: "nightwire", Kind.BASELINE: "raw librdkafka"}
SIZE = "message size [byte]"
RATE = "bandwidth [MB/s]"
DRAWN = (1, 4, 14)
"""Numbers of producers, or consumers, that have a line of their own over sizes."""


def of_pingpong(trips: Measured) -> Iterator[Series]:
    """Yield latency and bandwidth over sizes, as the paper's Figs. 9 and 10; *trips* are in s."""
    if not trips:
        return
    latency, rates = [], []
    for kind in Kind:
        taken = of_kind(trips, kind)
        for word, share in (("median", 0.5), ("99 %", 0.99)):
            halves = {size: 1e3 * quantile(some, share) / 2 for size, some in taken.items()}
            latency.append(sorted_line(f"{WHOSE[kind]}, {word}", halves))
        rates.append(sorted_line(WHOSE[kind], {size: bandwidth(size, some) for size, some in taken.items()}))
    latency += _published.LATENCY
    rates += _published.PINGPONG
    yield Series("Ping-pong: half a round trip", SIZE, "latency [ms]", latency, log_x=True, log_y=True)
    yield Series("Ping-pong: bandwidth", SIZE, RATE, rates, log_x=True, log_y=True)


def of_flows(rates: Mapping[Point, Measured]) -> Iterator[Series]:
    """Yield bandwidth over sizes, as the paper's Figs. 11 and 12, and over numbers; *rates* are in MB/s."""
    for what, title in (("producers", "Many producers"), ("consumers", "Many consumers, rate of each")):
        points = {count: rates[point] for point in rates if (count := point.number_of(what)) and rates[point]}
        if points:
            sizes = [*_over_sizes(points, what), *_published.BY_SIZE[what]]
            yield Series(f"{title}: over sizes", SIZE, RATE, sizes, log_x=True, log_y=True)
            counts = [*_over_counts(points), *_published.BY_COUNT[what]]
            yield Series(f"{title}: over their number", what, RATE, counts, log_y=True)


def of_kind(measured: Measured, kind: Kind) -> dict[int, Sequence[float]]:
    """Return what was measured of *kind*, by size."""
    return {size: values for (whose, size), values in sorted(measured.items()) if whose is kind and values}


def _over_sizes(points: Mapping[int, Measured], what: str) -> Iterator[Line]:
    for kind in Kind:
        for count in DRAWN:
            if count in points:
                found = {size: median(values) for size, values in of_kind(points[count], kind).items()}
                yield sorted_line(f"{WHOSE[kind]}, {count} {what if count > 1 else what[:-1]}", found)


def _over_counts(points: Mapping[int, Measured]) -> Iterator[Line]:
    for kind in Kind:
        by_count = {count: of_kind(points[count], kind) for count in sorted(points)}
        for size in sorted({size for found in by_count.values() for size in found}):
            there = {count: median(found[size]) for count, found in by_count.items() if size in found}
            yield sorted_line(f"{WHOSE[kind]}, {words_of(size)}", there)
