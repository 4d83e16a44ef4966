"""The catalogues that a filter asks for: whether there are such, and in which versions."""

from collections.abc import Iterator
from dataclasses import replace

from nightwire.core.catalogues import CatalogueError, CatalogueStore
from nightwire.filters.language import FilterError
from nightwire.filters.model.compilation import Compilation
from nightwire.filters.model.text_facts import load_facts, matches_named
from nightwire.filters.reading.matches import versions_of
from nightwire.schemas import meant
from nightwire.schemas.survey_model import MATCH_MARK, MatchName

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
    columns = (path.partition(".")[2] for path in asked if not path.endswith("?"))
    wrong = next((one for one in columns if one and one not in found.offered), None)
    if wrong is None:
        return None
    return f"catalogue {name.catalogue} has no column {wrong}{meant(wrong, found.offered)}"
