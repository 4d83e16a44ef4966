"""Goals of a scenario, what is seen of them and what limits it: its file `goals.toml`."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Goal:
    """One aim.

    Attributes:
        aim: In figures.
        seen: What came of it.
        limit: What it is limited by, measured by itself; empty where it is reached.
    """

    aim: str
    seen: str
    limit: str


def goals(scenario: str) -> tuple[str, Sequence[Goal]]:
    """Return the run that a scenario's goals were looked at in, and the goals; or nothing."""
    folder = files("nightwire.benchmarks").joinpath("scenarios", scenario)
    if not folder.joinpath("goals.toml").is_file():
        return "", ()
    found = tomllib.loads(folder.joinpath("goals.toml").read_text(encoding="utf-8"))
    return found["run"], [Goal(**one) for one in found["goal"]]
