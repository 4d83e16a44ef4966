"""Pages of the documentation that the source names are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    *ROOT.glob("schemas/src/**/*.py"),
    *ROOT.glob("schemas/src/**/*.toml"),
    *ROOT.glob("native/src/**/*.rs"),
]


def test_cited_pages_are_there() -> None:
    cited = {
        (page, path.relative_to(ROOT))
        for path in SOURCES
        for page in re.findall(r"\bdocs/[\w/.-]+\.md\b", path.read_text())
    }
    assert cited
    assert {(page, path) for page, path in cited if not (ROOT / page).exists()} == set()
