"""What the closed language can say, what it cannot, and what it is as data."""

import json
import warnings
from typing import Any

import numpy as np
import pytest

from filters.tests.helpers.random_alerts import alerts, table, views
from nightwire.filters.language import (
    FilterError,
    NotCompilable,
    Program,
    compile_filter,
    compile_python,
    evaluate,
    evaluate_all,
    instrumented_copy,
)
from nightwire.filters.language.vector.evaluate import CostShares

ALERTS = alerts(7, 150)

HEAD = """
import math
import numpy as np
from math import log10, pi
LIMIT: float = 20.0
NAMES = ["g", "r"]
DEPTH = {"g": 21.0, "r": 20.5}
SURE = 10 ** 1

def trail(alert):
    source = alert.get("diaSource") or {}
    return source.get("trailLength")

def fluxes(alert, band):
    return np.array([p.flux for p in alert.history if p.band == band and p.flux is not None])

def rising(alert, sigmas=2.0):
    before = fluxes(alert, alert.band)
    if before.size < 2 or alert.flux is None:
        return False
    return bool(np.all(alert.flux - before[-2:] > sigmas))

def age(point):
    return -point.mjd_tai

def keep(alert):
"""

COMPILES = {
    "a cut": "return alert.magnitude is not None and alert.magnitude < LIMIT and alert.snr > SURE",
    "a rank": "return alert.snr if alert.snr is not None and alert.snr > 30 else False",
    "branches": """
    if alert.band not in NAMES:
        return False
    elif alert.flux is None:
        return None
    else:
        limit = DEPTH[alert.band]
    return alert.magnitude < limit""",
    "helpers": "return rising(alert) or rising(alert, sigmas=500)",
    "own fields": """
    length = trail(alert)
    return length if length is not None and length > 1.5 else False""",
    "a missing field": """
    missing = alert["diaSource"].get("nothing") is None
    return alert.get("nothing", 3) == 3 and missing and alert.flux""",
    "a record that may be none": """
    return alert["diaObject"] is not None and alert["diaObject"]["nDiaSources"] > 9""",
    "a chain": "return 5 < alert.snr <= 50 != 7",
    "a record as a condition": "return not alert['diaObject']",
    "points": """
    points = [p for p in alert.history if p.flux]
    return len(points) > 1 and points[-1].flux > 0""",
    "a search": """
    for p in alert.history:
        if p.flux is not None and p.flux > 3000:
            return p.flux
    return False""",
    "counting": """
    count, total = 0, 0.0
    for p in alert.history:
        if p.snr is not None:
            if p.snr > 5:
                count += 1
    for p in alert.history:
        total += p.flux or 0.0
    return count > 2 and total / count > 10""",
    "collecting": """
    chosen = []
    for p in alert.history:
        if p.band == "r" and p.magnitude is not None:
            chosen.append(p.magnitude)
    return min(chosen, default=30) < 19""",
    "the survey's own list": "return sum(s['psfFlux'] > 0 for s in alert['prvDiaSources'] or []) > 1",
    "a list that may be none": "return any(s['psfFlux'] > 0 for s in alert['prvDiaSources'])",
    "how long a list is": "return len(alert.get('prvDiaForcedSources') or []) > 2",
    "sets of constants": """
    return alert.band in {"g", "r"} or alert.band in set("iz") or alert.visit in frozenset([3, 7.0])""",
    "constants made sets": "return alert.band in set(NAMES) and alert.band not in frozenset() and alert.flux",
    "how many bands": """
    return len({p.band for p in alert.history}) > 2 or len(set([p.flux for p in alert.history])) > 9""",
    "a set that may hold NaN": "return len({s['psfFlux'] for s in alert['prvDiaSources'] or []}) > 2",
    "among the history's": "return alert.band in [p.band for p in alert.history if p.flux is not None]",
    "among the history's values": "return 3 in (p.flux / 2 for p in alert.history)",
    "NaN among them": """
    return alert["diaSource"]["psfFlux"] in {s["psfFlux"] for s in alert["prvDiaSources"] or []}""",
    "bands of an array": """
    curve = alert.light_curve()
    red = np.isin(curve["band"], ["r", "i"])
    return curve["flux"][red & np.isfinite(curve["flux"])].sum() > 10""",
    "numbers of an array": "return np.sum(~np.isin(alert.light_curve()['flux'], (1, 2.5, 0))) > 3",
    "an f-string": "return f'{alert.band}-{alert.visit % 3}' in ('r-1', 'g-2') or f'{alert.id:>30}' < ' 5'",
    "an f-string that is not used": """
    label = f"{alert.magnitude:.2f} mag"
    return alert.ra""",
    "the survey's newest": "return sum(s['psfFlux'] or 0 for s in (alert['prvDiaSources'] or [])[-3:]) > 9",
    "one of a list that may be none": "return alert['prvDiaSources'][0]['psfFlux'] > 3",
    "a field of no record": "return alert['diaObject']['nothing'] > 3",
    "a list in no record": "return any(s['x'] for s in alert['diaObject']['nothing'] or [])",
    "a light curve": """
    curve = alert.light_curve()
    red = curve["flux"][(curve["band"] == "r") & np.isfinite(curve["flux"])]
    return red.size > 1 and red.max() > 2 * np.median(red)""",
    "a slope": """
    curve = alert.light_curve()
    good = np.isfinite(curve["flux"]) & np.isfinite(curve["mjd_tai"])
    flux, time = curve["flux"][good], curve["mjd_tai"][good]
    if len(flux) < 2:
        return False
    return (flux[-1] - flux[0]) / (time[-1] - time[0])""",
    "a cone": """
    d1, d2 = math.radians(alert.dec), math.radians(-28.9)
    away = math.cos(math.radians(alert.ra - 266.4))
    near = math.sin(d1) * math.sin(d2) + math.cos(d1) * math.cos(d2) * away
    return math.degrees(math.acos(min(1.0, near))) < 90""",
    "an assertion of the docstring": '"""Bright ones."""\n    pass\n    return alert.flux',
    "nothing": "pass",
    "text": """
    reason = alert["diaSource"]["reason"]
    return alert.band.upper().startswith("R") or reason.strip().lower() == "main" """,
    "big whole numbers": "return alert.id * 3 > 2 ** 60 or alert.object_id == 2 ** 62",
    "a colour": """
    colour = alert.colour("g", "r")
    return colour is not None and colour < 0.5 and alert.healpix_at(3) > 300""",
    "magnitudes of a band": """
    red = alert.magnitudes("r")
    return len(red) > 2 and red[-1] < red.mean() and np.ptp(red[1:]) > 0.1""",
    "steps of a light curve": """
    curve = alert.light_curve()
    good = np.isfinite(curve["flux"])
    rates = np.diff(curve["flux"][good]) / np.clip(np.diff(curve["mjd_tai"][good]), 0.01, None)
    return rates.size > 0 and np.max(rates) > 100""",
    "either of two arrays": """
    flux = fluxes(alert, "r")
    return np.sum(np.where(flux > 0, flux, 0)) > 2000""",
    "a mask": """
    flux = np.asarray([p.flux for p in alert.history if p.flux is not None])
    red = np.array([p.band == "r" for p in alert.history if p.flux is not None])
    return len(flux[flux > 0]) > 2 and flux[~red & (flux > 0)].sum() > 10""",
    "percentiles": """
    flux = fluxes(alert, alert.band)
    return flux.size > 3 and np.percentile(flux, 97.5) > 2 * np.quantile(flux, 0.5)""",
    "where the brightest is": """
    curve = alert.light_curve()
    good = np.isfinite(curve["flux"])
    peak = curve["mjd_tai"][good][np.argmax(curve["flux"][good])]
    return alert.mjd_tai is not None and alert.mjd_tai - peak < 20""",
    "the middle one": """
    flux = sorted([p.flux for p in alert.history if p.flux is not None], reverse=True)
    return len(flux) > 2 and flux[len(flux) // 2] > flux[-1] + 900""",
    "sorted points": """
    seen = [p for p in alert.history if p.flux is not None]
    first = sorted(seen, key=lambda p: p.mjd_tai)[:2]
    return len(first) > 1 and first[1].flux > first[0].flux""",
    "the brightest point": """
    seen = [p for p in alert.history if p.flux is not None]
    return len(seen) > 0 and max(seen, key=lambda p: p.flux).band == "r" """,
    "by a helper's value": """
    return min(alert.history, key=age).flux < 0""",
    "bits": "return (alert.visit & 1) == 0 and ~alert.visit < -5 or alert.visit ^ 3 == 4",
}

REFUSED = {
    "try:\n        return alert.flux\n    except KeyError:\n        return 0": "line 27: try/except",
    "while True:\n        pass": "line 27: a while loop",
    "return len(f'{alert.flux}')": "an f-string (which can be compared, but nothing else)",
    "return f'{alert.flux!r}' == '1'": "f-strings compile with {value}, {value:.2f}",
    "return f'{alert.flux:{alert.visit}}' == '1'": "f-strings compile with",
    "return f'{alert.flux:>{10 ** 9}}' == '1'": "f-strings compile with",
    "return f'{alert.flux:>1000000000}' == '1'": "99 characters wide",
    "return np.isin(alert.band, ['r'])": "say `x in (…)`",
    "return np.isin(alert.light_curve()['band'], {'r'}).any()": "looks in a list or tuple of constants",
    "return np.isin(alert.light_curve()['band'], ['r', 1]).any()": "all numbers or all texts",
    "return any(p.flux in [q.flux for q in alert.history] for p in alert.history)": "for each point",
    "return {p.band for p in alert.history} == {'r'}": "a set (how many it has is len(…)",
    "return set(alert.history)": "a set is made of constants, or of values of the history",
    "return list(alert.flux)": "a list is made of constants, or of alert.history",
    "return sorted(alert.history)[0].flux": "points have no order of their own: sorted(…, key=",
    "return sorted(alert.history, key=lambda p, q: 1)": "a key is a function of one argument",
    "return sorted([p.flux for p in alert.history], reverse=alert.flux)[0]": "takes True or False",
    "return alert.colour(alert.band, 'r')": "a band as constant text, 'r' and a band as constant text",
    "return alert.healpix_at(30)": "orders are 0 to 29",
    "return np.where(alert.flux > 3, 1, 0)": "say `a if condition else b`",
    "return np.where(alert.light_curve()['flux'] > 3)[0][0]": "say flux[mask]",
    "return np.clip(alert.flux, None, None)": "at least one limit",
    "return np.diff(alert.light_curve()['flux'], n=2)[0]": "np.diff takes one array",
    "return alert.light_curve()['flux'][alert.light_curve()['flux']][0]": "true or false for each point",
    "return np.percentile([p.flux for p in alert.history], [5, 95])[0]": "these arguments of np.percentile",
    "return (p.flux for p in alert.history)[0]": "make a list of it",
    "return alert.stamps": "pictures are not read",
    "return (lambda x: x)(alert.flux)": "a lambda",
    "return alert": "the alert itself",
    "return [p.flux for p in alert.history]": "a list of points is no verdict",
    "return alert.light_curve()['flux'] > 3": "a list or array with a value per point",
    "return alert['flux'] > 3": "what all surveys have is alert.flux",
    "return alert.psfFlux": "alert['psfFlux']",
    "return max(alert.history, key=len)": "a point of the history as a whole",
    "return [1 for p in alert.history for q in alert.history]": "one list, with one variable",
    "return np.linalg.norm(alert.flux)": "`np.linalg.norm` cannot be compiled",
    "return np.any([p.flux for p in alert.history] > 2)": "make an array",
    "import os\n    return 1": "put it at the top",
    "return keep(alert)": "calls itself",
    "return [p['psfFlux'] for p in alert.history][0]": "joins several lists",
    "return [0] * 10 ** 9": "a tuple, list, set or dict",
    "return (1, 2) + (3,) == 3": "a tuple, list, set or dict",
    "return unknown": "unknown is not known here",
    "return alert.flux is True": "only `is None`",
    "return alert.light_curve()['flux'][::2][0]": "in steps of 1",
    "return alert.flux @ 3": "matrix products",
    "return alert.light_curve()['flux'][4611686018427387904]": "at cannot take '4611686018427387904'",
    "return len(alert.history[:4611686018427387904]) > 1": "slice cannot take",
    "return np.quantile(alert.light_curve()['flux'], np.inf)": "np.quantile cannot take 'inf'",
}


def answers(source: str) -> list[Any]:
    """Return what plain Python says of each alert: whether it passes, or the kind of its fault."""
    function = compile_filter(source, "keep")
    found: list[Any] = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for alert in views(ALERTS):
            try:
                found.append(bool(function(alert)))
            except Exception as error:  # noqa: BLE001 - it must be the same
                found.append(type(error).__name__)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("body", COMPILES.values(), ids=COMPILES)
def test_compiled_says_what_python_says(body: str) -> None:
    source = HEAD + "    " + body.strip("\n").removeprefix("    ") + "\n"
    said = evaluate(compile_python(source), table(ALERTS))
    expected = answers(source)
    for row, one in enumerate(expected):
        if row not in said.needs_python:
            assert (
                said.faults[row].partition(":")[0] if row in said.faults else bool(said.passed[row])
            ) == one
    assert len(set(expected)) > 1 or body == "pass"


@pytest.mark.parametrize("body", REFUSED)
def test_what_cannot_be_compiled_names_line_and_reason(body: str) -> None:
    with pytest.raises(NotCompilable, match=r"^line \d+: ") as caught:
        compile_python(HEAD + "    " + body + "\n")
    assert REFUSED[body] in str(caught.value)


@pytest.mark.parametrize("header", ["import numpy as np", "from numpy import tau"])
def test_numpy_has_no_tau(header: str) -> None:
    """As Python says, for each alert: what is not there does not compile."""
    value = "np.tau" if header.endswith("np") else "tau"
    with pytest.raises(NotCompilable, match="NumPy has no tau"):
        compile_python(f"{header}\ndef keep(alert):\n    return alert.ra > {value}")
    assert compile_python("import math\ndef keep(alert):\n    return alert.ra > math.tau").cost


def test_what_is_no_filter_is_refused() -> None:
    with pytest.raises(FilterError, match="no function keep"):
        compile_python("def other(alert): return 1")
    with pytest.raises(FilterError, match="line 1: "):
        compile_python("def keep(alert: return 1")


@pytest.mark.parametrize(
    "value",
    [
        "2 ** 10 ** 9",
        "'a' * 10 ** 10",
        "alert.band * 10 ** 9",
        "'%1000000000d' % 1",
        "10.0 ** 400",
        "(3 ** 60) ** 60",
        "round(alert.visit, -(10 ** 9))",
        "int('9' * 5000)",
        "alert.visit ** alert.visit ** alert.visit",
    ],
)
def test_nothing_grows_without_bound(value: str) -> None:
    """What could is left to Python itself, which runs it where it can do no harm."""
    said = evaluate(compile_python(f"def keep(alert):\n    return {value}"), table(ALERTS))
    assert len(said.needs_python) + len(said.faults) >= len(ALERTS) - 1
    assert said.passed.sum() <= 1


def test_branches_and_helpers_that_multiply_are_refused() -> None:
    branches = "".join(
        f"    if a.visit > {n}:\n        if a.ra:\n            return {n}\n" for n in range(40)
    )
    with pytest.raises(NotCompilable, match="more than 5,000 statements"):
        compile_python(f"def keep(a):\n{branches}    return 1")
    helpers = "".join(f"def f{n}(a):\n    return f{n + 1}(a) + f{n + 1}(a)\n" for n in range(18))
    with pytest.raises(NotCompilable, match="more than 5,000 statements"):
        compile_python(f"{helpers}def f18(a):\n    return a.ra\ndef keep(a):\n    return f0(a)")


def test_a_fault_says_what_python_says_and_where() -> None:
    source = "def low(value):\n    return value < 19\ndef keep(alert):\n    return low(alert.magnitude)"
    said = evaluate(compile_python(source), table(ALERTS))
    nothing = next(row for row, view in enumerate(views(ALERTS)) if view.magnitude is None)
    expected = "TypeError: '<' not supported between instances of 'NoneType' and 'int'"
    assert said.faults[nothing] == f"{expected} (line 2: return value < 19)"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("alert['prvDiaSources'][0]", "TypeError: 'NoneType' object is not subscriptable"),
        ("alert['prvDiaSources'][:2]", "TypeError: 'NoneType' object is not subscriptable"),
        ("[s for s in alert['prvDiaSources']]", "TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_a_list_that_is_none_is_told_as_python_tells(value: str, said: str) -> None:
    found = evaluate(compile_python(f"def keep(alert):\n    x = {value}\n    return 1"), table(ALERTS))
    nothing = [row for row, one in enumerate(ALERTS) if one["prvDiaSources"] is None]
    assert nothing
    assert {found.faults[row].partition(" (line")[0] for row in nothing} == {said}


def test_a_text_that_is_gone_over_is_left_to_python() -> None:
    """Of the survey's fields it is not known which are lists until alerts are there."""
    for value in ("alert['diaSource']['band']", "alert['diaSource']['band'] or []"):
        said = evaluate(
            compile_python(f"def keep(alert):\n    return len([s for s in {value}])"), table(ALERTS)
        )
        texts = [row for row, one in enumerate(ALERTS) if one["diaSource"]["band"] is not None]
        assert said.needs_python.tolist() == texts


def test_a_fault_of_a_point_names_the_line_too() -> None:
    helper = "def low(point):\n    return point.flux < 3\ndef keep(alert):\n"
    looped = "    n = 0\n    for p in alert.history:\n        if p.band == 'r':\n            n += p.flux"
    for body, line in (("    return any(low(p) for p in alert.history)", 2), (f"{looped}\n    return n", 7)):
        said = evaluate(compile_python(helper + body), table(ALERTS))
        assert said.faults
        assert all(f"(line {line}: " in fault for fault in said.faults.values())


def test_what_fails_first_is_told() -> None:
    """A sum fails at the first point that cannot be added, before a later one cannot be read."""
    some = table(ALERTS)
    looped = "    n = 0\n    for p in a.history:\n        if {}:\n            n += p.snr\n    return n"
    for body in (
        looped,
        "    return sum(p.snr for p in a.history if {})",
        "    return max((p.snr for p in a.history if {}), default=0)",
    ):
        source = f"def keep(a):\n{body.format('p.mjd_tai / p.flux > 3')}"
        said = evaluate(compile_python(source), some)
        kinds = {row: fault.partition(":")[0] for row, fault in said.faults.items()}
        assert kinds == {row: one for row, one in enumerate(answers(source)) if isinstance(one, str)}
        assert {*kinds.values()} == {"TypeError", "ZeroDivisionError"}


def test_programs_judged_together_say_what_they_say_alone() -> None:
    sources = [HEAD + "    " + body.strip("\n").removeprefix("    ") + "\n" for body in COMPILES.values()]
    programs = [compile_python(source) for source in sources]
    columns = table(ALERTS)
    for together, program in zip(evaluate_all(programs, columns), programs, strict=True):
        alone = evaluate(program, columns)
        assert together.passed.tolist() == alone.passed.tolist()
        assert together.faults == alone.faults
        assert repr(together.rank.tolist()) == repr(alone.rank.tolist())


@pytest.mark.slow
def test_what_stopped_an_alert_is_found_over_columns_as_well() -> None:
    columns, rows = table(ALERTS), views(ALERTS)
    for body in COMPILES.values():
        source = HEAD + "    " + body.strip("\n").removeprefix("    ") + "\n"
        asking, _ = instrumented_copy(source, "keep")
        said, number = evaluate(compile_python(asking), columns), compile_filter(asking, "keep")
        unknown = {*said.faults, *said.needs_python.tolist()}
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for at in set(range(len(rows))) - unknown:
                assert number(rows[at]) == (said.rank[at] if said.passed[at] else 0)


def test_what_programs_share_is_paid_for_by_all_of_them() -> None:
    # two nodes in common, the second has one of them twice
    shares = CostShares([[0, 1, 2], [0, 1, 1, 3]])
    assert shares.costs([2.0, 4.0, 8.0, 16.0], [0.0, 0.0], 30.0).tolist() == [11.0, 19.0]
    assert shares.costs([2.0, 4.0, 8.0, 16.0], [3.0, 7.0], 20.0).tolist() == [
        7.0,
        13.0,
    ]  # the clock is shared
    assert CostShares([]).costs([], [], 1.0).tolist() == []
    twins = [compile_python(HEAD + "    return alert.flux > 3\n")] * 2
    first, second = evaluate_all(twins, table(ALERTS))
    assert min(first.cpu_s, second.cpu_s) > 0.0


def test_no_alerts_are_judged_as_well() -> None:
    programs = [
        compile_python(HEAD + "    " + body.strip("\n").removeprefix("    ") + "\n")
        for body in COMPILES.values()
    ]
    for said in evaluate_all(programs, table([])):
        assert len(said.passed) == len(said.rank) == 0


def test_a_program_comes_out_of_its_text_as_it_went_in() -> None:
    for body in COMPILES.values():
        program = compile_python(HEAD + "    " + body.strip("\n").removeprefix("    ") + "\n")
        again = Program.loads(program.dumps())
        assert again == program
        assert again.names == program.names
    special = compile_python("def keep(a):\n    return a.ra in (1e999, 1.5, None) or a.ra in {1, 'x'}")
    assert Program.loads(special.dumps()) == special


def test_names_are_what_is_read() -> None:
    said = "a.flux > 1 and a['diaObject'] and a['diaSource']['psfNdata'] and len(a.history)"
    source = f"def keep(a):\n    return {said}"
    assert set(compile_python(source).names) == {
        *("flux", "diaObject", "diaSource.psfNdata", "diaSource?", "history.mjd_tai"),
    }


NODES: dict[str, list[Any]] = {
    "no such operation": [["system", "ls"]],
    "healpix_at cannot take": [["healpix_at", 30]],
    "np.quantile cannot take": [["points", "history"], ["item", 0, "flux"], ["np.quantile", 0, 1, "9"]],
    "before reads of a list without its first": [
        *(["points", "history"], ["item", 0, "flux"], ["slice", 0, None, -1], ["before", 2, 1]),
        ["sum", 2, 3],
    ],
    "nth mixes values": [["points", "history"], ["item", 0, "flux"], ["nth", 0, 1], ["chosen", 2]],
    "fold mixes values": [["points", "history"], ["item", 0, "flux"], ["fold", 1, 0, 1]],
    "does not take 1 arguments": [["const", 1], ["+", 0]],
    "cannot take '1'": [["+", 1, 1]],
    "cannot take '-1'": [["const", 1], ["+", 0, -1]],
    "no verdict": [["points", "history"]],
    "a list of points where there is none": [["const", 1], ["count", 0]],
    "mixes values": [
        *(["points", "history"], ["item", 0, "flux"], ["points", "light_curve"], ["item", 2, "flux"]),
        *(["+", 1, 3], ["const", 1]),
    ],
    "several constants": [["const", [0]], ["const", 9], ["*", 0, 1]],
    "item reads of points": [
        *(["points", "history"], ["slice", 0, 1, None], ["item", 1, "flux"], ["any", 1, 2]),
    ],
    "cannot take": [["const", {"x": 1}]],
    "limit is 2,000": [["const", 1]] * 2_001,
    "costs": [
        *(["points", "history"], ["item", 0, "flux"]),
        *[["math.sin", at] for at in range(1, 90)],
        ["any", 0, 90],
    ],
}


@pytest.mark.parametrize("why", NODES)
def test_a_program_that_was_tampered_with_is_refused(why: str) -> None:
    nodes = NODES[why]
    text = json.dumps({"nodes": nodes, "lines": [1] * len(nodes), "texts": {}})
    with pytest.raises(FilterError, match=why):
        Program.loads(text)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"nodes": [1], "lines": [1], "texts": {}}', "[" * 100_000, "x" * 400_001]
)
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(FilterError, match="program"):
        Program.loads(text)
