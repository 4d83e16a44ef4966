"""The experiments: a table of transfers, each beside its baseline.  Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from nightwire.benchmarks.workers.alerts.feed import COMPRESSION
from nightwire.benchmarks.workers.alerts.sender import Load
from nightwire.benchmarks.workers.alerts.transfer import BYTES, DICTS, LATEST, Transfer

VOLUMES = (100, 1_000, 10_000, 100_000)
"""Alerts a visit: those of DMTN-028, and the stretch goal that it names."""
VISIT = 10_000
"""Alerts in a visit of all other experiments, at most."""
STAMPS = {"with_stamps": True, "without_stamps": False}
RAW = "ready-made bytes of the same sizes through raw librdkafka"


@dataclass(frozen=True)
class Point:
    """A transfer and its baseline, and where they lie in a plot.

    Attributes:
        label: In the names of its figures.
        title: For people.
        transfer: What is measured.
        baseline: What it is measured beside.
        line: The line that it lies on.
        at: Where, along the axis of its group.
        baseline_at: Where on that line the baseline lies; None: it has a line of its own.
        quick: Whether the quick profile has it.
        headline: Whether its group's first figures open the report.
    """

    label: str
    title: str
    transfer: Transfer
    baseline: Transfer
    line: str = ""
    at: float = 0.0
    baseline_at: float | None = None
    quick: bool = True
    headline: bool = False


@dataclass(frozen=True)
class Group:
    """A question: points that are asked for the same quantities.

    Attributes:
        name: In the names of experiments and figures.
        title: For people.
        baseline: What the baseline is.
        quantities: Names in `QUANTITIES`; the first *headlines* of them open the report.
        points: In the order in which they run.
        axis: What the points differ in, where they can be drawn along it.
        wide: Whether that spans decades.
        headlines: How many.
    """

    name: str
    title: str
    baseline: str
    quantities: tuple[str, ...]
    points: tuple[Point, ...]
    axis: str = ""
    wide: bool = False
    headlines: int = 1


def groups(alerts: int = VOLUMES[-1], *, quick: bool = False) -> list[Group]:
    """Return the experiments with visits of at most *alerts*; with *quick*, that profile's."""
    visit = Transfer(Load(min(alerts, VISIT)))
    every = [
        _volume(alerts),
        _consumers(visit),
        _producers(visit),
        _partitions(visit),
        _flushing(visit),
        _sizes(visit),
        _compression(visit),
    ]
    return [replace(one, points=tuple(p for p in one.points if p.quick or not quick)) for one in every]


def figure_name(group: Group, point: Point, quantity: str) -> str:
    """Return what a quantity of a point is called in the results."""
    return f"{group.name}_{point.label}_{quantity}"


def _volume(most: int) -> Group:
    points = [
        Point(
            f"{count}_{label}",
            f"{count:,} alerts {label.replace('_', ' ')}",
            Transfer(Load(count, stamps=stamps), consumers=(DICTS, LATEST)),
            Transfer(Load(count, stamps=stamps, ready=True), consumers=(BYTES, LATEST)),
            line=label.replace("_", " "),
            at=count,
            headline=count >= VOLUMES[1],
        )
        for count in VOLUMES
        for label, stamps in STAMPS.items()
        if count <= max(most, VOLUMES[0])
    ]
    quantities = (
        "send_seconds",
        "transit_seconds",
        "kafka_memory_megabytes",
        "network_in_megabytes_per_second",
        "network_out_megabytes_per_second",
    )
    return Group(
        "volume",
        "Alert volume",
        RAW,
        quantities,
        tuple(points),
        axis="alerts in a visit",
        wide=True,
        headlines=2,
    )


def _scaled(
    visit: Transfer,
    counts: Iterable[int],
    shown: int,
    words: tuple[str, str, str],
    of: Callable[[int], Transfer],
    more: int = 0,
) -> Iterator[Point]:
    """Yield a point for each of *counts*; the one that is *shown* is quick, and opens the report.

    Args:
        visit: What each is measured beside.
        counts: Numbers of what grows.
        shown: One of them.
        words: Label, title and line, with a place for the count.
        of: Returns the transfer.
        more: By what the place on the axis exceeds the count.
    """
    label, title, line = words
    for count in counts:
        yield Point(
            label.format(count),
            title.format(count),
            of(count),
            visit,
            line=line,
            at=count + more,
            baseline_at=1,
            quick=count == shown,
            headline=count == shown,
        )


def _consumers(visit: Transfer) -> Group:
    def asking(count: int) -> Transfer:
        return replace(visit, consumers=(DICTS,) + (LATEST,) * count)

    all_decode = ("{}_decoding", "{} consumers that decode everything", "all decode everything")
    one_decodes = (
        "{}_asking",
        "one that decodes everything, {} that ask for the latest offset",
        "one decodes, the others ask for the latest offset",
    )
    points = (
        *_scaled(visit, range(2, 6), 5, all_decode, lambda n: replace(visit, consumers=(DICTS,) * n)),
        *_scaled(visit, range(1, 6), 5, one_decodes, asking, more=1),
    )
    return Group(
        "consumers",
        "Scaling consumers",
        "one consumer that decodes everything",
        ("seconds", "consumer_cpu_ms"),
        points,
        axis="consumers",
        headlines=2,
    )


def _producers(visit: Transfer) -> Group:
    words = ("{}", "{} producers", "nightwire")
    points = (*_scaled(visit, (2, 4, 8), 4, words, lambda n: replace(visit, producers=n)),)
    quantities = ("alerts_per_second", "transit_seconds")
    return Group(
        "producers", "Scaling producers", "one producer", quantities, points, axis="producers", wide=True
    )


def _partitions(visit: Transfer) -> Group:
    words, one = ("{}", "{} partitions", "nightwire"), replace(visit, partitions=1)
    points = (*_scaled(one, (2, 4, 8, 16), 16, words, lambda n: replace(visit, partitions=n)),)
    quantities = ("alerts_per_second", "transit_seconds")
    return Group("partitions", "Scaling partitions", "one partition", quantities, points, axis="partitions")


def _flushing(visit: Transfer) -> Group:
    each = replace(visit, load=replace(visit.load, flush_each=True))
    return Group(
        "flushing",
        "Batched, or a flush after each alert",
        "a flush after each alert, as Rubin's producer does",
        ("alerts_per_second", "send_seconds", "stored_megabytes"),
        (Point("batched", "Batched", visit, each, headline=True),),
    )


def _sizes(visit: Transfer) -> Group:
    """Return that of sizes, uncompressed as in DMTN-028: one alert again and again would vanish."""
    real = replace(visit, load=replace(visit.load, compression="none"))
    fixed = replace(real, load=replace(real.load, fixed=True))
    return Group(
        "sizes",
        "Real sizes, or one size",
        "one alert of the mean size, again and again",
        ("alerts_per_second", "consumer_cpu_ms"),
        (Point("real", "Real sizes, uncompressed", real, fixed, headline=True),),
    )


def _compression(visit: Transfer) -> Group:
    plain = replace(visit, load=replace(visit.load, compression="none"))
    points = [
        Point(
            name, f"Compressed with {name}", replace(plain, load=replace(plain.load, compression=name)), plain
        )
        for name in ("lz4", "zstd", "snappy")
    ]
    return Group(
        "compression",
        "Compression",
        "no compression",
        ("stored_megabytes", "alerts_per_second", "send_seconds"),
        tuple(replace(point, headline=point.label == COMPRESSION) for point in points),
        headlines=2,
    )
