"""Where the seconds of a pass go: what the engine says of its parts, and what processes took."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from prometheus_client.parser import text_string_to_metric_families

from nightwire.benchmarks import Figures, Kind, Sample
from nightwire.benchmarks.model.scenario import Table
from nightwire.benchmarks.model.statistics import median

COUNTED = {
    "nightwire_filters_phase_seconds_sum": ("", "phase"),
    "nightwire_filters_spark_phase_seconds_sum": ("Spark ", "phase"),
    "nightwire_filters_cpu_seconds_total": ("CPU ", "way"),
    "nightwire_filters_copies_acknowledged_total": ("copies", ""),
}
"""What is taken of a page of metrics: how it is called, and the label that it is called after."""
COPIES, SEND, REST = "copies", "send", "Spark's rest"
FIGURE = "phase: "
"""How the names of figures begin that are of parts of a pass."""
TITLES = {
    "pass": "until all lanes are done",
    "quick": "until the quick lane is done, of which all else is told",
    "Spark latestOffset": "plan: where topics end, which filters are live",
    "Spark queryPlanning": "Spark plans its query",
    "Spark walCommit": "Spark logs the offsets",
    "read": "workers: read (of all tasks together)",
    "decode": "workers: decode (of all tasks together)",
    "judge": "judge: from the tasks' start to their rows",
    "CPU columns": "… CPU of filters over columns",
    "CPU rows": "… CPU of filters in the sandbox",
    "CPU rows (slow)": "CPU of filters in slow lanes",
    "decide": "decide, and keep the decision",
    SEND: "send, until all is acknowledged",
    "fetch": "… of it fetching again what is sent",
    "account": "account",
    REST: "Spark's rest of a batch: Java, tasks",
    "Spark commitOffsets": "Spark commits",
}
"""Parts in their order; others follow under their own names."""
HIDDEN = frozenset(
    {COPIES, "Spark addBatch", "Spark triggerExecution", "Spark getBatch", "Spark commitBatch"}
)
"""What is no part of its own."""
WITHIN = ("judge", "decide", SEND, "account")
"""What Spark calls adding a batch."""


def counted(page: str, slow: Collection[str] = ()) -> dict[str, float]:
    """Return what the engine has counted so far, by part of a batch: seconds, and copies.

    Args:
        page: Its page of metrics.
        slow: Filters in slow lanes.
    """
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for one in family.samples:
            if one.name in COUNTED:
                kind, label = COUNTED[one.name]
                behind = one.labels.get("filter") in slow or one.labels.get("lane") == "slow"
                name = f"{kind}{one.labels.get(label, '')}{' (slow)' if behind else ''}"
                found[name] = found.get(name, 0.0) + one.value
    return found


def spent(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return what was counted in between, and Spark's rest of a batch."""
    found = {name: value - before.get(name, 0.0) for name, value in after.items()}
    if "Spark addBatch" in found:
        found[REST] = found["Spark addBatch"] - sum(found.get(name, 0.0) for name in WITHIN)
    return found


def phase_figures(phases: Mapping[str, float]) -> Figures:
    """Return *phases* as a run's figures."""
    return {f"{FIGURE}{name}": value for name, value in phases.items()}


def phase_tables(samples: Sequence[Sample]) -> list[Table]:
    """Return the table of the parts of a pass, by experiment; none where no engine told them."""
    runs: dict[str, list[Sample]] = {}
    for one in samples:
        if one.kind is Kind.SUBJECT and any(name.startswith(FIGURE) for name in one.figures):
            runs.setdefault(one.experiment, []).append(one)
    if not runs:
        return []
    columns = [dict(_parts(some)) for some in runs.values()]
    names = sorted(dict.fromkeys(name for column in columns for name in column), key=_place)
    rows = [
        [TITLES.get(name, name), *(f"{column[name]:.2f} s" if name in column else "–" for column in columns)]
        for name in names
    ]
    return [
        Table(
            "Where the seconds of a pass go",
            ["median of the runs", *(" ".join(name.split("-")[1:-1]) for name in runs)],
            rows,
        )
    ]


def _parts(runs: Sequence[Sample]) -> Iterator[tuple[str, float]]:
    """Yield the median of each part over *runs* [s], and the CPU time of each process."""
    for figure in dict.fromkeys(name for one in runs for name in one.figures):
        name = figure.removeprefix(FIGURE)
        if figure == name and (name := figure.partition("_")[0]) not in ("pass", "quick"):
            continue
        if name not in HIDDEN and "without" not in figure:
            yield name, median([one.figures[figure] for one in runs if figure in one.figures])
    for process in dict.fromkeys(process.name for one in runs for process in one.use.processes):
        if process.startswith("recorder"):
            continue
        used = [each.cpu_seconds for one in runs for each in one.use.processes if each.name == process]
        yield f"CPU time: {process}", median(used)


def _place(name: str) -> tuple[int, str]:
    order = [*TITLES]
    return (order.index(name) if name in order else len(order) + name.startswith("CPU time"), name)
