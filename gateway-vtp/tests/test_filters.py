import pytest

from nightwire.gateway._filters import MAX_FILTERS, Verdicts, XPathRefusedError, compile_filter, read_filters

EVENT = b"""<v:VOEvent xmlns:v="http://www.ivoa.net/xml/VOEvent/v2.0"
 ivorn="ivo://a/b#1" role="test" version="2.0">
<Who><Author><shortName>VO-GCN</shortName></Author></Who>
<What><Param name="Sun_Distance" value="41"/></What>
<How><Description>Swift XRT</Description></How></v:VOEvent>"""

PAPER = [
    '//Who/Author[shortName="VO-GCN"]',
    '//How[contains(Description, "Swift")]',
    '//Param[@name="Sun_Distance" and @value>40]',
    '//How[contains(Description, "Swift")] or ( //Param[@name="Sun_Distance" and @value>40]'
    ' and //Who/Author[shortName="VO-GCN"])',
]


def passes(*expressions: str) -> bool:
    return Verdicts(EVENT).passes(read_filters(expressions))


@pytest.mark.parametrize("expression", PAPER)
def test_the_expressions_of_swinbank_2014_select_the_event(expression: str) -> None:
    assert passes(expression)


@pytest.mark.parametrize(
    ("expression", "truth"),
    [
        ("true()", True),
        ("1 = 2", False),
        ("count(//Param)", True),
        ("0", False),
        ("number('x')", True),  # NaN is true in Python
        ("string(//shortName)", True),
        ("string(//nothing)", False),
        ("//Param", True),
        ("//Nothing", False),
        ("/*[local-name()='VOEvent' and @role='test']", True),
        ("//unknown:Param", False),  # fails when evaluated
    ],
)
def test_a_result_counts_by_its_python_truth(expression: str, truth: bool) -> None:
    assert passes(expression) is truth


def test_one_of_several_suffices_and_none_means_all() -> None:
    assert passes("false()", "true()")
    assert not passes("false()", "0")
    assert passes()


def test_what_cannot_be_taken_is_left_out_and_named() -> None:
    found = read_filters(["//Who", "//[", "x" * 2000])
    assert [one.text for one in found.filters] == ["//Who"]
    assert "not an XPath expression" in found.refused[0]
    assert "2000 characters" in found.refused[1]
    assert len(read_filters([f"{n}" for n in range(99)]).filters) == MAX_FILTERS


@pytest.mark.parametrize(
    "expression",
    [
        "//*[//*[//*]]",
        "count(//*[count(//*[count(//*)>1])>1])",
        "//*[descendant::*[following::*]]",
    ],
)
def test_expressions_that_could_burn_the_gateway_are_refused(expression: str) -> None:
    with pytest.raises(XPathRefusedError, match="nested"):
        compile_filter(expression)


def test_slashes_in_a_string_are_no_search() -> None:
    assert compile_filter("//Who[Author[contains(., 'ivo://a//b//c')]]")


def test_each_expression_is_asked_once_per_event_however_many_subscribers_share_it() -> None:
    first, second = read_filters(["//Who"]), read_filters(["//Who"])
    assert first.filters[0] is second.filters[0]


def test_an_expression_that_takes_too_long_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightwire.gateway._filters.MAX_SECONDS", -1.0)
    slow = compile_filter("//Who[1=1]")
    Verdicts(EVENT).passes(read_filters(["//Who[1=1]"]))
    assert slow.off is not None
