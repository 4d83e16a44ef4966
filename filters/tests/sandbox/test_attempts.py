"""What a filter may try, each in a real process: none gets anything, none harms another's verdicts.

The attempts (attempts.toml) are written as by somebody who has got around the rules of the
language: they take modules from where those lie.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from filters.tests.helpers.sandboxed import (
    BRIGHT,
    LIMITS,
    ROWS,
    function,
    is_right,
    judge,
    row_filter,
)
from nightwire.filters.sandbox import Sandbox

TABLE = tomllib.loads((Path(__file__).parent / "attempts.toml").read_text(encoding="utf-8"))
ATTEMPTS = {one["name"]: one for one in TABLE["attempt"]}
REFUSED = [name for name, one in ATTEMPTS.items() if "said" in one]
SILENT = [name for name, one in ATTEMPTS.items() if "said" not in one]
PAGE = Path(__file__).parents[3] / "docs" / "user" / "sandbox.md"

VARIABLE = "NIGHTWIRE_TEST_SECRET"
"""What an attempt looks for in the environment."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Yield the sandbox of all attempts, started by somebody who has a secret."""
    os.environ[VARIABLE] = "s"
    try:
        with Sandbox(limits=LIMITS) as one:
            yield one
    finally:
        del os.environ[VARIABLE]


def source(name: str) -> str:
    """Return an attempt as a filter."""
    return function(ATTEMPTS[name]["body"], TABLE["reach"])


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_tried_is_refused_and_harms_nobody(sandbox: Sandbox, batch: Any, name: str) -> None:
    mallory, other = row_filter("mallory", source(name)), row_filter("mallory", BRIGHT, "other")
    found = judge(sandbox, batch, mallory, other, row_filter("alice", BRIGHT))
    outcome = found["mallory/one"]
    texts = [*outcome.faults.values(), outcome.killed or ""]
    assert len(outcome.passed) == 0
    assert any(re.search(ATTEMPTS[name]["said"], text) for text in texts), texts
    assert is_right(found["alice/one"])
    assert is_right(found["mallory/other"])


@pytest.mark.parametrize("name", SILENT)
def test_what_raises_nothing_gets_nothing(sandbox: Sandbox, batch: Any, name: str) -> None:
    found = judge(sandbox, batch, row_filter("eve", source(name)), row_filter("alice", BRIGHT))
    outcome = found["eve/one"]
    assert (outcome.evaluated, len(outcome.passed), dict(outcome.faults)) == (ROWS, 0, {})
    assert is_right(found["alice/one"])


def test_the_page_lists_every_attempt_and_what_stops_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    missing = [name for name, one in ATTEMPTS.items() if f"| {name} | {one['stopped']} |" not in page]
    assert missing == []
