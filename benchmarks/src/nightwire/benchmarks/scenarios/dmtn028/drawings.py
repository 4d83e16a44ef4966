"""Plots of the experiments, ours and DMTN-028's on the same axes.  Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

from nightwire.benchmarks.model.sample import Kind
from nightwire.benchmarks.model.scenario import Line, Series
from nightwire.benchmarks.model.statistics import median, rounded
from nightwire.benchmarks.scenarios.dmtn028 import published as _published
from nightwire.benchmarks.scenarios.dmtn028.experiments import Group, Point
from nightwire.benchmarks.scenarios.dmtn028.quantities import QUANTITIES, Quantity
from nightwire.benchmarks.workers.alerts.transfer import TransferResult

Book = Mapping[tuple[str, str, Kind], Sequence[TransferResult]]
"""What was played, by group, point and kind."""
Where = Callable[[Point, TransferResult], float]

RAW = "raw librdkafka"
SIZE = "size of a visit [MB]"


def drawings(groups: Iterable[Group], book: Book) -> list[Series]:
    """Return a plot of each quantity of each group that has an axis; of volumes also one over their size."""
    return [one for group in groups if group.axis for one in _of_group(group, book) if one.lines]


def _of_group(group: Group, book: Book) -> Iterable[Series]:
    over_size = group.name == "volume"
    for name in group.quantities:
        yield _series(group, name, book, group.axis, lambda point, _played: point.at)
        if over_size:
            yield _series(group, name, book, SIZE, lambda _point, played: played.size / 1e6)


def _series(group: Group, name: str, book: Book, axis: str, where: Where) -> Series:
    quantity = QUANTITIES[name]
    lines = _lines(group, quantity, book, where)
    return Series(
        f"{group.title}: {quantity.words}",
        axis,
        f"{quantity.short} [{quantity.unit}]",
        [*lines, *_theirs(group.name, name, axis)] if lines else [],
        log_x=group.wide,
        log_y=group.wide and quantity.wide,
    )


def _theirs(group: str, name: str, axis: str) -> Sequence[Line]:
    if group == "producers":
        return [_published.OVER_PRODUCERS] if name == "alerts_per_second" else []
    if group != "volume":
        return []
    return _published.over_size(name) if axis == SIZE else _published.OVER_ALERTS.get(name, ())


def _lines(group: Group, quantity: Quantity, book: Book, where: Where) -> list[Line]:
    """Return medians along each line; baselines lie on it, or on one of their own."""
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for kind, point in product(Kind, group.points):  # ours first, so that colours stay
        line = point.line
        for played in book.get((group.name, point.label, kind), ()):
            place, value = where(point, played), quantity.of(played)
            if kind is Kind.BASELINE:
                line, place = _baseline(point, place)
            if value is not None and (kind is Kind.SUBJECT or quantity.compared):
                found[line][place].append(value)
    return [
        Line(
            name,
            [rounded(at) for at in sorted(places)],
            [rounded(median(places[at])) for at in sorted(places)],
        )
        for name, places in found.items()
    ]


def _baseline(point: Point, place: float) -> tuple[str, float]:
    if point.baseline_at is None:
        return f"{RAW}, {point.line}", place
    return point.line, point.baseline_at
