"""Which records a filtered channel carries: its relay and its receivers judge alike."""

import logging
from collections.abc import Callable, Sequence

from nightwire.filters.language import Condition, FilterError, Oddities
from nightwire.schemas import AlertDecoder, RegistryAwayError

log = logging.getLogger("nightwire.datagrams")

Judge = Callable[[Sequence[bytes | None]], list[bool]]
"""Tells which of some records' values a channel carries."""


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
    if not of_survey:
        raise ConditionError("a condition needs its survey: the topic alerts.SURVEY names one")
    condition, odd = Condition(text, of_survey), Oddities()
    condition.judge([b""], decoder)  # pyarrow imports pandas: a second before the first record, not at it

    def judge(values: Sequence[bytes | None]) -> list[bool]:
        found = condition.judge([value or b"" for value in values], decoder)
        for error in found.errors.values():
            if isinstance(error, RegistryAwayError):
                raise error
        for reason in odd.of(found, of_survey):
            log.warning("channel %s: %s", text, reason)
        return [at in found.passed or at in found.errors for at in range(len(values))]

    return judge
