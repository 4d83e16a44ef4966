"""Which of a topic's channels has all that a condition passes, and the least beside it.  Pure."""

from collections.abc import Iterable

from nightwire.core.channels import ChannelMapping
from nightwire.filters.language import FilterError, compile_sql
from nightwire.filters.language.subscriptions import NormalForm, bound, covers, normal_form


def covering(text: str, of_survey: str, mappings: Iterable[ChannelMapping]) -> ChannelMapping | None:
    """Return the smallest of the channels that have all alerts on which a condition holds.

    Of those none of which covers another it is one.

    Args:
        text: The condition, which can be judged.
        of_survey: Whose alerts.
        mappings: The channels of one topic.
    """
    own = bound(compile_sql(text, of_survey))
    best: tuple[ChannelMapping, NormalForm] | None = None
    for one in mappings:
        if one.condition == text:
            return one
        try:
            form = normal_form(compile_sql(one.condition, of_survey))
        except FilterError:
            continue  # no source makes it
        if form is not None and covers(form, own) and (best is None or covers(best[1], form)):
            best = one, form
    return best[0] if best else None
