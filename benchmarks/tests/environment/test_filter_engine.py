"""The filter engine that scenarios start."""

from pathlib import Path

import pytest

from nightwire.benchmarks.environment.filter_engine import ALERTS, QUICK, example_filters, lane_of
from nightwire.benchmarks.environment.processes import ChildError


def test_there_are_example_filters_with_names_that_filters_may_have(tmp_path: Path) -> None:
    assert len(example_filters()) == 3
    with pytest.raises(ChildError, match="holds 0 example filters"):
        example_filters(tmp_path)


def test_an_account_belongs_to_the_quick_lane_or_to_an_owners_slow_one() -> None:
    assert lane_of(ALERTS, ALERTS) == QUICK
    assert lane_of(f"filters-slow/ann.17/{ALERTS}", ALERTS) == "ann"
    assert lane_of(f"filters-slow/ann/{ALERTS}", ALERTS) == "ann"
    assert lane_of("alerts.ztf", ALERTS) is None
    assert lane_of("filters-slow/ann/alerts.ztf", ALERTS) is None
