"""XPath filters of subscribers, with Comet's meaning and a limit on what one may cost.

Comet's meaning: the result goes through Python's truth; several filters are joined by *or*; a new
message replaces the list; an expression that does not compile is left out; one that fails on an
event does not match; without filters everything passes.  Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakValueDictionary

from lxml import etree

from nightwire.gateway.voevent.xml import MAX_DEPTH, deeper_than, parse_xml
from nightwire.gateway.xpath.cost import Size, cost_limit, cost_of
from nightwire.gateway.xpath.expression import Expression, is_search
from nightwire.gateway.xpath.parser import XPathShapeError, read_xpath

MAX_FILTERS = 16
"""Most filters of one subscriber."""
MAX_LENGTH = 1000
"""Longest expression. [character]"""
MAX_DISTINCT = 4096
"""Most different expressions of all subscribers together."""
USUAL = Size(nodes=300, attributes=400, length=12_000, depth=16)
"""An event that no filter may be too costly for; all but one of 910 real packets are smaller."""

OFFER = (
    ("filter-language", "xpath-1.0"),
    ("filter-max-count", str(MAX_FILTERS)),
    ("filter-max-length", str(MAX_LENGTH)),
)
"""What subscribers may filter by: names and values in the Meta of our messages to them."""

_SHALLOW = 16
_LIKE_ASCII = ("utf-8", "us-ascii", "ascii", "iso-8859-1")
_NODES, _ATTRIBUTES = etree.XPath("count(//node())"), etree.XPath("count(//@*)")


class XPathRefusedError(Exception):
    """An expression is not taken; the message says why."""


@dataclass(eq=False)
class Filter:
    """One compiled expression, shared by all subscribers that sent it.

    Attributes:
        text: The expression.
        off: Why it is switched off; None while it is not.
        evaluations: How often it was asked in the time that is being watched.
        spent: What that took. [s]
    """

    text: str
    shape: Expression
    xpath: etree.XPath
    off: str | None = None
    evaluations: int = 0
    spent: float = 0.0
    _affordable: dict[Size, bool] = field(default_factory=dict)

    def can_afford(self, document: "MeasuredDocument") -> bool:
        """Say whether an evaluation over *document* is sure to stay below the limit."""
        return self._affords(document.rough_size) or self._affords(document.size)

    def _affords(self, size: Size) -> bool:
        size = Size(_up(size.nodes), _up(size.attributes), _up(size.length), size.depth)
        known = self._affordable.get(size)
        if known is None:
            known = self._affordable[size] = cost_of(self.shape, size) <= cost_limit(size)
        return known

    def matches(self, root: etree._Element) -> bool:
        """Say whether the event under *root* passes."""
        try:
            return bool(self.xpath(root))
        except etree.XPathError:
            return False


_known: WeakValueDictionary[str, Filter] = WeakValueDictionary()


def compile_filter(text: str) -> Filter:
    """Return the filter that *text* says: the same one while anybody holds it.

    Raises:
        XPathRefusedError: It is no XPath, too long, costs too much, was switched off, or there are
            too many.
    """
    found = _known.get(text)
    if found is None:
        if len(_known) >= MAX_DISTINCT:
            raise XPathRefusedError(f"there are {MAX_DISTINCT} different filters already; try again later")
        found = _known[text] = _compile(text)
    if found.off is not None:
        raise XPathRefusedError(found.off)
    return found


def _compile(text: str) -> Filter:
    if len(text) > MAX_LENGTH:
        raise XPathRefusedError(f"{len(text)} characters, the limit is {MAX_LENGTH}")
    try:
        compiled = etree.XPath(text)
        shape = read_xpath(text)
    except (etree.XPathError, XPathShapeError, ValueError) as error:  # or no text of XML
        raise XPathRefusedError(f"not an XPath expression that is taken here: {error}") from error
    cost, limit = cost_of(shape, USUAL), cost_limit(USUAL)
    if cost > limit:
        raise XPathRefusedError(
            f"it may cost {cost / limit:.3g} times what is allowed over an event of {USUAL.nodes} nodes"
        )
    if is_search(shape):  # in a predicate libxml2 stops at the first hit, and sorts nothing
        compiled = etree.XPath(f"self::node()[{text}]")
    return Filter(text, shape, compiled)


def _up(number: int) -> int:
    return 1 << number.bit_length()


@dataclass
class FilterList:
    """What one subscriber wants to see.

    Attributes:
        filters: Any of them must match; none means everything.
        refused: What was left out of the last message, and why.
        switched_off: Filters that were switched off since, and why, until the subscriber is told.
    """

    filters: Sequence[Filter] = ()
    refused: list[tuple[str, str]] = field(default_factory=list)
    switched_off: list[tuple[str, str]] = field(default_factory=list)

    def active(self) -> Sequence[Filter]:
        """Return the filters to evaluate; those that were switched off are left out."""
        dropped = [(one.text, one.off) for one in self.filters if one.off is not None]
        if dropped:
            self.switched_off += dropped
            self.filters = [one for one in self.filters if one.off is None]
        return self.filters

    def take_switched_off(self) -> list[tuple[str, str]]:
        """Return the filters that were switched off since the last call, and why."""
        taken, self.switched_off = self.switched_off, []
        return taken


def read_filters(texts: Iterable[str]) -> FilterList:
    """Return the filters in *texts*; those that cannot be taken are in ``refused``."""
    taken: list[Filter] = []
    refused = []
    for text in texts:
        if len(taken) == MAX_FILTERS:
            refused.append((text, f"more than {MAX_FILTERS} filters"))
            continue
        try:
            taken.append(compile_filter(text))
        except XPathRefusedError as error:
            refused.append((text, str(error)))
    return FilterList(taken, refused)


@dataclass
class MeasuredDocument:
    """An event, parsed and measured when a filter first asks."""

    document: bytes

    @cached_property
    def root(self) -> etree._Element:
        """The VOEvent element."""
        return parse_xml(self.document)

    @cached_property
    def rough_size(self) -> Size:
        """An upper bound of its size, by its signs: an element begins with one."""
        encoding = self.root.getroottree().docinfo.encoding or "utf-8"
        if encoding.lower() not in _LIKE_ASCII:
            return self.size
        tags, attributes = self.document.count(b"<"), self.document.count(b"=")
        return Size(2 * tags + 2, attributes, len(self.document), self._depth)

    @cached_property
    def size(self) -> Size:
        """How large it is."""
        nodes, attributes = (float(str(count(self.root))) for count in (_NODES, _ATTRIBUTES))
        return Size(int(nodes) + 1, int(attributes), len(self.document), self._depth)

    @property
    def _depth(self) -> int:
        return MAX_DEPTH if deeper_than(_SHALLOW)(self.root) else _SHALLOW
