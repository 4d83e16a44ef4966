"""The catalogues that a filter asks for: whether there are such, and in which versions."""

import math
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nightwire.core.catalogues import CatalogueError, CatalogueStore, Columns
from nightwire.filters.language import FilterError
from nightwire.filters.model.compilation import Compilation
from nightwire.filters.model.text_facts import load_facts, matches_named
from nightwire.filters.reading.matches import versions_of
from nightwire.schemas import meant
from nightwire.schemas.survey_model import MATCH_MARK, MatchName

MAX_OWNED = 256 << 20
"""Most that one owner's catalogues have on disk, earlier versions among them. [byte]"""

WATCHLIST_BEGINS = (b'"ra","dec"', b"ra,dec")
"""The first line of a watchlist, as it is sent: of the first kind by earlier clients."""

MOST_COLUMNS = 500
"""Most columns of a watchlist: to read ten thousand of them takes the engine seconds."""

MOST_MATCHES = 20
"""Most catalogues and maps, radii told apart, that one filter may ask for."""

MOST_NEAR = 100.0
"""Most objects of a catalogue that may lie within a radius, in the mean over the sky."""

SKY_ARCSEC2 = 4 * math.pi * (math.degrees(1) * 3600) ** 2
"""The sky. [arcsec²]"""

NO_CATALOGUES = "there are no catalogues here, and it asks for {}"


def with_versions(compilation: Compilation, owner: str, store: CatalogueStore | None) -> Compilation:
    """Return a compilation that names the present versions of its catalogues.

    Args:
        compilation: Of what was submitted.
        owner: Whose filter it is.
        store: Has the catalogues; None where there are none.

    Raises:
        FilterError: A catalogue, or a column of it, is not there, or another owner's.
    """
    facts = load_facts(compilation.facts)
    if not facts.matches:
        return compilation
    if store is None:
        raise FilterError(NO_CATALOGUES.format(", ".join(MatchName.parse(one).call for one in facts.matches)))
    if reasons := [*_objections(compilation, owner, store)]:
        raise FilterError(*reasons)
    names = {one: str(_versioned(one, store)) for one in facts.matches}
    program = compilation.program and compilation.program.renamed(names)
    return replace(compilation, program=program, facts=facts.with_versions(names).dumps())


def keep_watchlist(store: CatalogueStore, request: Mapping[str, Any]) -> str:
    """Add the owner's catalogue ``owner/name`` that comes with a request; return its version.

    Raises:
        CatalogueError: It is none, or its owner has too many.
    """
    owner, text = request["owner"], request["watchlist"]
    if not text.startswith(WATCHLIST_BEGINS):  # nobody else's bytes reach the readers of other formats
        raise CatalogueError("it is no CSV whose first columns are ra and dec")
    if (count := text.partition(b"\n")[0].count(b",") + 1) > MOST_COLUMNS:
        raise CatalogueError(f"it has {count:,} columns, limit is {MOST_COLUMNS}")
    held = sum(one.stat().st_size for one in store.folder.glob(f"owned/{owner}/**/*") if one.is_file())
    if held + len(text) > MAX_OWNED:
        raise CatalogueError(
            f"{owner}'s catalogues would have more than {MAX_OWNED:,} bytes: ask who runs the engine for "
            f"`nightwire catalogue remove {owner}/NAME --old`"
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "watchlist.csv"
        file.write_bytes(text)
        columns = Columns(texts=_texts(text))
        return store.add(watchlist_of(request), file, columns, replace=True).version


def watchlist_of(request: Mapping[str, Any]) -> str:
    """Return the name of the catalogue that comes with a request."""
    return f"{request['owner']}/{request['name']}"


def _texts(watchlist: bytes) -> tuple[str, ...]:
    """Return the columns of a watchlist that are texts: their names are in quotes, others not."""
    head = watchlist.partition(b"\n")[0].decode(errors="replace")
    return () if head.startswith('"') else tuple(re.findall(r'"([^"]*)"', head))


def is_current(matches: tuple[str, ...], store: CatalogueStore) -> bool:
    """Return whether a filter's catalogues still are what it would get if it were submitted now."""
    try:
        return all(str(_versioned(known, store)) == one for known, one in versions_of(matches).items())
    except CatalogueError:
        return False


def _versioned(name: str, store: CatalogueStore) -> MatchName:
    known = MatchName.parse(name).plain
    return known._replace(version=store.describe(known.catalogue).version)


def _objections(compilation: Compilation, owner: str, store: CatalogueStore) -> Iterator[str]:
    facts, program = load_facts(compilation.facts), compilation.program
    if len(facts.matches) > MOST_MATCHES:
        yield f"it asks for {len(facts.matches)} matches, limit is {MOST_MATCHES}"
        return
    lines = {path: line for path, line in compilation.asked.fields.items() if path.startswith(MATCH_MARK)}
    names = [name for name in (program.names if program else ()) if name.startswith(MATCH_MARK)]
    for record in facts.matches:
        asked = dict.fromkeys(path for path in (*lines, *names) if matches_named([path]) == [record])
        if why := _objection(MatchName.parse(record), [*asked], owner, store):
            line = min((lines[path] for path in asked if lines.get(path)), default=0)
            yield f"line {line}: {why}" if line else why


def _objection(name: MatchName, asked: list[str], owner: str, store: CatalogueStore) -> str | None:
    """Return what is wrong with a match of which the columns *asked* are read."""
    whose, slash, _ = name.catalogue.rpartition("/")
    if slash and whose != owner:
        return f"{name.catalogue} is a catalogue of {whose}; {owner} may ask for shared ones and {owner}/NAME"
    try:
        found = store.describe(name.catalogue)
    except CatalogueError as error:
        return str(error)
    if (found.kind == "moc") != (not name.radius_mas):
        is_map = f"{name.catalogue} is a map of the sky: alert.in_moc({name.catalogue!r})"
        return (
            is_map
            if found.kind == "moc"
            else f"{name.catalogue} is no map of the sky: alert.match(…, radius)"
        )
    near = found.rows * math.pi * (name.radius_mas / 1000) ** 2 / SKY_ARCSEC2
    if near > MOST_NEAR:
        within = f"within {name.radius_mas / 1000:g} arcsec of a position lie {near:,.0f} objects"
        return f"{within} of {name.catalogue} in the mean, limit is {MOST_NEAR:g}: ask for a smaller radius"
    columns = (path.partition(".")[2] for path in asked if not path.endswith("?"))
    wrong = next((one for one in columns if one and one not in found.offered), None)
    if wrong is None:
        return None
    return f"catalogue {name.catalogue} has no column {wrong}{meant(wrong, found.offered)}"
