"""When a filter has had its time."""

import pytest

from nightwire.filters.sandbox.batch_run import exceeded_limit, remaining_s
from nightwire.filters.sandbox.types import Limits, Usage

LIMITS = Limits(cpu_s=2.0, wall_s=5.0)


@pytest.mark.parametrize(
    ("used", "left"),
    [
        (Usage(0.5, 0.5, 0.0), 1.5),  # it computes
        (Usage(2.0, 2.0, 0.0), 0.0),
        (Usage(0.1, 4.0, 0.0), 1.0),  # it sleeps
        (Usage(0.1, 4.0, 3.9), 1.9),  # it starves
        (Usage(0.1, 24.0, 23.9), 1.0),  # it has starved for long enough
        (Usage(0.1, 4.0), 1.9),  # nobody says whether it sleeps or starves: by its CPU time
        (Usage(1.5, 6.0), -1.0),
    ],
)
def test_time_is_cpu_or_its_own_or_five_times_that(used: Usage, left: float) -> None:
    assert remaining_s(LIMITS, used) == pytest.approx(left)


def test_the_complaint_names_the_limit() -> None:
    assert exceeded_limit(LIMITS, Usage(2.1, 3.0, 0.0)) == "took longer than 2 s of CPU time"
    assert exceeded_limit(LIMITS, Usage(0.1, 5.0, 0.0)).startswith("took longer than 5 s by the clock")
    assert exceeded_limit(LIMITS, Usage(0.1, 25.0, 24.9)).startswith("was not done after 25 s")


def test_usage_since_is_a_difference() -> None:
    assert Usage(3.0, 10.0, 5.0).since(Usage(1.0, 4.0, 3.0)) == Usage(2.0, 6.0, 2.0)
    assert Usage(3.0, 10.0).since(Usage(1.0, 4.0, 3.0)) == Usage(2.0, 6.0, None)
