"""The version of a schema that alerts are to look like."""

import re
from collections.abc import Callable, Mapping
from typing import Any

VERSION = re.compile(r"(\d+)\.(\d+)")


def schema_for(
    version: int | str | Mapping[str, Any], lookup: Callable[[int], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return the schema that *version* names.

    Args:
        version: A schema, an id, or ``MAJOR.MINOR``, whose id is 100 × major + minor, as Rubin numbers them.
        lookup: Gives the schema of an id.

    Raises:
        ValueError: It is none of these.
        UnknownSchemaError: Nobody knows that id; as RegistryAwayError, where asking again may help.
    """
    if isinstance(version, Mapping):
        return version
    text = str(version)
    if named := VERSION.fullmatch(text):
        return lookup(100 * int(named[1]) + int(named[2]))
    if not text.isdecimal():
        raise ValueError(f"as_version={version!r} is neither a schema, nor its id, nor a version like 11.0")
    return lookup(int(text))
