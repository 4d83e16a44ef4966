"""Plots of bandwidth over the size of records.  Pure."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks.model.drawing import sorted_line
from nightwire.benchmarks.model.scenario import Line, Series
from nightwire.benchmarks.model.statistics import median
from nightwire.benchmarks.scenarios.messages.drawings import RATE
from nightwire.benchmarks.scenarios.typed.codec_alone import COPY
from nightwire.benchmarks.scenarios.typed.through_kafka import COLUMNAR, OTHER, RAW, TYPED

Measured = Mapping[tuple[str, int], Sequence[float]]
"""Bandwidths [MB/s] by way and size."""

SIZE = "size of a record [byte]"
THROUGH = {
    TYPED: "nightwire, to dictionaries",
    COLUMNAR: "nightwire, to Arrow columns",
    OTHER: "nightwire, to dictionaries of another version",
    RAW: "raw librdkafka",
}
ALONE = {
    "encode": "encoded",
    "decode": "decoded to dictionaries",
    "to_columns": "decoded to Arrow columns",
    COPY: "copied (memcpy)",
}


def drawings(through: Measured, alone: Measured) -> Iterator[Series]:
    """Yield bandwidth through Kafka, as the paper's Fig. 12, and that of the codec alone."""
    for title, measured, names in (
        ("Typed against raw bandwidth, through Kafka", through, THROUGH),
        ("Typed against raw bandwidth, the codec alone", alone, ALONE),
    ):
        if lines := list(_lines(measured, names)):
            yield Series(title, SIZE, RATE, lines, log_x=True, log_y=True)


def _lines(measured: Measured, names: Mapping[str, str]) -> Iterator[Line]:
    for way, name in names.items():
        if found := {size: median(rates) for (one, size), rates in measured.items() if one == way and rates}:
            yield sorted_line(name, found)
