"""The scenario `dmtn028`: its figures, its size, its experiments, and what they have to show."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from nightwire.benchmarks import Context, Experiment, Figure, Needs, Outcome, Scenario, Series, Size
from nightwire.benchmarks.environment.cluster import PARTITIONS
from nightwire.benchmarks.model.drawing import OWNERS, PlotPoint, figure_line, plot
from nightwire.benchmarks.model.sample import Figures, Kind, Sample
from nightwire.benchmarks.scenarios.dmtn028.experiments import (
    VISIT,
    VOLUMES,
    Group,
    Point,
    figure_name,
    groups,
)
from nightwire.benchmarks.scenarios.dmtn028.quantities import QUANTITIES, VISIT_SIZE
from nightwire.benchmarks.workers.alerts.transfer import LATEST, POOL, Transfer, TransferRunner

SIZE = "size of a visit [MB]"


def drawings(groups: Iterable[Group], samples: Sequence[Sample]) -> Iterator[Series]:
    """Yield plots of the quantities of groups with an axis; of volumes also over their size."""
    for group in groups:
        for name in group.quantities if group.axis else ():
            for axis in (group.axis, SIZE) if group.name == "volume" else (group.axis,):
                yield from _plot(group, name, axis, samples)


def _plot(group: Group, name: str, axis: str, samples: Sequence[Sample]) -> list[Series]:
    quantity = QUANTITIES[name]
    lines: dict[str, list[PlotPoint]] = {}
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


STARTING = 15.0
"""Kafka, and a first transfer. [s]"""
PER_TRANSFER = 0.4
PER_PROCESS = 0.2
"""Topic and processes of a transfer. [s]"""
PER_ALERT = 0.000_4
"""In the sender, and again in each consumer that decodes. [s]  Two shared cores."""
ON_DISK = {True: 135_000, False: 65_000}
"""An alert in Kafka, without (True) and with compression. [byte]"""
MEMORY = 5 * 10**9
"""Kafka and eight senders or consumers. [byte]"""


class Dmtn028Scenario(Scenario):
    """DMTN-028's: volume, consumers, producers, partitions, flushing, sizes, compression."""

    name = "dmtn028"
    title = "DMTN-028: an alert stream under load"
    measures = (
        "The experiments of DMTN-028, with the part that its authors left “to be completed”. Processes send "
        "a visit of alerts through our AlertWriter (dictionaries → Avro → Kafka, acks=all, idempotent, lz4, "
        f"{PARTITIONS} partitions unless said otherwise), and processes read it, each under a group of its "
        "own: those of the first kind decode every alert to a dictionary, those of the second only ask for "
        f"the latest offset. A visit has {POOL} distinct alerts of real sizes, made before the clock "
        "starts; ids, times and positions are new in each. Each visit has a new topic; a consumer that "
        "saw other than what was sent fails the run. All processes share one machine."
    )
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=VOLUMES[1], pairs=3, rate=250.0, profile="quick"),
        "full": Size(alerts=VOLUMES[-1], pairs=3, rate=250.0, profile="full"),
    }

    def __init__(self) -> None:
        self.figures = [
            figure for group in groups() for point in group.points for figure in figures_of(group, point)
        ]

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        transfers = [
            transfer
            for group in groups_of(size)
            for point in group.points
            for transfer in (point.transfer, point.baseline)
        ]
        return Needs(
            # Kafka deletes a topic a little later
            disk=2 * max(stored(transfer) for transfer in transfers),
            memory=MEMORY,
            seconds=STARTING + size.pairs * sum(map(lasting, transfers)),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return one experiment for each point."""
        context.role(os.getpid(), "harness")
        self._context, runner = context, self.closing(TransferRunner(context))
        return [
            TransferExperiment(group, point, runner)
            for group in groups_of(context.size)
            for point in group.points
        ]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Return the plots, what was reduced, and OpenMessaging's keys."""
        keys: dict[str, Any] = {"workload": self.name, "driver": "nightwire", "partitions": PARTITIONS}
        series = list(drawings(groups_of(self._context.size), samples))
        return Outcome(series, notes(self._context), keys)


class TransferExperiment(Experiment):
    """One point beside its baseline."""

    def __init__(self, group: Group, point: Point, runner: TransferRunner) -> None:
        self.name = f"{group.name} {point.label}".replace("_", " ")
        self._group, self._point, self._runner = group, point, runner

    def prepare(self) -> None:
        """Start Kafka and warm it up, where that was not done."""
        self._runner.warm_up()

    def run_once(self, kind: Kind) -> Figures:
        """Transfer one visit, and return the group's figures."""
        subject = kind is Kind.SUBJECT
        result = self._runner.run(self._point.transfer if subject else self._point.baseline)
        found = {
            name: value
            for name in self._group.quantities
            if subject or QUANTITIES[name].compared
            if (value := QUANTITIES[name].of(result)) is not None
        }
        found[VISIT_SIZE] = result.size / 1e6
        return {figure_name(self._group, self._point, name): value for name, value in found.items()}


def groups_of(size: Size) -> list[Group]:
    """Return the experiments of a run of *size*."""
    return groups(size.alerts, quick=size.profile == "quick")


def figures_of(group: Group, point: Point) -> list[Figure]:
    """Return the figures of *point*."""
    return [
        Figure(
            figure_name(group, point, key),
            quantity.unit,
            f"{point.title}: {quantity.words}",
            quantity.better,
            baseline=group.baseline if quantity.compared else "",
            headline=point.headline and place < group.headlines,
            group=group.title,
        )
        for place, key in enumerate(group.quantities)
        for quantity in (QUANTITIES[key],)
    ]


def stored(transfer: Transfer) -> int:
    """Return about what *transfer* takes on disk. [byte]"""
    return transfer.load.alerts * ON_DISK[transfer.load.compression == "none"]


def lasting(transfer: Transfer) -> float:
    """Return about how long *transfer* lasts, generously. [s]"""
    decoding = sum(work != LATEST for work in transfer.consumers)
    processes = transfer.producers + len(transfer.consumers)
    return PER_TRANSFER + PER_PROCESS * processes + PER_ALERT * transfer.load.alerts * (1 + decoding)


def notes(context: Context) -> list[str]:
    """Say what was reduced, and what differs from DMTN-028."""
    size = context.size
    visit = min(size.alerts, VISIT)
    published = (
        "DMTN-028 has 100, 1,000 and 10,000 alerts a visit, up to 1,000 visits, and names 100,000 as a goal"
    )
    found = [
        f"{size.profile.capitalize()} profile: volumes up to {size.alerts:,} alerts a visit, "
        f"{visit:,} in all other experiments; {size.pairs} visits a point. {published}.",
        "Consumers of the second kind get no alerts here; DMTN-028's were sent the whole stream.",
        f"All processes share {os.cpu_count()} cores: several that decode compete for them; the CPU time of "
        "a consumer for an alert shows whether they slow each other otherwise.",
        "Kafka's memory is resident memory without the pages of its files, which DMTN-028 counts in. Network "
        "is a mean over the visit, from what Kafka stored, without the protocol's own bytes.",
    ]
    if context.bootstrap is not None:
        found.append("Kafka was there already: its disk, memory and network are not seen.")
    return found
