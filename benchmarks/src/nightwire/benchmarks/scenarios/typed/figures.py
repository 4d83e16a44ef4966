"""The figures that the scenario `typed` reports.  Pure."""

from collections.abc import Iterator, Mapping

from nightwire.benchmarks.model.scenario import Better, Figure
from nightwire.benchmarks.scenarios.typed.codec_alone import WAYS
from nightwire.benchmarks.scenarios.typed.filter_cost import FILTERS
from nightwire.benchmarks.scenarios.typed.plan import Plan, rate_name, words_of
from nightwire.benchmarks.scenarios.typed.through_kafka import COLUMNAR, OTHER, TYPED

RAW = "the same bytes through raw librdkafka, not looked at"
AS_WRITTEN = "the same records, read as they were written"
COPY = "a copy of the same bytes (memcpy)"
THROUGH: Mapping[str, tuple[str, str, str]] = {
    TYPED: ("Typed through Kafka, to dictionaries", RAW, "Typed against raw, through Kafka"),
    COLUMNAR: ("Typed through Kafka, to Arrow columns", RAW, "Typed against raw, through Kafka"),
    OTHER: ("Typed, to dictionaries of another version", AS_WRITTEN, "Another version at the receiver"),
}
ALONE = {"encode": "encoded", "decode": "decoded to dictionaries", "to_columns": "decoded to Arrow columns"}
LANGUAGE = {"range": "Fig. 6's filter, outside two limits", "average": "Fig. 7's, the average of an array"}


def figures_of(plan: Plan) -> Iterator[Figure]:
    """Yield every figure of *plan*."""
    largest = max(plan.sizes)
    for way in THROUGH:
        for size in plan.sizes:
            yield _through(way, size, headline=size in (min(plan.sizes), largest) and way != OTHER)
    yield Figure(
        "other_version_share",
        "1",
        f"Bandwidth to another version, as a share of that as written, {words_of(largest)}",
        Better.HIGHER,
        baseline=AS_WRITTEN,
        share_of=rate_name(OTHER, largest),
        headline=True,
        group=THROUGH[OTHER][2],
    )
    for way in WAYS:
        for size in plan.sizes:
            yield _alone(way, size)
    for name in FILTERS:
        yield from _filter(name)


def _through(way: str, size: int, *, headline: bool) -> Figure:
    title, baseline, group = THROUGH[way]
    return Figure(
        rate_name(way, size),
        "MB/s",
        f"{title}, records of {words_of(size)}",
        Better.HIGHER,
        baseline,
        headline=headline,
        group=group,
    )


def _alone(way: str, size: int) -> Figure:
    return Figure(
        rate_name(way, size),
        "MB/s",
        f"Records of {words_of(size)}, {ALONE[way]}",
        Better.HIGHER,
        COPY,
        group="The codec alone",
    )


def _filter(name: str) -> Iterator[Figure]:
    what, first = LANGUAGE[name], name == "range"
    titles = {
        "compile": ("compiled to the closed language", "Python's own compile of the same source"),
        "run": ("an event amid many", "Python's function, called for each event"),
        "run_alone": ("an event by itself", "Python's function, called for it"),
    }
    for step, (title, baseline) in titles.items():
        yield Figure(
            f"{name}_{step}_us",
            "µs",
            f"{what}: {title}",
            baseline=baseline,
            headline=first,
            group="Filters, as Cod's",
        )
