"""The native check of a VOEvent, where it is built; without it, and where it cannot say, libxml2 decides."""

import json
import re
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from nightwire.gateway._tables import compile_schema

if TYPE_CHECKING:
    from nightwire_native import Checked, Checker

try:
    from nightwire_native import Checker as NativeChecker
except ImportError:  # not built, or before it could check VOEvents
    NativeChecker = None  # type: ignore[assignment, misc]

_REFERENCE = re.compile(rb"""xmlns(?::[^\s=:]+)?\s*=\s*(?:"[^"&]*&|'[^'&]*&)""")
"""A namespace with a reference in it, which may make it no URI: libxml2 decides that."""

VERSIONS = ("2.0", "2.1", "1.1")
"""Versions of the standard that have a schema here."""


def prepare() -> None:
    """Compile the tables now rather than with the first event."""
    if NativeChecker is not None:
        checker()


def check(document: bytes) -> "Checked | None":
    """Return what the native check says of *document*; None where there is none."""
    return None if NativeChecker is None or _REFERENCE.search(document) else checker().check(document)


@cache
def checker() -> "Checker":
    """Return the native check with the tables of our schemas."""
    with as_file(files("nightwire.gateway") / "xsd") as folder:
        tables = [compile_schema(folder / f"voevent-{version}.xsd") for version in VERSIONS]
    return NativeChecker([json.dumps(table) for table in tables])
