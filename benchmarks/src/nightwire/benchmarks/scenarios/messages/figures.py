"""The figures that the scenario reports.  Pure."""

from collections.abc import Iterator

from nightwire.benchmarks.model.scenario import Better, Figure
from nightwire.benchmarks.scenarios.messages.experiments import flow_name
from nightwire.benchmarks.scenarios.messages.plan import KIB, MIB, Plan, Point, name_of, words_of

RAW = "bytes of the same sizes through raw librdkafka, both ways"
HEADLINE_SIZES = (256, 16 * KIB, MIB)
RATE = "MB/s"


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
        RATE,
        f"{words} over half its round trip",
        "Ping-pong: bandwidth",
    )


def _flow(point: Point, size: int, most: int) -> Figure:
    group = "Many producers" if point.producers > 1 else "Many consumers, rate of each"
    return _figure(
        flow_name(point, size),
        RATE,
        f"{point.title}, messages of {words_of(size)}",
        group if point != Point() else "One producer, one consumer",
        headline=size == MIB and max(point.producers, point.consumers) in (1, most),
    )


def _figure(name: str, unit: str, title: str, group: str, *, headline: bool = False) -> Figure:
    return Figure(
        name,
        unit,
        title,
        Better.HIGHER if unit == RATE else Better.LOWER,
        baseline=RAW,
        headline=headline,
        group=group,
    )
