"""Plots of the experiments.  Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from nightwire.benchmarks.model.drawing import OWNERS, Point, figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.model.scenario import Series
from nightwire.benchmarks.scenarios.dmtn028.experiments import Group, figure_name
from nightwire.benchmarks.scenarios.dmtn028.quantities import QUANTITIES, VISIT_SIZE

SIZE = "size of a visit [MB]"


def drawings(groups: Iterable[Group], samples: Sequence[Sample]) -> Iterator[Series]:
    """Yield plots of the quantities of groups with an axis; of volumes also over their size."""
    for group in groups:
        for name in group.quantities if group.axis else ():
            for axis in (group.axis, SIZE) if group.name == "volume" else (group.axis,):
                yield from _plot(group, name, axis, samples)


def _plot(group: Group, name: str, axis: str, samples: Sequence[Sample]) -> list[Series]:
    quantity = QUANTITIES[name]
    lines: dict[str, list[Point]] = {}
    for kind, point in product(Kind, group.points):  # ours first, so that colours stay
        line, at = point.line, point.at
        if kind is Kind.BASELINE:  # it lies on the same line, or on one of its own
            line = f"{OWNERS[kind]}, {line}" if point.baseline_at is None else line
            at = at if point.baseline_at is None else point.baseline_at
        place = figure_name(group, point, VISIT_SIZE) if axis == SIZE else at
        lines.setdefault(line, []).append((place, figure_name(group, point, name), kind))
    return plot(
        f"{group.title}: {quantity.words}",
        (axis, f"{quantity.short} [{quantity.unit}]"),
        [figure_line(line, points, samples) for line, points in lines.items()],
        log=("x" if group.wide else "") + ("y" if group.wide and quantity.wide else ""),
    )
