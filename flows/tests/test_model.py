"""Flows as text: what is refused, with its line, and what goes along the edges."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from rich.console import Console

from nightwire.flows.drawing import svg, tree
from nightwire.flows.model import Edge, FlowError, check, parse
from nightwire.schemas import sim_alert_schema

TEXT = """\
name = "bright"
[sources.sky]
topic = "alerts.sim"
[stones.few]
kind = "filter"
from = "sky"
where = "snr > 5"
[stones.small]
kind = "transform"
from = "few"
lite = true
[stones.bands]
kind = "router"
from = "small"
by = "band"
values = ["g", "r"]
[stones.often]
kind = "window"
from = "few"
within = "1h"
function = "count"
above = 3
[stones.out]
kind = "topic"
from = ["bands.g", "bands.else"]
topic = "broker.ann.bright"
[stones.hook]
kind = "webhook"
from = "often"
url = "https://example.org/x"
at = "mountain"
"""
TOPICS = ["alerts.sim", "returns.ann"]


def schemas(_survey: str) -> Iterable[Mapping[str, Any]]:
    return [sim_alert_schema()]


def reasons(text: str) -> list[str]:
    """Return why *text* is refused."""
    with pytest.raises(FlowError) as refused:
        check(parse(text), TOPICS, schemas)
    return refused.value.reasons


def test_types_go_along_the_edges() -> None:
    types = check(parse(TEXT), TOPICS, schemas)
    assert types[Edge("few")].survey == types[Edge("bands", "g")].survey == "sim"
    assert types[Edge("often")].survey == ""
    left = {field["name"] for field in types[Edge("small")].schemas[0]["fields"]}
    assert "cutoutScience" not in left
    assert "prvDiaSourcesMeanPsfFlux" in left


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('from = "sky"', 'from = "small"', "line 6: a cycle: few → small → few"),
        ('"alerts.sim"', '"alerts.sin"', "line 3: no topic alerts.sin; did you mean alerts.sim?"),
        ('"broker.ann.bright"', '"alerts.sim"', "line 26: a cycle: the flow reads alerts.sim"),
        ('"broker.ann.bright"', '"filters"', "line 26: filters is no flow's to write"),
        ('"broker.ann.bright"', '"return.ann"', "line 26: no topic return.ann; did you mean returns.ann?"),
        ('"snr > 5"', '"snrr > 5"', "line 7: alerts of sim have no field "),
        ('"snr > 5"', '"snr >"', "line 7: "),
        ('from = "few"\nlite', 'from = "often"\nlite', "line 10: stone small: a transform wants alerts"),
        ("lite = true", 'drop = ["cutout"]', "line 11: stone small: alerts of sim have no field cutout"),
        ("lite = true", "lite = 3", "line 11: stone small: lite = 3 is no bool"),
        ('from = "small"', 'from = "smal"', "line 14: stone bands: there is no smal; did you mean small?"),
        ('"bands.g"', '"bands.y"', "line 25: stone out: no such way out of bands; there are: bands.g, "),
        ('["g", "r"]', '["g", "else"]', "line 16: stone bands: values are different, and none of them is"),
        ('"1h"', '"1"', "line 20: stone often: within: '1' has no unit"),
        ('"count"', '"median"', "line 21: stone often: function = 'median' is none of count, mean"),
        ('function = "count"\n', "", "line 17: stone often: a window needs function"),
        ('kind = "webhook"', 'kind = "pager"', "line 28: stone hook: kind is none of filter, transform"),
        ("url =", "urls =", "line 27: stone hook: a webhook needs url"),
        ('from = "often"\nurl', 'from = "out"\nurl', "line 29: stone hook: nothing leaves out, a terminal"),
        ('name = "bright"', 'name = "Bright!"', "line 1: name = 'Bright!' is no flow's name"),
        ('"https:', '"gopher:', "line 30: stone hook: url = 'gopher://example.org/x' begins with none of"),
        ("[stones.few]", "[stones.few", "no TOML: "),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(old: str, new: str, why: str) -> None:
    assert old in TEXT
    assert any(one.startswith(why) for one in reasons(TEXT.replace(old, new, 1)))


def test_all_objections_are_told_at_once() -> None:
    assert len(reasons(TEXT.replace('"1h"', '"1"').replace('"count"', '"median"'))) == 2


def test_a_flow_is_drawn() -> None:
    console = Console(width=100, record=True)
    with console.capture() as drawn:
        console.print(tree(parse(TEXT)))
    assert "else → out: topic broker.ann.bright (see above)" in drawn.get()
    assert "hook: webhook https://example.org/x (at mountain)" in drawn.get()
    assert "broker.ann.bright" in "".join(ET.fromstring(svg(parse(TEXT))).itertext())  # noqa: S314


@pytest.mark.parametrize("text", ["a = " + "[" * 50_000, "a = " + "1" * 5000])
def test_a_text_that_is_a_bomb_is_refused(text: str) -> None:
    with pytest.raises(FlowError, match="no TOML"):
        parse(text)


@pytest.mark.parametrize(("old", "new"), [("lite = true", "drop = [[1]]"), ("lite = true", "means = [1]")])
def test_lists_hold_texts(old: str, new: str) -> None:
    assert any("a list of texts" in one for one in reasons(TEXT.replace(old, new, 1)))


def test_what_looks_like_markup_is_drawn_as_it_is() -> None:
    console = Console(width=100, record=True)
    with console.capture() as drawn:
        console.print(tree(parse(TEXT.replace("snr > 5", "band = '[/red]' OR band = '[b]'"))))
    assert "band = '[/red]' OR band = '[b]'" in drawn.get()
