"""From the samples of a run to the figures that are reported.  Pure."""

from collections.abc import Sequence
from typing import Any

from nightwire.benchmarks.model.sample import Sample, figure_pairs
from nightwire.benchmarks.model.scenario import Figure
from nightwire.benchmarks.model.statistics import UNSTABLE, Summary, median, ratios, rounded, summary
from nightwire.benchmarks.resources.cpu import DISTURBED


def results(figures: Sequence[Figure], samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Return an entry for each of *figures* that was measured, in their order."""
    return [entry for figure in figures if (entry := result(figure, samples)) is not None]


def result(figure: Figure, samples: Sequence[Sample]) -> dict[str, Any] | None:
    """Return the entry of *figure*; None where no sample has it.

    ``ratio`` is the median of subject over baseline, pair by pair; ``spread`` its interquartile
    range as a share of it, or that of the value where there is no baseline.
    """
    ours, theirs = figure_pairs(samples, figure.share_of or figure.name)
    if not ours:
        return None
    value, baseline = summary(list(ours.values())), summary(list(theirs.values())) if theirs else None
    pairs = summary(paired) if (paired := ratios(ours, theirs)) else None
    if figure.share_of:
        if pairs is None:
            return None
        value, baseline = pairs, Summary(1.0, 0.0)
    spread = (pairs or value).spread
    return {
        "name": figure.name,
        "value": rounded(value.median),
        "unit": figure.unit,
        "baseline": None if baseline is None else rounded(baseline.median),
        "ratio": None if pairs is None else rounded(pairs.median),
        "spread": rounded(spread) if spread != float("inf") else None,
        "unstable": spread > UNSTABLE,
        "runs": len(ours),
        "title": figure.title,
        "better": figure.better.value,
        "share_of": figure.share_of or None,
        "baseline_is": figure.baseline or None,
        "headline": figure.headline,
        "group": figure.group or None,
        "published": None if figure.published is None else vars(figure.published),
    }


def others(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the share of CPU that others took: median, worst, and whether it disturbs."""
    shares = [sample.use.others for sample in samples]
    if not shares:
        nothing = {"median": 0.0, "worst": 0.0, "limit": DISTURBED, "disturbed": False}
        return nothing | {"runs_disturbed": 0, "runs_repeated": 0}
    above = sum(share > DISTURBED for share in shares)
    return {
        "median": rounded(median(shares)),
        "worst": rounded(max(shares)),
        "limit": DISTURBED,
        "disturbed": above > 0,
        "runs_disturbed": above,
        "runs_repeated": sum(sample.tries > 1 for sample in samples),
    }


def repeated(samples: Sequence[Sample]) -> list[str]:
    """Say how many runs were repeated because others disturbed them; nothing where none was."""
    many = sum(sample.tries > 1 for sample in samples)
    if not many:
        return []
    most = max(sample.tries for sample in samples) - 1
    return [
        f"{many} of {len(samples)} runs were repeated, at most {most} times each, for others took more than "
        f"{DISTURBED:.0%} of the CPU; the least disturbed one counts."
    ]
