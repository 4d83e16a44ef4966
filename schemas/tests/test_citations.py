"""What sources cite."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CITED = re.compile(r"`([\w-]+/[\w./-]+\.(?:md|rs|toml|avsc|py))`")


def test_files_that_sources_cite_are_there() -> None:
    missing = [
        f"{source.relative_to(ROOT)} cites {path}"
        for source in sorted((ROOT / "schemas/src").rglob("*.py"))
        for path in CITED.findall(source.read_text(encoding="utf-8"))
        if not (ROOT / path).exists()
    ]
    assert missing == []
