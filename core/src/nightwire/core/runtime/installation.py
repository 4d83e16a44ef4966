"""What is installed of nightwire, and the command that installs more of it."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote, urlsplit

OURS = "nightwire"


def install_command(*extras: str) -> str:
    """Return the command that adds *extras*: from the clone that we were installed from, if any."""
    origin = _origin()
    url = urlsplit(origin.get("url", ""))
    source = unquote(url.path) if url.scheme == "file" else OURS
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    wanted = f"[{','.join(extras)}]" if extras else ""
    return f"pip install {editable}'{source}{wanted}'"


def missing_packages(*extras: str) -> list[str]:
    """Return the packages of *extras* that are not installed, by name."""
    return sorted({name for extra in extras for name in _packages(extra) if not _installed(name)})


def _packages(extra: str) -> Iterator[str]:
    """Yield the names of the packages of *extra*, and of the extras that it names."""
    for text in distribution(OURS).requires or []:
        if re.search(rf"extra == ['\"]{extra}['\"]", text):
            name, inner = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", text).groups()  # type: ignore[union-attr]
            if name == OURS:
                yield from (package for one in inner.split(",") for package in _packages(one))
            else:
                yield name


def _origin() -> dict[str, Any]:
    """Return where we were installed from, as pip wrote it down; empty for a package index."""
    try:
        return dict(json.loads(distribution(OURS).read_text("direct_url.json") or "{}"))
    except PackageNotFoundError:
        return {}


@cache
def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
