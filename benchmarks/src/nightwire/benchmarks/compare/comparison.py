"""Two results of one scenario beside each other: what became slower, what quicker.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nightwire.benchmarks import Better, Sample
from nightwire.benchmarks.compare.significance import LEAST, Judgement, Verdict, assess
from nightwire.benchmarks.harness.result_files import Result, samples_of
from nightwire.benchmarks.model.sample import figure_pairs
from nightwire.benchmarks.model.statistics import ratios, summary

Entry = Mapping[str, Any]
AMOUNT = ("alerts", "rate", "profile")
"""What has to agree in the sizes of both; more or fewer pairs only make one surer."""
MACHINE = ("cores", "cpu", "memory_bytes")


class CompareError(Exception):
    """The two cannot be compared; the message says why, and names both."""


@dataclass(frozen=True)
class FigureChange:
    """What became of one figure.

    Attributes:
        name: Its own.
        title: What it is, for people.
        unit: That of values.
        by: ``ratio`` to the baseline, which cancels the machine, or ``value``.
        before: Median in one result.
        after: Median in the other.
        change: Their difference as a share of `before`; None where that is 0.
        noise: Half the interquartile range as a share of the median, of the noisier; None where
            unknown.
        runs: How many values either has.
        verdict: Slower, quicker, the same, or or unknown.
        why: Why it is unknown.
    """

    name: str
    title: str
    unit: str
    by: str
    before: float
    after: float
    change: float | None
    noise: float | None
    runs: tuple[int, int]
    verdict: Verdict
    why: str


@dataclass(frozen=True)
class Comparison:
    """Two results of a scenario.

    Attributes:
        scenario: Which.
        changes: What became of each figure that both have.
        missing: Figures that one of them lacks.
        remarks: What a reader of it must know.
    """

    scenario: str
    changes: Sequence[FigureChange]
    missing: Sequence[str]
    remarks: Sequence[str]

    def of(self, *verdicts: Verdict) -> list[FigureChange]:
        """Return the changes with one of *verdicts*, the largest first."""
        chosen = [one for one in self.changes if one.verdict in verdicts]
        return sorted(chosen, key=lambda one: -abs(one.change if one.change is not None else float("inf")))


def compare(before: Result, after: Result, *, least: float = LEAST) -> Comparison:
    """Compare *after* with *before*, figure by figure.

    Args:
        before: One result.
        after: Another one of the same scenario and size.
        least: Least difference that counts, as a share.

    Raises:
        CompareError: They are of different scenarios or sizes.
    """
    check_comparable(before, after)
    ours, theirs = entries(before), entries(after)
    pair = _Pair(samples_of(before), samples_of(after), _same_machine(before, after), least)
    changes = [pair.change(one, theirs[name]) for name, one in ours.items() if name in theirs]
    missing = sorted(ours.keys() ^ theirs.keys())
    return Comparison(before["scenario"], changes, missing, list(_remarks(before, after)))


def entries(result: Result) -> dict[str, Entry]:
    """Return the figures of *result* by name."""
    return {entry["name"]: entry for entry in result["results"]}


def check_comparable(before: Result, after: Result) -> None:
    """Raise where two results are not of the same thing.

    Raises:
        CompareError: They are of different scenarios or sizes.
    """
    one, other = before["scenario"], after["scenario"]
    if one != other:
        raise CompareError(f"one is of the scenario {one}, the other of {other}")
    sizes = before["size"], after["size"]
    if differing := [
        f"{key} {sizes[0][key]} and {sizes[1][key]}" for key in AMOUNT if sizes[0][key] != sizes[1][key]
    ]:
        raise CompareError(f"{one}: the sizes differ: {', '.join(differing)}")


@dataclass(frozen=True)
class _Pair:
    """The samples of two results."""

    before: Sequence[Sample]
    after: Sequence[Sample]
    same_machine: bool
    least: float

    def change(self, ours: Entry, theirs: Entry) -> FigureChange:
        """Return what became of a figure that is *ours* in one and *theirs* in the other."""
        by, values = self._values(ours, theirs)
        one, other = (summary(some) for some in values)
        judgement = self._judge(by, values, ours, theirs)
        runs = (len(values[0]), len(values[1]))
        noise = max(one.spread, other.spread) / 2 if min(runs) > 1 else float("inf")
        return FigureChange(
            ours["name"],
            ours.get("title", ours["name"]),
            ours["unit"],
            by,
            one.median,
            other.median,
            other.median / one.median - 1.0 if one.median else None,
            noise if noise != float("inf") else None,
            runs,
            judgement.verdict,
            judgement.why,
        )

    def _judge(
        self, by: str, values: tuple[Sequence[float], Sequence[float]], ours: Entry, theirs: Entry
    ) -> Judgement:
        if by == "ratio" and ours.get("baseline_is") != theirs.get("baseline_is"):
            return Judgement(Verdict.UNKNOWN, "another baseline")
        if by == "value" and not self.same_machine:
            return Judgement(Verdict.UNKNOWN, "another machine")
        return assess(*values, Better(ours.get("better", Better.LOWER)), least=self.least)

    def _values(self, ours: Entry, theirs: Entry) -> tuple[str, tuple[list[float], list[float]]]:
        """Return the ratios of all pairs where both have some, else the values."""
        name = ours.get("share_of") or ours["name"]
        one, other = figure_pairs(self.before, name), figure_pairs(self.after, name)
        paired = ratios(*one), ratios(*other)
        if all(paired):
            return "ratio", paired
        return "value", (
            list(one[0].values()) or [ours["value"]],
            list(other[0].values()) or [theirs["value"]],
        )


def _same_machine(before: Result, after: Result) -> bool:
    return all(before["machine"].get(key) == after["machine"].get(key) for key in MACHINE)


def _remarks(before: Result, after: Result) -> Iterator[str]:
    if not _same_machine(before, after):
        yield "They were measured on different machines: figures without a baseline are not compared."
    for name, result in (("the first", before), ("the second", after)):
        if result["others"]["disturbed"]:
            many, limit = result["others"]["runs_disturbed"], result["others"]["limit"]
            runs = f"{many} of {len(result['samples'])} runs of {name}"
            yield f"Others took more than {limit:.0%} of the CPU in {runs}."
        for one in result.get("failed") or ():
            yield f"Not measured to the end in {name}: {one.splitlines()[0]}"
