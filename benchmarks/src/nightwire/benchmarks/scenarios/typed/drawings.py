"""Plots of bandwidth over the size of records.  Pure."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks.model.drawing import figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.model.scenario import Series
from nightwire.benchmarks.scenarios.typed.plan import Plan, rate_name
from nightwire.benchmarks.scenarios.typed.through_kafka import COLUMNAR, OTHER, TYPED

AXES = ("size of a record [byte]", "bandwidth [MB/s]")
Lines = Mapping[str, tuple[str, Kind]]
"""The way whose rates a line has, and whose they are, by the line's name."""

THROUGH: Lines = {
    "nightwire, to dictionaries": (TYPED, Kind.SUBJECT),
    "nightwire, to Arrow columns": (COLUMNAR, Kind.SUBJECT),
    "nightwire, to dictionaries of another version": (OTHER, Kind.SUBJECT),
    "raw librdkafka": (TYPED, Kind.BASELINE),
}
ALONE: Lines = {
    "encoded": ("encode", Kind.SUBJECT),
    "decoded to dictionaries": ("decode", Kind.SUBJECT),
    "decoded to Arrow columns": ("to_columns", Kind.SUBJECT),
    "copied (memcpy)": ("encode", Kind.BASELINE),
}


def drawings(plan: Plan, samples: Sequence[Sample]) -> Iterator[Series]:
    """Yield bandwidth through Kafka, as the paper's Fig. 12, and that of the codec alone."""
    for what, lines in (("through Kafka", THROUGH), ("the codec alone", ALONE)):
        drawn = [
            figure_line(name, [(size, rate_name(way, size), kind) for size in plan.sizes], samples)
            for name, (way, kind) in lines.items()
        ]
        yield from plot(f"Typed against raw bandwidth, {what}", AXES, drawn)
