"""Reading XML from strangers: nothing is fetched, no entity is expanded, no DTD is accepted."""

from lxml import etree

MAX_DEPTH = 64
"""Deepest nesting of elements.  The deepest VOEvent of the standard has 9 levels."""

_PROLOGUE = 1024  # how far a DOCTYPE is looked for before parsing [byte]; one behind it is seen after parsing

_TOO_DEEP = etree.XPath("boolean(" + "/*" * (MAX_DEPTH + 1) + ")")
_PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=False
)


class XMLRefusedError(Exception):
    """The bytes are not XML, or XML that is not read here; the message says why and where."""


def parse_xml(document: bytes) -> etree._Element:
    """Return the root element of *document*.

    Raises:
        XMLRefusedError: Not well-formed, with a DTD or entities, or nested too deeply.
    """
    root = _parse(document)
    if getattr(root.getroottree().docinfo, "doctype", ""):  # the stubs do not know it
        raise XMLRefusedError("a document type (DOCTYPE) is not accepted")
    if any(True for _ in root.iter(etree.Entity)):
        raise XMLRefusedError("entity references are not accepted")
    if _TOO_DEEP(root):
        raise XMLRefusedError(f"elements are nested more than {MAX_DEPTH} deep")
    return root


def local_name(element: etree._Element) -> str:
    """Return the tag of *element* without its namespace; empty for comments and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _parse(document: bytes) -> etree._Element:
    if b"<!DOCTYPE" in document[:_PROLOGUE]:  # before libxml2 reads any of it
        raise XMLRefusedError("a document type (DOCTYPE) is not accepted")
    try:
        return etree.fromstring(document, _PARSER)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise XMLRefusedError(f"not well-formed XML: {error}") from error
