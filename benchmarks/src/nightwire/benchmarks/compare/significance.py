"""Whether a figure changed between two results, given the noise of both.  Pure.

Benchmarks have few pairs, from one to nine, and now and then a run that is far off.  So no normal
distribution is assumed, and means are not used:

- Medians that differ by less than a *least difference* are the same, whatever a test says: two runs
  of the same code differ by some percent in things that no repetition within a run shows, such as
  where memory came to lie.  Criterion.rs has such a threshold, asv a factor.
- With five pairs or more the rank test of Mann and Whitney decides, as in Go's benchstat and Google
  Benchmark's compare.py; here by its exact distribution, for the normal one wants twenty values.
  They allow one false alarm in twenty, and a result may have a hundred figures: here it is one in a
  hundred.
- A figure that is *unstable* by the harness's own measure changed if its medians differ, besides,
  by more than the wider interquartile range; else nothing is said of it, for a change might hide in
  the noise.
- With fewer pairs no rank test can say so much.  Then the ranges have to lie apart, by more than
  the wider of them is wide; of two runs, which mostly lie closer together than the noise is wide,
  by four times that.
- Distances are those of logarithms, where all values are above 0: what disturbs a run multiplies
  its time.
- One run has no noise that one could know: nothing is said.

With noise of 3 to 25 %, and one run in ten delayed by up to a half, less than one figure in fifty
is called slower or quicker for nothing.  The judgement is the same when both sides are swapped, but
for its direction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log

from scipy.stats import PermutationMethod, mannwhitneyu

from nightwire.benchmarks import Better
from nightwire.benchmarks.model.statistics import interquartile, median, summary

LEAST = 0.05
"""Least difference of the medians, as a share of the larger, that counts."""
ALPHA = 0.01
"""Chance of a false alarm above which the rank test says nothing."""
PERMUTATIONS = 9_999
"""More than seven values against seven have; of more, so many are taken at random."""


class Verdict(StrEnum):
    """What became of a figure."""

    SLOWER = "slower"
    QUICKER = "quicker"
    SAME = "same"
    UNKNOWN = "cannot be said"


@dataclass(frozen=True)
class Judgement:
    """A verdict, and why it is none."""

    verdict: Verdict
    why: str = ""


def assess(
    before: Sequence[float], after: Sequence[float], better: Better, *, least: float = LEAST
) -> Judgement:
    """Return what became of a figure; *slower* stands for worse, whatever its unit.

    Args:
        before: Its values, or ratios, in one result.
        after: Those in the other.
        better: Which way it improves.
        least: Least difference of the medians that counts, as a share of the larger.
    """
    if min(len(before), len(after)) < 2:
        return Judgement(Verdict.UNKNOWN, "one run")
    if _differ(before, after, least):
        rose = median(after) > median(before)
        return Judgement(Verdict.SLOWER if rose is (better is Better.LOWER) else Verdict.QUICKER)
    if _unstable(before, after):
        return Judgement(Verdict.UNKNOWN, "unstable")
    return Judgement(Verdict.SAME)


def _differ(before: Sequence[float], after: Sequence[float], least: float) -> bool:
    one, other = median(before), median(after)
    if abs(one - other) <= least * max(abs(one), abs(other)):
        return False
    if ranges_apart(before, after):
        return True
    steady = not _unstable(before, after) or _beyond(before, after)
    return steady and p_value(before, after) <= ALPHA


def _unstable(before: Sequence[float], after: Sequence[float]) -> bool:
    return summary(before).unstable or summary(after).unstable


def _beyond(before: Sequence[float], after: Sequence[float]) -> bool:
    """Return whether the medians differ by more than the wider interquartile range."""
    one, other = _scaled(before, after)
    return abs(median(one) - median(other)) > max(interquartile(one), interquartile(other))


def ranges_apart(before: Sequence[float], after: Sequence[float]) -> bool:
    """Return whether the ranges of both lie apart, and by as much as is said above."""
    one, other = _scaled(before, after)
    gap = max(min(one) - max(other), min(other) - max(one))
    wide = max(max(one) - min(one), max(other) - min(other))
    return gap > wide * (4.0 if min(len(one), len(other)) < 3 else 1.0)


def _scaled(before: Sequence[float], after: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Return logarithms where there are some, else the values."""
    if min(*before, *after) > 0.0:
        return [log(value) for value in before], [log(value) for value in after]
    return before, after


def p_value(some: Sequence[float], others: Sequence[float]) -> float:
    """Return how likely two or more values that do not differ are ranked at least so unevenly.

    The test of Mann and Whitney by its exact distribution; with ties by permutations, all of them
    where they are not too many.
    """
    tied = len({*some, *others}) < len(some) + len(others)
    one, other = sorted((sorted(some), sorted(others)))  # so that order and sides do not matter
    method = PermutationMethod(n_resamples=PERMUTATIONS, rng=0) if tied else "exact"
    return float(mannwhitneyu(one, other, method=method).pvalue)
