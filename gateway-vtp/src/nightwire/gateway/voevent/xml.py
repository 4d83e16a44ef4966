"""Reading XML from strangers: nothing is fetched, no entity is expanded, no DTD is accepted."""

import re
from enum import Enum
from functools import cache

from lxml import etree

MAX_DEPTH = 64
"""Deepest nesting of elements.  The deepest VOEvent of the standard has 9 levels."""

MISC = r"(?:\s|(?><!--.*?-->)|(?><\?.*?\?>))*+"
"""What XML allows around the root element; possessive, so that it never backtracks."""
_DOCTYPE = re.compile(rb"(?:\xef\xbb\xbf)?" + MISC.encode() + b"<!DOCTYPE", re.DOTALL)
# in two-byte encodings it is seen after parsing

_PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=False
)


class Refusal(Enum):
    """Why a document is not read."""

    MALFORMED = "malformed"
    DOCTYPE = "doctype"
    ENTITY = "entity"
    DEPTH = "depth"


class XMLRefusedError(Exception):
    """The bytes are not XML, or XML that is not read here; the message says why and where."""

    def __init__(self, reason: str, kind: Refusal = Refusal.MALFORMED) -> None:
        super().__init__(reason)
        self.kind = kind


def parse_xml(document: bytes, max_depth: int = MAX_DEPTH) -> etree._Element:
    """Return the root element of *document*.

    Raises:
        XMLRefusedError: Not well-formed, with a DTD or entities, or nested more than *max_depth*
            deep.
    """
    root = _parse(document)
    if getattr(root.getroottree().docinfo, "doctype", ""):  # the stubs do not know it
        raise XMLRefusedError("a document type (DOCTYPE) is not accepted", Refusal.DOCTYPE)
    if any(True for _ in root.iter(etree.Entity)):
        raise XMLRefusedError("entity references are not accepted", Refusal.ENTITY)
    if deeper_than(max_depth)(root):
        raise XMLRefusedError(f"elements are nested more than {max_depth} deep", Refusal.DEPTH)
    return root


def local_name(element: etree._Element) -> str:
    """Return the tag of *element* without its namespace; empty for comments and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


@cache
def deeper_than(levels: int) -> etree.XPath:
    """Return an XPath: whether elements under a root are nested more than *levels* deep."""
    return etree.XPath("boolean(" + "/*" * (levels + 1) + ")")


def _parse(document: bytes) -> etree._Element:
    if b"<!DOCTYPE" in document and _DOCTYPE.match(document):  # before libxml2 reads any of it
        raise XMLRefusedError("a document type (DOCTYPE) is not accepted", Refusal.DOCTYPE)
    try:
        return etree.fromstring(document, _PARSER)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise XMLRefusedError(f"not well-formed XML: {error}") from error
