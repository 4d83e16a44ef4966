"""Results as a person names them: a file, a folder, or a commit."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nightwire.benchmarks.compare.comparison import AMOUNT, CompareError
from nightwire.benchmarks.harness.result_files import Result, read_result

COMMIT = re.compile(r"[0-9a-f]{4,40}")


@dataclass(frozen=True)
class Found:
    """A result, and the file that it is in."""

    path: Path
    result: Result


def found_in(folder: Path) -> list[Found]:
    """Return all results in *folder*, the oldest first.

    Raises:
        ResultError: A file there is not a result.
    """
    every = [Found(path, read_result(path)) for path in sorted(folder.glob("*.json"))]
    return sorted(every, key=lambda one: str(one.result["beginTime"]))


def find(word: str, folder: Path) -> dict[str, Found]:
    """Return the newest result of each scenario that *word* names: a file, a folder, or a commit.

    Args:
        word: What a person typed.
        folder: Where results of a commit are looked for.

    Raises:
        CompareError: It names none.
        ResultError: A file is not a result.
    """
    path = Path(word)
    if path.is_file():
        result = read_result(path)
        return {result["scenario"]: Found(path, result)}
    chosen = found_in(path) if path.is_dir() else [one for one in found_in(folder) if _is_of(one, word)]
    if not chosen:
        where = "holds no result" if path.is_dir() else f"is no file, no folder, and no commit in {folder}"
        raise CompareError(f"{word} {where}; there are results of: {_commits(found_in(folder))}")
    return {one.result["scenario"]: one for one in chosen}


def newest_after(one: Found, folder: Path) -> Found:
    """Return the newest result of the same scenario in *folder*, of the same size where possible.

    Raises:
        CompareError: None is newer than *one*.
        ResultError: A file is not a result.
    """
    result = one.result
    newer = [
        other
        for other in found_in(folder)
        if other.result["scenario"] == result["scenario"]
        and str(other.result["beginTime"]) > str(result["beginTime"])
    ]
    if not newer:
        raise CompareError(f"{result['scenario']}: {folder} holds no newer result than {one.path.name}")
    return max(newer, key=lambda other: (_same_size(other.result, result), str(other.result["beginTime"])))


def _same_size(one: Result, other: Result) -> bool:
    return all(one["size"][key] == other["size"][key] for key in AMOUNT)


def _is_of(one: Found, word: str) -> bool:
    commit = str(one.result["versions"]["commit"])
    return bool(COMMIT.fullmatch(word)) and (commit.startswith(word) or word.startswith(commit))


def _commits(some: Iterable[Found]) -> str:
    return ", ".join(dict.fromkeys(str(one.result["versions"]["commit"]) for one in some)) or "none"
