"""Write each image's lock: what its extra needs, as pinned and hashed in the root's
`requirements.lock`.

    python tests/compose/locks.py            write them
    python tests/compose/locks.py --check    exit 1, naming those that are not up to date

`core/requirements.lock` is every image's first layer: what the light client and building it need.
A room's own holds what its extra adds.  The dependencies are read from the packages installed here,
so run it in a full venv.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
BUILD = ("hatchling", "setuptools")
"""What makes wheels inside the images: ours, and Spark's, which comes as source only."""
ROOMS = {
    "schemas": "registry",
    "gateway-vtp": "gateway",
    "filters": "filters,flows,science,catalogues",
    "archive": "archive",
    "portal": "portal,science",
    "monitoring": "monitoring",
    "core": "stack",
}
"""Room: the extras that its image adds.  Core's is Kafka's, which fetches jars."""

PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==")


def blocks(lock: str) -> dict[str, str]:
    """Return the pinned requirement of each package in *lock*, with its hashes and without
    remarks.
    """
    found: dict[str, list[str]] = {}
    name = ""
    for line in lock.splitlines():
        if match := PIN.match(line):
            name = canonicalize_name(match.group(1))
            found.setdefault(name, [])  # a package may be there twice, for older and newer Pythons
        if name and line.strip() and not line.lstrip().startswith("#"):
            found[name].append(line)
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}


def closure(distribution: str, extras: Iterable[str] = ()) -> set[str]:
    """Return all that *distribution* with *extras* needs on this Python, itself included."""
    seen: set[tuple[str, str]] = set()
    todo = [(canonicalize_name(distribution), extra) for extra in ("", *extras)]
    while todo:
        spot = todo.pop()
        if spot not in seen:
            seen.add(spot)
            todo.extend(_needs(*spot))
    return {name for name, _extra in seen}


def _needs(name: str, extra: str) -> Iterator[tuple[str, str]]:
    for text in requires(name) or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            for wanted in ("", *requirement.extras):
                yield canonicalize_name(requirement.name), wanted


def locks(pinned: Mapping[str, str]) -> dict[Path, str]:
    """Return the text of each image's lock, by path."""
    own = canonicalize_name("nightwire")
    client = closure(own) - {own}
    base = client.union(*(closure(tool) for tool in BUILD))
    texts = {ROOT / "core" / "requirements.lock": _text(base, pinned)}
    for room, extras in ROOMS.items():
        name = "kafka.lock" if room == "core" else "requirements.lock"
        texts[ROOT / room / name] = _text(closure(own, extras.split(",")) - {own} - base, pinned)
    return texts


def _text(names: Iterable[str], pinned: Mapping[str, str]) -> str:
    return "".join(pinned[name] for name in sorted(names))


def main() -> int:
    """Write or check the locks; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 where one is not up to date")
    check: bool = parser.parse_args().check
    wanted = locks(blocks((ROOT / "requirements.lock").read_text()))
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if not check:
            path.write_text(wanted[path])
        sys.stderr.write(f"{'not up to date' if check else 'written'}: {path.relative_to(ROOT)}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
