"""Refusals, before anything is started."""

from pathlib import Path

import pytest

from nightwire.benchmarks.harness.preflight import (
    RESERVE,
    RefusedError,
    available,
    check_resources,
    shortages,
)
from nightwire.benchmarks.model.scenario import Needs

GB = 10**9
PLENTY = Needs(100 * GB, 100 * GB, 3600.0)


@pytest.mark.parametrize(
    ("have", "words"),
    [
        (Needs(5 * GB, 100 * GB, 3600.0), ["needs 12.0 GB", "has 5.0"]),
        (Needs(100 * GB, 1 * GB, 3600.0), ["needs 4.0 GB of memory, has 1.0"]),
        (Needs(100 * GB, 100 * GB, 60.0), ["about 15 min", "limit of 60 s"]),
    ],
)
def test_what_is_lacking_is_said_with_what_there_is(have: Needs, words: list[str]) -> None:
    (said,) = shortages(Needs(10 * GB, 4 * GB, 900.0), have)
    assert all(word in said for word in words)


def test_what_fits_is_not_objected_to() -> None:
    assert shortages(Needs(10 * GB, 4 * GB, 900.0), PLENTY) == []


def test_disk_is_left_to_others() -> None:
    assert shortages(Needs(PLENTY.disk - RESERVE, 0, 0.0), PLENTY) == []
    assert shortages(Needs(PLENTY.disk - RESERVE + 1, 0, 0.0), PLENTY) != []


def test_all_that_is_lacking_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"visit does not start.*GB on .*of memory.*above the limit"):
        check_resources("visit", Needs(10**18, 10**18, 1e9), tmp_path, 60.0)


def test_the_machine_is_asked(tmp_path: Path) -> None:
    have = available(tmp_path, 5.0)
    assert have.disk > 0
    assert have.memory > 0
    assert have.seconds == 5.0
