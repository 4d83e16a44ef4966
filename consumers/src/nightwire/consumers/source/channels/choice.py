"""Which of a topic's channels has all that a condition passes, and the least beside it.  Pure."""

from collections.abc import Iterable, Iterator

from nightwire.core.channels import ChannelMapping
from nightwire.filters.language import FilterError, compile_sql
from nightwire.filters.language.subscriptions import NormalForm, covers, normal_form

Candidate = tuple[ChannelMapping, NormalForm | None]


def covering(text: str, of_survey: str, mappings: Iterable[ChannelMapping]) -> ChannelMapping | None:
    """Return the smallest of the channels that have all alerts on which a condition holds.

    Of those none of which covers another it is the first.

    Args:
        text: The condition, which can be judged.
        of_survey: Whose alerts.
        mappings: The channels of one topic.
    """
    own = normal_form(compile_sql(text, of_survey))
    found = [*_candidates(text, own, of_survey, mappings)]
    return next((one for one, form in found if not any(_is_less(other, form) for _, other in found)), None)


def _candidates(
    text: str, own: NormalForm | None, of_survey: str, mappings: Iterable[ChannelMapping]
) -> Iterator[Candidate]:
    for one in mappings:
        try:
            form = normal_form(compile_sql(one.condition, of_survey))
        except FilterError:
            continue  # no source makes it
        if one.condition == text:
            yield one, own
        elif form is not None and covers(form, own or NormalForm()):  # TRUE alone has what has no form
            yield one, form


def _is_less(one: NormalForm | None, other: NormalForm | None) -> bool:
    """Return whether *other* covers *one*, and is not covered by it; what has no form is least."""
    if one is None or other is None:
        return one is None and other is not None
    return covers(other, one) and not covers(one, other)
