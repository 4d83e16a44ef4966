"""Control records: what the processes of nightwire tell one another, in Confluent wire format.

Their schemas lie in ``avsc/`` and their ids are fixed here, so that no registry is needed to read
or write them.  An id is never given to another schema: a changed schema gets the next free id, and
the old file stays.
"""

import json
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from nightwire.schemas.avro.codec import Codec
from nightwire.schemas.errors import DecodeError
from nightwire.schemas.wire import frame, unframe

FOLDER = files("nightwire.schemas") / "avsc"


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
        older: Ids of its earlier schemas (``avsc/<name>.<id>.avsc``), which are read as the newest.
    """

    def __init__(self, name: str, schema_id: int, *older: int) -> None:
        self.name = name
        self.schema_id = schema_id
        self.older = older

    @property
    def schema(self) -> dict[str, Any]:
        """Its Avro schema."""
        return load_schema(f"{self.name}.avsc")

    @cached_property
    def codec(self) -> Codec:
        """The codec of its schema."""
        return Codec(self.schema)

    def schema_of(self, schema_id: int) -> dict[str, Any]:
        """Return the record's schema of that id, the present one or an earlier one."""
        newest = schema_id == self.schema_id
        return self.schema if newest else load_schema(f"{self.name}.{schema_id}.avsc")

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
        if schema_id not in self.ids:
            raise DecodeError(f"schema id {schema_id} where a {self.name} record has {self.schema_id}")
        return self._readers[schema_id].decode(body)

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids that it has had, the present one first."""
        return (self.schema_id, *self.older)

    @cached_property
    def _readers(self) -> dict[int, Codec]:
        older = {one: Codec(self.schema_of(one), reader=self.schema) for one in self.older}
        return {self.schema_id: self.codec, **older}


ACCOUNT = Record("account", 100_001)
VISIT = Record("visit", 100_002)
VOEVENT = Record("voevent", 100_003)
FILTER = Record("filter", 100_016, 100_015, 100_011, 100_007, 100_004)
REQUEST = Record("request", 100_030, 100_017, 100_012, 100_008, 100_005)
ANSWER = Record("answer", 100_006)
OVERFLOW = Record("overflow", 100_009)
SEEN = Record("seen", 100_018, 100_010)
POSITION = Record("position", 100_014, 100_013)
ENTRY = Record("entry", 100_019)
SUBSCRIPTION = Record("subscription", 100_020)
CHANNEL = Record("channel", 100_025)
MAPPING = Record("mapping", 100_026)
FLOW = Record("flow", 100_027)
OWED = Record("owed", 100_031)
COMMENT = Record("comment", 100_032)

RECORDS = (
    *(ACCOUNT, VISIT, VOEVENT, FILTER, REQUEST, ANSWER, OVERFLOW, SEEN, POSITION, ENTRY),
    *(SUBSCRIPTION, CHANNEL, MAPPING, FLOW, OWED, COMMENT),
)

SIM_ALERT_ID = 100_100
"""Id of the schema of simulated alerts."""


def sim_alert_schema() -> dict[str, Any]:
    """Return the schema of simulated alerts.  It is shared: do not change it."""
    return load_schema("sim_alert.avsc")


def own_schema(schema_id: int) -> dict[str, Any] | None:
    """Return the schema that this package gives to *schema_id*, or None."""
    if schema_id == SIM_ALERT_ID:
        return sim_alert_schema()
    return next((record.schema_of(schema_id) for record in RECORDS if schema_id in record.ids), None)
