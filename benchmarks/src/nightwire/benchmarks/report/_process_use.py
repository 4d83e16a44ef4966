"""What a process used in the runs of an experiment, as an entry like those of figures.  Pure."""

from nightwire.benchmarks._stats import UNSTABLE, median, ratios, summary
from nightwire.benchmarks.report._papers import Measured
from nightwire.benchmarks.report._recorded_use import in_runs
from nightwire.benchmarks.report._words import Entry, Result

SAMPLED = frozenset({"cpu_seconds", "peak_rss_bytes", "sent_bytes", "received_bytes"})
"""What is kept of each run; all else is what the recorder has, added up over the run."""


def process_use(result: Result, one: Measured) -> Entry | None:
    """Return what the process that *one* names used in runs of ours and of the baseline; None: no such run.

    Value and baseline are medians, the ratio is that of the pairs, as of any figure.
    """
    ours, theirs = (_by_pair(result, one, kind) for kind in ("subject", "baseline"))
    if not ours:
        return None
    pairs = summary(paired) if (paired := ratios(ours, theirs)) else None
    spread = (pairs or summary(list(ours.values()))).spread
    return {
        "value": median(list(ours.values())),
        "baseline": median(list(theirs.values())) if theirs else None,
        "ratio": pairs.median if pairs else None,
        "spread": spread,
        "unstable": spread > UNSTABLE,
        "runs": len(ours),
        "baseline_is": None,
    }


def _by_pair(result: Result, one: Measured, kind: str) -> dict[int, float]:
    if one.use not in SAMPLED:
        return in_runs(result, one.experiment, kind, one.process, one.use)
    return {
        sample["pair"]: process[one.use]
        for sample in result["samples"]
        if (sample["experiment"], sample["kind"]) == (one.experiment, kind)
        for process in sample["processes"]
        if process["name"] == one.process and process.get(one.use) is not None
    }
