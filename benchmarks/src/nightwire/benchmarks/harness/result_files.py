"""Result files: what is in them, where they lie, and that they stay small."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from nightwire.benchmarks import Figure, Kind, Outcome, Sample, Scenario, Size
from nightwire.benchmarks.environment.machine import CLONE
from nightwire.benchmarks.model.sample import ProcessUse, Use, figure_pairs
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
    shares = [sample.use.others for sample in samples] or [0.0]
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


FORMAT = 1
LARGEST = 2_000_000
"""Largest result file. [byte]"""

NUMBERS = re.compile(r"\[\s+((?:(?:-?[\d.eE+-]+|null),?\s+)+)\]")
"""A list of numbers, a line each as `json` writes it."""

Result = dict[str, Any]


class ResultError(Exception):
    """A result cannot be written or read; the message names the file."""


@dataclass(frozen=True)
class Provenance:
    """Where and when a result was measured.

    Attributes:
        machine: What it ran on.
        versions: Of everything in it.
        sittings: When it began, and went on after interruptions.
        ended: When it ended.
    """

    machine: Mapping[str, Any]
    versions: Mapping[str, Any]
    sittings: Sequence[str]
    ended: datetime


def make_result(
    scenario: Scenario,
    size: Size,
    samples: Sequence[Sample],
    outcome: Outcome,
    provenance: Provenance,
    *,
    failed: Sequence[str] = (),
    recorded: Mapping[str, Any] | None = None,
) -> Result:
    """Put everything about a run together.

    Args:
        scenario: What was run.
        size: How much of it.
        samples: Its runs.
        outcome: What it has to show beside figures.
        provenance: Where and when it was measured.
        failed: Experiments that ended in an error.
        recorded: What processes took over time; None where nobody looked.
    """
    return {
        "format": FORMAT,
        "scenario": scenario.name,
        "title": scenario.title,
        "measures": scenario.measures,
        "size": vars(size),
        "beginTime": provenance.sittings[0],
        "endTime": provenance.ended.isoformat(timespec="seconds"),
        "sittings": list(provenance.sittings),
        "machine": provenance.machine,
        "versions": provenance.versions,
        "others": others(samples),
        "notes": [
            *outcome.notes,
            *repeated(samples),
            *(f"Not measured to the end, for it failed: {one}" for one in failed),
        ],
        "failed": list(failed),
        "results": results(scenario.figures, samples),
        **outcome.open_messaging,
        **_rates(samples, size),
        "samples": [sample_row(sample, rounded) for sample in samples],
        "series": [{**vars(one), "lines": [vars(line) for line in one.lines]} for one in outcome.series],
        "tables": [vars(one) for one in outcome.tables],
        **({} if recorded is None else {"recorded": dict(recorded)}),
    }


def _rates(samples: Sequence[Sample], size: Size) -> dict[str, Any]:
    """Return OpenMessaging's lists of rates, one entry per run of ours. [1/s]"""
    ours = [sample.figures for sample in samples if "produce_seconds" in sample.figures]
    return {
        "publishRate": [rounded(size.alerts / one["produce_seconds"]) for one in ours],
        "consumeRate": [rounded(one["alerts_per_second"]) for one in ours],
        "publishErrorRate": [0.0 for _one in ours],  # a lost record ends the run in an error
    }


def sample_row(sample: Sample, shown: Callable[[float], float] = float) -> dict[str, Any]:
    """Return *sample* as it is written, its values as they are *shown*; `sample_from` reads it."""
    return {
        "experiment": sample.experiment,
        "kind": sample.kind.value,
        "pair": sample.pair,
        "seconds": shown(sample.use.seconds),
        "others": shown(sample.use.others),
        "tries": sample.tries,
        "figures": {name: shown(value) for name, value in sample.figures.items()},
        "processes": [vars(one) for one in sample.use.processes],
    }


def samples_of(result: Result) -> list[Sample]:
    """Return the samples that a result was made of."""
    return [sample_from(one) for one in result["samples"]]


def sample_from(read: Mapping[str, Any]) -> Sample:
    """Return the sample that `sample_row` has written as *read*."""
    processes = [ProcessUse(**one) for one in read["processes"]]
    use = Use(read["seconds"], read["others"], processes)
    return Sample(
        read["experiment"], Kind(read["kind"]), read["pair"], read["figures"], use, read.get("tries", 1)
    )


def results_folder() -> Path:
    """Return ``benchmarks/results`` of the clone that this runs from, else ``results`` here."""
    folder = CLONE / "benchmarks"
    return folder / "results" if (folder / "README.md").exists() else Path("results")


def default_path(result: Result, folder: Path) -> Path:
    """Return the usual place of *result* in *folder*: ``<scenario>-<date>-<commit>.json``."""
    date = datetime.fromisoformat(result["beginTime"]).astimezone(UTC).strftime("%Y%m%dT%H%MZ")
    return folder / f"{result['scenario']}-{date}-{result['versions']['commit']}.json"


def write_result(result: Result, path: Path) -> None:
    """Write *result* to *path*.

    Raises:
        ResultError: It is larger than `LARGEST`.
    """
    text = NUMBERS.sub(_on_a_line, json.dumps(result, indent=1, ensure_ascii=False)) + "\n"
    if len(text.encode()) > LARGEST:
        raise ResultError(f"{path}: {len(text.encode()):,} bytes, at most {LARGEST:,} are kept")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _on_a_line(found: re.Match[str]) -> str:
    return f"[{' '.join(found[1].split())}]"


def read_result(path: Path) -> Result:
    """Read one result.

    Raises:
        ResultError: It is not one, or of another format.
    """
    try:
        result: Result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultError(f"{path}: {error}") from error
    if not isinstance(result, dict) or result.get("format") != FORMAT:
        raise ResultError(f"{path} is no result of format {FORMAT}; run the scenario again")
    return result


def latest(folder: Path) -> list[Result]:
    """Return the newest result of each scenario in *folder*, by name; none of the profile smoke.

    Raises:
        ResultError: A file there is not a result.
    """
    every = [read_result(path) for path in sorted(folder.glob("*.json"))]
    shown = [one for one in every if one["size"]["profile"] != "smoke"]
    newest = {one["scenario"]: one for one in sorted(shown, key=itemgetter("beginTime"))}
    return [newest[name] for name in sorted(newest)]
