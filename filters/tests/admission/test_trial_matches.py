"""Trials of filters that match, where the catalogue cannot be opened."""

from pathlib import Path
from typing import Any

import pytest

from filters.tests.helpers.matched import compiled, stocked
from nightwire.filters.admission.examination import row_filter
from nightwire.filters.admission.trial import AdmissionPolicy, TrialRunner
from nightwire.filters.model.text_facts import load_facts
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema, wire


@pytest.mark.parametrize("language", ["sql", "python"])
def test_a_catalogue_that_is_not_whole_refuses_the_filter(
    language: str, tmp_path: Path, make_alert: Any
) -> None:
    """And is no fault of the engine's, nor its request a dead letter."""
    store = stocked(tmp_path)
    asked = "MATCH('gaia', 2) IS NULL" if language == "sql" else 'return alert.match("gaia", 2) is None'
    source = asked if language == "sql" else f"def keep(alert):\n    {asked}\n"
    found = compiled(source, store, language)
    (store.folder / "shared" / "gaia" / store.describe("gaia").version / "keys").unlink()
    value = wire.frame(SIM_ALERT_ID, Codec(sim_alert_schema()).encode(make_alert(1, 100.0)))
    trials = TrialRunner(None, None, AdmissionPolicy(), "weak", store)
    one = row_filter(("me", "one", 0, source, "keep"), load_facts(found.facts))
    broken = trials.run(one, found, [("sim", value)]).broken
    trials.close()
    assert broken is not None
    assert "catalogue gaia cannot be opened" in broken
