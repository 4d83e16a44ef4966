"""Flows as text: what is refused, with its line, and what goes along the edges."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from rich.console import Console

from nightwire.filters.language import FilterError
from nightwire.flows.drawing import svg, tree
from nightwire.flows.model import Edge, FlowError, check, compile_filter, parse
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
WEBHOOK = 'kind = "webhook"\nfrom = "often"\nurl = "https://example.org/x"'
JOINED = 'kind = "join"\nfrom = "few"\nwithin = "1h"\n'
BRIDGED = 'kind = "bridge"\nfrom = "often"\nkafka = "b:9092"\ntopic = "filters"'
MANY = "".join(f'\n[stones.s{number}]\nkind = "split"\nfrom = "sky"' for number in range(100))
PYTHON = """python = '''
x = 3
def keep(alert):
    kind = "bright"
    return alert.snr > x{rest}
'''"""
COMPUTED = """python = '''
{adds}
def transform(alert):
    return {{"score": {value}}}
'''"""
STORED = 'kind = "database"\nfrom = "often"\ndatabase = "postgresql://ann:swordfish@b/x"\ntable = "t"'
TOPICS = ["alerts.sim", "returns.ann", "voevents"]


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


def test_what_a_function_adds_is_there_for_those_that_follow() -> None:
    more = COMPUTED.format(adds='ADDS = {"score": int}', value="3").replace("python", "lite = true\npython")
    text = TEXT.replace("lite = true", more).replace('by = "band"', 'by = "alert.score"')
    [made] = check(parse(text), TOPICS, schemas)[Edge("bands", "g")].schemas
    assert {"score", "prvDiaSourcesCount"} <= {field["name"] for field in made["fields"]}
    assert any("no field scored" in one for one in reasons(text.replace("alert.score", "alert.scored")))


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
        ("lite = true", 'drop = ["cutout"]', "line 11: stone small: no field cutout in these alerts"),
        (
            'where = "snr > 5"',
            "",
            "line 4: stone few: a filter needs where, a condition, or python, a function keep(alert)",
        ),
        ('where = "snr > 5"', PYTHON.format(rest=")"), "line 11: unmatched ')'"),
        (
            'where = "snr > 5"',
            PYTHON.format(rest=' and alert["snrr"] > 5'),
            "line 11: alerts of sim have no fi",
        ),
        ('where = "snr > 5"', PYTHON.format(rest=" and open('x')"), "line 11: a filter may not use open"),
        (
            'where = "snr > 5"',
            PYTHON.format(rest=' and str(alert["snrr"]).isdigit()'),
            "line 11: alerts of sim have no fi",
        ),
        ('where = "snr > 5"', "python = 'x = 3'", "line 7: there is no function keep(alert)"),
        (
            "lite = true",
            COMPUTED.format(adds='ADDS = {"score": float}', value='alert["snrr"]'),
            "line 14: alerts of sim have no field snrr",
        ),
        (
            "lite = true",
            COMPUTED.format(adds="", value="alert.ra").replace("transform(", "keep("),
            "line 12: there is no function transform(alert)",
        ),
        ("lite = true", COMPUTED.format(adds="", value="alert.ra"), "line 12: a transform declares what it"),
        (
            "lite = true",
            COMPUTED.format(adds='ADDS = {"diaSource": float}', value="1"),
            'line 12: diaSource is a field of these alerts: call it otherwise, or drop = ["diaSource"] too',
        ),
        (
            "lite = true",
            COMPUTED.format(adds='ADDS = {"score": float}', value='alert.match("gaia", 2)'),
            "line 12: a flow knows no catalogues",
        ),
        ('"snr > 5"', "\"MATCH('gaia', 2) IS NULL\"", "line 7: a flow knows no catalogues"),
        ("above = 3", 'value = "ABS(ra)"', "line 22: stone often: value = 'ABS(ra)' is no name of a field"),
        (
            "lite = true",
            'means = ["diaSource.psfFlux"]',
            "line 11: stone small: diaSource.psfFlux is no number",
        ),
        ("above = 3", "objects = 0", "line 22: stone often: objects is none of 1 to 1000000"),
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
        ("[stones.few]", "[stones.few", "line 4, column 12: no TOML: "),
        ('"alerts.sim"', '"voe"', "line 3: no topic voe; `nightwire topics` lists those"),
        ('from = "few"\nwithin', "within", "line 17: stone often: from is the name of a source"),
        ('"snr > 5"', '"""\nsnr > 5\nAND snrr > 5"""', "line 9: alerts of sim have no field diaSource.snrr"),
        ('"snr > 5"', '"snr >> 5"', "line 7: character 6: a value is expected"),
        (
            'topic = "alerts.sim"',
            'topic = "alerts.sim"\nbegin = "often"',
            "line 4: begin = 'often' is neither",
        ),
        (
            '"alerts.sim"',
            '"returns.ann"\nbegin = "3d"',
            "line 4: begin = '3d' is a time: only topics alerts.",
        ),
        ('"alerts.sim"', '"voevents"', "line 6: stone few: a filter wants alerts, not VOEvents"),
        (
            '"alerts.sim"',
            '"returns.ann"\nsurvey = "sim"',
            "line 7: stone few: a filter wants alerts, not returns",
        ),
        (
            WEBHOOK,
            'kind = "slack"\nfrom = "few"\nurl = "https://a"\ntext = "${id} ${diaSource.ra} ${ra}"',
            "line 31: stone hook: alerts of sim have no field ra",
        ),
        (
            WEBHOOK,
            'kind = "tom"\nfrom = "few"\nurl = "https://a"\ntoken = "env:NIGHTWIRE_FLOW_A"\n'
            'facility = "LCO"\nobservation_type = "IMAGING"\nparameters = { a = [{ b = "${ra}" }] }',
            "line 34: stone hook: alerts of sim have no field ra",
        ),
        (
            WEBHOOK,
            JOINED.replace("1h", "6d"),
            "line 30: stone hook: within is longer than five days",
        ),
        (
            WEBHOOK,
            'kind = "vtp"\nfrom = "often"\nto = "a"',
            "line 29: stone hook: a vtp wants VOEvents or alerts, ",
        ),
        (
            WEBHOOK,
            'kind = "tom"\nfrom = "often"\nurl = "https://a"',
            "line 27: stone hook: a tom needs facility",
        ),
        (WEBHOOK, JOINED + 'by = "band"', "line 31: stone hook: by = 'band' is none of object_id, id"),
        (WEBHOOK, JOINED + "most = 0", "line 31: stone hook: most is none of 1 to 1000"),
        (
            WEBHOOK,
            JOINED.replace("few", "often"),
            "line 29: stone hook: a join wants alerts or returns, not what",
        ),
        ('"https://', '"https://ann:swordfish@', "line 30: stone hook: url is known to the worker alone"),
        (WEBHOOK, f'{WEBHOOK}\ngive_up = "7d"', "line 31: stone hook: give_up: no queue keeps"),
        ('["g", "r"]', str(["g", *map(str, range(100))]), "line 16: stone bands: values are 100 at most"),
        (WEBHOOK, WEBHOOK + MANY, "line 1: 106 stones are too many: 100 at most"),
        (WEBHOOK, BRIDGED, "line 31: filters is no flow's to write"),
        (
            WEBHOOK,
            f'kind = "email"\nfrom = "often"\nto = {["a@b.org"] * 60}',
            "line 30: stone hook: to has 60 addresses: a mail goes to 1 to 50",
        ),
        (WEBHOOK, f"{WEBHOOK}\nsecret = 0x{'f' * 8000}", "line 31: a number is beyond 64 bits, or none"),
        ("above = 3", "above = nan", "line 22: a number is beyond 64 bits, or none"),
        (WEBHOOK, STORED, "line 30: stone hook: database is known to the worker alone: write"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(old: str, new: str, why: str) -> None:
    assert old in TEXT
    assert any(one.startswith(why) for one in reasons(TEXT.replace(old, new, 1)))


def test_what_windows_and_joins_say_may_end_in_one_place() -> None:
    """Alerts beside it do not, nor may two surveys': who reads there would be at a loss."""
    text = TEXT.replace(WEBHOOK, JOINED.strip()).replace('["bands.g", "bands.else"]', '["often", "hook"]')
    assert {one.kind for one in check(parse(text), TOPICS, schemas).values()} >= {
        "what windows say", "what joins say",
    }  # fmt: skip
    [why] = reasons(text.replace('["often", "hook"]', '["often", "small"]'))
    assert "alerts of sim and what windows say of no survey do not go together" in why.replace(",", " and")


def test_a_function_is_no_place_for_keys() -> None:
    text = TEXT.replace('where = "snr > 5"', PYTHON.format(rest=""))
    assert check(parse(text), TOPICS, schemas)[Edge("few")].survey == "sim"
    lines = parse(text).stones["few"].lines
    assert (lines["python"], lines["kind"], "x" in lines) == (7, 5, False)


def test_what_was_not_compiled_in_time_is_compiled_later(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def keep(alert):\n    return alert.snr > 4711\n"
    with monkeypatch.context() as busy:
        busy.setattr("nightwire.filters.admission.text_process.WALL_S", 0.0)
        with pytest.raises(FilterError, match="not compiled within 0 s"):
            compile_filter(source, "sim")
    assert "snr" in compile_filter(source, "sim").fields


def test_a_join_of_returns_alone_is_refused() -> None:
    said = '[sources.said]\ntopic = "returns.ann"\nsurvey = "sim"\n'
    text = f'name = "x"\n{said}[stones.j]\n{JOINED.replace("few", "said")}'
    assert reasons(text) == ["line 7: stone j: a join wants alerts, and returns beside them or none"]


def flow(name: str, reads: str, writes: str) -> str:
    """Return a flow that copies one topic to another."""
    source = f'name = "{name}"\n[sources.a]\ntopic = "{reads}"\n'
    return f'{source}[stones.out]\nkind = "topic"\nfrom = "a"\ntopic = "{writes}"\n'


def test_a_cycle_over_flows_is_refused_by_name() -> None:
    others = [parse(flow("up", "broker.a.b", "broker.a.c")), parse(flow("down", "broker.a.c", "broker.a.d"))]
    last = parse(flow("last", "broker.a.d", "broker.a.b"))
    with pytest.raises(FlowError) as refused:
        check(last, ["broker.a.d"], schemas, others)
    [why] = refused.value.reasons
    assert why == (
        "line 7: a cycle: the flow reads broker.a.d, by way of "
        "broker.a.b → up → broker.a.c → down → broker.a.d"
    )
    check(last, ["broker.a.d"], schemas, [*others[:1], last])


def test_all_objections_are_told_at_once() -> None:
    assert len(reasons(TEXT.replace('"1h"', '"1"').replace('"count"', '"median"'))) == 2


def test_a_flow_is_drawn() -> None:
    console = Console(width=100, record=True)
    with console.capture() as drawn:
        console.print(tree(parse(TEXT)))
    assert "else → out: topic broker.ann.bright (see above)" in drawn.get()
    assert "hook: webhook https://example.org/x (at mountain)" in drawn.get()
    picture = svg(parse(TEXT))
    assert "broker.ann.bright" in "".join(ET.fromstring(picture).itertext())  # noqa: S314
    assert "url(http" not in picture


@pytest.mark.parametrize("text", ["a = " + "[" * 50_000, "a = " + "1" * 5000, "a" + ".a" * 50_000 + " = 1"])
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


def test_of_many_errors_some_are_said() -> None:
    wrong = reasons(TEXT + "".join(f"[stones.x{number}]\n" for number in range(90)))
    assert (len(wrong), wrong[-1]) == (21, "and 70 more")
