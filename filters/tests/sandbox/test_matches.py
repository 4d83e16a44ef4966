"""Matches in the sandbox: filters that are code find what the engine looked up, and no more."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from filters.tests.helpers.matched import alerts, compiled, stocked
from nightwire.core.catalogues import CatalogueStore
from nightwire.filters.admission.examination import row_filter
from nightwire.filters.evaluation.cpu_budget import CpuBudget
from nightwire.filters.evaluation.in_process import judge_in_process
from nightwire.filters.evaluation.results import Verdict
from nightwire.filters.evaluation.rowwise import RowJudge, in_rounds, judge_in_sandbox, rounds
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.text_facts import load_facts
from nightwire.filters.reading.alerts import AlertIdentities, Alerts
from nightwire.filters.reading.matches import with_matches
from nightwire.filters.sandbox import Limits, Sandbox
from nightwire.schemas import (
    SIM_ALERT_ID,
    AlertDecoder,
    AlertTable,
    Codec,
    SchemaRegistry,
    sim_alert_schema,
    survey,
    wire,
)

pytestmark = [pytest.mark.slow]

ASKING = "    try:\n        return {}\n    except (TypeError, ValueError):\n        return 0"
"""No match is None: TypeError.  And what is tried cannot be compiled."""

CODE = {
    "match": ASKING.format("alert.match('gaia', 2) is not None"),
    "column": ASKING.format("alert.match('gaia', 2)['g'] < 20"),
    "area": ASKING.format("alert.in_moc('area')"),
    "table": "    return (alerts.match('gaia', 2)['count'] == 1) | alerts.in_moc('area')",
    "texts": "    return alerts.match('gaia', 2)['name'] == 'w'",
    "mine": ASKING.format("alert.match('me/targets', 2)['label'] == 'mine'"),
    "peeping": ASKING.format("len([name for name in alert.keys() if 'targets' in name])"),
}
PASSED = {
    "match": [0, 1],
    "column": [0],
    "area": [0],
    "table": [0, 1],
    "texts": [1],
    "mine": [2],
    "peeping": [],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> CatalogueStore:
    return stocked(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox("weak", Limits(cpu_s=5.0, wall_s=20.0)) as sandbox:
        yield sandbox


def live(name: str, store: CatalogueStore, owner: str = "me") -> LiveFilter:
    """Return one of the filters, as the engine judges by it."""
    body = CODE[name]
    source = f"def keep({'alerts' if 'alerts' in body else 'alert'}):\n{body}\n"
    found = compiled(source, store)
    assert found.program is None
    return LiveFilter(owner, name, 1, "sim", source, "keep", facts=found.facts)


def given(filters: list[LiveFilter], store: CatalogueStore, values: list[bytes]) -> Alerts:
    """Return the alerts with all that the filters ask for, as a worker reads them."""
    names = [name for one in filters for name in one.text_facts.matches]
    batch = with_matches(alerts(), names, "sim", store)
    count, decoder = len(batch), AlertDecoder(SchemaRegistry(None))
    identities = AlertIdentities(
        [""] * count, [0] * count, range(count), [0] * count, [None] * count, ["1"] * count
    )
    table = AlertTable(batch, survey("sim"))
    schemas = {SIM_ALERT_ID: sim_alert_schema()} if values else {}
    return Alerts("sim", table, batch, identities, (), (), decoder, values, schemas)


def verdicts(judge: RowJudge, filters: list[LiveFilter], found: Alerts) -> Mapping[str, Verdict]:
    said = in_rounds(judge)(found, [*enumerate(filters)])
    return {filters[one.number].name: one for one in said}


@pytest.fixture
def values(make_alert: Any) -> list[bytes]:
    """Return the same alerts whole."""
    codec = Codec(sim_alert_schema())
    return [
        wire.frame(SIM_ALERT_ID, codec.encode(make_alert(row + 1, 100.0, ra=ra, dec=dec)))
        for row, (ra, dec) in enumerate([(10.0, 20.0), (350.0, -5.5), (50.0, 0.0), (200.0, 1.0)])
    ]


def test_filters_over_columns_find_matches(sandbox: Sandbox, store: CatalogueStore) -> None:
    filters = [replace(live(name, store), fields=("id",)) for name in CODE if name != "peeping"]
    said = verdicts(judge_in_sandbox(sandbox, CpuBudget(5.0)), filters, given(filters, store, []))
    assert {name: (one.passed.tolist(), dict(one.faults)) for name, one in said.items()} == {
        one.name: (PASSED[one.name], {}) for one in filters
    }


@pytest.mark.parametrize("contained", [True, False])
def test_filters_of_whole_alerts_find_matches(
    contained: bool, sandbox: Sandbox, store: CatalogueStore, values: list[bytes]
) -> None:
    filters = [live(name, store) for name in ("match", "column", "area", "mine")]
    judge = judge_in_sandbox(sandbox, CpuBudget(5.0)) if contained else judge_in_process(5.0)
    said = verdicts(judge, filters, given(filters, store, values))
    assert {name: (one.passed.tolist(), dict(one.faults)) for name, one in said.items()} == {
        one.name: (PASSED[one.name], {}) for one in filters
    }


def test_nobody_sees_what_anothers_own_catalogue_matched(sandbox: Sandbox, store: CatalogueStore) -> None:
    filters = [live("mine", store), live("peeping", store, owner="eve"), live("match", store, owner="eve")]
    filters = [replace(one, fields=("id",)) for one in filters]
    said = verdicts(judge_in_sandbox(sandbox, CpuBudget(5.0)), filters, given(filters, store, []))
    assert {name: one.passed.tolist() for name, one in said.items()} == {
        name: PASSED[name] for name in ("mine", "peeping", "match")
    }


def test_a_match_that_nobody_looked_up_says_what_to_do(sandbox: Sandbox) -> None:
    one = row_filter(
        ("me", "one", 1, "def keep(alert):\n    return alert.match(str('gaia'), 2)", "keep"), load_facts("")
    )
    batch = pa.RecordBatch.from_pydict({"diaSource.diaSourceId": [1]})
    outcome = sandbox.judge([replace(one, fields=("id",))], "sim", batch=batch)["me/one"]
    assert "match('gaia', 2): was not looked up before the filter ran" in outcome.faults[0]


def test_versions_of_one_catalogue_are_judged_in_rounds(store: CatalogueStore) -> None:
    first = live("match", store)
    other = replace(first, name="other", facts=first.facts.replace("gaia#", "gaia#0"))
    own, theirs = live("mine", store), live("match", store, owner="eve")
    found = rounds([(0, first), (1, other), (2, own), (3, theirs), (4, live("area", store))])
    assert sorted([number for number, _ in some] for _, some in found) == [[0, 3, 4], [1], [2]]
