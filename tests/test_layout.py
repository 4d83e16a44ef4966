"""The layout that the design prescribes, derived from the tree."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests._tracked import ROOT, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOTS = sorted(ROOT.glob("*/src/nightwire"))
ROOMS = {room.name: room for root in ROOTS for room in root.iterdir() if room.is_dir()}
SOURCES = sorted(path for room in ROOMS.values() for path in room.rglob("*.py"))

PRESCRIBED = {
    "schemas": "schemas",
    "core": "core",
    "producer": "producer",
    "gateway": "gateway-vtp",
    "filters": "filters",
    "consumers": "consumers",
    "monitoring": "monitoring",
    "benchmarks": "benchmarks",
}
"""Room, as it is imported: the folder that it lies in."""

MAY_IMPORT = {room: {"schemas", "core"} for room in PRESCRIBED} | {
    "schemas": set(),
    "core": {"schemas"},
    "benchmarks": set(PRESCRIBED),
}

PURE_LANGUAGE = "nightwire.filters.language"
"""May be imported wherever a filter is judged outside the engine."""


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "nightwire":
                yield from (f"nightwire.{alias.name}" for alias in node.names)


def test_the_rooms_are_those_of_the_design() -> None:
    assert {name: room.parent.parent.parent.name for name, room in ROOMS.items()} == PRESCRIBED


def test_the_namespace_has_no_init() -> None:
    assert [root for root in ROOTS if (root / "__init__.py").exists()] == []


@pytest.mark.parametrize("room", PRESCRIBED)
def test_every_room_has_what_a_room_has(room: str) -> None:
    folder = ROOT / PRESCRIBED[room]
    wanted = [folder / "README.md", folder / "tests", ROOMS[room] / "py.typed", ROOMS[room] / "__init__.py"]
    assert [path for path in wanted if not path.exists()] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    room = next(part for part, folder in ROOMS.items() if folder in path.parents)
    others = {
        name.split(".")[1]
        for name in imported(path)
        if name.startswith("nightwire.") and not name.startswith(PURE_LANGUAGE)
    }
    assert others - {room} <= MAY_IMPORT[room]


def test_pyproject_lists_the_roots() -> None:
    hatch = PROJECT["tool"]["hatch"]["build"]
    roots = sorted(str(root.parent.relative_to(ROOT)) for root in ROOTS)
    assert sorted(hatch["dev-mode-dirs"]) == roots
    assert sorted(hatch["targets"]["wheel"]["packages"]) == [f"{root}/nightwire" for root in roots]
    assert sorted(PROJECT["tool"]["mypy"]["mypy_path"].split(":")) == sorted([*roots, "native"])
    assert sorted(PROJECT["tool"]["pytest"]["ini_options"]["testpaths"]) == sorted(
        [*PRESCRIBED.values(), "native", "tests"]
    )


def test_every_verb_lies_in_a_room() -> None:
    verbs = PROJECT["project"]["entry-points"]["nightwire.commands"]
    for verb, target in verbs.items():
        module = target.split(":")[0].split(".")
        assert (ROOMS[module[1]].joinpath(*module[2:]).with_suffix(".py")).exists(), verb


def test_no_file_names_a_package_registry() -> None:
    hosts = re.compile(
        r"(p[y]pi|p[y]thonhosted|crates|n[p]mjs)\.(org|io)|maven[0-9]*\.(org|apache)|apache\.maven\.[o]rg"
        r"|golang\.[o]rg/|deb\.[d]ebian"
    )
    found = [
        path
        for path in tracked()
        if path.suffix not in {".svg", ".png"} and hosts.search(path.read_text(errors="replace"))
    ]
    assert found == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in tracked()
        if path.suffix == ".md"
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", path.read_text())
        if not (path.parent / target).exists()
    ]
    assert broken == []


def test_no_test_skips() -> None:
    words = re.compile(r"pytest\.(s[k]ip|importors[k]ip|mark\.s[k]ip)")
    assert [path for path in tracked() if path.suffix == ".py" and words.search(path.read_text())] == []
