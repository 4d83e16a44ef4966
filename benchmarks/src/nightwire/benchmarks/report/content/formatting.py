"""Numbers and circumstances as a reader wants them.  Pure."""

import math
from collections.abc import Sequence
from typing import Any

from nightwire.benchmarks import Better

Result = dict[str, Any]
Entry = dict[str, Any]

GB = 1e9
_FASTER = ("s", "ms", "us", "µs", "1/s", "MB/s", "Mbit/s", "MiB/s", "KiB/s")
_WORDS = dict.fromkeys(_FASTER, " faster") | dict.fromkeys(("MB", "MiB", "GB", "GiB"), " smaller")
"""What an advantage is called, by the unit of its figure."""


def number(value: float) -> str:
    """Return *value* with three digits that count, and thousands set apart."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    text = f"{value:#.3g}".rstrip(".")
    return text if "e" not in text else f"{value:.3g}"


def measure(value: float | None, unit: str) -> str:
    """Return *value* with its unit; a dash for none."""
    if value is None:
        return "–"
    return number(value) if unit == "1" else f"{number(value)} {unit}"


def advantage(ratio: float, better: str) -> float:
    """Return how many times better ours is: above 1 where it is ahead, whatever the figure is.

    Args:
        ratio: Ours over theirs.
        better: Which way the figure improves.
    """
    if better == Better.HIGHER:
        return ratio
    return 1 / ratio if ratio else math.inf


def times(value: float | None, unit: str) -> str:
    """Return an advantage in words, such as ``30 × faster``; a bare number where ours is behind."""
    if value is None:
        return "–"
    text = "∞" if value == math.inf else number(value)
    ahead = value > 1 and text != number(1)
    return f"{text} ×{_WORDS.get(unit, '') if ahead else ''}"


def ratio(entry: Entry) -> str:
    """Return how many times better the figure is than its baseline."""
    found = entry["ratio"]
    return times(None if found is None else advantage(found, entry["better"]), entry["unit"])


def spread(entry: Entry) -> str:
    """Return the spread in percent, and say where it is too wide or comes from a single run."""
    if entry.get("runs") == 1:
        return "one run"
    if entry["spread"] is None:
        return "unstable"
    return f"± {entry['spread'] / 2:.0%}" + (" unstable" if entry["unstable"] else "")


def machine(result: Result) -> list[tuple[str, str]]:
    """Return what the result was measured on, as pairs of name and value."""
    one, version = result["machine"], result["versions"]
    size, commit = result["size"], version["commit"] + (" with changes" if version["dirty"] else "")
    return [
        ("machine", f"{one['cores']} cores, {one['cpu']}, {one['memory_bytes'] / GB:.0f} GB"),
        ("system", f"{one['system']}, Linux {one['kernel']}"),
        ("Kafka", f"{version['kafka']}, Java {version['java']}"),
        ("clients", f"librdkafka {version['librdkafka']}, Python {version['python']}"),
        ("Spark", " on ".join(filter(None, (version["spark"], version.get("spark_master"))))),
        ("nightwire", f"{version['nightwire']}, commit {commit}"),
        ("size", f"{size['alerts']:,} alerts a run, {size['pairs']} pairs, {size['profile']} profile"),
        ("measured", result["beginTime"].replace("T", " ").replace("+00:00", " UTC")),
        ("others took", others(result)),
    ]


def circumstances(results: Sequence[Result]) -> list[tuple[str, str]]:
    """Return what *results* share or differ in: machine, system, versions, commits, days."""
    shared: dict[str, dict[str, None]] = {}
    for result in results:
        for name, value in machine(result)[:5]:
            shared.setdefault(name, {})[value] = None
    commits = [result["versions"]["commit"] for result in results]
    days = sorted(result["beginTime"][:10] for result in results)
    return [
        *((name, "; ".join(values)) for name, values in shared.items()),
        ("nightwire", f"commits {', '.join(dict.fromkeys(commits))}"),
        ("measured", " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""),
    ]


def short_machine(result: Result) -> str:
    """Return what a result was measured on, how much of it, and when, in a line."""
    facts, size = dict(machine(result)), result["size"]
    return f"{facts['machine']}; {size['profile']} profile, {size['pairs']} pairs; {result['beginTime'][:10]}"


def machines(results: Sequence[Result]) -> str:
    """Return what *results* were measured on, each machine once."""
    return "; ".join(dict.fromkeys(value for result in results for name, value in machine(result)[:1]))


def others(result: Result) -> str:
    """Return the share of CPU that others took, in words."""
    shares = result["others"]
    text = f"{shares['median']:.0%} of the CPU (median of the runs), {shares['worst']:.0%} at worst"
    if not shares["disturbed"]:
        return text
    return f"{text}: {shares['runs_disturbed']} of {len(result['samples'])} runs DISTURBED"


def headline(result: Result) -> list[Entry]:
    """Return the entries that open the report."""
    return [entry for entry in result["results"] if entry.get("headline")]


def grouped(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """Return *entries* under their groups, in order; those without one under an empty name."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.get("group") or "", []).append(entry)
    return list(groups.items())


def disturbed(results: Sequence[Result]) -> list[str]:
    """Return the names of scenarios in which others took too much of the CPU."""
    return [result["scenario"] for result in results if result["others"]["disturbed"]]


def first_line(text: str) -> str:
    """Return the first line of *text*: what failed is told in many."""
    return text.strip().partition("\n")[0]


def published(value: float | None, unit: str) -> str:
    """Return a published value with the digits that it was published with; a dash for none."""
    if value is None:
        return "–"
    return f"{value:,.10g}" + ("" if unit == "1" else f" {unit}")
