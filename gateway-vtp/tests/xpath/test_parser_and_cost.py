"""No expression that is taken can burn the gateway: its cost is bounded before it runs."""

import json
import resource
import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from nightwire.gateway.xpath.cost import Size, cost_of
from nightwire.gateway.xpath.expression import Call, Literal, Operation, Path, Step
from nightwire.gateway.xpath.filters import USUAL, XPathRefusedError, compile_filter
from nightwire.gateway.xpath.parser import AXES, XPathShapeError, read_xpath

BURNING = [
    "//*[//*[//*]]",
    "//*[count(//*) = count(//*[count(//*) > 1])]",
    "count(//*[count(//*[count(//*)>1])>1])",
    "//*[descendant::*[following::*[preceding::*]]]",
    "//*/following::*/preceding::*/following::*",
    "//*//*//*//*//*//*",
    "//node()[.//node()[.//node()[.//node()]]]",
    "//*[ancestor::*//*[ancestor::*//*]]",
    "//@*[. = //@*]",
    "//*[. = //*]",
    "//*[contains(string(/), string(/))]",
    "contains(/, /)",
    "translate(/, /, /)",
    "string-length(translate(/, //text()[1], concat(/, /, /))) = 0",
    "concat(" + ", ".join(["/"] * 200) + ") = ''",
    "//*[sum(//@*) > sum(//*)]",
    "//@*[. < //@*][. > //@*]",
    "(//*|//@*|//text()|//node())[count(//*|//@*) > 5]",
    "//*[(//*)[last()]]",
    "//*[string(.) = string(//*[string(.) != string(/)])]",
    "//*[lang('en')][lang('de')][//*[lang('fr')]]",
    "//Param[@name=//Param[@value=//Param/@value]/@name]",
    "*/*/*/*[//*/*/*[//*/*/*]]",
    "//*[following-sibling::*[following-sibling::*[following-sibling::*]]]",
    "//*[normalize-space(//*[normalize-space(/) != '']) != '']",
]


@pytest.mark.parametrize("expression", BURNING)
def test_expressions_that_could_burn_the_gateway_are_refused_with_the_reason(expression: str) -> None:
    with pytest.raises(XPathRefusedError, match=r"it may cost [0-9.e+]+ times what is allowed"):
        compile_filter(expression)


def test_brackets_are_not_nested_without_end() -> None:
    with pytest.raises(XPathRefusedError, match="deep"):
        compile_filter("(" * 200 + "1" + ")" * 200)


def path(*steps: Step, absolute: bool = False) -> Path:
    return Path(steps, absolute)


WHO = path(Step("child", "Who"))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("'a''", None),
        ("", None),
        ("//", None),
        ("a b", None),
        ("a[", None),
        ("f(", None),
        ("Who", WHO),
        ("or or and", Operation("or", (path(Step("child", "or")), path(Step("child", "and"))))),
        ("* * *", Operation("*", (path(Step("child", "*")), path(Step("child", "*"))))),
        ("Who-1", path(Step("child", "Who-1"))),
        ("Who -1", Operation("-", (WHO, Literal(1)))),
        ("--1", Operation("-", (Path((), start=Literal(1)),))),
        ("/", Path((), absolute=True)),
        ("a:b", path(Step("child", "a:b"))),
        ("@*", path(Step("attribute", "*"))),
        ("child::text()", path(Step("child", "text("))),
        ("text ( )", path(Step("child", "text("))),
        ("..", path(Step("parent"))),
        (
            "//Who",
            path(Step("descendant-or-self", shorthand=True), Step("child", "Who"), absolute=True),
        ),
        ("Who[1]", path(Step("child", "Who", (Path((), start=Literal(1)),)))),
        ("count(Who)", Path((), start=Call("count", (WHO,)))),
        ("a = b or c", None),
    ],
)
def test_the_shape_of_expressions(text: str, shape: object) -> None:
    if shape is None and text != "a = b or c":
        with pytest.raises(XPathShapeError):
            read_xpath(text)
    elif shape is None:
        found = read_xpath(text)
        assert isinstance(found, Operation)
        assert found.operator == "or"
    else:
        assert simplified(read_xpath(text)) == simplified(shape)


def simplified(shape: object) -> object:
    """Leave out paths without steps, as the parser makes them of every primary."""
    match shape:
        case Path((), False, start, ()) if start is not None:
            return simplified(start)
        case Path(steps, absolute, start, predicates):
            return (tuple(simplified(step) for step in steps), absolute, start, predicates)
        case Step(axis, test, predicates):
            return (axis, test, tuple(simplified(one) for one in predicates))
        case Operation(operator, operands):
            return (operator, tuple(simplified(one) for one in operands))
        case Call(function, arguments):
            return (function, tuple(simplified(one) for one in arguments))
    return shape


names = st.sampled_from(["a", "b", "*", "node()", "text()", "comment()"])
axes = st.sampled_from(["", "@", "/", *(f"{axis}::" for axis in sorted(AXES))])


def longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    predicate = inner.map(lambda text: f"[{text}]") | st.just("")
    step = st.builds(lambda axis, name, found: f"{axis}{name}{found}".lstrip("/"), axes, names, predicate)
    paths = st.builds(
        lambda start, steps, mark: start + mark.join(steps),
        st.sampled_from(["", "/", "//"]),
        st.lists(step, min_size=1, max_size=4),
        st.sampled_from(["/", "//"]),
    )
    operators = st.sampled_from(["=", "!=", "<", ">", "+", "-", "and", "or", "*"])
    one = st.sampled_from(["count", "sum", "string", "not", "number", "normalize-space", "string-length"])
    two = st.sampled_from(["contains", "starts-with", "concat", "substring-before"])
    return st.one_of(
        paths,
        st.builds(lambda a, o, b: f"{a} {o} {b}", inner, operators, inner),
        st.builds(lambda a, b: f"{a} | {b}", paths, paths),
        st.builds(lambda f, a: f"{f}({a})", one, inner),
        st.builds(lambda f, a, b: f"{f}({a}, {b})", two, inner, inner),
        st.builds(lambda a, b, c: f"translate({a}, {b}, {c})", inner, inner, inner),
        st.builds(lambda a, b: f"({a})[{b}]", paths, inner),
    )


leaves = st.sampled_from(["1", "'aaab'", "@a", ".", "//a", "/", "position()", "last()", "//@*"])
expressions = st.recursive(leaves, longer, max_leaves=8)


@pytest.mark.slow
@given(expressions)
def test_what_libxml2_compiles_is_understood(text: str) -> None:
    try:
        etree.XPath(text)
    except etree.XPathError:
        return
    read_xpath(text)


@given(expressions, st.integers(0, 200), st.integers(0, 200), st.integers(0, 10_000))
def test_a_larger_document_costs_no_less(text: str, nodes: int, attributes: int, length: int) -> None:
    """Bounds are worked out for sizes rounded up."""
    try:
        shape = read_xpath(text)
    except XPathShapeError:
        return
    small = Size(100, 100, 1000, 16)
    large = Size(100 + nodes, 100 + attributes, 1000 + length, 16)
    assert cost_of(shape, small) <= cost_of(shape, large)


def worst_documents() -> list[str]:
    """Return events of the size that every filter has to judge, of the worst shapes."""
    flat = "".join(f'<a a="aaaa{n:02}" b="aaaa"/>' for n in range(USUAL.attributes // 2))
    deep = ("<a a='aaaa'>" * 15 + "aaaa" * 5 + "</a>" * 15) * (USUAL.nodes // 16)
    nested = "<a>" + "<b><a/>" * 10 + "</b>" * 10 + "</a>"
    texts = "<a/>" + ("a" * 9 + "<!---->") * 140 + "<b>" + "a" * 6000 + "</b>"
    return [f"<a>{inside}</a>" for inside in (flat, deep, nested * 12, texts)]


CHILD = """
import json, sys
from nightwire.gateway.xpath.filters import MeasuredDocument, compile_filter
documents = [MeasuredDocument(text.encode()) for text in json.loads(sys.stdin.readline())]
for line in sys.stdin:
    one = compile_filter(json.loads(line))
    for document in documents:
        one.matches(document.root)
print("done")
"""


def run_within(limit: int, taken: list[str]) -> None:
    """Evaluate *taken* over the worst documents in a process limited in processor time. [s]"""
    lines = [json.dumps(worst_documents()), *map(json.dumps, taken)]
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
    )
    assert done.stdout == "done\n", f"killed after {limit} s, or: {done.stderr}"


def collect(count: int) -> tuple[list[str], float]:
    """Return expressions that are taken, and the time that their bounds allow. [s]"""
    taken: dict[str, int] = {}

    @settings(max_examples=count, database=None, derandomize=True, deadline=None)
    @given(expressions)
    def see(text: str) -> None:
        with suppress(XPathRefusedError):
            taken[text] = cost_of(compile_filter(text).shape, USUAL)

    see()
    costly = sorted(taken, key=lambda text: taken[text])[-count // 4 :]
    return costly, sum(taken[text] for text in costly) * 4 / 1e9


@pytest.mark.slow
def test_what_is_taken_stays_within_its_bound() -> None:
    taken, allowed = collect(200)
    assert len(taken) == 50
    run_within(int(allowed) + 2, taken)


@pytest.mark.proof
def test_ten_thousand_expressions_stay_within_their_bounds() -> None:
    taken, allowed = collect(10_000)
    run_within(int(allowed) + 2, taken)
