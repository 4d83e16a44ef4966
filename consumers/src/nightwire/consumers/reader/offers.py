"""What is advertised of topics, beside what is asked of them."""

import logging
import threading
from collections.abc import Iterable, Sequence

from nightwire.consumers.alert import ALERTS
from nightwire.core.subscriptions import SubscriptionFollower
from nightwire.schemas import surveys

log = logging.getLogger("nightwire.consumers")

PATIENCE = 10.0
"""Longest wait for what is advertised. [s]"""


def may_pass(condition: str, offers: Iterable[str], of_survey: str | None = None) -> bool:
    """Return whether something that meets one of *offers* may meet *condition*; True where none is.

    Args:
        condition: In SQL.
        offers: Conditions that all in a topic meets.
        of_survey: Whose alerts; None: any survey's whose fields these are.
    """
    from nightwire.filters.language import FilterError, compile_sql
    from nightwire.filters.language.subscriptions import bound, overlaps

    said = list(offers)
    for name in [of_survey] if of_survey else surveys():
        try:
            own, *others = (bound(compile_sql(one, name)) for one in (condition, *said))
        except FilterError:
            continue
        return not others or any(overlaps(own, other) for other in others)
    return True


def tell_of_offers(bootstrap: str, topics: Sequence[str], condition: str, of_survey: str | None) -> None:
    """Log, in a thread, of which *topics* nothing that is advertised meets *condition*.

    Topics of whole surveys get everything, and are not looked at.
    """
    ours = [topic for topic in topics if not topic.startswith(ALERTS)]
    if ours:
        args = (bootstrap, ours, condition, of_survey)
        threading.Thread(target=_tell, args=args, name="offers", daemon=True).start()


def _tell(bootstrap: str, topics: Sequence[str], condition: str, of_survey: str | None) -> None:
    with SubscriptionFollower(bootstrap) as follower:
        if not follower.wait(PATIENCE):
            return
        for topic in topics:
            offers = {one.record["condition"] for one in follower.live(topic, "advertisement")}
            if not may_pass(condition, offers, of_survey):
                log.warning(
                    "%s: nothing new will meet this condition, for all that is written there meets: %s",
                    topic, " or: ".join(sorted(offers)),
                )  # fmt: skip
