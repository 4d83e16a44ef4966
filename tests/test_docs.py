"""The documentation: it builds as a site, its links lead somewhere, and its lines can be read."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests._tracked import ROOT, tracked

WIDTH = 100
"""Longest line of prose in Markdown. [character]"""

GENERATED = {"benchmarks/results/report.md", "docs/user/lsst-versions.md"}


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines that are neither code, table, heading nor one long
    word.
    """
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("    ", "|", "#", "<", "![")) and " " in line.strip():
            yield number, line


def test_prose_wraps() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.suffix == ".md" and str(path.relative_to(ROOT)) not in GENERATED
        for number, line in prose(path.read_text())
        if len(line) > WIDTH and " " in line.strip()[:WIDTH].lstrip("-* ")
    ]
    assert long == []


@pytest.mark.slow
def test_examples_pass_mypy_as_strictly_as_our_code(tmp_path: Path) -> None:
    """Those of all pages at once: mypy reads all that they import, each time."""
    for page in ("README.md", "docs/user/owners.md"):
        examples = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
        for number, code in enumerate(examples):
            (tmp_path / f"{Path(page).stem}_{number}.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\]\((0\d{3}-[\w-]+\.md)\)", (folder / "README.md").read_text())
    assert listed == sorted(path.name for path in folder.glob("0*.md"))


def _in_the_package(name: str) -> bool:
    return any(ROOT.glob(f"*/src/nightwire/{name}"))


def test_the_files_that_the_architecture_names_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`([a-z]+/[\w/]+\.py)`", text))
    assert len(named) > 60
    missing = {name for name in named if not (ROOT / name).exists() and not _in_the_package(name)}
    assert missing == set()


CITED = re.compile(r"`([\w-]+/[\w./-]+\.(?:md|rs|toml|avsc|py))`|\b(docs/[\w/.-]+\.md)\b")


def test_the_files_that_sources_cite_are_there() -> None:
    sources = (*ROOT.glob("*/src/**/*.py"), *ROOT.glob("*/src/**/*.toml"), *ROOT.glob("native/src/**/*.rs"))
    cited = {
        (name or page, source.relative_to(ROOT))
        for source in sources
        for name, page in CITED.findall(source.read_text(encoding="utf-8"))
    }
    assert {
        (name, source) for name, source in cited if not (ROOT / name).exists() and not _in_the_package(name)
    } == set()


@pytest.mark.slow
def test_the_site_builds_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    assert (tmp_path / "index.html").exists()
    assert (tmp_path / "rooms" / "filters.html").exists()
