"""A view of the sample site."""

from collections.abc import Iterator

import pytest

from directory.tests.sample import fill
from nightwire.directory.model import View


@pytest.fixture
def sample_view() -> Iterator[View]:
    one = View()
    fill(one)
    yield one
    one.close()
