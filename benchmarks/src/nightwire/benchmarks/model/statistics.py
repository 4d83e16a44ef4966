"""Medians, spreads and ratios of a few repeated measurements.  Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

UNSTABLE = 0.15
"""Interquartile range, as a share of the median, above which a figure is called unstable."""


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which *share* (0 … 1) of *values* lie, interpolated linearly.

    Raises:
        ValueError: There are no values, or *share* is out of range.
    """
    import numpy as np  # workers that only move bytes do without

    if not values:
        raise ValueError(f"no {share} quantile of 0 values")
    return float(np.quantile(values, share))


def median(values: Sequence[float]) -> float:
    """Return the middle of *values*."""
    return quantile(values, 0.5)


def interquartile(values: Sequence[float]) -> float:
    """Return the distance between the quarters of *values*; zero for a single one."""
    return quantile(values, 0.75) - quantile(values, 0.25)


@dataclass(frozen=True)
class Summary:
    """A figure after several runs: its median, and its interquartile range as a share of it."""

    median: float
    spread: float

    @property
    def unstable(self) -> bool:
        """Whether the spread is too wide to compare with."""
        return self.spread > UNSTABLE


def summary(values: Sequence[float]) -> Summary:
    """Return the median and the relative spread of *values*.

    Raises:
        ValueError: There are no values.
    """
    middle, width = median(values), interquartile(values)
    if width == 0.0:
        return Summary(middle, 0.0)
    return Summary(middle, width / abs(middle) if middle else float("inf"))


def ratios(subject: Mapping[int, float], baseline: Mapping[int, float]) -> list[float]:
    """Return subject over baseline of each pair that has both and whose baseline is not 0."""
    return [ours / theirs for pair, ours in subject.items() if (theirs := baseline.get(pair))]


def rounded(value: float) -> float:
    """Return *value* with five significant digits."""
    return float(f"{value:.5g}")
