"""What the sandbox's tests share: eight alerts, as Avro bodies and as columns."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from filters.tests.helpers.sandboxed import columns, encoded


@pytest.fixture(scope="session")
def bodies(make_alert: Callable[..., dict[str, Any]]) -> list[bytes]:
    """Return the Avro bodies of eight alerts."""
    return encoded(make_alert)


@pytest.fixture(scope="session")
def batch(bodies: list[bytes]) -> pa.RecordBatch:
    """Return the columns of `bodies`."""
    return columns(bodies)
