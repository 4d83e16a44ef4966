"""XPath filters of subscribers, with Comet's meaning and a limit on what one may cost.

Comet's meaning: the result goes through Python's truth; several filters are joined by *or*; a new message
replaces the list; an expression that does not compile is left out; one that fails on an event does not
match; without filters everything passes.
"""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lxml import etree

from nightwire.gateway._xml import parse_xml

MAX_FILTERS = 16
"""Most filters of one subscriber."""
MAX_LENGTH = 1000
"""Longest expression. [character]"""
MAX_SECONDS = 0.1
"""Longest evaluation over one event; an expression that takes longer is switched off. [s]"""
MAX_NESTED_SEARCHES = 1
"""How many searches of the whole document may lie inside one another's brackets."""

_MARKS = re.compile(
    r"""'[^']*'|"[^"]*"|//|\b(?:descendant|descendant-or-self|following|preceding|ancestor)\s*::|[\[\]()]"""
)


class XPathRefusedError(Exception):
    """An expression is not taken; the message says why."""


@dataclass
class Filter:
    """One compiled expression, shared by all subscribers that sent it."""

    text: str
    xpath: etree.XPath
    off: str | None = None

    def matches(self, root: etree._Element) -> bool:
        """Say whether the event under *root* passes.  An expression that took too long no longer matches."""
        if self.off is not None:
            return False
        started = time.perf_counter()
        try:
            return bool(self.xpath(root))
        except etree.XPathError:
            return False
        finally:
            if time.perf_counter() - started > MAX_SECONDS:
                self.off = f"took more than {MAX_SECONDS:g} s for one event"


@lru_cache(maxsize=1024)
def compile_filter(text: str) -> Filter:
    """Return the filter that *text* says.

    Raises:
        XPathRefusedError: It is no XPath, too long, or could cost too much.
    """
    if len(text) > MAX_LENGTH:
        raise XPathRefusedError(f"{len(text)} characters, the limit is {MAX_LENGTH}")
    if _nested_searches(text) > MAX_NESTED_SEARCHES:
        raise XPathRefusedError("searches of the whole document (//) are nested too deeply")
    try:
        return Filter(text, etree.XPath(text))
    except etree.XPathError as error:
        raise XPathRefusedError(f"not an XPath expression: {error}") from error


def _nested_searches(text: str) -> int:
    """Count the searches on the worst path from the outside of *text* to its innermost bracket."""
    inside, worst = 0, 0
    outside: list[int] = []
    for mark in _MARKS.findall(text):
        if mark in "[(":
            outside.append(inside)
        elif mark in "])" and outside:
            inside = outside.pop()
        elif mark[0] not in "'\"" and outside:
            inside += 1
            worst = max(worst, inside)
    return worst


@dataclass
class FilterList:
    """What one subscriber wants to see.

    Attributes:
        filters: Any of them must match; none means everything.
        refused: What was left out of the last message, and why.
    """

    filters: Sequence[Filter] = ()
    refused: list[str] = field(default_factory=list)


@dataclass
class Verdicts:
    """What each filter says of one event; each is asked once, however many subscribers share it."""

    document: bytes
    _root: etree._Element | None = None
    _known: dict[str, bool] = field(default_factory=dict)

    def passes(self, wanted: FilterList) -> bool:
        """Say whether a subscriber with these filters wants the event."""
        return not wanted.filters or any(self._matches(one) for one in wanted.filters)

    def _matches(self, one: Filter) -> bool:
        if one.text not in self._known:
            if self._root is None:
                self._root = parse_xml(self.document)
            self._known[one.text] = one.matches(self._root)
        return self._known[one.text]


def read_filters(texts: Iterable[str]) -> FilterList:
    """Return the filters that *texts* say; those that cannot be taken are named in ``refused``."""
    taken: list[Filter] = []
    refused = []
    for text in texts:
        if len(taken) == MAX_FILTERS:
            refused.append(f"{text[:80]}: more than {MAX_FILTERS} filters")
            continue
        try:
            taken.append(compile_filter(text))
        except XPathRefusedError as error:
            refused.append(f"{text[:80]}: {error}")
    return FilterList(taken, refused)
