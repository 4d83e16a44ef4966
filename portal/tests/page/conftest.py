"""A portal of the sample night, and a real Chromium."""

from collections.abc import Iterator

import pytest

from directory.tests.page.browser import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Yield a page in Chromium."""
    with Browser(tmp_path_factory.mktemp("chromium")) as one:
        one.tell("Network.enable")
        yield one
