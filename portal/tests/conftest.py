"""A portal of the sample night."""

from collections.abc import Iterator

import pytest

from portal.tests.sample import WRITTEN, Served, fill, serving


@pytest.fixture(scope="module")
def served(bootstrap: str) -> Iterator[Served]:
    """Yield a portal that has read the sample night from librdkafka's mock cluster."""
    fill(bootstrap)
    with serving(bootstrap) as one:
        one.until(lambda: len(one.portal.recent) == WRITTEN, "the night is read")
        yield one
