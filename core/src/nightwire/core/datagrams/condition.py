"""What somebody wants of a stream: which records a channel carries, what a slow link gets first."""

import logging
import math
from collections.abc import Callable, Sequence

from nightwire.filters.language import Condition, FilterError, Judgement, Oddities, Program
from nightwire.schemas import AlertDecoder, RegistryAwayError

log = logging.getLogger("nightwire.datagrams")

Judge = Callable[[Sequence[bytes | None]], list[bool]]
"""Tells which of some records' values a channel carries."""


Worth = Callable[[Sequence[bytes | None]], list[float]]
"""Tells what some records' values are worth: the greatest first."""


class ConditionError(FilterError):
    """A channel's condition cannot be judged; the message says why."""


def channel_judge(text: str, of_survey: str, decoder: AlertDecoder) -> Judge:
    """Return what judges alerts by an SQL condition.

    What cannot be decoded is carried, for whoever receives it counts it; an alert about which the
    condition fails (a division by zero, say) is not.  Where a schema cannot be had just now it
    raises RegistryAwayError.

    Args:
        text: What stands behind WHERE.
        of_survey: Whose alerts.
        decoder: Reads them as they were written.

    Raises:
        FilterError: It is no condition; says where and why.
    """
    judged = _judged(text, of_survey, decoder)

    def judge(values: Sequence[bytes | None]) -> list[bool]:
        found = judged(values)
        return [at in found.passed or at in found.errors for at in range(len(values))]

    return judge


def worth_of(asked: str | Program, of_survey: str, decoder: AlertDecoder) -> Worth:
    """Return what tells the worth of alerts: 1 where *asked* holds, or the number that it returns.

    What it does not hold for is worth the least, whatever it fails on too; what cannot be decoded
    is worth 1.  Where a schema cannot be had just now it raises RegistryAwayError.

    Args:
        asked: An SQL condition; or a function of Python, compiled.
        of_survey: Whose alerts.
        decoder: Reads them as they were written.

    Raises:
        FilterError: It is no condition; says where and why.
    """
    judged = _judged(asked, of_survey, decoder)

    def worth(values: Sequence[bytes | None]) -> list[float]:
        found = judged(values)
        known = {**dict.fromkeys([*found.passed, *found.errors], 1.0), **found.rank}
        return [known.get(at, -math.inf) for at in range(len(values))]

    return worth


def _judged(
    asked: str | Program, of_survey: str, decoder: AlertDecoder
) -> Callable[[Sequence[bytes | None]], Judgement]:
    if not of_survey:
        raise ConditionError("a condition needs its survey: the topic alerts.SURVEY names one")
    condition, odd = Condition(asked, of_survey), Oddities()
    condition.judge([b""], decoder)  # pyarrow imports pandas: a second before the first record, not at it

    def judged(values: Sequence[bytes | None]) -> Judgement:
        found = condition.judge([value or b"" for value in values], decoder)
        for error in found.errors.values():
            if isinstance(error, RegistryAwayError):
                raise error
        for reason in odd.of(found, of_survey):
            log.warning("%s: %s", asked if isinstance(asked, str) else "a reader's function", reason)
        return found

    return judged
