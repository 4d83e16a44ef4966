"""The scenario `typed`: its figures, its size, its experiments, and what they have to show."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from nightwire.benchmarks import Better, Context, Experiment, Figure, Needs, Outcome, Scenario, Series, Size
from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.benchmarks.model.drawing import figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.scenarios.typed.codec_alone import WAYS, CodecAlone
from nightwire.benchmarks.scenarios.typed.filter_cost import FILTERS, FilterCost
from nightwire.benchmarks.scenarios.typed.plan import SIZES, Plan, plan_of, rate_name, words_of
from nightwire.benchmarks.scenarios.typed.through_kafka import COLUMNAR, OTHER, TYPED, WORK, through_kafka
from nightwire.benchmarks.workers.pool import WorkerPool
from nightwire.schemas import Codec, sim_alert_schema

AXES = ("size of a record [byte]", "bandwidth [MB/s]")
Lines = Mapping[str, tuple[str, Kind]]
"""The way whose rates a line has, and whose they are, by the line's name."""

THROUGH_LINES: Lines = {
    "nightwire, to dictionaries": (TYPED, Kind.SUBJECT),
    "nightwire, to Arrow columns": (COLUMNAR, Kind.SUBJECT),
    "nightwire, to dictionaries of another version": (OTHER, Kind.SUBJECT),
    "raw librdkafka": (TYPED, Kind.BASELINE),
}
ALONE_LINES: Lines = {
    "encoded": ("encode", Kind.SUBJECT),
    "decoded to dictionaries": ("decode", Kind.SUBJECT),
    "decoded to Arrow columns": ("to_columns", Kind.SUBJECT),
    "copied (memcpy)": ("encode", Kind.BASELINE),
}


def drawings(plan: Plan, samples: Sequence[Sample]) -> Iterator[Series]:
    """Yield bandwidth through Kafka, as the paper's Fig. 12, and that of the codec alone."""
    for what, lines in (("through Kafka", THROUGH_LINES), ("the codec alone", ALONE_LINES)):
        drawn = [
            figure_line(name, [(size, rate_name(way, size), kind) for size in plan.sizes], samples)
            for name, (way, kind) in lines.items()
        ]
        yield from plot(f"Typed against raw bandwidth, {what}", AXES, drawn)


RAW = "the same bytes through raw librdkafka, not looked at"
AS_WRITTEN = "the same records, read as they were written"
COPY = "a copy of the same bytes (memcpy)"
THROUGH_TITLES: Mapping[str, tuple[str, str, str]] = {
    TYPED: ("Typed through Kafka, to dictionaries", RAW, "Typed against raw, through Kafka"),
    COLUMNAR: ("Typed through Kafka, to Arrow columns", RAW, "Typed against raw, through Kafka"),
    OTHER: ("Typed, to dictionaries of another version", AS_WRITTEN, "Another version at the receiver"),
}
ALONE_TITLES = {
    "encode": "encoded",
    "decode": "decoded to dictionaries",
    "to_columns": "decoded to Arrow columns",
}
LANGUAGE = {"range": "Fig. 6's filter, outside two limits", "average": "Fig. 7's, the average of an array"}


def figures_of(plan: Plan) -> Iterator[Figure]:
    """Yield every figure of *plan*."""
    largest = max(plan.sizes)
    for way in THROUGH_TITLES:
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
        group=THROUGH_TITLES[OTHER][2],
    )
    for way in WAYS:
        for size in plan.sizes:
            yield _alone(way, size)
    for name in FILTERS:
        yield from _filter(name)


def _through(way: str, size: int, *, headline: bool) -> Figure:
    title, baseline, group = THROUGH_TITLES[way]
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
        f"Records of {words_of(size)}, {ALONE_TITLES[way]}",
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


WORKER = "nightwire.benchmarks.scenarios.typed.worker"
POOL = 250
"""Distinct alerts that filters judge."""
STARTING = 20.0
"""Kafka, two processes, the alerts, a warm-up. [s]"""
PER_MOVE = 0.4
"""Topic, clients and a little more. [s]"""
PER_RECORD = 0.000_03
PER_BYTE = 1.2e-8
"""A record, and a byte of it, from one process to the other, on two shared cores. [s]"""
ALONE_SHARE = 2.0
"""The codec alone and a copy, one size. [s]"""
MEMORY = 2 * 10**9
"""Kafka, two processes, and what librdkafka queues. [byte]"""


class TypedScenario(Scenario):
    """Typed against raw bandwidth over sizes, and what filters cost.

    Args:
        plan: What a run of a size measures.
    """

    name = "typed"
    title = "EVPath's measurements: typed against raw bandwidth, and what a filter costs"
    measures = (
        "Eisenhauer et al. (2009), Fig. 12 and section 3.3. *Typed*: dictionaries of a number, a text and an "
        "array of doubles, which grows, are encoded and sent (acks=all, idempotent, uncompressed, one "
        "partition), and a second process decodes each to a dictionary, or all to Arrow columns; bandwidth "
        "counts from the first dictionary to the last decode. The baseline sends the same bytes, ready-made, "
        "through raw librdkafka. *Another version*: the receiver wants other names, types and fields, in "
        "another order. *Alone*: the same codec in one process without Kafka, beside a copy of the bytes. "
        "*Filters*: the two of the paper's Figs. 6 and 7, on alerts: compiled to the closed language beside "
        "Python's own compile; and run over columns, for many events at once and for one by itself, beside "
        "Python's function, which gets each event as a new view. Decoding comes before the clock starts, "
        "for columns and for dictionaries. All processes share one machine."
    )
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=10_000, pairs=3, rate=1.0, profile="quick"),
        "full": Size(alerts=50_000, pairs=5, rate=1.0, profile="full"),
    }

    def __init__(self, plan: Callable[[Size], Plan] = plan_of) -> None:
        self._plan_of = plan
        self.figures = list(figures_of(plan(self.standard["full"])))

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        plan = self._plan_of(size)
        moves = sum(PER_MOVE + plan.count(one) * (PER_RECORD + one * PER_BYTE) for one in plan.sizes)
        pair = (len(WORK) + 1) * moves + ALONE_SHARE * len(plan.sizes)
        return Needs(disk=4 * plan.volume, memory=MEMORY, seconds=STARTING + (size.pairs + 0.2) * pair)

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return the filters, what goes through Kafka, and what does not."""
        context.role(os.getpid(), "harness")
        context.say("making the pool of alerts")
        self._size, plan = context.size, self._plan_of(context.size)
        workers = self.closing(WorkerPool(context, WORKER))
        filters = FilterCost(make_pool(min(POOL, plan.events)), plan.events)
        return [filters, CodecAlone(plan), *through_kafka(workers, plan)]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Return the plots, and what was reduced."""
        plan = self._plan_of(self._size)
        return Outcome(list(drawings(plan, samples)), notes(self._size, plan))


def notes(size: Size, plan: Plan) -> list[str]:
    """Say what was reduced, and what differs from the paper."""
    found = [
        f"{size.profile.capitalize()} profile: {plan.records:,} records of a size, or as many as have "
        f"{plan.volume / 1e6:.0f} MB together; filters judge {plan.events:,} events. The paper does not say "
        "how many its measurements had.",
        "The paper's Fig. 12 is a plot without numbers; its text says that EVPath “delivers nearly all of "
        "available bandwidth at large message sizes”, between two machines. Here two processes and Kafka "
        f"share {os.cpu_count()} cores: what a codec takes, Kafka does not get.",
        "EVPath hands over memory as it came; ours makes a Python object of each double in a dictionary, and "
        "none in Arrow columns.",
        f"Codec: {Codec(sim_alert_schema()).engine}.",
    ]
    if left_out := [words_of(one) for one in SIZES if one not in plan.sizes]:
        found.append(f"Reduced: no records of {', '.join(left_out)}.")
    return found
