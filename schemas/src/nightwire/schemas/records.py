"""Control records: what the processes of nightwire tell one another, in Confluent wire format.

Their schemas lie in ``avsc/`` and their ids are fixed here, so that no registry is needed to read or write
them.  An id is never given to another schema: a changed schema gets the next free id, and the old file stays.
"""

import json
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from nightwire.schemas._codec import Codec
from nightwire.schemas._errors import DecodeError
from nightwire.schemas.wire import frame, unframe

FOLDER = files("nightwire.schemas") / "avsc"

FIRST_OWN_ID = 100_000
"""Ids below belong to the surveys (Rubin: 100 x major + minor)."""


@cache
def load_schema(file: str) -> dict[str, Any]:
    """Return the schema in ``avsc/<file>``.  It is shared: do not change it."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


class Record:
    """One kind of control record.

    Args:
        name: Name of its file in ``avsc/``, without ``.avsc``.
        schema_id: Its id on the wire.
    """

    def __init__(self, name: str, schema_id: int) -> None:
        self.name = name
        self.schema_id = schema_id

    @property
    def schema(self) -> dict[str, Any]:
        """Its Avro schema."""
        return load_schema(f"{self.name}.avsc")

    @cached_property
    def codec(self) -> Codec:
        """The codec of its schema."""
        return Codec(self.schema)

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """Return *value* in wire format.

        Raises:
            EncodeError: It does not fit the schema.
        """
        return frame(self.schema_id, self.codec.encode(value))

    def decode(self, value: bytes) -> dict[str, Any]:
        """Return the record in *value*.

        Raises:
            DecodeError: It is not in wire format, of another schema, or malformed.
        """
        schema_id, body = unframe(value)
        if schema_id != self.schema_id:
            raise DecodeError(f"schema id {schema_id} where a {self.name} record has {self.schema_id}")
        return self.codec.decode(body)


ACCOUNT = Record("account", 100_001)
VISIT = Record("visit", 100_002)
VOEVENT = Record("voevent", 100_003)
FILTER = Record("filter", 100_004)
REQUEST = Record("request", 100_005)
ANSWER = Record("answer", 100_006)

RECORDS = (ACCOUNT, VISIT, VOEVENT, FILTER, REQUEST, ANSWER)

SIM_ALERT_ID = 100_100
"""Id of the schema of simulated alerts."""


def sim_alert_schema() -> dict[str, Any]:
    """Return the schema of simulated alerts.  It is shared: do not change it."""
    return load_schema("sim_alert.avsc")


def own_schema(schema_id: int) -> dict[str, Any] | None:
    """Return the schema that this package gives to *schema_id*, or None."""
    if schema_id == SIM_ALERT_ID:
        return sim_alert_schema()
    return next((record.schema for record in RECORDS if record.schema_id == schema_id), None)
