"""Fixtures of several tests: simulated alerts, and filters that pass some of them."""

import pytest

from nightwire.benchmarks.environment.alert_pool import Alert, make_pool
from nightwire.benchmarks.environment.filter_mixture import MixedFilter, mixture

COUNT = 500


@pytest.fixture(scope="session")
def pool() -> list[Alert]:
    """Return simulated alerts."""
    return make_pool(COUNT)


@pytest.fixture(scope="session")
def hundred(pool: list[Alert]) -> list[MixedFilter]:
    """Return a hundred filters."""
    return mixture(100, 20, pool)
