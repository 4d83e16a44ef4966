"""An alert of Rubin's shape that needs no registry."""

import io

import fastavro

NUMBERS = ("midpointMjdTai", "ra", "dec", "psfFlux", "psfFluxErr")
SOURCE = [
    {"name": "diaSourceId", "type": "long"},
    {"name": "band", "type": "string"},
    *({"name": name, "type": "double"} for name in NUMBERS),
]
SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "alert",
        "fields": [
            {"name": "diaSourceId", "type": "long"},
            {"name": "diaSource", "type": {"type": "record", "name": "diaSource", "fields": SOURCE}},
        ],
    }
)


def container(alert_id: int, flux: float = 1e4) -> bytes:
    """Return it in an Avro container."""
    source = {"diaSourceId": alert_id, "band": "g", "midpointMjdTai": 61041.0, "ra": 1.5, "dec": -1.5}
    file = io.BytesIO()
    fastavro.writer(
        file, SCHEMA, [{"diaSourceId": alert_id, "diaSource": source | {"psfFlux": flux, "psfFluxErr": 1e3}}]
    )
    return file.getvalue()
