"""What can go wrong between bytes and alerts.

SchemaError
 ├── EncodeError          the alert does not fit its schema: reject it
 ├── DecodeError          the bytes are not what they claim to be: dead-letter them
 └── UnknownSchemaError   nobody knows the schema: dead-letter the message, or register the schema
      └── RegistryAwayError   nobody can be asked just now: wait and ask again
"""

from collections.abc import Iterable
from difflib import get_close_matches


def meant(name: str, known: Iterable[str]) -> str:
    """Return which of *known* was meant by *name*, to be put behind a message; else empty."""
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


class MendableError(Exception):
    """An error that a person can mend, and whose message says how: verbs print that alone."""


class SchemaError(MendableError):
    """Base of all errors about schemas, and raised itself where a schema is no Avro schema."""


class EncodeError(SchemaError):
    """An alert does not fit its schema.  Nothing was written: reject the alert."""


class DecodeError(SchemaError):
    """Bytes are malformed, and stay so: dead-letter them."""


class UnknownSchemaError(SchemaError):
    """Neither the registry, nor the cache, nor this package knows the schema of a message."""


class RegistryAwayError(UnknownSchemaError):
    """The registry does not answer, and the schema is not cached: wait, do not dead-letter."""
