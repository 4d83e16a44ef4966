"""The filter engine that scenarios start."""

from pathlib import Path

import pytest

from nightwire.benchmarks.environment.filter_engine import example_filters
from nightwire.benchmarks.environment.processes import ChildError


def test_there_are_example_filters_with_names_that_filters_may_have(tmp_path: Path) -> None:
    assert len(example_filters()) == 3
    with pytest.raises(ChildError, match="holds 0 example filters"):
        example_filters(tmp_path)
