"""An alert as one line of JSON."""

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from nightwire.consumers.alert import ReceivedAlert

_OMIT = object()


def json_line(alert: ReceivedAlert, *, with_bytes: bool = False) -> str:
    """Return *alert* as JSON, without a line end.

    Numbers that are not finite become null, times ISO 8601.

    Args:
        alert: What a reader handed out.
        with_bytes: Bytes (the stamps) as base64, rather than left out.
    """
    headers = {name: value.decode(errors="backslashreplace") for name, value in alert.headers.items()}
    record = {
        "id": alert.summary.id,
        "survey": alert.survey,
        "topic": alert.topic,
        "partition": alert.partition,
        "offset": alert.offset,
        "timestamp": alert.timestamp,
        "key": None if alert.key is None else alert.key.decode(errors="backslashreplace"),
        "headers": headers,
        "alert": alert.alert,
    }
    return json.dumps(json_value(record, with_bytes=with_bytes), separators=(",", ":"), allow_nan=False)


def json_value(value: Any, *, with_bytes: bool) -> Any:
    """Return *value* as JSON can hold it; bytes as base64, or None without them."""
    result = _json_or_omit(value, with_bytes)
    return None if result is _OMIT else result


def _json_or_omit(value: Any, with_bytes: bool) -> Any:
    if isinstance(value, Mapping):
        return _fields(value, with_bytes)
    if isinstance(value, list | tuple):
        return [json_value(item, with_bytes=with_bytes) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode() if with_bytes else _OMIT
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _scalar(value)


def _fields(record: Mapping[Any, Any], with_bytes: bool) -> dict[str, Any]:
    fields = {str(name): _json_or_omit(value, with_bytes) for name, value in record.items()}
    return {name: value for name, value in fields.items() if value is not _OMIT}


def _scalar(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    return value
