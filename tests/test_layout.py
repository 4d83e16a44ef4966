"""The layout that the design prescribes, derived from the tree: rooms, sub-packages, who imports
whom.
"""

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
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
    "directory": "directory",
    "multicast": "multicast",
    "portal": "portal",
    "archive": "archive",
    "flows": "flows",
}
"""Room, as it is imported: the folder that it lies in."""

MAY_IMPORT = {room: {"schemas", "core"} for room in PRESCRIBED} | {
    "schemas": set(),
    "core": {"schemas"},
    "benchmarks": set(PRESCRIBED),
    "directory": {"schemas", "core", "filters"},
    "flows": {"schemas", "core", "filters", "consumers", "gateway"},
    "portal": {"schemas", "core", "consumers", "filters"},
}

PURE_LANGUAGE = "nightwire.filters.language"
"""May be imported wherever a filter is judged outside the engine."""

ORDER = {
    "schemas": [
        "errors kafka_environment lazy stamps",
        "avro retention serving",
        "survey_model wire",
        "records topics",
        "registry",
        "commands",
    ],
    "core": [
        "outside runtime",
        "kafka",
        "accounting catalogues datagrams presence voevents",
        "channels cli congestion subscriptions",
        "tls",
        "stack",
        "access",
        "logins",
    ],
    "producer": ["figures visits", "spool", "writing", "simulation", "replay", "cli", "ingest"],
    "gateway": [
        "status voevent",
        "eventlog net vtp xpath",
        "signing",
        "client fanout ingest",
        "handlers",
        "gateway",
        "cli",
    ],
    "filters": [
        "language",
        "model sandbox",
        "decision reading",
        "delivery evaluation",
        "admission stats",
        "authoring engine",
        "spark",
        "cli spark_source",
    ],
    "consumers": ["alert", "formats source", "admin reader", "returns", "cli"],
    "directory": [
        "model",
        "ingest",
        "answers authorization page sites",
        "find listing mediator",
        "serve",
        "commands",
    ],
    "monitoring": ["dashboards exporter", "config", "commands"],
    "multicast": [
        "lite packing positions",
        "announcement group_sender",
        "mapped_senders planning relay",
        "channel_admin group_monitor serve",
        "status",
        "channel_commands commands",
    ],
    "archive": [
        "storage",
        "writing",
        "querying",
        "check http_api maintenance",
        "serve",
        "commands",
    ],
    "flows": [
        "model",
        "drawing flow_follower problems restarting_thread terminals",
        "engine rights",
        "worker",
        "serve",
        "commands",
    ],
    "portal": [
        "account crossmatch model pictures",
        "archive_client authorization filters skymaps",
        "pipeline_status records",
        "exports follower",
        "serve",
        "commands",
    ],
    "benchmarks": [
        "model",
        "environment",
        "resources",
        "harness workers",
        "scenarios",
        "report",
        "compare",
        "commands",
    ],
}
"""The sub-packages and modules of each room, lowest first: each imports those of the lines
before its own."""


MAX_ENTRIES = 12
"""Modules and sub-packages that a folder may hold beside its ``__init__``."""

MORE_ENTRIES = {
    "core/src/nightwire/core": 16,
    "schemas/src/nightwire/schemas": 13,
    "filters/src/nightwire/filters": 14,
    "gateway-vtp/src/nightwire/gateway": 13,
    "multicast/src/nightwire/multicast": 15,
    "portal/src/nightwire/portal": 14,
    "benchmarks/src/nightwire/benchmarks/scenarios": 18,
}
"""Rooms that the design gives more sub-packages than that."""


def module_of(path: Path) -> str:
    """Return the dotted name under which *path* is imported."""
    src = next(parent for parent in path.parents if parent.name == "src")
    parts = path.relative_to(src).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in SOURCES}


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of each import, wherever it stands: in functions and for types too."""
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def target(module: str, name: str) -> str:
    """Return the module that an import leads to; a package where it takes a name of its
    ``__init__``.
    """
    return f"{module}.{name}" if f"{module}.{name}" in MODULES else module


def is_package(module: str) -> bool:
    return module in MODULES and MODULES[module].name == "__init__.py"


def unit(module: str) -> str:
    """Return the sub-package that holds *module*; a module that lies in the room itself is its
    own.
    """
    if is_package(module) or module.count(".") <= 2:
        return module
    return module.rpartition(".")[0]


def public_names(package: str) -> set[str]:
    """Return what ``__all__`` of *package* lists."""
    for node in syntax(MODULES[package]).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def room_of(module: str) -> str:
    return module.split(".")[1]


def test_the_rooms_are_those_of_the_design() -> None:
    assert {name: room.parent.parent.parent.name for name, room in ROOMS.items()} == PRESCRIBED


def test_the_namespace_has_no_init() -> None:
    assert [root for root in ROOTS if (root / "__init__.py").exists()] == []


@pytest.mark.parametrize("room", PRESCRIBED)
def test_every_room_has_what_a_room_has(room: str) -> None:
    folder = ROOT / PRESCRIBED[room]
    wanted = [folder / "README.md", folder / "tests", ROOMS[room] / "py.typed", ROOMS[room] / "__init__.py"]
    assert [path for path in wanted if not path.exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize("room", PRESCRIBED)
def test_imports_between_rooms_run_one_way(room: str) -> None:
    wrong = [
        f"{module} imports {other}"
        for module, path in MODULES.items()
        if room_of(module) == room
        for other, _ in imported(path)
        if other.startswith("nightwire.") and not other.startswith(PURE_LANGUAGE)
        if room_of(other) not in MAY_IMPORT[room] | {room}
    ]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("room", PRESCRIBED)
def test_a_room_takes_from_others_what_is_public(room: str) -> None:
    """Public are sub-packages, and what ``__all__`` of a package lists, a module by its name
    too.
    """
    wrong = []
    for module, path in MODULES.items():
        for other, name in imported(path):
            if room_of(module) != room or not other.startswith("nightwire.") or room_of(other) == room:
                continue
            parent, _, last = other.rpartition(".")
            public = name in public_names(other) if is_package(other) else last in public_names(parent)
            if not (public or is_package(f"{other}.{name}") or name == "__version__"):
                wrong.append(f"{module} takes {name} of {other}")
    assert wrong == []


@pytest.mark.slow
def test_what_a_package_imports_on_demand_is_there() -> None:
    lazy = [name for name, path in MODULES.items() if is_package(name) and "on_demand(" in path.read_text()]
    assert len(lazy) > 10
    assert [
        f"{name}.{one}"
        for name in lazy
        for one in public_names(name)
        if f"{name}.{one}" not in MODULES and not hasattr(importlib.import_module(name), one)
    ] == []


def subpackage_imports(room: str) -> Mapping[str, set[str]]:
    """Return which sub-packages of *room* each of them imports."""
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        if room_of(module) != room or is_package(module):
            continue
        others = {target(*one) for one in imported(path) if one[0].startswith(f"nightwire.{room}")}
        graph.setdefault(unit(module), set()).update(unit(other) for other in others if other in MODULES)
    return {name: others - {name} for name, others in graph.items()}


@pytest.mark.slow
@pytest.mark.parametrize("room", PRESCRIBED)
def test_no_sub_packages_import_each_other(room: str) -> None:
    """Imports for types alone, and in functions, count."""
    cycle: list[str] = []
    try:
        TopologicalSorter(subpackage_imports(room)).prepare()
    except CycleError as error:
        cycle = error.args[1]
    assert cycle == []


@pytest.mark.slow
@pytest.mark.parametrize("room", ORDER)
def test_sub_packages_import_those_before_them(room: str) -> None:
    order = [f"nightwire.{room}.{name}" for line in ORDER[room] for name in line.split()]
    place = {name: n for n, line in enumerate(ORDER[room]) for name in line.split()}

    def rank(name: str) -> int:
        return place[name.removeprefix(f"nightwire.{room}.").split(".")[0]]

    graph = subpackage_imports(room)
    top = {name for name in graph if name.count(".") >= 2}
    assert {".".join(name.split(".")[:3]) for name in top} <= set(order), "name its place in ORDER"
    wrong = [
        f"{name} imports {other}"
        for name, others in graph.items()
        for other in others
        if other != f"nightwire.{room}" and name.split(".")[2] != other.split(".")[2]
        if rank(other) >= rank(name)
    ]
    assert wrong == []


def test_a_folder_can_be_read_at_a_glance() -> None:
    folders = {path.parent for path in SOURCES}
    entries = {
        str(folder.relative_to(ROOT)): sorted(
            child.name
            for child in folder.iterdir()
            if (child.suffix == ".py" and child.name != "__init__.py") or child in folders
        )
        for folder in folders
    }
    limits = {folder: MORE_ENTRIES.get(folder, MAX_ENTRIES) for folder in entries}
    assert {folder: names for folder, names in entries.items() if len(names) > limits[folder]} == {}


def test_modules_have_plain_names() -> None:
    assert [m for m in MODULES if re.search(r"\._(?!_)", m)] == []


@pytest.mark.slow
def test_nothing_private_is_imported() -> None:
    wrong = [
        f"{module}: {name} of {other}"
        for module, path in MODULES.items()
        for other, name in imported(path)
        if other.startswith("nightwire.") and re.match(r"_(?!_)", name)
    ]
    assert wrong == []


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


SCRIPTS = (
    "Makefile",
    ".ci/test-tools",
    "docker-compose.yml",
    "tests/compose/engine.sh",
    "tests/compose/run.sh",
)


def test_modules_that_scripts_run_are_there() -> None:
    ours = r"-m ((?:nightwire|tests|schemas|native|filters)\.[\w.]+)"
    run = {name for script in SCRIPTS for name in re.findall(ours, (ROOT / script).read_text())}
    assert len(run) > 3
    assert {
        name
        for name in run
        if name not in MODULES and not (ROOT / name.replace(".", "/")).with_suffix(".py").exists()
    } == set()


@pytest.mark.slow
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
