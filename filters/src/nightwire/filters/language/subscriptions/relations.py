"""The four relations of Eide et al. (2003), and covering, as questions to normal forms.

A *notification* says what each term's value is; what it does not name, or names as None or NaN, it
does not have.  In a *subscription* several constraints on one term hold together (AND), and all
terms are wanted.  An *advertisement* is a normal form as well, in which several constraints on one
term are alternatives (OR, made by `either`): each attribute of a notification must be advertised.

The terms are taken to vary independently of each other.  Where they do not (``x`` and ``x + 1``),
`covers` may say no where all is covered, and `overlaps` yes where nothing lies in both: too much is
sent then, and never too little.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from nightwire.filters.language.subscriptions.forms import NormalForm
from nightwire.filters.language.subscriptions.terms import Term
from nightwire.filters.language.subscriptions.value_sets import NOTHING, ValueSet

NULL = ValueSet(null=True)


def matches(values: Mapping[Term, Any], subscription: NormalForm) -> bool:
    """Return whether a notification with *values* matches: each constraint, by what it has."""
    sets = subscription.sets.items()
    return not subscription.empty and all(values.get(term) in some for term, some in sets)


def is_advertised(values: Mapping[Term, Any], advertisement: NormalForm) -> bool:
    """Return whether all that a notification has is advertised."""
    sets = advertisement.sets
    return all(value in sets.get(term, NOTHING) | NULL for term, value in values.items())


def is_offered(subscription: NormalForm, advertisement: NormalForm) -> bool:
    """Return whether there may be a notification that is advertised and matches *subscription*."""
    offered = advertisement.sets
    return not subscription.empty and all(
        some & (offered.get(term, NOTHING) | NULL) for term, some in subscription.sets.items()
    )


def covers(one: NormalForm, other: NormalForm) -> bool:
    """Return whether *one* passes all that the subscription *other* passes."""
    return other.empty or (
        not one.empty
        and all(term in other.sets and other.sets[term] <= some for term, some in one.sets.items())
    )


def overlaps(one: NormalForm, other: NormalForm) -> bool:
    """Return whether something may match both subscriptions."""
    if one.empty or other.empty:
        return False
    return all(some & other.sets[term] for term, some in one.sets.items() if term in other.sets)


def either(forms: Iterable[NormalForm]) -> NormalForm:
    """Return the advertisement of all of *forms*: what one of them says of a term is enough."""
    found: dict[Term, ValueSet] = {}
    for form in forms:
        for term, some in form.sets.items():
            found[term] = found.get(term, NOTHING) | some
    return NormalForm(found)
