"""The figures that the scenario reports, in the order of the report."""

from nightwire.benchmarks.environment.filter_engine import CAP
from nightwire.benchmarks.model.scenario import Figure

RAW = "a plain librdkafka consumer that takes such a visit's bytes"
LIVE = "the same visit into a topic, and a plain librdkafka consumer"
PACED = "ready-made bytes through raw librdkafka at the same rate"
COUNTS = (1, 10, 100, 500, 1_000)
"""Numbers of filters of the curve."""
HEADLINES = (100, 1_000)


def passed(count: int) -> Figure:
    """Return the figure of the pass alone."""
    return Figure(
        f"pass_seconds_{count}_filters",
        "s",
        f"A visit that lies in Kafka, judged by {count:,} filters, sent to its owners and accounted for",
        baseline=RAW,
        headline=count in HEADLINES,
    )


def judged(count: int) -> Figure:
    """Return the figure of the pass without its sending."""
    return Figure(
        f"pass_without_sending_seconds_{count}_filters",
        "s",
        f"The same, {count:,} filters, but for the time in which their copies are sent",
        baseline=RAW,
        headline=count == max(HEADLINES),
    )


def burst(count: int) -> list[Figure]:
    """Return the figures of a visit in one burst."""
    many = f"{count:,} filters"
    since = f"From the first send until an owner has the first {CAP} of a visit"
    return [
        Figure(f"first20_mean_seconds_{count}_filters", "s", f"{since}, {many}, mean", headline=True),
        Figure(f"first20_p99_seconds_{count}_filters", "s", f"{since}, {many}, 99 %", headline=True),
        Figure(
            f"visit_seconds_{count}_filters",
            "s",
            f"From the first send until a visit is accounted for, {many}",
            baseline=LIVE,
        ),
        Figure(f"copies_sent_{count}_filters", "1", f"Copies that were sent to owners, {many}"),
    ]


FIGURES = (
    *(figure(count) for count in COUNTS for figure in (passed, judged)),
    *(one for count in HEADLINES for one in burst(count)),
    Figure(
        "large_visit_seconds", "s",
        "From the first send until a visit ten times as large is accounted for, 100 filters",
        baseline=LIVE, headline=True,
    ),
    Figure(
        "filter_latency_p50_ms", "ms",
        "Due → owner's topic at a steady rate, 100 filters, visits of 39 s, median",
        baseline=PACED, headline=True,
    ),
    Figure(
        "filter_latency_p99_ms", "ms", "… 99 %",
        baseline=PACED, headline=True,
    ),
    Figure(
        "live_seconds", "s", "From when a filter is accepted, amid a visit, until its first alert is out",
        headline=True,
    ),
    Figure(
        "start_seconds", "s", "From the start of an engine that was killed until its first alert is out",
        headline=True,
    ),
    Figure("generator_behind_ms", "ms", "The generator's worst lag behind its schedule"),
    Figure(
        "disturbed_first20_mean_seconds", "s",
        f"An owner's first {CAP}, mean, while one filter loops for ever and one takes all memory",
        baseline="the same without the two", headline=True,
    ),
    Figure(
        "disturbed_first20_p99_seconds", "s", "… 99 %", baseline="the same without the two",
    ),
    Figure(
        "compile_us", "us", "Compiling a filter to the closed language, mean",
        baseline="Python's own compile of the same source", headline=True,
    ),
    Figure("compile_p90_us", "us", "… 90 %", baseline="Python's own compile of the same source"),
    Figure(
        "evaluate_simple_us", "us", "Evaluating a simple filter over columns, an alert",
        baseline="the function, called for each alert", headline=True,
    ),
    Figure(
        "pass_beside_functions_seconds", "s", "The pass, 100 filters",
        baseline="a process that decodes each alert whole and calls 100 Python functions; nothing is sent",
    ),
    Figure(
        "pass_beside_queries_seconds", "s", "The pass, 10 filters",
        baseline="ten queries, one per user, over Spark's own Kafka source",
    ),
)  # fmt: skip
