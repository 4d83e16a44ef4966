"""Published versions of a survey's schema: loaded from their files, resolved in pairs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightwire.schemas.avro.plans.field_changes import Change
from nightwire.schemas.avro.plans.resolve import Mismatch, resolve
from nightwire.schemas.avro.plans.schema import inlined, parse
from nightwire.schemas.errors import SchemaError


@dataclass(frozen=True)
class Pair:
    """One version read as another.

    Attributes:
        writer: Name of the version that was written.
        reader: Name of the version that is wanted.
        mismatches: Why no alert can be read; empty where they can.
        conditions: What is refused in the alerts that have it.
    """

    writer: str
    reader: str
    mismatches: Sequence[Mismatch]
    conditions: Sequence[Mismatch]

    @property
    def verdict(self) -> str:
        """Return ``yes``, ``partly`` or ``no``."""
        return "no" if self.mismatches else "partly" if self.conditions else "yes"


def pairs(versions: Mapping[str, Mapping[str, Any]], changes: Sequence[Change]) -> list[Pair]:
    """Return the resolution of each pair of *versions* (schemas by name), with itself too."""
    parsed = {name: parse(schema) for name, schema in versions.items()}
    found = []
    for writer, written in parsed.items():
        for reader, wanted in parsed.items():
            resolution = resolve(written, wanted, changes)
            found.append(Pair(writer, reader, resolution.mismatches, resolution.conditions))
    return found


def load_version(path: Path) -> dict[str, Any]:
    """Return the schema in a file, or in a folder of files that name one another.

    Raises:
        SchemaError: There is none, or not one that no other names.
    """
    files = sorted(path.glob("*.avsc")) if path.is_dir() else [path]
    parts = {}
    for file in files:
        part = json.loads(file.read_text(encoding="utf-8"))
        parts[_full_name(part, part.get("namespace", ""))] = part
    names = {name: _names_in(part, part.get("namespace", "")) & parts.keys() for name, part in parts.items()}
    roots = [name for name in parts if not any(name in others for others in names.values())]
    # a file that is left over names no other
    roots = [name for name in roots if names[name]] or roots
    if len(roots) != 1:
        raise SchemaError(f"{path}: one schema is wanted that no other names, there are {roots or 'none'}")
    rest = dict(parts)
    return inlined(rest.pop(roots[0]), rest)  # type: ignore[no-any-return]


def _full_name(schema: Mapping[str, Any], space: str) -> str:
    name = str(schema["name"])
    return name if "." in name or not space else f"{space}.{name}"


def _names_in(schema: Any, space: str) -> set[str]:
    """Return the names that a schema's fields refer to."""
    if isinstance(schema, str):
        return {schema if "." in schema else f"{space}.{schema}".lstrip(".")}
    if isinstance(schema, list):
        return {name for branch in schema for name in _names_in(branch, space)}
    inner = [schema[key] for key in ("items", "values") if key in schema]
    inner += [field["type"] for field in schema.get("fields", ())]
    return {name for one in inner for name in _names_in(one, schema.get("namespace", space))}


def as_markdown(survey: str, found: Sequence[Pair]) -> str:
    """Return a page: a table of all pairs, and the reasons of those that are not read whole."""
    names = list(dict.fromkeys(pair.writer for pair in found))
    verdicts = {(pair.writer, pair.reader): pair.verdict for pair in found}
    lines = [
        f"# Versions of {survey}'s schema, read as one another",
        "",
        "Made by `nightwire schema check`; do not edit. A row is what was written, a column what is wanted:",
        "● read whole, ◐ read but for alerts that hold what the wanted version cannot, · not read.",
        "",
        f"| written \\ wanted | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for writer in names:
        marks = (VERDICT_MARKS[verdicts[writer, reader]] for reader in names)
        lines.append(f"| **{writer}** | {' | '.join(marks)} |")
    lines += ["", _counted(found), "", "## What is not read, and why", ""]
    return "\n".join([*lines, *_reasons(found)]) + "\n"


VERDICT_MARKS = {"yes": "●", "partly": "◐", "no": "·"}
MAX_NAMED = 6
"""Fields that are named for a group of pairs; of more, how many there are."""


def _counted(found: Sequence[Pair]) -> str:
    verdicts = [pair.verdict for pair in found]
    return (
        f"{len(found)} pairs: {verdicts.count('yes')} read whole, {verdicts.count('partly')} in part, "
        f"{verdicts.count('no')} not."
    )


def _reasons(found: Sequence[Pair]) -> list[str]:
    """Return a line for each set of reasons, with the pairs that have it."""
    groups: dict[tuple[str, str], dict[str, list[str]]] = {}
    for pair in found:
        if pair.verdict != "yes":
            why = _named(pair.mismatches or pair.conditions)
            groups.setdefault((pair.verdict, why), {}).setdefault(pair.writer, []).append(pair.reader)
    lines = []
    for (verdict, why), of in groups.items():
        which = "; ".join(f"{writer} → {', '.join(readers)}" for writer, readers in of.items())
        lines.append(f"- {which}: {'refused is ' if verdict == 'partly' else ''}{why}")
    return lines


def _named(mismatches: Sequence[Mismatch]) -> str:
    shown = [f"`{one.path}` ({one.why})" for one in mismatches[:MAX_NAMED]]
    return ", ".join(shown) + (
        f" and {len(mismatches) - MAX_NAMED} more" if len(mismatches) > MAX_NAMED else ""
    )
