"""What XPath filters mean: as with Comet."""

import pytest
from lxml import etree

from nightwire.gateway.xpath.filters import (
    MAX_FILTERS,
    USUAL,
    MeasuredDocument,
    XPathRefusedError,
    compile_filter,
    read_filters,
)

EVENT = b"""<v:VOEvent xmlns:v="http://www.ivoa.net/xml/VOEvent/v2.0"
 ivorn="ivo://a/b#1" role="test" version="2.0">
<Who><Author><shortName>VO-GCN</shortName></Author></Who>
<What><Param name="Sun_Distance" value="41"/><Param name="x" value="-2"/></What>
<How><Description>Swift XRT</Description></How></v:VOEvent>"""

PAPER = [
    '//Who/Author[shortName="VO-GCN"]',
    '//How[contains(Description, "Swift")]',
    '//Param[@name="Sun_Distance" and @value>40]',
    '//How[contains(Description, "Swift")] or ( //Param[@name="Sun_Distance" and @value>40]'
    ' and //Who/Author[shortName="VO-GCN"])',
]


@pytest.mark.parametrize("expression", PAPER)
def test_the_expressions_of_swinbank_2014_select_the_event(expression: str) -> None:
    assert compile_filter(expression).matches(MeasuredDocument(EVENT).root)


@pytest.mark.parametrize(
    "expression",
    [
        *PAPER,
        "true()",
        "1 = 2",
        "count(//Param)",
        "0",
        "1",
        "2",
        "(2)",
        "-1 + 1",
        "3 mod 2",
        "number('x')",  # NaN is true in Python, and false in XPath
        "(number('x'))",
        "string(//shortName)",
        "string(//nothing)",
        "'x'",
        "''",
        "//Param",
        "//Nothing",
        "/*[local-name()='VOEvent' and @role='test']",
        "@role = 'test'",
        "@role = 'observation'",
        ".",
        "..",
        "/",
        "/ | //Nothing",
        "//Who/ancestor::node()",
        "self::VOEvent",
        "position()",
        "last() = 1",
        "Who/Author | //Nothing",
        "sum(//Param/@value)",
        "sum(//Param/@value) - 39",
        "(//Param)[2]/@value < 0",
        "//Param[1][@name='x']",
        "//*[self::Who or self::What]/@none",
        "- //Param[2]/@value",
        "not(//Param)",
        "//unknown:Param",  # fails when it is evaluated
    ],
)
def test_a_result_counts_by_its_python_truth_as_with_comet(expression: str) -> None:
    """Comet evaluates the bare expression; ours stops at the first hit, which must not show."""
    root = etree.fromstring(EVENT)
    try:
        comet = bool(etree.XPath(expression)(root))
    except etree.XPathError:
        comet = False
    assert compile_filter(expression).matches(root) is comet


def test_what_cannot_be_taken_is_left_out_and_named() -> None:
    found = read_filters(["//Who", "//[", "x" * 2000, "id('a')", "$x", "//namespace::*"])
    assert [one.text for one in found.filters] == ["//Who"]
    reasons = dict(found.refused)
    assert list(reasons) == ["//[", "x" * 2000, "id('a')", "$x", "//namespace::*"]
    assert "not an XPath expression" in reasons["//["]
    assert "2000 characters" in reasons["x" * 2000]
    assert "function 'id' is not taken" in reasons["id('a')"]
    assert "variables" in reasons["$x"]
    assert "axis 'namespace'" in reasons["//namespace::*"]


def test_more_filters_than_are_taken_are_refused_by_name() -> None:
    found = read_filters([f"{n}" for n in range(MAX_FILTERS + 2)])
    assert len(found.filters) == MAX_FILTERS
    assert found.refused == [(str(n), "more than 16 filters") for n in range(MAX_FILTERS, MAX_FILTERS + 2)]


def test_an_expression_is_compiled_once_while_anybody_holds_it() -> None:
    first, second = read_filters(["//Who"]), read_filters(["//Who"])
    assert first.filters[0] is second.filters[0]


def test_there_is_a_limit_to_different_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightwire.gateway.xpath.filters._known", {})
    monkeypatch.setattr("nightwire.gateway.xpath.filters.MAX_DISTINCT", 2)
    found = read_filters(["1", "2", "3", "1"])
    assert [one.text for one in found.filters] == ["1", "2", "1"]
    assert found.refused == [("3", "there are 2 different filters already; try again later")]


def test_a_filter_that_was_switched_off_is_left_out_told_once_and_refused_from_then_on() -> None:
    found = read_filters(["//Nothing[2]", "//Who"])
    found.filters[0].off = "it took too long"
    held = found.filters[0]
    assert [one.text for one in found.active()] == ["//Who"]
    assert found.take_switched_off() == [("//Nothing[2]", "it took too long")]
    assert found.take_switched_off() == []
    with pytest.raises(XPathRefusedError, match="took too long"):
        compile_filter(held.text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-7", "iso-8859-1"])
def test_a_document_is_never_larger_than_it_is_taken_for(encoding: str) -> None:
    """Its signs are counted without parsing, which works where ``<`` is as in ASCII."""
    text = "<v>" + "<a b='1' c='2'>x<!-- </a></a> --><![CDATA[</a>]]></a>" * 20 + "</v>"
    if encoding == "utf-7":  # which may hide every sign
        text = text.replace("<", "+ADw-").replace("=", "+AD0-")
    written = f"<?xml version='1.0' encoding='{encoding}'?>{text}"
    document = MeasuredDocument(written.encode("ascii" if encoding == "utf-7" else encoding))
    rough, exact = document.rough_size, document.size
    assert (exact.nodes, exact.attributes) == (1 + 1 + 20 * 4, 40)
    assert rough.nodes >= exact.nodes
    assert rough.attributes >= exact.attributes


def test_events_of_usual_size_are_smaller_than_the_size_that_every_filter_can_judge() -> None:
    size = MeasuredDocument(EVENT).size
    assert (size.nodes, size.attributes, size.length, size.depth) == (15, 7, len(EVENT), USUAL.depth)
