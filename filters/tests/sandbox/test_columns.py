"""Functions of columns in the sandbox: the verdicts of plain Python on each alert."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from filters.tests.helpers.sandboxed import LIMITS, columns, encoded
from nightwire.filters.sandbox import Outcome, RowFilter, Sandbox
from nightwire.filters.sandbox.alert_columns import AlertColumns, verdicts_of
from nightwire.filters.sandbox.protocol import PASSED, REJECTED
from nightwire.schemas import AlertTable, survey

ROWS = 40
ALERT = "def keep(alert):\n    return "
TABLE = "def keep(alerts):\n    return "


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Yield a sandbox with short limits."""
    with Sandbox(limits=LIMITS) as one:
        yield one


@pytest.fixture(scope="module")
def batch(make_alert: Callable[..., dict[str, Any]]) -> Any:
    """Return the columns of forty alerts."""
    return columns(encoded(make_alert, ROWS))


def over_columns(source: str, names: tuple[str, ...] = (), owner: str = "alice") -> RowFilter:
    fields = ("id", "flux", "magnitude", "band", "history.flux", "history.mjd_tai", "diaSource.psfFlux")
    imports = frozenset({"pandas"} if names else set())
    return RowFilter(owner, "one", 1, source, "keep", fields, imports=imports, columns=names)


def said(outcome: Outcome) -> tuple[list[int], list[float]]:
    assert not outcome.killed, outcome
    assert not outcome.faults, outcome
    return outcome.passed.tolist(), outcome.rank.tolist()


PAIRS = {
    "numbers": (ALERT + "alert.flux > 2000", TABLE + "alerts.flux > 2000"),
    "rank": (ALERT + "alert.flux - 1000", TABLE + "alerts.flux - 1000"),
    "texts": (ALERT + "alert.band == 'r'", TABLE + "alerts.band == 'r'"),
    "history": (ALERT + "len(alert.history) == 0", TABLE + "alerts.history.flux.counts == 0"),
    "path": (ALERT + "alert['diaSource']['psfFlux'] > 999", TABLE + "alerts['diaSource.psfFlux'] > 999"),
    "frame": (ALERT + "alert.id % 2 == 0", TABLE + "alerts.frame('id')['id'] % 2 == 0"),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_verdicts_are_those_on_each_alert(sandbox: Sandbox, batch: Any, pair: str) -> None:
    one, many = PAIRS[pair]
    with_fields = over_columns("")
    imports = frozenset({"pandas"})
    row = RowFilter("bob", "one", 1, one, "keep", with_fields.fields)
    column = replace(over_columns(many), imports=imports)
    found = sandbox.judge([row, column], "sim", batch=batch)
    assert repr(said(found["alice/one"])) == repr(said(found["bob/one"]))


def test_named_columns_are_series(sandbox: Sandbox, batch: Any) -> None:
    source = """
COLUMNS = ["diaSource.psfFlux", "band", "history.flux"]
def keep(flux, band, before):
    assert type(flux).__name__ == "Series"
    return (flux.astype(float) > 2000) & band.isin(["r"]) & (before.apply(len) == 0)
"""
    names = ("diaSource.psfFlux", "band", "history.flux")
    found = sandbox.judge([over_columns(source, names)], "sim", batch=batch)["alice/one"]
    assert said(found)[0] == list(range(20, ROWS))


def test_a_fault_is_narrowed_to_its_alerts(sandbox: Sandbox, batch: Any) -> None:
    source = """
def keep(alerts):
    if ((alerts.id == 8) | (alerts.id == 31)).any():
        raise ValueError("not these")
    return alerts.flux
"""
    found = sandbox.judge([over_columns(source)], "sim", batch=batch)["alice/one"]
    assert sorted(found.faults) == [7, 30]
    assert "not these" in found.faults[7]
    assert "line 4" in found.faults[7]
    assert found.passed.tolist() == [row for row in range(ROWS) if row not in (7, 30)]
    assert found.rank.tolist() == [100.0 * (row + 1) for row in found.passed]
    assert found.evaluated == ROWS


@pytest.mark.parametrize("result", ["True", "[True]", "alerts.flux[1:]", "None", "alerts.flux[:, None]"])
def test_what_is_not_one_value_for_each_is_a_fault_that_says_so(
    sandbox: Sandbox, batch: Any, result: str
) -> None:
    found = sandbox.judge([over_columns(TABLE + result)], "sim", batch=batch)["alice/one"]
    assert len(found.faults) == ROWS
    assert "one truth value or rank for each is wanted" in found.faults[0]


def test_what_is_missing_does_not_pass(sandbox: Sandbox, batch: Any) -> None:
    sources = {
        "nan": "np.where(alerts.id > 30, alerts.flux, np.nan)",
        "none": "np.array([None if one <= 30 else True for one in alerts.id], object)",
        "masked": "np.ma.masked_array(alerts.flux, alerts.id <= 30)",
        "zero": "np.where(alerts.id > 30, 1, 0)",
        "history": "alerts.history.flux.max() > -1e99",
    }
    filters = [
        replace(over_columns(f"import numpy as np\n{TABLE}{text}"), name=name)
        for name, text in sources.items()
    ]
    found = sandbox.judge(filters, "sim", batch=batch)
    passed = {name: said(found[f"alice/{name}"])[0] for name in sources}
    assert passed.pop("history") == []  # none has any
    assert all(rows == list(range(30, ROWS)) for rows in passed.values()), passed
    assert all(map(math.isnan, found["alice/none"].rank))


def test_whole_numbers_are_exact_beside_missing_ones() -> None:
    numbers = pa.array([2**60 + 1, None, 7, -(2**60)])
    batch = pa.RecordBatch.from_pydict({"n": numbers, "small": pa.array([5, None, 7, 8])})
    alerts = AlertColumns(AlertTable(batch, survey("sim")))
    found = alerts["n"]
    assert np.isnan(found).tolist() == [False, True, False, False]
    assert (found == 2**60 + 1).tolist() == [True, False, False, False]
    assert not (found == 2**60).any()
    assert np.isin(found, [2**60 + 1, 7]).tolist() == [True, False, True, False]
    assert (alerts.frame("n")["n"] == 2**60 + 1).tolist() == [True, False, False, False]
    assert verdicts_of(found, 4) == (bytes([PASSED, REJECTED, PASSED, PASSED]), [2.0**60, 7.0, -(2.0**60)])
    assert alerts["small"].dtype == np.float64


def test_one_that_does_not_end_is_stopped_and_the_next_is_judged(sandbox: Sandbox, batch: Any) -> None:
    endless = over_columns("def keep(alerts):\n    while True:\n        pass")
    found = sandbox.judge(
        [endless, replace(over_columns(TABLE + "alerts.flux > 0"), name="two")], "sim", batch=batch
    )
    assert found["alice/one"].stopped
    assert len(found["alice/two"].passed) == ROWS


def test_what_a_filter_writes_into_a_column_is_its_own(sandbox: Sandbox, batch: Any) -> None:
    writes = over_columns("def keep(alerts):\n    alerts.flux[:] = -1\n    return alerts.flux > 0")
    reads = replace(over_columns(TABLE + "alerts.flux > 0"), name="two")
    found = sandbox.judge([writes, reads], "sim", batch=batch)
    assert len(found["alice/one"].passed) == len(found["alice/two"].passed) == ROWS
