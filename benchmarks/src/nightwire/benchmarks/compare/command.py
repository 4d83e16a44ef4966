"""What `nightwire bench compare` does: find, compare, print."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
from rich.console import Console

from nightwire.benchmarks.compare.comparison import CompareError, Comparison, compare
from nightwire.benchmarks.compare.lookup import Found, find, newest_after
from nightwire.benchmarks.compare.output import as_json as json_of
from nightwire.benchmarks.compare.output import shown
from nightwire.benchmarks.compare.significance import Verdict

Compared = tuple[Comparison, Found, Found]


@dataclass
class Pairing:
    """Results that belong together, and why others do not."""

    pairs: list[tuple[Found, Found]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def compare_words(
    before: str, after: str | None, folder: Path, least: float, *, every: bool, as_json: bool
) -> bool:
    """Compare what two words name, print it, and return whether anything became slower.

    Raises:
        CompareError: There is nothing to compare.
        ResultError: A file is not a result.
    """
    pairing = paired(before, after, folder)
    done = list(_compared(pairing, least))
    if not done:
        raise CompareError("\n".join(pairing.left))
    if as_json:
        found = {"comparisons": [json_of(*one) for one in done], "notCompared": pairing.left}
        click.echo(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        _print(done, pairing.left, every=every)
    return any(one.of(Verdict.SLOWER) for one, _before, _after in done)


def paired(before: str, after: str | None, folder: Path) -> Pairing:
    """Return the results that two words name, scenario by scenario.

    Raises:
        CompareError: A word names none, or single ones are of different scenarios.
        ResultError: A file is not a result.
    """
    ours = find(before, folder)
    if after is None:
        return _with_newest(ours, folder)
    theirs, pairing = find(after, folder), Pairing()
    if len(ours) == len(theirs) == 1:
        return Pairing([(next(iter(ours.values())), next(iter(theirs.values())))])
    pairing.pairs = [(one, theirs[name]) for name, one in ours.items() if name in theirs]
    pairing.left = [f"{name}: only one of the two has it" for name in sorted(ours.keys() ^ theirs.keys())]
    return pairing


def _with_newest(ours: dict[str, Found], folder: Path) -> Pairing:
    pairing = Pairing()
    for one in ours.values():
        try:
            pairing.pairs.append((one, newest_after(one, folder)))
        except CompareError as error:
            pairing.left.append(str(error))
    return pairing


def _compared(pairing: Pairing, least: float) -> Iterator[Compared]:
    for one, other in pairing.pairs:
        try:
            yield compare(one.result, other.result, least=least), one, other
        except CompareError as error:
            pairing.left.append(f"{error} ({one.path} and {other.path})")


def _print(done: list[Compared], left: list[str], *, every: bool) -> None:
    console = Console(highlight=False, soft_wrap=False)
    for number, one in enumerate(done):
        if number:
            console.print()
        console.print(shown(*one, every=every))
    for line in left:
        console.print(f"not compared: {line}", markup=False)
