"""What the processes of nightwire must agree on: schemas, wire format, topic names, surveys."""

from nightwire.schemas import records, topics, wire
from nightwire.schemas._changes import Change
from nightwire.schemas._codec import Codec
from nightwire.schemas._engines import engines
from nightwire.schemas._errors import (
    DecodeError,
    EncodeError,
    RegistryAwayError,
    SchemaError,
    UnknownSchemaError,
)
from nightwire.schemas._survey import surveys
from nightwire.schemas._view import AlertView, Point, Survey, survey
from nightwire.schemas.records import SIM_ALERT_ID, sim_alert_schema
from nightwire.schemas.registry import AlertDecoder, Columns, Decoded, SchemaRegistry

__all__ = [
    "SIM_ALERT_ID",
    "AlertDecoder",
    "AlertView",
    "Change",
    "Codec",
    "Columns",
    "DecodeError",
    "Decoded",
    "EncodeError",
    "Point",
    "RegistryAwayError",
    "SchemaError",
    "SchemaRegistry",
    "Survey",
    "UnknownSchemaError",
    "engines",
    "records",
    "sim_alert_schema",
    "survey",
    "surveys",
    "topics",
    "wire",
]
