"""MkDocs hooks: pages that lie outside `docs` (READMEs, CHANGELOG, CONTRIBUTING) become pages of
the site.

A link to a file that is no page (a notebook, a folder, source) becomes its path in the repository.
"""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
ORDER = ("User", "Operator", "Rooms", "Project", "Decisions")
"""Sections of the navigation, behind the pages that lie in none."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def pages() -> dict[str, str]:
    """Return the place in the site of each page, by its path in the repository."""
    inside = {f"docs/{path}": path for path in _inside()}
    rooms = {f"{path.parent.name}/README.md": f"rooms/{path.parent.name}.md" for path in _rooms()}
    deeper = {
        f"{path.relative_to(ROOT)}": f"rooms/{path.parents[1].name}/{path.name}"
        for path in sorted(ROOT.glob("*/docs/*.md"))
    }
    top = {name: f"project/{name}" for name in OUTSIDE if (ROOT / name).exists()}
    benchmarks = {"benchmarks/results/report.md": "project/report.md"}
    return inside | rooms | deeper | top | {a: b for a, b in benchmarks.items() if (ROOT / a).exists()}


def _inside() -> list[str]:
    docs = ROOT / "docs"
    return sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md"))


def _rooms() -> list[Path]:
    return sorted(path for path in ROOT.glob("*/README.md") if path.parent.name != "docs")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside `docs`."""
    for path, place in pages().items():
        if not path.startswith("docs/"):
            files.append(File.generated(config, place, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_nav(nav: Navigation, **_: Any) -> Navigation:
    """Put what users read first, and decisions last."""
    nav.items.sort(key=lambda item: ORDER.index(item.title) if item.title in ORDER else -1)
    return nav


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Return *markdown* with the links of the repository as links of the site."""
    known = pages()
    here = next(path for path, place in known.items() if place == page.file.src_uri)

    def moved(match: re.Match[str]) -> str:
        image, text, target, anchor = match.groups()
        path = normpath(str(PurePosixPath(here).parent / target))
        page_of = known.get(path) or known.get(f"{path}/README.md")
        if page_of is not None:
            return f"[{text}]({relpath(page_of, str(PurePosixPath(page.file.src_uri).parent))}{anchor or ''})"
        if not (ROOT / path).exists():
            raise FileNotFoundError(f"{here} links to {target}, which is not there")
        if path.startswith("docs/"):
            inside = relpath(path.removeprefix("docs/"), str(PurePosixPath(page.file.src_uri).parent))
            return f"{image}[{text}]({inside})"
        return f"{text} (`{path}`)" if not image else text

    return LINK.sub(moved, markdown)
