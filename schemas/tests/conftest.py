"""What the tests of schemas share: the engines, each of which must do the same."""

import pytest


@pytest.fixture(scope="session", params=["python", pytest.param("native", marks=pytest.mark.native)])
def engine(request: pytest.FixtureRequest) -> str:
    """Return the name of a codec engine."""
    return str(request.param)
