"""What the processes of nightwire must agree on: schemas, wire format, topic names, surveys.

Each name is imported when it is asked for, so that `nightwire --help` need not wait for Avro, NumPy
and Arrow.
"""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.schemas import kafka_environment, lazy, records, stamps, topics, wire
    from nightwire.schemas.avro.codec import Codec
    from nightwire.schemas.avro.engines import engines
    from nightwire.schemas.avro.plans.field_changes import Change
    from nightwire.schemas.avro.plans.schema import derived_schema, kept_fields
    from nightwire.schemas.errors import (
        DecodeError,
        EncodeError,
        MendableError,
        RegistryAwayError,
        SchemaError,
        UnknownSchemaError,
        meant,
    )
    from nightwire.schemas.records import SIM_ALERT_ID, sim_alert_schema
    from nightwire.schemas.registry import AlertDecoder, Columns, Decoded, SchemaRegistry
    from nightwire.schemas.stamps import Stamp, StampError, extension_of, stamp_file
    from nightwire.schemas.survey_model.column import COLUMN_MAKERS, Column
    from nightwire.schemas.survey_model.description import surveys
    from nightwire.schemas.survey_model.prepared import PreparedHistory, PreparedRows
    from nightwire.schemas.survey_model.table import AlertTable
    from nightwire.schemas.survey_model.view import AlertView, Point, Survey, survey

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
    "MendableError",
    "Point",
    "PreparedHistory",
    "PreparedRows",
    "RegistryAwayError",
    "SchemaError",
    "SchemaRegistry",
    "Stamp",
    "StampError",
    "Survey",
    "UnknownSchemaError",
    "derived_schema",
    "engines",
    "extension_of",
    "kafka_environment",
    "kept_fields",
    "lazy",
    "meant",
    "records",
    "sim_alert_schema",
    "stamp_file",
    "stamps",
    "survey",
    "surveys",
    "topics",
    "wire",
]

__getattr__ = on_demand(__name__)
