"""What the processes of nightwire must agree on: schemas, wire format, topic names, surveys.

What needs NumPy and Arrow is imported when it is asked for, so that
`nightwire --help` need not wait for them.
"""

from typing import TYPE_CHECKING

from nightwire.schemas import kafka_environment, lazy, records, topics, wire
from nightwire.schemas.avro.codec import Codec
from nightwire.schemas.avro.engines import engines
from nightwire.schemas.avro.plans.field_changes import Change
from nightwire.schemas.avro.plans.schema import derived_schema, kept_fields
from nightwire.schemas.errors import (
    DecodeError,
    EncodeError,
    RegistryAwayError,
    SchemaError,
    UnknownSchemaError,
)
from nightwire.schemas.lazy import on_demand
from nightwire.schemas.records import SIM_ALERT_ID, sim_alert_schema
from nightwire.schemas.registry import AlertDecoder, Columns, Decoded, SchemaRegistry
from nightwire.schemas.survey_model.description import surveys
from nightwire.schemas.survey_model.view import AlertView, Point, Survey, survey

if TYPE_CHECKING:
    from nightwire.schemas.survey_model.column import COLUMN_MAKERS, Column
    from nightwire.schemas.survey_model.table import AlertTable

__all__ = [
    "COLUMN_MAKERS",
    "SIM_ALERT_ID",
    "AlertDecoder",
    "AlertTable",
    "AlertView",
    "Change",
    "Codec",
    "Column",
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
    "derived_schema",
    "engines",
    "kafka_environment",
    "kept_fields",
    "lazy",
    "records",
    "sim_alert_schema",
    "survey",
    "surveys",
    "topics",
    "wire",
]

__getattr__ = on_demand(
    __name__,
    {
        "AlertTable": "survey_model.table",
        "COLUMN_MAKERS": "survey_model.column",
        "Column": "survey_model.column",
    },
)
