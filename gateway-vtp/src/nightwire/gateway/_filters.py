"""XPath filters of subscribers, with Comet's meaning and a limit on what one may cost.

Comet's meaning: the result goes through Python's truth; several filters are joined by *or*; a new message
replaces the list; an expression that does not compile is left out; one that fails on an event does not
match; without filters everything passes.
"""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lxml import etree

MAX_FILTERS = 16
"""Most filters of one subscriber."""
MAX_LENGTH = 1000
"""Longest expression. [character]"""
MAX_SECONDS = 0.1
"""Longest evaluation over one event; an expression that takes longer is switched off. [s]"""
MAX_NESTED_SEARCHES = 1
"""How many searches of the whole document may lie inside one another's brackets."""

_TOKENS = re.compile(
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
    inside, outside, worst = 0, [], 0
    for token in _TOKENS.findall(text):
        if token in "[(":
            outside.append(inside)
        elif token in "])" and outside:
            inside = outside.pop()
        elif token == "//" or token.endswith("::"):
            if outside:
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

    def passes(self, root: etree._Element) -> bool:
        """Say whether the event under *root* is wanted."""
        return not self.filters or any(one.matches(root) for one in self.filters)


def read_filters(texts: Iterable[str]) -> FilterList:
    """Return the filters that *texts* say; those that cannot be taken are named in ``refused``."""
    taken, refused = [], []
    for text in texts:
        try:
            if len(taken) == MAX_FILTERS:
                raise XPathRefusedError(f"more than {MAX_FILTERS} filters")
            taken.append(compile_filter(text))
        except XPathRefusedError as error:
            refused.append(f"{text[:80]}: {error}")
    return FilterList(taken, refused)
