"""Content-based subscriptions: conditions as sets of values, which can be compared and indexed.

    form = normal_form(compile_sql("magnitude < 19 AND band IN ('g', 'r')", "lsst"))
    covers(normal_form(compile_sql("magnitude < 20", "lsst")), form)  # True

- `normal_form`: of a program; None where it has none.  `bound`: one that has all that passes it.
- `matches`, `is_advertised`, `is_offered`, `covers`: the relations of Eide et al.; `overlaps` of
  two subscriptions, `either` for the alternatives of an advertisement.
- `Matcher`: ``insert(key, condition)``, ``insert_many``, ``remove(key)``, ``match(table)``; a
  *condition* is a program, or a normal form.
- `Roots`: ``insert(key, condition)``, ``remove(key)``, ``root_of(key)``, ``covered_by(root)``; to
  iterate over it gives the keys of the subscriptions that no other covers.

It needs NumPy; all is imported when it is asked for.
"""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.language.subscriptions.forms import NormalForm, bound, normal_form
    from nightwire.filters.language.subscriptions.matcher import Matcher, Matches
    from nightwire.filters.language.subscriptions.relations import (
        covers,
        either,
        is_advertised,
        is_offered,
        matches,
        overlaps,
    )
    from nightwire.filters.language.subscriptions.roots import Roots
    from nightwire.filters.language.subscriptions.terms import Term, field_term
    from nightwire.filters.language.subscriptions.value_sets import ValueSet

__all__ = [
    "Matcher",
    "Matches",
    "NormalForm",
    "Roots",
    "Term",
    "ValueSet",
    "bound",
    "covers",
    "either",
    "field_term",
    "is_advertised",
    "is_offered",
    "matches",
    "normal_form",
    "overlaps",
]


__getattr__ = on_demand(__name__)
