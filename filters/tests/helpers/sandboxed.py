"""Alerts and filters for the sandbox's tests."""

from collections.abc import Callable, Mapping
from textwrap import indent
from typing import Any

import pyarrow as pa

from nightwire.filters.sandbox import Limits, Outcome, RowFilter, Sandbox
from nightwire.schemas import AlertTable, Codec, sim_alert_schema, survey

ROWS = 8
LIMITS = Limits(cpu_s=0.3, wall_s=1.5, memory_mb=256)
"""Short, so that filters are stopped soon; the clock has room for a busy machine."""

FIELDS = ("id", "history", "light_curve", "flux", "snr", "ra", "dec", "mjd_tai", "band", "magnitude")
BRIGHT = "def keep(alert):\n    return alert.flux if alert.flux > 300 else 0"
"""A filter whose verdicts are known."""
PASSED = [3, 4, 5, 6, 7]
RANKS = [400.0, 500.0, 600.0, 700.0, 800.0]


def encoded(make_alert: Callable[..., dict[str, Any]], rows: int = ROWS) -> list[bytes]:
    """Return the Avro bodies of alerts 1, 2, …, of 100, 200, … nJy."""
    place = {"ra": 10.0, "dec": -5.0, "band": "r", "midpointMjdTai": 61000.0}
    codec = Codec(sim_alert_schema())
    return [codec.encode(make_alert(number, 100.0 * number, **place)) for number in range(1, rows + 1)]


def columns(bodies: list[bytes]) -> pa.RecordBatch:
    """Return the columns that filters of `FIELDS` need."""
    schema = sim_alert_schema()
    return Codec(schema).columns(bodies, AlertTable.fields(FIELDS, survey("sim"), schema))


def row_filter(owner: str, source: str, name: str = "one") -> RowFilter:
    """Return a filter over `FIELDS` whose function is ``keep``."""
    return RowFilter(owner, name, 1, source, "keep", FIELDS)


def function(body: str, before: str = "") -> str:
    """Return the source of a filter: *before* at its top level, *body* in its function."""
    return f"{before}\ndef keep(alert):\n{indent(body, '    ')}\n"


def judge(sandbox: Sandbox, batch: pa.RecordBatch, *filters: RowFilter) -> Mapping[str, Outcome]:
    """Return the outcomes of *filters*."""
    return sandbox.judge(filters, "sim", batch=batch)


def is_right(outcome: Outcome) -> bool:
    """Whether these are the verdicts of `BRIGHT`."""
    found = outcome.passed.tolist(), outcome.rank.tolist(), dict(outcome.faults), outcome.evaluated
    return found == (PASSED, RANKS, {}, ROWS)
